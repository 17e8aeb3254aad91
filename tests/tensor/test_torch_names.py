"""Names that torch has for what others do: value, dtype and, of floats, gradient are torch's (rtol 1e-5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from polygrad import Tensor
from polygrad.errors import ArgumentError, AxisError, ShapeError

pytestmark = pytest.mark.usefixtures("default_device")
RNG = np.random.default_rng(11)
X = RNG.normal(size=(2, 4, 3)).astype(np.float32)
Y = RNG.normal(size=(2, 4, 3)).astype(np.float32)
P = (np.abs(RNG.normal(size=(2, 4, 3))) + 0.25).astype(np.float32)
MATRIX = RNG.normal(size=(3, 3)).astype(np.float32)
INTS = RNG.integers(-3, 4, (3, 4)).astype(np.int32)
FLAGS = INTS > 0
SPECIAL = np.array([-np.inf, -2.5, -0.0, 0.0, 1.5, np.inf, np.nan], np.float32)
SPECIAL_Y = np.array([np.nan, 1.0, 2.0, -0.0, -3.0, np.inf, 4.0], np.float32)
F = torch.nn.functional


def method(name: str, *arguments: Any, **keywords: Any) -> Callable[..., Any]:
    """A call of `name` on the first operand with the others, on either side."""

    def call(x: Any, *others: Any) -> Any:
        return getattr(x, name)(*others, *arguments, **keywords)

    call.__name__ = name
    return call


Case = tuple[Callable[..., Any], Callable[..., Any], tuple[np.ndarray, ...]]


def same(name: str, *operands: np.ndarray, arguments: tuple[Any, ...] = (), **keywords: Any) -> Case:
    """The same call of the same name in both."""
    call = method(name, *arguments, **keywords)
    return call, call, operands


CASES: list[Case] = [
    *[same(n, X) for n in ("absolute", "negative", "arctan", "arcsinh", "fix", "deg2rad", "rad2deg")],
    *[same(n, np.tanh(X)) for n in ("arccos", "arcsin", "arctanh")],
    same("arccosh", P + 1),
    *[same(n, X, Y) for n in ("subtract", "multiply", "arctan2", "greater", "less_equal", "not_equal")],
    *[same(n, X, P) for n in ("divide", "true_divide", "remainder", "hypot", "fmax", "fmin", "logaddexp2")],
    *[same(n, SPECIAL, SPECIAL_Y) for n in ("hypot", "fmax", "fmin", "logical_and", "heaviside")],
    *[same(n, SPECIAL) for n in ("isposinf", "isneginf", "signbit", "nansum", "nanmean", "sinc")],
    *[same(n, INTS, INTS[::-1].copy()) for n in ("logical_and", "logical_or", "logical_xor", "fmin")],
    same("signbit", INTS),
    same("floor_divide", INTS, np.where(INTS[::-1] == 0, 1, INTS[::-1])),
    same("frac", X * 3),
    same("sinc", X),
    same("clamp_min", X, arguments=(0.25,)),
    same("clamp_max", X, arguments=(0.25,)),
    same("addcmul", X, Y, P, value=0.5),
    same("addcdiv", X, Y, P, value=0.5),
    (method("glu", dim=1), lambda x: F.glu(x, 1), (X,)),
    (method("hardshrink"), F.hardshrink, (X,)),
    (method("softshrink", 0.25), lambda x: F.softshrink(x, 0.25), (X,)),
    (method("tanhshrink"), F.tanhshrink, (X,)),
    (method("threshold", 0.2, 7.0), lambda x: F.threshold(x, 0.2, 7.0), (X,)),
    (method("prelu"), F.prelu, (X, np.array([0.25], np.float32))),
    (method("prelu"), F.prelu, (X, np.array([0.25, 0.5, 1.0, 2.0], np.float32))),
    *[
        (method(f.__name__, reduction), lambda x, y, f=f, r=reduction: f(x, y, reduction=r), (X, Y))
        for f in (F.mse_loss, F.l1_loss, F.smooth_l1_loss)
        for reduction in ("mean", "sum", "none")
    ],
    (method("smooth_l1_loss", beta=0.25), lambda x, y: F.smooth_l1_loss(x, y, beta=0.25), (X, Y)),
    (method("smooth_l1_loss", beta=0), lambda x, y: F.smooth_l1_loss(x, y, beta=0), (X, Y)),
    (method("gaussian_nll_loss"), F.gaussian_nll_loss, (X, Y, P)),
    (
        method("gaussian_nll_loss", full=True, eps=1.0),
        lambda *a: F.gaussian_nll_loss(*a, full=True, eps=1),
        (X, Y, P),
    ),
    (method("cosine_similarity", dim=-1), lambda x, y: F.cosine_similarity(x, y, -1), (X, Y)),
    (method("binary_cross_entropy_with_logits"), F.binary_cross_entropy_with_logits, (X, P / (1 + P))),
    (method("binary_cross_entropy"), F.binary_cross_entropy, (P / (1 + P), P / (2 + P))),
    # movement
    same("swapaxes", X, arguments=(0, 2)),
    same("broadcast_to", X[:1], arguments=((5, 4, 3),)),
    same("dim", X),
    same("nelement", X),
    same("ravel", X),
    same("t", INTS),
    same("t", X[0, 0]),
    same("movedim", X, arguments=(0, 2)),
    same("moveaxis", X, arguments=((2, 0), (0, 1))),
    same("tile", X, arguments=(2, 1)),
    same("tile", X, arguments=(2, 1, 1, 2)),
    same("unbind", X, arguments=(1,)),
    same("narrow", X, arguments=(1, 1, 2)),
    same("narrow", X, arguments=(1, -2, 2)),
    same("select", X, arguments=(-1, -2)),
    same("expand_as", X[:1], X),
    same("reshape_as", X, X.reshape(4, 6)),
    same("view_as", X, X.reshape(4, 6)),
    same("type_as", X, INTS),
    same("flipud", X),
    same("fliplr", X),
    *[same("rot90", X, arguments=(k, (1, 2))) for k in (0, 1, 2, 3, -1, 6)],
    same("diff", X),
    same("diff", X, n=2, dim=1),
    same("diff", X, n=9, dim=1),
    same("diff", FLAGS, dim=1),
    same("diag_embed", X),
    (method("pixel_shuffle", 2), lambda x: F.pixel_shuffle(x, 2), (X.reshape(1, 8, 3, 1),)),
    (method("pixel_unshuffle", 2), lambda x: F.pixel_unshuffle(x, 2), (X.reshape(1, 6, 2, 2),)),
    # indexing
    same("index_select", X, arguments=(1,), index=np.array([3, 0, 0])),
    same("take", X, index=np.array([[23, 0], [-1, 5]])),
    same("take_along_dim", X, dim=1, indices=np.array([[[2, 0, 1]]])),
    same("take_along_dim", X, indices=np.array([5, 7])),
    same("argwhere", INTS),
    same("scatter_add", X, dim=1, index=np.zeros((2, 2, 3), np.int64), src=Y),
    same("index_add", X, dim=1, index=np.array([1, 1, 3]), source=Y[:, :3], alpha=0.5),
    same("index_fill", X, dim=2, index=np.array([0, -1]), value=7.0),
    # reductions
    same("amax", X, arguments=((0, 2),)),
    same("amin", X, arguments=(1,)),
    same("count_nonzero", INTS, arguments=(1,)),
    *[same("norm", X, arguments=(p,)) for p in (0, 1, 2, 3.0, float("inf"), float("-inf"))],
    same("dist", X, Y),
    # products
    same("mm", MATRIX, MATRIX),
    same("bmm", X, Y.swapaxes(1, 2).copy()),
    same("mv", MATRIX, MATRIX[0]),
    same("ger", MATRIX[0], MATRIX[1]),
    same("inner", X, MATRIX),
    same("vdot", MATRIX[0], MATRIX[1]),
    same("addmm", MATRIX, MATRIX, MATRIX, beta=0.5, alpha=2.0),
    same("baddbmm", X[:, :1], X[:, :2], np.stack([MATRIX, MATRIX])),
    same("addmv", MATRIX[0], MATRIX, MATRIX[1]),
    *[same("matrix_power", MATRIX, arguments=(n,)) for n in (0, 1, 5, -2)],
    same("inverse", MATRIX),
    same("new_zeros", INTS, arguments=(2, 3)),
    same("new_ones", INTS, arguments=((2, 3),)),
    same("new_full", INTS, arguments=((2, 3), 7)),
]  # fmt: skip


def arrays(found: Any) -> list[np.ndarray]:
    parts = found if isinstance(found, (tuple, list)) else [found]
    return [np.asarray(x.detach().numpy() if hasattr(x, "detach") else x) for x in parts]


def converted(call: Callable[..., Any], make: Callable[[Any], Any]) -> Callable[..., Any]:
    """A call whose keywords that are arrays are made Tensors of that side."""
    if getattr(call, "__closure__", None) is None:
        return call
    cells = dict(zip(call.__code__.co_freevars, [c.cell_contents for c in call.__closure__], strict=True))
    if "keywords" not in cells:
        return call
    keywords = {k: make(v) if isinstance(v, np.ndarray) else v for k, v in cells["keywords"].items()}
    return method(cells["name"], *cells["arguments"], **keywords)


@pytest.mark.parametrize("i", range(len(CASES)), ids=[f"{i}-{c[0].__name__}" for i, c in enumerate(CASES)])
def test_it_is_torchs(device: str, i: int) -> None:
    if device != "CPU" and i % 5:
        pytest.skip("compositions: every fifth case shows the device")
    ours, theirs, operands = CASES[i]
    ours, theirs = converted(ours, Tensor), converted(theirs, torch.tensor)
    floats = [x.dtype == np.float32 for x in operands]
    xs = [Tensor(x, requires_grad=f or None) for x, f in zip(operands, floats, strict=True)]
    ts = [torch.tensor(x, requires_grad=f) for x, f in zip(operands, floats, strict=True)]
    found, want = ours(*xs), theirs(*ts)
    for a, b in zip(arrays(found), arrays(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    first = want[0] if isinstance(want, (tuple, list)) else want
    special = any(not np.isfinite(x).all() for x in operands)
    if not isinstance(first, torch.Tensor) or not first.requires_grad or special:
        return
    seed = RNG.normal(size=first.shape).astype(np.float32)
    first.backward(torch.tensor(seed))
    mine = found[0] if isinstance(found, (tuple, list)) else found
    used = [(x, t) for x, t in zip(xs, ts, strict=True) if t.grad is not None]
    for g, (_, t) in zip(mine.gradient(*[x for x, _ in used], gradient=Tensor(seed)), used, strict=True):
        np.testing.assert_allclose(g.numpy(), t.grad.numpy(), rtol=1e-4, atol=1e-4)


def test_logaddexp2_of_large_numbers_does_not_overflow(device: str) -> None:
    assert Tensor([500.0]).logaddexp2(500.0).tolist() == [501.0]
    assert Tensor([1e30]).hypot(Tensor([1e30])).isfinite().item()


def test_isin_is_numpys(device: str) -> None:
    np.testing.assert_array_equal(Tensor(INTS).isin([2, -1]).numpy(), np.isin(INTS, [2, -1]))


def test_aminmax_is_both(device: str) -> None:
    low, high = Tensor(X).aminmax(1)
    np.testing.assert_array_equal(low.numpy(), X.min(1))
    np.testing.assert_array_equal(high.numpy(), X.max(1))


def test_bernoulli_draws_with_the_given_probability(device: str) -> None:
    if device == "INTERP":
        pytest.skip("100,000 numbers: slow there, and the same bits as on CPU")
    drawn = Tensor.full((100_000,), 0.3).bernoulli().numpy()
    assert set(drawn) == {0.0, 1.0}
    assert abs(drawn.mean() - 0.3) < 0.01  # six standard deviations


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: x.t(), ShapeError),
        (lambda x: x.movedim((0, 0), (1, 2)), ArgumentError),
        (lambda x: x.movedim((0, 1), (1,)), ArgumentError),
        (lambda x: x.movedim(3, 0), AxisError),
        (lambda x: x.narrow(1, 2, 3), ShapeError),
        (lambda x: x.select(1, 4), AxisError),
        (lambda x: x.unbind(3), AxisError),
        (lambda x: x.rot90(1, (1, 1)), ArgumentError),
        (lambda x: x.diff(-1), ArgumentError),
        (lambda x: x.glu(2), ShapeError),
        (lambda x: x.prelu(Tensor([1.0, 2.0])), ShapeError),
        (lambda x: x.mse_loss(Tensor([1.0])), ShapeError),
        (lambda x: x.mse_loss(x, "median"), ArgumentError),
        (lambda x: x.smooth_l1_loss(x, beta=-1.0), ArgumentError),
        (lambda x: x.gaussian_nll_loss(x, x, eps=0.0), ArgumentError),
        (lambda x: x.cosine_similarity(x, 3), AxisError),
        (lambda x: x.pixel_shuffle(3), ShapeError),
        (lambda x: x.pixel_unshuffle(5), ShapeError),
        (lambda x: x.index_select(0, Tensor([[0]])), ShapeError),
        (lambda x: x.index_add(0, Tensor([0]), x), ShapeError),
        (lambda x: x.take_along_dim(Tensor([0]), 1), ShapeError),
        (lambda x: x.inner(Tensor([1.0, 2.0])), ShapeError),
        (lambda x: x.matrix_power(2), ShapeError),
        (lambda x: x.norm(2.0, 5), AxisError),
    ],
    ids=lambda v: v.__name__ if isinstance(v, type) else "",
)
def test_what_is_refused(call: Callable[[Tensor], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        call(Tensor(X))
