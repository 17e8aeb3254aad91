"""A Tensor as Python's numbers and text, and among numpy's arrays and torch's tensors."""

from __future__ import annotations

import math

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
