"""What newcomers write: the error is one of ours, and says what was expected and what to do."""

from __future__ import annotations

import numpy as np
import pytest

from polygrad import Tensor, nn
from polygrad.errors import ArgumentError, DTypeError, PolygradError, ShapeError

X, V, I = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), Tensor([1.0, 2.0, 3.0]), Tensor([0, 1])
NAMES = {"Tensor": Tensor, "nn": nn, "np": np, "x": X, "v": V, "i": I}
# What is written, the error, and what its text has.
CALLS: list[tuple[str, type[PolygradError], str]] = [
    ("x.sum(colour=3)", ArgumentError, "expected arguments axis, keepdim, dtype, got colour="),
    ("x.cross_entropy([0, 1])", DTypeError, r"Y: expected a Tensor, got list: use Tensor\(...\)"),
    ("x.cross_entropy(np.array([0, 1]))", DTypeError, "Y: expected a Tensor, got ndarray"),
    ("x.mse_loss(None)", DTypeError, "Y: expected a Tensor, got None"),
    ("x.dot(None)", DTypeError, "w: expected a Tensor, got None"),
    ("x.conv2d(None)", DTypeError, "weight: expected a Tensor, got None"),
    ("x.conv2d(v)", ShapeError, "a weight"),
    ("Tensor.ones(1, 1, 3, 3).conv2d(Tensor.ones(1, 1, 2, 2), padding='same')", ArgumentError, "got 'same'"),
    ("x.sum().gradient(None)", DTypeError, "targets: expected a Tensor, got None"),
    ("x.sum().gradient([x])", DTypeError, "targets: expected a Tensor, got list"),
    ("x.realize(3)", DTypeError, "expected a Tensor, got int"),
    ("x.gather(1, [[0], [1]])", DTypeError, "index: expected a Tensor, got list"),
    ("x.ctc_loss(3, [1], [1])", DTypeError, "targets: expected a Tensor, got int"),
    (
        "Tensor.ones(3, 2, 4).ctc_loss(i, [3, 3], [2, 1])",
        ShapeError,
        r"all lengths \[2, 1\], got shape \(2,\)",
    ),
    ("x + None", DTypeError, "got None"),
    ("x @ None", DTypeError, "got None"),
    ("x.reshape(-1.0)", ShapeError, r"reshape: expected sizes of at least 0, got \(-1.0,\)"),
    ("x.expand(-1.0, 3)", ShapeError, r"expand: expected sizes of at least 0, got \(-1.0, 3\)"),
    ("nn.Linear(4, 3)(x.sum())", ShapeError, r"an input with at least 1 axis, got shape \(\)"),
    ("x.affine_grid((2, 1, 3, 4))", ShapeError, r"expected maps \(n, d, d \+ 1\) for a size"),
    ("Tensor.ones(2, 1, 2).affine_grid((2, 1, 3.0))", ShapeError, r"got \(2, 1, 2\) and \(2, 1, 3.0\)"),
    ("Tensor.ones(2, 1, 2).affine_grid((3, 1, 3))", ShapeError, r"got \(2, 1, 2\) and \(3, 1, 3\)"),
    ("x.sum(axis=1.0)", ArgumentError, "got 1.0"),
    ("x.pad(1)", ArgumentError, r"pad: expected \(before, after\) for each axis"),
    ("x.contiguous(1)", ArgumentError, "expected opts as text"),
    ("Tensor.arange('3')", ArgumentError, "stop: expected a number, got '3'"),
    ("Tensor.manual_seed('a')", ArgumentError, "expected an int, got 'a'"),
    ("Tensor(np.array([None, 1]))", DTypeError, "'O': use .astype"),
    ("nn.optim.SGD([1.0])", ArgumentError, "expected a sequence of Tensors, got one with a float"),
    ("nn.optim.SGD([v], lr='a')", ArgumentError, "SGD: lr: expected a number of at least 0, got a"),
]


@pytest.mark.parametrize(("call", "error", "text"), CALLS, ids=[c[0] for c in CALLS])
def test_the_error_says_what_was_expected(call: str, error: type[PolygradError], text: str) -> None:
    with pytest.raises(error, match=text):
        eval(call, NAMES)


def test_errors_that_arguments_do_not_explain_stay_as_they_are() -> None:
    def backward(gradient: Tensor, value: Tensor, x: Tensor) -> Tensor:
        return gradient.no_such_method()

    y = X._with_backward([X], backward)
    with pytest.raises(AttributeError, match="no_such_method") as caught:
        y.sum().gradient(X)
    assert not isinstance(caught.value, PolygradError)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        X.gather(0)
