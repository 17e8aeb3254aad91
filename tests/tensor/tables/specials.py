"""NaN, infinities, zeros of both signs, and numbers near the ends of the range: what is made of them, and the
gradient there."""

from __future__ import annotations

import itertools
import math

from tensor.tables.rows import Table, given

TABLE = Table("specials")
NUMBERS = (0.0, -0.0, 1.0, -1.0, 0.25, -0.75, 2.5, -2.5, 60.0, -60.0)
ODD = (math.nan, math.inf, -math.inf, *NUMBERS, 1e30, -1e30)
TINY = (1e-30, -1e-30, 1e-7, -1e-7, 1e-3, -1e-3)

# Value and gradient are torch's at all of ODD, and zeros have torch's sign.
for _ours, _theirs in (
    ("x.abs()", ""), ("x.neg()", ""), ("x.relu()", "F.relu(x)"), ("x.relu6()", "F.relu6(x)"),
    ("x.leaky_relu()", "F.leaky_relu(x)"), ("x.hardtanh()", "F.hardtanh(x)"), ("x.sigmoid()", ""),
    ("x.softsign()", "F.softsign(x)"), ("x.exp()", ""), ("x.exp2()", ""), ("x.expm1()", ""), ("x.erf()", ""),
    ("x.erfc()", ""), ("x.square()", ""), ("x.sqrt()", ""), ("x.rsqrt()", ""), ("x.reciprocal()", ""),
    ("x.log()", ""), ("x.log2()", ""), ("x.log10()", ""), ("x.log1p()", ""), ("x.sin()", ""), ("x.cos()", ""),
    ("x.tan()", ""), ("x.atan()", ""), ("x.asin()", ""), ("x.acos()", ""), ("x.sinh()", ""), ("x.asinh()", ""),
    ("x.atanh()", ""), ("x.erfinv()", ""), ("x.floor()", ""), ("x.ceil()", ""), ("x.trunc()", ""),
    ("x.round()", ""), ("x.nan_to_num()", ""), ("x ** 2", ""), ("x ** 3", ""), ("x ** 0.5", ""),
    ("x ** -1", ""), ("x ** 0", ""), ("x ** 1.7", ""), ("2 ** x", "torch.pow(2.0, x)"),
    ("0.0 ** x", "torch.pow(0.0, x)"), ("1 / x", ""), ("x * 0", ""), ("x + 1", ""),
):  # fmt: skip
    TABLE.add(_ours, _theirs, given(ODD), tolerance=1e-4, signs=True)
# Values at ODD, gradients at numbers; a zero may have either sign.
for _ours, _theirs in (
    ("x.clamp(-1.5, 1.5)", ""), ("x.clamp(0.5, None)", "x.clamp(min=0.5)"), ("x.tanh()", ""),
    ("x.clamp(None, 0.5)", "x.clamp(max=0.5)"), ("x.elu()", "F.elu(x)"), ("x.celu()", "F.celu(x)"),
    ("x.selu()", "F.selu(x)"), ("x.softplus()", "F.softplus(x)"), ("x.logsigmoid()", "F.logsigmoid(x)"),
    ("x.hardsigmoid()", "F.hardsigmoid(x)"), ("x.hardswish()", "F.hardswish(x)"), ("x.silu()", "F.silu(x)"),
    ("x.mish()", "F.mish(x)"), ("x.gelu()", "F.gelu(x, approximate='tanh')"), ("x.cosh()", ""),
    ("x.clamp(nan, 1.0)", "x.clamp(min=nan, max=1.0)"),
):  # fmt: skip
    TABLE.add(_ours, _theirs, given(ODD), tolerance=1e-4, gradient=False)
    TABLE.add(_ours, _theirs, given(NUMBERS), tolerance=1e-4)
for _ours in ("isnan", "isinf", "isfinite", "logical_not", "acosh", "logit", "lgamma", "digamma"):
    TABLE.add(f"x.{_ours}()", "", given(ODD), gradient=False, tolerance=1e-4)
for _ours in ("acosh", "logit", "lgamma", "digamma"):
    TABLE.add(f"x.{_ours}()", "", given((1.0, 0.25, 2.5, 60.0, 3.0, 9.0, 10.0)), tolerance=1e-4)
TABLE.add("x.gelu('none')", "F.gelu(x)", given(NUMBERS), tolerance=1e-4, signs=True)
# Small numbers keep their leading digits: tolerance is relative to what is multiplied up again.
for _ours in ("sin", "tan", "asin", "atan", "sinh", "asinh", "atanh", "expm1", "log1p", "erf", "erfinv"):
    TABLE.add(f"x.{_ours}() / x", "", given(TINY), tolerance=1e-6, gradient=False)
    TABLE.add(f"x.{_ours}()", "", given(TINY))

# Pairs.
_FEW = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 3.5)
_FINITE = (0.25, 1.0, -1.0, 3.5, -2.0)


def _pairs(values: tuple[float, ...]) -> tuple[list[float], list[float]]:
    both = list(itertools.product(values, values))
    return [a for a, _ in both], [b for _, b in both]


_all = [given(v) for v in _pairs(_FEW)]
_finite = [given(v) for v in _pairs(_FINITE)]
for _ours, _theirs in (
    ("x + y", ""), ("x - y", ""), ("x * y", ""), ("x / y", ""), ("x.atan2(y)", ""), ("x.copysign(y)", ""),
    ("x ** y", ""), ("x == y", ""), ("x != y", ""), ("x < y", ""), ("x <= y", ""), ("x > y", ""),
    ("x >= y", ""), ("x.isclose(y)", ""), ("x.isclose(y, equal_nan=True)", ""),
):  # fmt: skip
    TABLE.add(_ours, _theirs, *_all, tolerance=1e-4, signs=True, gradient=False)
    TABLE.add(_ours, _theirs, *_finite, tolerance=1e-4, gradient=_ours != "x ** y")
for _ours, _theirs in (
    ("x.maximum(y)", ""), ("x.minimum(y)", ""), ("x.logaddexp(y)", ""), ("x.xlogy(y)", ""), ("x.fmod(y)", ""),
    ("x % y", ""), ("x.lerp(y, 0.3)", ""), ("x.div(y, rounding_mode='trunc')", ""), ("x.clamp(y)", ""),
    ("x.clamp(None, y)", ""),
):  # fmt: skip
    TABLE.add(_ours, _theirs, *_all, tolerance=1e-4, gradient=False)
    TABLE.add(_ours, _theirs, *_finite, tolerance=1e-4, gradient="clamp" not in _ours)
_zeros = [given(v) for v in _pairs((math.nan, 0.0, -0.0, 1.0, -1.0, 3.5))]
TABLE.add("x.div(y, rounding_mode='floor')", "", *_zeros, gradient=False)

# Rows with a NaN, an infinity or two, among numbers; and rows of equals.
_rows = given(
    [[1, math.nan, 3, 0], [math.inf, 1, 2, 0], [-math.inf, 1, 2, 5], [math.inf, math.inf, 1, 2],
     [-math.inf, math.inf, 0, 1], [-math.inf, -math.inf, -math.inf, -math.inf], [0.0, -0.0, 0.0, -0.0],
     [1e9, 1e9, -1e9, 1], [100, 0, -100, 88]]
)  # fmt: skip
_equals = given([[1, 2, 2, 0], [0, 0, 0, 0], [5, -5, 5, -5]])
for _ours, _theirs in (
    ("x.sum(1)", ""), ("x.mean(1)", ""), ("x.prod(1)", ""), ("x.max(1)", "torch.amax(x, 1)"),
    ("x.min(1)", "torch.amin(x, 1)"), ("x.var(1)", ""), ("x.std(1)", ""), ("x.softmax(1)", ""),
    ("x.log_softmax(1)", ""), ("x.logsumexp(1)", ""), ("x.cumsum(1)", ""), ("x.cumprod(1)", ""),
    ("x.cummax(1)", "torch.cummax(x, 1)"), ("x.cummin(1)", "torch.cummin(x, 1)"), ("x.logcumsumexp(1)", ""),
    ("x.argmax(1)", ""), ("x.argmin(1)", ""), ("x.any(1)", "x.bool().any(1)"), ("x.all(1)", "x.bool().all(1)"),
    ("x.sort(1)", "torch.sort(x, dim=1, stable=True)"), ("x.layernorm()", "F.layer_norm(x, (4,))"),
    ("x.sort(1, True)", "torch.sort(x, dim=1, descending=True, stable=True)"), ("x.topk(2, 1)[0]", ""),
    ("x.normalize()", "F.normalize(x)"), ("x.quantile(0.5, 1)", "torch.quantile(x, 0.5, 1)"),
):  # fmt: skip
    if "normalize" not in _ours and "quantile" not in _ours:
        TABLE.add(_ours, _theirs, _rows, tolerance=1e-4, gradient=False)
    TABLE.add(_ours, _theirs, _equals, tolerance=1e-4, gradient="topk" not in _ours)
_image = given([[[[1, math.nan, 3, 4], [5, 6, math.inf, 8], [-math.inf] * 4, [1, 2, 3, -math.inf]]]])
for _ours, _theirs in (
    ("x.max_pool2d(2)", "F.max_pool2d(x, 2)"), ("x.max_pool2d(2, 1, 1, 1)", "F.max_pool2d(x, 2, 1, 1)"),
    ("x.max_pool2d(2, return_indices=True)", "F.max_pool2d(x, 2, return_indices=True)"),
    ("x.avg_pool2d(2)", "F.avg_pool2d(x, 2)"), ("x.roll(1, 3)", ""), ("x[..., ::2]", ""),
    ("x.pad((1, 1, 1, 1), 'reflect')", "F.pad(x, (1, 1, 1, 1), 'reflect')"),
    ("x.pad((1, 1), value=-inf)", "F.pad(x, (1, 1), value=-inf)"),
    ("x[..., y]", ""),
):  # fmt: skip
    TABLE.add(_ours, _theirs, _image, given([1, 0, 3], "int64"), gradient=False)
for _dtype in ("int8", "uint8", "int32", "int64"):
    _values = (0.0, -0.0, 1.9, 1.5 if _dtype == "uint8" else -1.9, 99.5)
    TABLE.add(f"x.cast('{_dtype}')", f"x.to(torch.{_dtype})", given(_values), gradient=False)
for _dtype in ("float16", "float64", "bool"):
    TABLE.add(
        f"x.cast('{_dtype}')", f"x.to(torch.{_dtype})", given(ODD), gradient=False, tolerance=5e-3, signs=True
    )  # fmt: skip
