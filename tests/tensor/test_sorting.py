"""sort, argsort and topk against torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from polygrad import Tensor, Variable, dtypes
from polygrad.errors import ArgumentError

A = np.random.default_rng(0).integers(0, 6, (3, 9)).astype(np.float32)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_sort_is_stable_and_agrees_with_torch(dim, descending):
    values, positions = Tensor(A).sort(dim, descending)
    want = torch.tensor(A).sort(dim=dim, descending=descending, stable=True)
    np.testing.assert_array_equal(values.numpy(), want.values.numpy())
    np.testing.assert_array_equal(positions.numpy(), want.indices.numpy())
    np.testing.assert_array_equal(Tensor(A).argsort(dim, descending).numpy(), want.indices.numpy())


def test_sort_of_bools_and_short_axes():
    assert Tensor([True, False, True]).sort()[0].tolist() == [False, True, True]
    assert [t.tolist() for t in Tensor([[5], [4]]).sort()] == [[[5], [4]], [[0], [0]]]


SPECIAL = [float("nan"), float("inf"), -0.0, 0.0, -1.5, float("-inf"), float("nan"), 1e-45, 0.0, 2.0] * 5


@pytest.mark.parametrize("count", [10, 50])  # ranked, and through the network
@pytest.mark.parametrize("descending", [False, True])
def test_nan_is_the_greatest_and_zeros_are_equal(device, count, descending):
    want = torch.tensor(SPECIAL[:count]).sort(descending=descending, stable=True)
    values, positions = Tensor(SPECIAL[:count], device=device).sort(0, descending)
    np.testing.assert_array_equal(values.numpy(), want.values.numpy())
    assert positions.tolist() == want.indices.tolist()


EXTREMES = {
    dtypes.int8: torch.int8, dtypes.uint8: torch.uint8, dtypes.int32: torch.int32, dtypes.int64: torch.int64,
    dtypes.float16: torch.float16, dtypes.float64: torch.float64, dtypes.bool: torch.bool,
}  # fmt: skip


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", EXTREMES, ids=str)
def test_dtypes(device, dtype, descending):
    x = np.random.default_rng(3).integers(-100, 100, 70) * (1 << 55 if dtype is dtypes.int64 else 1)
    edges = [int(dtype.min), int(dtype.max)] if dtype.is_int else []
    theirs = torch.tensor([*x.tolist(), *edges]).to(EXTREMES[dtype])
    want = theirs.sort(descending=descending, stable=True)
    values, positions = Tensor(theirs.tolist(), dtype=dtype, device=device).sort(0, descending)
    assert values.tolist() == want.values.tolist() and positions.tolist() == want.indices.tolist()


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_the_upper_half_of_unsigned_numbers(device, dtype):
    x = np.array([1, 2**31, 5, np.iinfo(dtype).max, 0] * 9, dtype)
    out = Tensor(x.tolist(), dtype=dtype, device=device).argsort(0)
    assert out.tolist() == np.argsort(x, stable=True).tolist()


@pytest.mark.parametrize(
    ("shape", "dim"), [((3, 100), 1), ((100, 3), 0), ((2, 33, 4), 1), ((5000,), 0), ((64, 64), 0)]
)
def test_through_the_network(shape, dim):
    x = np.random.default_rng(1).integers(0, 40, shape).astype(np.float32)
    assert np.array_equal(Tensor(x).argsort(dim).numpy(), np.argsort(x, dim, stable=True))
    assert np.array_equal(Tensor(x).sort(dim)[0].numpy(), np.sort(x, dim))


def test_a_length_that_varies(device):
    n = Variable("n", 1, 60)
    x = np.random.default_rng(2).standard_normal(60).astype(np.float32)
    t = Tensor(x, device=device).realize()
    for length in (60, 1, 33):
        out = t[: n.bind(length)].sort(0)[0]
        assert out[:length].tolist() == np.sort(x[:length]).tolist()


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("k", [1, 5, 40])  # picked, and cut from all that is sorted
def test_topk_of_equals_takes_the_first(device, k, largest):
    x = np.random.default_rng(4).integers(0, 9, (2, 50)).astype(np.float32)
    values, positions = Tensor(x, device=device).topk(k, 1, largest)
    want = np.argsort(-x if largest else x, 1, stable=True)[:, :k]
    assert np.array_equal(positions.numpy(), want)
    assert np.array_equal(values.numpy(), np.take_along_axis(x, want, 1))


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize(
    ("n", "k"), [(511, 3), (512, 32), (513, 33), (700, 1), (1000, 7), (2999, 186), (5003, 40)]
)
@pytest.mark.parametrize("kind", ["ties", "distinct", "limits", "floats"])
def test_topk_of_long_rows_takes_the_first_of_equals(n, k, kind, largest):
    """Rows that are divided into blocks, of any width and with an incomplete last one."""
    rng = np.random.default_rng(n)
    lowest = np.iinfo(np.int32).min
    x = {
        "ties": rng.integers(0, 4, (2, n)).astype(np.int32),
        "distinct": rng.permuted(np.tile(np.arange(n, dtype=np.int32), (2, 1)), axis=1),
        "limits": rng.choice(
            np.array([lowest, lowest + 1, -1, 2**31 - 1], np.int32), (2, n), p=[0.97, 0.01, 0.01, 0.01]
        ),
        "floats": rng.choice(np.array([0.0, -0.0, np.inf, -np.inf, 1.5, -2.0], np.float32), (2, n)),
    }[kind]
    values, positions = Tensor(x).topk(k, 1, largest)
    wide = x.astype(np.float64)  # -x of the least int32 is no int32
    want = np.argsort(-wide if largest else wide, 1, stable=True)[:, :k]
    assert np.array_equal(positions.numpy(), want)
    assert np.array_equal(values.numpy(), np.take_along_axis(x, want, 1))


@pytest.mark.parametrize("k", [2, 40])
def test_topk_of_a_long_row_has_nan_as_the_greatest(device, k):
    x = np.random.default_rng(3).standard_normal(1500).astype(np.float32)
    x[[7, 600, 1400]] = np.nan
    positions = Tensor(x, device=device).topk(k)[1].tolist()
    least = np.argsort(np.where(np.isnan(x), -np.inf, -x), stable=True)[:k]
    assert positions == least.tolist()
    assert (
        Tensor(x, device=device).topk(k, largest=False)[1].tolist() == np.argsort(x, stable=True)[:k].tolist()
    )


def test_topk_of_none():
    assert [t.shape for t in Tensor(A).topk(0, 1)] == [(3, 0), (3, 0)]


def test_topk_and_its_gradient():
    values, positions = Tensor(A[0]).topk(3)
    assert (
        values.tolist() == sorted(A[0].tolist(), reverse=True)[:3]
        and A[0][positions.tolist()].tolist() == values.tolist()
    )
    assert Tensor(A[0]).topk(2, largest=False)[0].tolist() == sorted(A[0].tolist())[:2]
    x = Tensor([3.0, 1.0, 2.0])
    assert (x.topk(2)[0] * Tensor([10.0, 1.0])).sum().gradient(x)[0].tolist() == [10, 0, 1]
    with pytest.raises(ArgumentError, match="topk"):
        x.topk(4)
