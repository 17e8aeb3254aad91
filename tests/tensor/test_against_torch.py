"""Methods of Tensor against torch: forward and gradient, over shapes, views, dtypes, NaN and infinities.

A case is a name, the call of ours and torch's, and its operands. Tolerances are in the table: relative and
absolute, 2e-5 unless a row says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from polygrad import Tensor

pytestmark = pytest.mark.usefixtures("default_device")
RNG = np.random.default_rng(7)
ODD = np.array([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 2.5], np.float32)


@dataclass(frozen=True)
class Case:
    name: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    inputs: tuple[np.ndarray, ...]
    tolerance: float = 2e-5
    has_gradient: bool = True
    second: bool = False  # differentiate twice


@dataclass
class Table:
    cases: list[Case] = field(default_factory=list)

    def add(self, name: str, ours: Any, theirs: Any, *inputs: Any, **more: Any) -> None:
        self.cases.append(Case(name, ours, theirs, tuple(np.asarray(x) for x in inputs), **more))


def normal(*shape: int) -> np.ndarray:
    return np.asarray(RNG.normal(size=shape), np.float32)


def between(lo: float, hi: float, *shape: int) -> np.ndarray:
    return np.asarray(RNG.uniform(lo, hi, size=shape), np.float32)


def of_tensors(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (tuple, list)) else [x]


TABLE = Table()

# --- elementwise: name, torch's function, the range of inputs
UNARY: list[tuple[str, Any, float, float]] = [
    ("abs", torch.abs, -3, 3), ("acos", torch.acos, -0.9, 0.9), ("acosh", torch.acosh, 1.2, 4),
    ("asin", torch.asin, -0.9, 0.9), ("asinh", torch.asinh, 0.1, 3), ("atan", torch.atan, -3, 3),
    ("atanh", torch.atanh, -0.9, 0.9), ("celu", F.celu, -3, 3), ("cos", torch.cos, -6, 6),
    ("cosh", torch.cosh, -2, 2), ("digamma", torch.digamma, 0.3, 6), ("elu", F.elu, -3, 3),
    ("erf", torch.erf, -3, 3), ("erfc", torch.erfc, -3, 5), ("erfinv", torch.erfinv, -0.9, 0.9),
    ("exp", torch.exp, -3, 3), ("exp2", torch.exp2, -3, 3), ("expm1", torch.expm1, -2, 2),
    ("hardsigmoid", F.hardsigmoid, -4, 4), ("hardswish", F.hardswish, -2.9, 2.9),
    ("hardtanh", F.hardtanh, -3, 3), ("leaky_relu", F.leaky_relu, -3, 3), ("lgamma", torch.lgamma, -2.9, 9),
    ("log", torch.log, 0.1, 5), ("log10", torch.log10, 0.1, 5), ("log1p", torch.log1p, -0.9, 5),
    ("log2", torch.log2, 0.1, 5), ("logit", torch.logit, 0.1, 0.9), ("logsigmoid", F.logsigmoid, -5, 5),
    ("mish", F.mish, -3, 3), ("neg", torch.neg, -3, 3), ("reciprocal", torch.reciprocal, 0.3, 3),
    ("relu", F.relu, -3, 3), ("relu6", F.relu6, -3, 9), ("rsqrt", torch.rsqrt, 0.2, 4),
    ("selu", F.selu, -3, 3), ("sigmoid", torch.sigmoid, -5, 5), ("silu", F.silu, -3, 3),
    ("sin", torch.sin, -6, 6), ("sinh", torch.sinh, 0.2, 2), ("softplus", F.softplus, -5, 5),
    ("softsign", F.softsign, -3, 3), ("sqrt", torch.sqrt, 0.1, 4), ("square", torch.square, -3, 3),
    ("tan", torch.tan, -1, 1), ("tanh", torch.tanh, -3, 3),
]  # fmt: skip
LOOSE = {"lgamma": 2e-4, "digamma": 2e-4, "asin": 1e-4, "acos": 1e-4, "atan": 1e-4, "selu": 1e-4,
         "atanh": 1e-4, "acosh": 1e-4, "erfinv": 1e-4, "erfc": 5e-5}  # fmt: skip
SMOOTH = ("cos", "erf", "erfc", "erfinv", "exp", "expm1", "log", "log1p", "sigmoid", "sin", "sqrt", "tanh")
for _name, _theirs, _lo, _hi in UNARY:
    _more: dict[str, Any] = {"tolerance": LOOSE.get(_name, 2e-5)}
    _ours = lambda x, n=_name: getattr(x, n)()
    TABLE.add(_name, _ours, _theirs, between(_lo, _hi, 3, 4), **_more, second=_name in SMOOTH)
    TABLE.add(f"{_name}, no axes", _ours, _theirs, between(_lo, _hi), **_more)
    TABLE.add(f"{_name}, no elements", _ours, _theirs, between(_lo, _hi, 0, 3), **_more)
    TABLE.add(
        f"{_name}, of a view",
        lambda x, f=_ours: f(x.transpose(0, 1)),
        lambda x, f=_theirs: f(x.T),
        between(_lo, _hi, 2, 5),
        **_more,
    )
for _name in ("erf", "exp", "expm1", "log", "log1p", "sigmoid", "tanh", "abs", "nan_to_num", "isnan"):
    TABLE.add(
        f"{_name} of NaN and infinities",
        lambda x, n=_name: getattr(x, n)(),
        getattr(torch, _name),
        ODD,
        has_gradient=False,
    )
for _name in ("round", "floor", "ceil", "trunc", "sign"):
    TABLE.add(_name, lambda x, n=_name: getattr(x, n)(), getattr(torch, _name), normal(4, 5) * 3)

BINARY: list[tuple[str, Any, Any]] = [
    ("add", lambda x, y: x + y, torch.add), ("sub", lambda x, y: x - y, torch.sub),
    ("mul", lambda x, y: x * y, torch.mul), ("div", lambda x, y: x / (y + 5), lambda x, y: x / (y + 5)),
    ("maximum", lambda x, y: x.maximum(y), torch.maximum),
    ("minimum", lambda x, y: x.minimum(y), torch.minimum),
    ("atan2", lambda x, y: x.atan2(y), torch.atan2), ("copysign", lambda x, y: x.copysign(y), torch.copysign),
    ("logaddexp", lambda x, y: x.logaddexp(y), torch.logaddexp),
    ("xlogy", lambda x, y: x.xlogy(y.abs() + 0.5), lambda x, y: torch.xlogy(x, y.abs() + 0.5)),
    ("pow", lambda x, y: (x.abs() + 0.5) ** y, lambda x, y: (x.abs() + 0.5) ** y),
    ("lerp", lambda x, y: x.lerp(y, 0.3), lambda x, y: torch.lerp(x, y, 0.3)),
    ("where", lambda x, y: (x > y).where(x, y), lambda x, y: torch.where(x > y, x, y)),
]  # fmt: skip
for _name, _o, _t in BINARY:
    _tol = 1e-4 if _name in ("atan2", "pow") else 2e-5
    for _a, _b in (((3, 4), (3, 4)), ((3, 1), (1, 4)), ((2, 3, 4), (4,)), ((), (3,)), ((0, 4), (1, 4))):
        if _name == "lerp" and _a == ():
            continue
        TABLE.add(f"{_name} {_a} {_b}", _o, _t, normal(*_a), normal(*_b), tolerance=_tol)
TABLE.add(
    "atan2 of zeros and infinities",
    lambda x, y: x.atan2(y),
    torch.atan2,
    np.repeat(ODD, 8),
    np.tile(ODD, 8),
    has_gradient=False,
    tolerance=1e-4,
)
TABLE.add(
    "xlogy of zeros",
    lambda x, y: x.xlogy(y),
    torch.xlogy,
    np.repeat(ODD, 8),
    np.tile(ODD, 8),
    has_gradient=False,
)

# --- reductions
for _name in (
    "sum",
    "mean",
    "prod",
    "logsumexp",
    "softmax",
    "log_softmax",
    "cumsum",
    "cumprod",
    "logcumsumexp",
):
    for _axis in (0, 1, -1):
        TABLE.add(
            f"{_name} along {_axis}",
            lambda x, n=_name, a=_axis: getattr(x, n)(a),
            lambda x, n=_name, a=_axis: getattr(torch, n)(x, a),
            normal(3, 5),
        )
for _name in ("max", "min", "cummax", "cummin"):
    for _axis in (0, 1):
        _f = (
            (lambda x, n=_name, a=_axis: getattr(torch, n)(x, a)[0])
            if _name in ("max", "min")
            else (lambda x, n=_name, a=_axis: tuple(getattr(torch, n)(x, a)))
        )
        TABLE.add(f"{_name} along {_axis}", lambda x, n=_name, a=_axis: getattr(x, n)(a), _f, normal(4, 6))
    TABLE.add(
        f"{_name} with NaN",
        lambda x, n=_name: getattr(x, n)(0),
        (lambda x, n=_name: getattr(torch, n)(x, 0)[0])
        if _name in ("max", "min")
        else (lambda x, n=_name: tuple(getattr(torch, n)(x, 0))),
        ODD,
        has_gradient=False,
    )
TABLE.add(
    "cummax of equals",
    lambda x: x.cummax(1),
    lambda x: tuple(torch.cummax(x, 1)),
    np.array([[1, 1, 0, 1], [2, 1, 2, 3]], np.float32),
    has_gradient=False,
)
for _q in (0.0, 0.3, 1.0):
    for _i in ("linear", "lower", "higher", "nearest", "midpoint"):
        TABLE.add(
            f"quantile {_q} {_i}",
            lambda x, q=_q, i=_i: x.quantile(q, 1, interpolation=i),
            lambda x, q=_q, i=_i: torch.quantile(x, q, 1, interpolation=i),
            normal(3, 6),
        )
TABLE.add(
    "quantiles",
    lambda x: x.quantile([0.1, 0.9]),
    lambda x: torch.quantile(x, torch.tensor([0.1, 0.9])),
    normal(3, 4),
)
TABLE.add(
    "quantile of NaN", lambda x: x.quantile(0.5), lambda x: torch.quantile(x, 0.5), ODD, has_gradient=False
)
TABLE.add("median", lambda x: x.median(1)[0], lambda x: x.median(1)[0], normal(3, 6))

# --- linear algebra
TABLE.add("kron", lambda x, y: x.kron(y), torch.kron, normal(2, 3), normal(3, 2))
TABLE.add("kron of ranks", lambda x, y: x.kron(y), torch.kron, normal(2, 3), normal(4))
TABLE.add("outer", lambda x, y: x.outer(y), torch.outer, normal(3), normal(4))
TABLE.add("cross", lambda x, y: x.cross(y), lambda x, y: torch.linalg.cross(x, y), normal(4, 3), normal(4, 3))
TABLE.add(
    "cross along 0",
    lambda x, y: x.cross(y, 0),
    lambda x, y: torch.linalg.cross(x, y, dim=0),
    normal(3, 2),
    normal(3, 2),
)
TABLE.add("trace", lambda x: x.trace(), torch.trace, normal(3, 4))
TABLE.add("vander", lambda x: x.vander(4), lambda x: torch.linalg.vander(x, N=4).flip(1), normal(3))
for _p in (0.0, 1.0, 1.5, 2.0, 3.0, math.inf):
    TABLE.add(
        f"cdist {_p}",
        lambda x, y, p=_p: x.cdist(y, p),
        lambda x, y, p=_p: torch.cdist(x, y, p),
        normal(2, 4, 3),
        normal(2, 5, 3),
        has_gradient=_p != 0,
        tolerance=5e-5,
    )


def positive(n: int, *lead: int) -> np.ndarray:
    """Symmetric and positive definite matrices."""
    x = normal(*lead, n, n)
    return np.asarray(x @ x.swapaxes(-1, -2) + n * np.eye(n), np.float32)


def symmetric(x: Any) -> Any:
    return (x + x.transpose(-2, -1)) * 0.5


for _n in (1, 3, 4):
    _a = positive(_n, 2) + normal(2, _n, _n) * 0.2
    _wide = {"tolerance": 2e-3}
    TABLE.add(f"inv {_n}", lambda x: x.inv(), torch.linalg.inv, _a, **_wide, second=_n == 3)
    TABLE.add(f"det {_n}", lambda x: x.det(), torch.linalg.det, _a, **_wide)
    TABLE.add(f"solve {_n}", lambda x, b: x.solve(b), torch.linalg.solve, _a, normal(2, _n, 2), **_wide)
    TABLE.add(
        f"cholesky {_n}",
        lambda x: symmetric(x).cholesky(),
        lambda x: torch.linalg.cholesky(symmetric(x)),
        positive(_n, 2),
        **_wide,
    )
    for _upper in (False, True):
        TABLE.add(
            f"triangular_solve {_n} {_upper}",
            lambda x, b, u=_upper: x.triangular_solve(b, u),
            lambda x, b, u=_upper: torch.linalg.solve_triangular(x.triu() if u else x.tril(), b, upper=u),
            _a,
            normal(2, _n, 2),
            **_wide,
        )
for _many, _few in (((3, 1), (2,)), ((2,), (3, 1)), ((), (2, 3))):
    TABLE.add(
        f"solve batches {_many} {_few}",
        lambda x, b: x.solve(b),
        torch.linalg.solve,
        positive(3, *_many),
        normal(*_few, 3, 2),
        **_wide,
    )
TABLE.add(
    "solve a batch of batches",
    lambda x, b: x.solve(b),
    torch.linalg.solve,
    positive(3, 1, 2),
    normal(1, 2, 3, 2),
    tolerance=2e-3,
)
TABLE.add(
    "solve a vector", lambda x, b: x.solve(b), torch.linalg.solve, positive(3), normal(3), tolerance=1e-3
)
TABLE.add(
    "pivots",
    lambda x: x.inv(),
    torch.linalg.inv,
    np.array([[0, 1, 2], [1, 0, 3], [4, -3, 8]], np.float32),
    tolerance=1e-3,
)
for _m, _n in ((3, 3), (5, 3), (4, 1), (2, 4)):
    TABLE.add(
        f"qr {_m} {_n}",
        lambda x: x.qr(),
        lambda x: tuple(torch.linalg.qr(x)),
        normal(2, _m, _n),
        tolerance=1e-3,
        has_gradient=_m >= _n,
    )
    TABLE.add(
        f"qr complete {_m} {_n}",
        lambda x: x.qr("complete"),
        lambda x: tuple(torch.linalg.qr(x, "complete")),
        normal(_m, _n),
        tolerance=1e-3,
        has_gradient=False,
    )
    TABLE.add(
        f"svd values {_m} {_n}",
        lambda x: x.svd(False)[1],
        torch.linalg.svdvals,
        normal(2, _m, _n),
        tolerance=1e-3,
    )
    # signs of singular vectors are not determined: functions that do not depend on them
    TABLE.add(
        f"svd squares {_m} {_n}",
        lambda x: [x.svd(False)[i].square() for i in (0, 2)],
        lambda x: [torch.linalg.svd(x, full_matrices=False)[i].square() for i in (0, 2)],
        normal(_m, _n) + np.eye(_m, _n) * 2,
        tolerance=5e-3,
    )
for _n in (1, 2, 3, 5):
    TABLE.add(
        f"eigh {_n}",
        lambda x: [x.eigh()[0], x.eigh()[1].square()],
        lambda x: [torch.linalg.eigh(symmetric(x))[0], torch.linalg.eigh(symmetric(x))[1].square()],
        positive(_n) + np.diag(np.arange(_n, dtype=np.float32)),
        tolerance=5e-3,
        has_gradient=False,
    )
    TABLE.add(
        f"eigh of a symmetrised matrix {_n}",
        lambda x: [symmetric(x).eigh()[0], symmetric(x).eigh()[1].square()],
        lambda x: [torch.linalg.eigh(symmetric(x))[0], torch.linalg.eigh(symmetric(x))[1].square()],
        positive(_n) + np.diag(3 * np.arange(_n, dtype=np.float32)),
        tolerance=1e-2,
    )

# --- losses
_targets = np.array([0, 4, 2, 2, 1, 3])
for _reduction in ("mean", "sum", "none"):
    for _smooth in (0.0, 0.1):
        for _ignored in (None, 2):
            TABLE.add(
                f"cross_entropy {_reduction} {_smooth} ignoring {_ignored}, weighted",
                lambda x, w, r=_reduction, s=_smooth, i=_ignored: x.cross_entropy(
                    Tensor(_targets), r, s, w.abs(), i
                ),
                lambda x, w, r=_reduction, s=_smooth, i=_ignored: F.cross_entropy(
                    x,
                    torch.tensor(_targets),
                    w.abs().detach(),
                    ignore_index=-100 if i is None else i,
                    reduction=r,
                    label_smoothing=s,
                ),
                normal(6, 5),
                normal(5),
                has_gradient=False,
            )
            TABLE.add(
                f"cross_entropy {_reduction} {_smooth} ignoring {_ignored}",
                lambda x, r=_reduction, s=_smooth, i=_ignored: x.cross_entropy(
                    Tensor(_targets), r, s, None, i
                ),
                lambda x, r=_reduction, s=_smooth, i=_ignored: F.cross_entropy(
                    x,
                    torch.tensor(_targets),
                    ignore_index=-100 if i is None else i,
                    reduction=r,
                    label_smoothing=s,
                ),
                normal(6, 5),
            )
    TABLE.add(
        f"huber_loss {_reduction}",
        lambda x, y, r=_reduction: x.huber_loss(y, r, 0.7),
        lambda x, y, r=_reduction: F.huber_loss(x, y, reduction=r, delta=0.7),
        normal(4, 3),
        normal(4, 3),
    )
    for _log in (False, True):
        TABLE.add(
            f"kl_div {_reduction} {_log}",
            lambda x, y, r=_reduction, t=_log: x.kl_div(y, r, t),
            lambda x, y, r=_reduction, t=_log: F.kl_div(x, y, reduction=r, log_target=t),
            normal(4, 3),
            between(0.1, 1, 4, 3),
        )
TABLE.add(
    "kl_div batchmean",
    lambda x, y: x.kl_div(y, "batchmean"),
    lambda x, y: F.kl_div(x, y, reduction="batchmean"),
    normal(4, 3),
    between(0.1, 1, 4, 3),
)

# --- images
for _shape, _size in (
    ((1, 2, 5), (8,)),
    ((1, 2, 5), (3,)),
    ((2, 3, 4, 6), (7, 3)),
    ((2, 3, 4, 6), (12, 12)),
    ((2, 3, 4, 6), (2, 2)),
    ((1, 1, 2, 3, 4), (3, 2, 6)),
):
    _kind = {1: "linear", 2: "bilinear", 3: "trilinear"}[len(_size)]
    for _corners in (False, True):
        TABLE.add(
            f"interpolate {_shape} {_size} {_corners}",
            lambda x, s=_size, c=_corners: x.interpolate(s, "linear", c),
            lambda x, s=_size, c=_corners, k=_kind: F.interpolate(x, s, mode=k, align_corners=c),
            normal(*_shape),
        )
    for _mode in ("nearest", "nearest-exact"):
        TABLE.add(
            f"interpolate {_shape} {_size} {_mode}",
            lambda x, s=_size, m=_mode: x.interpolate(s, m),
            lambda x, s=_size, m=_mode: F.interpolate(x, s, mode=m),
            normal(*_shape),
        )
for _k, _s, _p, _d, _c in (
    (2, None, 0, 1, False),
    (3, 2, 1, 1, False),
    (3, 1, 1, 2, False),
    (2, 2, 0, 1, True),
):
    TABLE.add(
        f"max_pool2d {_k} {_s} {_p} {_d} {_c}",
        lambda x, k=_k, s=_s, p=_p, d=_d, c=_c: x.max_pool2d(k, s, d, p, c, True),
        lambda x, k=_k, s=_s, p=_p, d=_d, c=_c: F.max_pool2d(x, k, s, p, d, c, True),
        normal(2, 2, 7, 9),
    )
for _k, _s, _p, _size in ((2, 2, 0, 6), (3, 3, 1, 7)):
    _pooled = F.max_pool2d(torch.tensor(normal(1, 2, _size, _size)), _k, _s, _p, return_indices=True)
    TABLE.add(
        f"max_unpool2d {_k} {_s} {_p}",
        lambda x, i=_pooled[1], k=_k, s=_s, p=_p: x.max_unpool2d(Tensor(i.numpy()), k, s, padding=p),
        lambda x, i=_pooled[1], k=_k, s=_s, p=_p: F.max_unpool2d(x, i, k, s, p),
        normal(1, 2, 3, 3),
    )
for _mode, _pads in (
    ("circular", (-1, 2)),
    ("circular", (2, -3)),
    ("reflect", (-1, 2)),
    ("reflect", (2, -3)),
    ("replicate", (-1, 2)),
    ("replicate", (3, -2)),
    ("reflect", (-2, -1)),
):
    TABLE.add(
        f"pad {_mode} {_pads}",
        lambda x, m=_mode, p=_pads: x.pad(p, m),
        lambda x, m=_mode, p=_pads: F.pad(x, p, m),
        normal(1, 2, 6),
    )

# --- Fourier transforms: pairs of real numbers
for _n in (1, 2, 5, 12, 37):
    for _norm in ("backward", "ortho", "forward"):
        for _inverse in ("fft", "ifft"):
            TABLE.add(
                f"{_inverse} {_n} {_norm}",
                lambda x, f=_inverse, m=_norm: getattr(x, f)(norm=m),
                lambda x, f=_inverse, m=_norm: torch.view_as_real(
                    getattr(torch.fft, f)(torch.view_as_complex(x), norm=m)
                ),
                normal(2, _n, 2),
                tolerance=1e-4,
            )
    TABLE.add(
        f"rfft {_n}",
        lambda x: x.rfft(),
        lambda x: torch.view_as_real(torch.fft.rfft(x)),
        normal(3, _n),
        tolerance=1e-4,
    )
TABLE.add(
    "fft along 0, padded",
    lambda x: x.fft(8, 0),
    lambda x: torch.view_as_real(torch.fft.fft(torch.view_as_complex(x), 8, 0)),
    normal(6, 3, 2),
    tolerance=1e-4,
)
for _n in (None, 7, 8, 5):
    TABLE.add(
        f"irfft {_n}",
        lambda x, n=_n: x.irfft(n),
        lambda x, n=_n: torch.fft.irfft(torch.view_as_complex(x), n),
        normal(2, 5, 2),
        tolerance=1e-4,
        has_gradient=False,
    )

# --- masks and positions
_mask = normal(3, 4) > 0
TABLE.add(
    "masked_select",
    lambda x: x.masked_select(Tensor(_mask)),
    lambda x: x.masked_select(torch.tensor(_mask)),
    normal(3, 4),
)
TABLE.add(
    "masked_select, broadcast",
    lambda x: x.masked_select(Tensor(_mask)),
    lambda x: x.masked_select(torch.tensor(_mask)),
    normal(4),
)
TABLE.add(
    "masked_select of nothing",
    lambda x: x.masked_select(Tensor(_mask) & False),
    lambda x: x.masked_select(torch.tensor(_mask) & False),
    normal(3, 4),
)
TABLE.add(
    "searchsorted",
    lambda x, v: x.sort()[0].searchsorted(v),
    lambda x, v: torch.searchsorted(x.sort()[0], v),
    normal(7),
    normal(2, 3),
    has_gradient=False,
)
TABLE.add(
    "searchsorted of rows",
    lambda x, v: x.sort()[0].searchsorted(v, True),
    lambda x, v: torch.searchsorted(x.sort()[0], v, right=True),
    normal(2, 7),
    normal(2, 3),
    has_gradient=False,
)
TABLE.add("histc", lambda x: x.histc(5), lambda x: torch.histc(x, 5), normal(40), has_gradient=False)
TABLE.add(
    "histc within",
    lambda x: x.histc(4, -1, 1),
    lambda x: torch.histc(x, 4, -1, 1),
    normal(40),
    has_gradient=False,
)

CASES = {case.name: case for case in TABLE.cases}


def test_names_are_distinct() -> None:
    assert len(CASES) == len(TABLE.cases)


def compare(ours: Any, theirs: Any, tolerance: float) -> None:
    got, want = of_tensors(ours), of_tensors(theirs)
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        b = b.detach().numpy()
        assert a.shape == b.shape
        np.testing.assert_allclose(a.numpy(), b, rtol=tolerance, atol=tolerance)


def weighted(outs: list[Any], weights: list[Any]) -> Any:
    total = None
    for out, w in zip(outs, weights, strict=True):
        term = (out * w).sum()
        total = term if total is None else total + term
    return total


@pytest.mark.parametrize("name", CASES)
def test_values_agree_within_the_tolerance(name: str, device: str) -> None:
    case = CASES[name]
    if device == "INTERP" and sum(x.size for x in case.inputs) > 12:
        pytest.skip("INTERP would take long")
    compare(
        case.ours(*map(Tensor, case.inputs)), case.theirs(*map(torch.tensor, case.inputs)), case.tolerance
    )


@pytest.mark.parametrize("name", [case.name for case in TABLE.cases if case.has_gradient])
def test_gradients_agree_within_ten_times_the_tolerance(name: str, device: str) -> None:
    case = CASES[name]
    if device == "INTERP":
        pytest.skip("gradients are the same graph on every device: tests/device compares the devices")
    xs = [Tensor(x) for x in case.inputs]
    ts = [torch.tensor(x, requires_grad=True) for x in case.inputs]
    outs = [o for o in of_tensors(case.ours(*xs)) if o.dtype.is_float]
    wants = [o for o in of_tensors(case.theirs(*ts)) if o.is_floating_point()]
    weights = [np.asarray(np.random.default_rng(3).uniform(0.5, 1.5, o.shape), np.float32) for o in wants]
    got = weighted(outs, [Tensor(w) for w in weights]).gradient(*xs)
    want = torch.autograd.grad(
        weighted(wants, [torch.tensor(w) for w in weights]), ts, create_graph=case.second, allow_unused=True
    )
    want = [torch.zeros_like(t) if g is None else g for g, t in zip(want, ts, strict=True)]
    again = weighted([g * g for g in got], [1.0] * len(got)).gradient(*xs) if case.second else []
    compare(got, want, 10 * case.tolerance)
    if case.second:
        expected = torch.autograd.grad(sum((g * g).sum() for g in want), ts)
        compare(again, expected, 50 * case.tolerance)
