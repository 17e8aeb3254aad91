"""Random tensors: determinism, independence of draws, ranges and moments.

The bits themselves against the oracle.
"""

from __future__ import annotations

import numpy as np
import pytest
from tensor.oracle import threefry

from polygrad import Tensor
from polygrad.errors import ArgumentError, DTypeError
from polygrad.tensor.core import generator


@pytest.fixture(autouse=True)
def _seeded():
    Tensor.manual_seed(42)


def test_the_same_seed_gives_the_same_numbers_and_draws_differ():
    first = [Tensor.rand(100).numpy(), Tensor.rand(100).numpy(), Tensor.randn(10).numpy()]
    Tensor.manual_seed(42)
    again = [Tensor.rand(100).numpy(), Tensor.rand(100).numpy(), Tensor.randn(10).numpy()]
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not (first[0] == first[1]).any()
    Tensor.manual_seed(43)
    assert not (Tensor.rand(100).numpy() == first[0]).any()


def test_the_order_of_computing_does_not_matter():
    a, b = Tensor.rand(50), Tensor.rand(50)
    late = [b.numpy(), a.numpy()]
    Tensor.manual_seed(42)
    np.testing.assert_array_equal(Tensor.rand(50).numpy(), late[1])
    np.testing.assert_array_equal(Tensor.rand(50).numpy(), late[0])


def test_the_bits_are_threefrys():
    got = Tensor.rand(1000, contiguous=False).numpy()
    key = np.full(1000, generator.mix(42), np.uint64)
    bits = threefry(np.arange(1000, dtype=np.uint64), key)
    np.testing.assert_array_equal(
        got, ((bits.astype(np.uint32) >> 8) * np.float32(2**-24)).astype(np.float32)
    )


def test_threefry_itself_gives_the_published_answers():
    # Random123's known answers for threefry2x32, 20 rounds
    def pair(c, k):
        out = int(
            threefry(np.array([c[0] | c[1] << 32], np.uint64), np.array([k[0] | k[1] << 32], np.uint64))[0]
        )
        return out & 0xFFFFFFFF, out >> 32

    ones = (0xFFFFFFFF, 0xFFFFFFFF)
    assert pair((0, 0), (0, 0)) == (0x6B200159, 0x99BA4EFE)
    assert pair(ones, ones) == (0x1CB996FC, 0xBB002BE7)
    assert pair((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344)) == (0xC4923A9C, 0x483DF7A0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_rand_is_uniform_in_0_to_1(dtype):
    x = Tensor.rand(200, 100, dtype=dtype)
    assert x.dtype == dtype
    x = x.numpy().astype(np.float64)
    assert 0 <= x.min() and x.max() < 1 and abs(x.mean() - 0.5) < 0.01 and abs(x.std() - 12**-0.5) < 0.01
    assert abs(np.corrcoef(x[:, :-1].ravel(), x[:, 1:].ravel())[0, 1]) < 0.03


def test_randn_is_normal():
    x = Tensor.randn(200, 100).numpy()
    assert abs(x.mean()) < 0.03 and abs(x.std() - 1) < 0.03 and np.isfinite(x).all()
    assert abs((x**3).mean()) < 0.1 and abs((x**4).mean() - 3) < 0.3
    assert Tensor.randn(3, dtype="float16").dtype == "float16"


def test_a_normal_number_is_made_of_the_two_words_of_one_draw_within_1e_6():
    got = Tensor.randn(1000).numpy()
    key = np.full(1000, generator.mix(42), np.uint64)
    bits = threefry(np.arange(1000, dtype=np.uint64), key)
    uniform = (bits.astype(np.uint32) >> 8) * 2.0**-24
    angle = (bits >> 32).astype(np.uint32).astype(np.int32) * (np.pi * 2.0**-32)
    expected = np.sin(angle) * np.sqrt(-2.0 * np.log(1.0 - uniform))
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)


def test_normal_numbers_of_float64_have_two_draws_within_1e_12():
    if Tensor.zeros(1).device == "WEBGPU":
        pytest.skip("WGSL has no float64")
    got = Tensor.randn(500, dtype="float64").numpy()
    key = np.full(1000, generator.mix(42), np.uint64)
    first, second = ((threefry(np.arange(1000, dtype=np.uint64), key) >> 11) * 2.0**-53).reshape(2, 500)
    expected = np.cos(2 * np.pi * first) * np.sqrt(-2.0 * np.log(1.0 - second))
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_normal_numbers_are_symmetric_and_have_the_tails_of_a_normal_distribution(dtype):
    if dtype == "float64" and Tensor.zeros(1).device == "WEBGPU":
        pytest.skip("WGSL has no float64")
    x = np.sort(Tensor.randn(100_000, dtype=dtype).numpy().astype(np.float64))
    levels = np.array([-3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0])
    below = np.array([0.00135, 0.02275, 0.158655, 0.308538, 0.5, 0.691462, 0.841345, 0.97725, 0.99865])
    found = np.searchsorted(x, levels) / x.size
    deviation = np.sqrt(below * (1 - below) / x.size)  # of a share; that of a tail is small
    assert (np.abs(found - below) < np.minimum(0.006, 5 * deviation)).all()
    assert abs(np.corrcoef(x[:-1], Tensor.randn(99_999).numpy())[0, 1]) < 0.02


@pytest.mark.parametrize(
    ("low", "high", "dtype"), [(0, 10, "int32"), (-5, 5, "int8"), (0, 2**32, "int64"), (7, 8, "uint8")]
)
def test_randint_covers_its_range(low, high, dtype):
    x = Tensor.randint(5000, low=low, high=high, dtype=dtype).numpy().astype(np.int64)
    assert x.min() >= low and x.max() < high
    if high - low <= 10:
        assert set(x) == set(range(low, high))
    else:
        assert abs(x.mean() / (high - low) - 0.5) < 0.03


def test_scaled_initialisers():
    for make, shape, bound in [
        (Tensor.scaled_uniform, (60, 60), 1 / 60),
        (Tensor.glorot_uniform, (36, 60), (6 / 96) ** 0.5),
        (Tensor.kaiming_uniform, (60, 60), 3**0.5 * (2 / 1.0001) ** 0.5 / 60**0.5),
    ]:
        x = make(*shape).numpy()
        assert np.abs(x).max() <= bound * 1.0001 and np.abs(x).max() > bound * 0.98
    x = Tensor.normal(100, 100, mean=3.0, std=0.5).numpy()
    assert abs(x.mean() - 3) < 0.03 and abs(x.std() - 0.5) < 0.03
    x = Tensor.uniform(5000, low=-3, high=7).numpy()
    assert x.min() >= -3 and x.max() < 7 and abs(x.mean() - 2) < 0.2


def test_randperm_is_a_permutation():
    x = Tensor.randperm(50).tolist()
    assert sorted(x) == list(range(50)) and x != list(range(50))


def test_multinomial_draws_by_weight():
    x = np.array(Tensor([0.0, 1.0, 3.0, 0.0]).multinomial(2000, replacement=True).tolist())
    assert set(x) == {1, 2} and abs((x == 2).mean() - 0.75) < 0.04


def test_dropout_drops_in_training_only_and_agrees_with_its_gradient():
    x = Tensor.ones(10000, requires_grad=True)
    assert x.dropout(0.3) is x
    with Tensor.train():
        y = x.dropout(0.3)
    loss = y.sum()
    loss.item()
    loss.backward()
    got = y.numpy()
    np.testing.assert_array_equal(got, x.grad.numpy())
    assert abs((got == 0).mean() - 0.3) < 0.02 and got.max() == pytest.approx(1 / 0.7)
    assert not Tensor.training


def test_like():
    x = Tensor.zeros(3, 4, dtype="float16")
    assert x.rand_like().shape == (3, 4) and x.randn_like().dtype == "float16"


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: Tensor.rand(2, dtype="int32"), DTypeError),
        (lambda: Tensor.randint(2, low=3, high=3), ArgumentError),
        (lambda: Tensor.randint(2, high=300, dtype="uint8"), ArgumentError),
        (lambda: Tensor.randint(2, dtype="float32"), DTypeError),
        (lambda: Tensor.ones(2).dropout(1.5), ArgumentError),
        (lambda: Tensor.ones(2).multinomial(3), ArgumentError),
    ],
)
def test_bad_arguments(call, error):
    with pytest.raises(error):
        call()
