"""Derivatives of functions: torch.func is the judge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from polygrad import Tensor, TinyJit, hessian, jacfwd, jacrev, jvp, vjp, vmap
from polygrad.errors import ArgumentError, GradientError, ShapeError

pytestmark = pytest.mark.usefixtures("default_device")
rng = np.random.default_rng(2)
X, Y, W = (rng.normal(size=s).astype(np.float32) for s in ((3,), (2, 3), (3, 4)))

# Functions of x (3,), y (2, 3) and w (3, 4), as both libraries write them.
FUNCTIONS = {
    "elementwise": lambda x, y, w: x.sin() * x.exp(),
    "product": lambda x, y, w: (y * x) @ w,
    "scalar": lambda x, y, w: ((y * x) @ w).tanh().sum(),
    "softmax": lambda x, y, w: (y + x).softmax(1),
    "linear": lambda x, y, w: x * 2 + y.sum(0),
    "constant": lambda x, y, w: (w * w).sum(),
    "max": lambda x, y, w: (y * x).amax(1),
    "twice the same": lambda x, y, w: (
        x.outer(x).sum(0) if isinstance(x, Tensor) else torch.outer(x, x).sum(0)
    ),
}


def both(call: Any) -> tuple[Any, Any]:
    import torch.func as theirs

    class Ours:
        vjp, jvp, jacrev, jacfwd, hessian = map(staticmethod, (vjp, jvp, jacrev, jacfwd, hessian))

    return call(Ours, *map(Tensor, (X, Y, W))), call(theirs, *map(torch.tensor, (X, Y, W)))


def same(ours: Any, theirs: Any, atol: float = 1e-5) -> None:
    if isinstance(theirs, torch.Tensor):
        np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), rtol=1e-4, atol=atol)
    elif isinstance(theirs, dict):
        assert ours.keys() == theirs.keys()
        for k in theirs:
            same(ours[k], theirs[k], atol)
    else:
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            same(a, b, atol)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("argnums", [0, 1, (0, 2)])
@pytest.mark.parametrize("kind", ["jacrev", "jacfwd"])
def test_jacobians(name, argnums, kind):
    same(*both(lambda lib, *args: getattr(lib, kind)(FUNCTIONS[name], argnums)(*args)))


@pytest.mark.parametrize("name", ["elementwise", "scalar", "softmax", "linear"])
@pytest.mark.parametrize("argnums", [0, (0, 1)])
def test_hessians(name, argnums):
    same(*both(lambda lib, *args: lib.hessian(FUNCTIONS[name], argnums)(*args)), atol=1e-4)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_products_with_vectors(name):
    f = FUNCTIONS[name]
    same(*both(lambda lib, x, y, w: lib.jvp(f, (x, y, w), (x * 2, y + 1, w))))

    def pulled(lib: Any, x: Any, y: Any, w: Any) -> Any:
        out, pull_back = lib.vjp(f, x, y, w)
        return out, pull_back(out * 0 + 1.5)

    same(*both(pulled))


def test_trees_and_other_results():
    def f(d: Any, pair: Any) -> Any:
        return {"a": d["x"] * pair[0], "b": (pair[1].sum(), d["x"].sum())}

    def call(kind: str) -> Any:
        return lambda lib, x, y, w: getattr(lib, kind)(f, (0, 1))({"x": x}, (x * 2, y))

    same(*both(call("jacrev")))
    same(*both(call("jacfwd")))
    same(*both(lambda lib, x, y, w: lib.jacrev(lambda x: (x * x, x + 1), has_aux=True)(x)))
    same(*both(lambda lib, x, y, w: lib.jvp(lambda x: (x * x, x + 1), (x,), (x,), has_aux=True)))
    out, pull_back, aux = vjp(lambda x: (x * x, 7), Tensor(X), has_aux=True)
    assert aux == 7 and pull_back(out * 0 + 1)[0].tolist() == pytest.approx((2 * X).tolist())


def test_one_inside_another_in_vmap_and_captured():
    x = Tensor(Y)
    diagonal = vmap(hessian(lambda row: (row**4).sum()))(x)
    np.testing.assert_allclose(diagonal.numpy(), np.stack([np.diag(12 * r**2) for r in Y]), rtol=1e-4)
    third = jacfwd(hessian(lambda v: (v**3).sum()))(Tensor(X))
    want = np.zeros((3, 3, 3))
    want[range(3), range(3), range(3)] = 6
    np.testing.assert_allclose(third.numpy(), want, atol=1e-4)
    step = TinyJit(lambda v: jacrev(lambda u: u.sin())(v).realize())
    for scale in (1.0, 2.0, 3.0, 4.0):
        np.testing.assert_allclose(
            step((Tensor(X) * scale).realize()).numpy(), np.diag(np.cos(X * scale)), atol=1e-5
        )
    w = Tensor(X, requires_grad=True)
    jacrev(lambda u: u * w)(Tensor(X)).sum().backward()
    assert w.grad.tolist() == [1, 1, 1]
    with Tensor.no_grad():
        assert jacrev(lambda u: u * 2)(Tensor(X)).tolist() == [[2, 0, 0], [0, 2, 0], [0, 0, 2]]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: jacrev(lambda x: x, 1)(Tensor(X)), ArgumentError, "argnums"),
        (lambda: jacrev(lambda x: x)(Tensor([1])), GradientError, "floats"),
        (lambda: jacrev(lambda x: 3)(Tensor(X)), ArgumentError, "expected Tensors, got int"),
        (lambda: jvp(lambda x: x, Tensor(X), Tensor(X)), ArgumentError, "tuples"),
        (lambda: jvp(lambda x: x, (Tensor(X),), (Tensor(Y),)), ShapeError, "tangents"),
        (lambda: vjp(lambda x: x, Tensor(X))[1](Tensor(Y)), ShapeError, "cotangents"),
        (lambda: jacfwd(lambda x: x, has_aux=True)(Tensor(X)), ArgumentError, "has_aux"),
    ],
)
def test_wrong_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call()
