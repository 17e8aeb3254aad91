"""Arithmetic, comparisons, mathematical functions and activations: forward, gradient and, of smooth ones, the
gradient of the gradient."""

from __future__ import annotations

import math

from tensor.tables.rows import VIEWS, Table, bools, floats, given, ints

TABLE = Table("elementwise")

# name, torch's expression ("": the same), the range of the operand, the tolerance, whether it is smooth there
UNARY: tuple[tuple[str, str, float, float, float, bool], ...] = (
    ("x.abs()", "", 0.2, 3, 2e-5, False), ("x.acos()", "", -0.9, 0.9, 1e-4, True),
    ("x.acosh()", "", 1.2, 4, 1e-4, True), ("x.asin()", "", -0.9, 0.9, 1e-4, True),
    ("x.asinh()", "", 0.1, 3, 2e-5, True), ("x.atan()", "", -3, 3, 1e-4, True),
    ("x.atanh()", "", -0.9, 0.9, 1e-4, True), ("x.celu(1.3)", "F.celu(x, 1.3)", -3, 3, 2e-5, False),
    ("x.cos()", "", -6, 6, 2e-5, True), ("x.cosh()", "", -2, 2, 2e-5, True),
    ("x.digamma()", "", 0.3, 6, 2e-4, False), ("x.elu()", "F.elu(x)", -3, 3, 2e-5, False),
    ("x.elu(0.7)", "F.elu(x, 0.7)", -3, 3, 2e-5, False), ("x.erf()", "", -3, 3, 2e-5, True),
    ("x.erfc()", "", -3, 5, 5e-5, True), ("x.erfinv()", "", -0.9, 0.9, 1e-4, True),
    ("x.exp()", "", -3, 3, 2e-5, True), ("x.exp2()", "", -3, 3, 2e-5, True),
    ("x.expm1()", "", -2, 2, 2e-5, True), ("x.gelu()", "F.gelu(x, approximate='tanh')", -3, 3, 2e-5, True),
    ("x.gelu('none')", "F.gelu(x)", -3, 3, 2e-5, True),
    ("x.quick_gelu()", "x * torch.sigmoid(1.702 * x)", -3, 3, 2e-5, True),
    ("x.hardsigmoid()", "F.hardsigmoid(x)", -4, 4, 2e-5, False), ("x.i0()", "", -6, 6, 2e-5, True),
    ("x.mvlgamma(3)", "", 1.6, 5, 2e-4, False),
    ("x.polygamma(0)", "", 0.3, 6, 2e-4, False), ("x.polygamma(1)", "", 0.3, 12, 2e-4, False),
    ("x.polygamma(3)", "", 0.5, 6, 2e-4, False), ("x.frexp()[0]", "", 0.1, 9, 2e-5, False),
    ("x.hardswish()", "F.hardswish(x)", -2.9, 2.9, 2e-5, False),
    ("x.hardtanh()", "F.hardtanh(x)", -3, 3, 2e-5, False),
    ("x.hardtanh(-0.5, 2)", "F.hardtanh(x, -0.5, 2)", -3, 3, 2e-5, False),
    ("x.leaky_relu()", "F.leaky_relu(x)", -3, 3, 2e-5, False),
    ("x.leaky_relu(0.3)", "F.leaky_relu(x, 0.3)", -3, 3, 2e-5, False),
    ("x.lgamma()", "", 0.3, 9, 2e-4, False), ("x.log()", "", 0.1, 5, 2e-5, True),
    ("x.log10()", "", 0.1, 5, 2e-5, True), ("x.log1p()", "", -0.9, 5, 2e-5, True),
    ("x.log2()", "", 0.1, 5, 2e-5, True), ("x.logit()", "", 0.1, 0.9, 2e-5, True),
    ("x.logit(0.2)", "", 0.05, 0.95, 2e-5, False), ("x.logsigmoid()", "F.logsigmoid(x)", -5, 5, 2e-5, True),
    ("x.mish()", "F.mish(x)", -3, 3, 2e-5, True), ("x.neg()", "", -3, 3, 2e-5, False),
    ("x.reciprocal()", "", 0.3, 3, 2e-5, True), ("x.relu()", "F.relu(x)", -3, 3, 2e-5, False),
    ("x.relu6()", "F.relu6(x)", -3, 9, 2e-5, False), ("x.rsqrt()", "", 0.2, 4, 2e-5, True),
    ("x.selu()", "F.selu(x)", -3, 3, 1e-4, False), ("x.sigmoid()", "", -5, 5, 2e-5, True),
    ("x.silu()", "F.silu(x)", -3, 3, 2e-5, True), ("x.swish()", "F.silu(x)", -3, 3, 2e-5, False),
    ("x.sin()", "", -6, 6, 2e-5, True), ("x.sinh()", "", 0.2, 2, 2e-5, True),
    ("x.softplus()", "F.softplus(x)", -5, 5, 2e-5, True),
    ("x.softplus(2.0)", "F.softplus(x, 2.0)", -5, 5, 2e-5, False),
    ("x.softsign()", "F.softsign(x)", -3, 3, 2e-5, False), ("x.sqrt()", "", 0.1, 4, 2e-5, True),
    ("x.square()", "", -3, 3, 2e-5, True), ("x.tan()", "", -1, 1, 2e-5, True),
    ("x.tanh()", "", -3, 3, 2e-5, True), ("x.clamp(-1, 1.5)", "", -3, 3, 2e-5, False),
    ("x.clamp(None, 0.5)", "x.clamp(max=0.5)", -3, 3, 2e-5, False), ("x.clip(0.5)", "", -3, 3, 2e-5, False),
    ("x ** 3", "", -2, 2, 2e-5, True), ("x ** 0.5", "", 0.1, 3, 2e-5, True),
    ("x ** -2", "", 0.4, 2, 2e-5, True), ("x ** 2.7", "", 0.2, 2, 5e-5, True),
    ("2.5 ** x", "torch.pow(2.5, x)", -2, 2, 2e-5, True), ("x ** 0", "", -2, 2, 2e-5, False),
    ("3 / x", "", 0.4, 3, 2e-5, True), ("1.5 - x", "", -3, 3, 2e-5, False), ("x * 0.25", "", -3, 3, 2e-5, False),
    ("x / 3", "", -3, 3, 2e-5, False), ("-x + 2", "", -3, 3, 2e-5, False),
)  # fmt: skip
ROUND = ("round", "floor", "ceil", "trunc", "sign")

for _ours, _theirs, _lo, _hi, _tol, _smooth in UNARY:
    _x = floats(3, 4, low=_lo, high=_hi)
    TABLE.add(_ours, _theirs, _x, tolerance=_tol, second=_smooth, views=VIEWS, dtypes=("float64", "float16"))
    TABLE.add(_ours, _theirs, floats(low=_lo, high=_hi), tolerance=_tol)
    TABLE.add(_ours, _theirs, floats(0, 3, low=_lo, high=_hi), tolerance=_tol)
for _name in ROUND:
    TABLE.add(
        f"x.{_name}()", "", floats(4, 5, low=-5, high=5), views=VIEWS[:2], dtypes=("float64", "float16")
    )
    TABLE.add(f"x.{_name}()", "", ints(4), dtypes=("int8", "int64", "uint8"))
for _name in ("exp", "log", "sin", "cos", "tanh", "sqrt", "sigmoid", "exp2", "log2", "reciprocal", "erf"):
    for _dtype in ("int32", "uint8", "int64"):
        TABLE.add(f"x.{_name}()", "", ints(6, low=1, high=5, dtype=_dtype), gradient=False)
for _name in ("isnan", "isinf", "isfinite", "logical_not"):
    TABLE.add(f"x.{_name}()", "", floats(4), gradient=False, dtypes=("float64", "float16"))
    TABLE.add(f"x.{_name}()", "", ints(4, low=-1, high=1), dtypes=("uint8", "int64"))

BINARY: tuple[tuple[str, str, float, bool], ...] = (
    ("x + y", "", 2e-5, False), ("x - y", "", 2e-5, False), ("x * y", "", 2e-5, True),
    ("x / (y + 5)", "", 2e-5, True), ("x.maximum(y)", "", 2e-5, False), ("x.minimum(y)", "", 2e-5, False),
    ("x.atan2(y + 3)", "", 1e-4, True), ("x.copysign(y)", "", 2e-5, False),
    ("x.logaddexp(y)", "", 2e-5, True), ("x.xlogy(y.abs() + 0.5)", "", 2e-5, False),
    ("(x.abs() + 0.5) ** y", "", 1e-4, False), ("x.lerp(y, 0.3)", "", 2e-5, False),
    ("(x > y).where(x, y)", "torch.where(x > y, x, y)", 2e-5, False),
    ("x.fmod(y.abs() + 1.5)", "", 2e-5, False), ("x % (y.abs() + 1.5)", "", 2e-5, False),
    ("x.div(y + 5, rounding_mode='floor')", "", 2e-5, False),
    ("x.div(y + 5, rounding_mode='trunc')", "", 2e-5, False),
    ("x.mul(y).add(x)", "", 2e-5, False), ("x.sub(y)", "", 2e-5, False),
)  # fmt: skip
BROADCASTS = (
    ((3, 4), (3, 4)), ((3, 1), (1, 4)), ((2, 3, 4), (4,)), ((), (3,)), ((0, 4), (1, 4)), ((2, 1, 3), (4, 1)),
)  # fmt: skip
for _ours, _theirs, _tol, _smooth in BINARY:
    for _a, _b in BROADCASTS:
        if "lerp" in _ours and _a == ():
            continue  # torch needs an end of the same shape or less
        _same = _a == _b
        TABLE.add(
            _ours, _theirs, floats(*_a), floats(*_b), tolerance=_tol, second=_smooth and _same,
            views=VIEWS if _same else (), dtypes=("float64", "float16") if _same and "div" not in _ours else (),
        )  # fmt: skip

for _op in ("<", ">", "<=", ">=", "==", "!="):
    for _a, _b in BROADCASTS[:4]:
        TABLE.add(f"x {_op} y", "", ints(*_a, low=-2, high=2), ints(*_b, low=-2, high=2))
    TABLE.add(f"x {_op} y", "", floats(9), floats(9), gradient=False, dtypes=("float64", "float16"))
    TABLE.add(f"x {_op} 1", "", ints(9, low=-2, high=2), dtypes=("int64", "int8"))
    TABLE.add(f"x {_op} 1", "", ints(9, low=0, high=2, dtype="uint8"))
    TABLE.add(f"x {_op} 0.5", "", floats(9), gradient=False)
_INTS = ("int8", "int16", "int64", "uint8")
for _op in ("+", "-", "*", "&", "|", "^"):
    TABLE.add(f"x {_op} y", "", ints(3, 4, low=0, high=90), ints(3, 4, low=0, high=90), dtypes=_INTS)
    TABLE.add(f"x {_op} 3", "", ints(3, 4, low=0, high=90), dtypes=_INTS)
for _op in ("//", "%"):
    TABLE.add(f"x {_op} y", "", ints(3, 4, low=-90, high=90), ints(3, 4, low=1, high=9), dtypes=_INTS[:3])
    TABLE.add(f"x {_op} y", "", ints(3, 4, low=0, high=90), ints(3, 4, low=1, high=9), dtypes=("uint8",))
    for _c in (3, -3, 8):
        TABLE.add(f"x {_op} {_c}", "", ints(9, low=-90, high=90), dtypes=_INTS[:3])
for _mode in ("floor", "trunc"):
    _div = f"x.div(y, rounding_mode={_mode!r})"
    TABLE.add(_div, "", ints(12, low=-90, high=90), ints(12, low=1, high=9), dtypes=_INTS[:3])
    TABLE.add(_div, "", ints(12, low=-90, high=90), ints(12, low=-9, high=-1), dtypes=_INTS[:3])
for _op in ("<<", ">>"):
    TABLE.add(f"x {_op} y", "", ints(9, low=-9, high=9), ints(9, low=0, high=6), dtypes=("int64", "int16"))
for _op in ("&", "|", "^"):
    TABLE.add(f"x {_op} y", "", bools(3, 4), bools(4))
TABLE.add("~x", "", bools(3, 4))
TABLE.add("~x", "", ints(5), dtypes=_INTS)
TABLE.add("x.where(y, z)", "torch.where(x, y, z)", bools(3, 1), floats(3, 4), floats(4))
TABLE.add("x.where(y, 2.0)", "torch.where(x, y, 2.0)", bools(3, 4), floats(3, 4), views=("transposed",))
TABLE.add("x.where(0.5, y)", "torch.where(x, 0.5, y)", bools(3, 4), floats(3, 4))
TABLE.add("y.masked_fill(x, 0.5)", "", bools(3, 4), floats(3, 4), views=("transposed", "expanded"))
TABLE.add("x.nan_to_num()", "", floats(5))
TABLE.add("x.isclose(y, 0.5, 0.1)", "", floats(9), floats(9), gradient=False)
TABLE.add(
    "x.allclose(y, 0.5, 9)", "torch.tensor(x.allclose(y, 0.5, 9))", floats(9), floats(9), gradient=False
)
# operands of two dtypes: what they promote to
for _a in ("int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64"):
    for _b in ("uint8", "int32", "float32"):
        if _a != _b:
            _make = {True: floats, False: ints}
            TABLE.add(
                "x + y", "", _make["float" in _a](4, low=1, high=3, dtype=_a),
                _make["float" in _b](4, low=1, high=3, dtype=_b), tolerance=5e-3 if "16" in _a else 2e-5,
                gradient=False,
            )  # fmt: skip

# dtypes of casts: from each to each, of what both hold
_ALL = ("bool", "int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64")
for _a in _ALL:
    for _b in _ALL:
        _o = bools(7) if _a == "bool" else ints(7, low=0, high=99, dtype=_a) if "int" in _a else floats(
            7, low=0, high=99, dtype=_a
        )  # fmt: skip
        _rough = 5e-3 if "16" in _a + _b and "float16" in (_a, _b) else 2e-5
        TABLE.add(f"x.cast('{_b}')", f"x.to(torch.{_b})", _o, tolerance=_rough, gradient="float" in _a)

TABLE.add("x.i0()", "", floats(20, low=-40, high=40))
# divisors, and neighbours
for _dtype in ("int8", "uint8", "int16", "int32", "int64"):
    _low = 0 if _dtype == "uint8" else -120
    for _f in ("gcd", "lcm"):
        _operands = (
            ints(40, low=_low // 10, high=12, dtype=_dtype),
            ints(40, low=_low // 10, high=10, dtype=_dtype),
        )
        TABLE.add(f"x.{_f}(y)", "", *_operands)
TABLE.add(
    "x.gcd(y)",
    "",
    given((1836311903, 2147483647, 0, 5), "int32"),
    given((1134903170, 2147483646, 7, 0), "int32"),
)
TABLE.add(
    "x.gcd(y)",
    "",
    given((7540113804746346429, 1 << 62), "int64"),
    given((4660046610375530309, 3 << 40), "int64"),
)
TABLE.add("x.gcd(y)", "", ints(3, 1, low=-99, high=99), ints(4, low=-99, high=99))
for _dtype in ("float32", "float64"):
    _numbers = given((0.0, -0.0, 1.0, -3.75, 8.0, 1e30, math.inf, -math.inf, math.nan, 0.5), _dtype)
    _targets = given((1.0, -1.0, 2.0, -9.0, 8.0, 0.0, 0.0, 1.0, 2.0, math.nan), _dtype)
    # compared as bits: neighbours are closer than any tolerance
    _bits = _dtype.replace("float", "int")
    TABLE.add(
        f"x.nextafter(y).nan_to_num().bitcast('{_bits}')", f"torch.nextafter(x, y).nan_to_num().view(torch.{_bits})",
        _numbers, _targets, gradient=False,
    )  # fmt: skip
    TABLE.add("x.frexp()", "torch.frexp(x)", _numbers, gradient=False, signs=True)
    TABLE.add("x.frexp()", "torch.frexp(x)", floats(20, low=-99, high=99, dtype=_dtype))
