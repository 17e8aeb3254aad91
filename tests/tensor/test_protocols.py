"""A Tensor as Python's numbers and text, and among numpy's arrays and torch's tensors."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch

from polygrad import Tensor
from polygrad.errors import ShapeError
from polygrad.tensor.core.aliasing import memory_under


def test_a_scalar_is_a_number_wherever_python_wants_one() -> None:
    t = Tensor([1.5], requires_grad=True)
    loss = (t * t).sum()
    assert f"{loss:.4f}" == "2.2500" and f"{loss}" == "2.25" and f"{loss:6.1f}" == "   2.2"
    assert round(loss, 1) == 2.2 and round(loss) == 2 and math.sqrt(loss) == 1.5
    assert (math.floor(loss), math.ceil(loss), math.trunc(loss)) == (2, 3, 2)
    assert 0 < loss < 3 and [10, 20, 30][Tensor(2)] == 30
    loss.backward()
    assert t.grad.tolist() == [3]


def test_divmod_is_quotient_and_remainder() -> None:
    q, r = divmod(Tensor([7.0, -7.0]), 2)
    assert (q.tolist(), r.tolist()) == ([3, -4], [1, 1])
    q, r = divmod(7, Tensor([2, 3]))
    assert (q.tolist(), r.tolist()) == ([3, 2], [1, 1])


def test_more_elements_are_no_number() -> None:
    with pytest.raises(ShapeError):
        f"{Tensor([1.0, 2.0]):.2f}"
    assert f"{Tensor([1.0, 2.0])}" == str(Tensor([1.0, 2.0]))
    for convert in (float, int, round, bool):
        with pytest.raises(ShapeError):
            convert(Tensor([1.0, 2.0]))


def test_text_shows_what_is_computed_and_computes_nothing() -> None:
    w = Tensor([1.0, 2.0], requires_grad=True, device="CPU")
    y = w * 2
    assert "lazy: tolist() shows it" in repr(y)
    assert y.uop.value is None
    y.realize()
    assert repr(y) == "Tensor([2., 4.], float32 on CPU)" and memory_under(y.uop) is None
    y.sum().backward()
    assert w.grad.tolist() == [2, 2]


def test_numpys_functions_take_tensors() -> None:
    x, a = Tensor([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0], np.float32)
    np.testing.assert_allclose(np.sin(x), np.sin(a), rtol=1e-6)
    assert np.max(x) == 3 and np.add.reduce(x) == 6 and np.mean(x) == 2
    np.testing.assert_array_equal(np.concatenate([x, x]), np.concatenate([a, a]))
    np.testing.assert_array_equal(np.stack([x, x + 1]), np.stack([a, a + 1]))
    np.testing.assert_array_equal(np.asarray(x), a)
    np.testing.assert_array_equal(np.array([x, x]), np.array([a, a]))
    assert np.allclose(x, a)


def test_operators_between_arrays_and_tensors_give_tensors_with_gradients() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    a = np.array([3.0, 4.0], np.float32)
    for y in (a * x, np.float32(2) * x, a - x, a / x, a @ x, a**x, a > x):
        assert isinstance(y, Tensor)
    (a * x).sum().backward()
    assert x.grad.tolist() == [3, 4]
    assert (a - x).tolist() == [2, 2] and (a > x).tolist() == [True, True]


def test_torchs_tensors_are_taken() -> None:
    assert Tensor(torch.tensor([1.0, 2.0], requires_grad=True)).tolist() == [1, 2]
    halves = Tensor(torch.tensor([[1.5, 2.0]], dtype=torch.bfloat16, requires_grad=True).T)
    assert halves.dtype == "bfloat16" and halves.tolist() == [[1.5], [2.0]]
    assert Tensor(torch.tensor([1.5], dtype=torch.bfloat16), dtype="float32").tolist() == [1.5]
    np.testing.assert_array_equal(torch.from_numpy(np.array(Tensor([1, 2]))).numpy(), [1, 2])


X = Tensor([[1.0, 3.0, 2.0, 4.0], [8.0, 6.0, 7.0, 5.0]])
IMAGE, KERNEL = X.reshape(1, 1, 2, 4).pad((0, 0, 1, 1)), Tensor.ones(1, 1, 2, 2)
# Calls with counts of each kind: sizes, axes, shifts, windows, numbers of elements.
COUNTS = [
    "X.reshape(4, -1)", "X.expand(3, -1, 4)", "X.unflatten(-1, (2, -1))", "X.roll(1)", "X.roll(1, -1)",
    "X.roll((1, 2), (0, 1))", "X.movedim(0, -1)", "X.unfold(1, 2, 1)", "X.split(3, 1)", "X.chunk(2, 1)",
    "X.pad((1, 2))", "X.pad((1, 1), mode='reflect')", "Tensor.cat((X, X), 1)", "Tensor.stack((X, X), -1)",
    "X.kthvalue(2)", "X.topk(2)", "X.mvlgamma(1)", "X.polygamma(1)", "X[0].vander(3)", "X.int().one_hot(9)",
    "IMAGE.conv2d(KERNEL, stride=2, padding=1)", "IMAGE.conv_transpose2d(KERNEL, stride=2, output_padding=1)",
    "IMAGE.max_pool2d(2, 1, padding=1)", "IMAGE.avg_pool2d((2, 1), dilation=2)", "IMAGE.pool((2, 2), 1, 2)",
    "IMAGE.adaptive_avg_pool2d(2)", "IMAGE.adaptive_max_pool2d((2, 1))", "IMAGE.interpolate((3, 2))",
    "IMAGE.interpolate(3, mode='nearest')", "X.reshape(4, 2).fft2(dim=0)",
    "X.reshape(4, 2).irfft(5, 0)", "X.fftshift(0)",
    "Tensor.fftfreq(5)", "Tensor.rfftfreq(5)", "Tensor.full((2,), 7)", "Tensor.full((2,), -1, dtype='int8')",
    "Tensor.arange(2, 9, 3)", "Tensor.linspace(0, 1, 5)", "Tensor.randperm(5)",
    "Tensor.randint(4, low=2, high=9)",
]  # fmt: skip


@pytest.mark.parametrize("call", COUNTS)
def test_counts_are_numbers_of_numpys_too(call: str) -> None:
    outputs = []
    for text in (call, re.sub(r"(?<![\w.])-?\d+(?![\w.])", r"np.int64(\g<0>)", call)):
        Tensor.manual_seed(3)
        out = eval(text)
        outputs.append([out] if isinstance(out, Tensor) else list(out))
    for ours, want in zip(*outputs, strict=True):
        assert ours.shape == want.shape and ours.dtype == want.dtype
        assert ours.uop is want.uop or ours.tolist() == want.tolist()


def test_a_number_of_numpys_fills_as_pythons() -> None:
    for number, dtype in ((np.float32(0.5), "float32"), (np.int8(3), "int32"), (np.bool_(True), "bool")):
        filled = Tensor.full((2,), number)
        assert filled.dtype == dtype and filled.tolist() == [number.item()] * 2
