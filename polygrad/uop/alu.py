"""The results of elementwise ops on Python scalars, exactly as a device computes them.

Integers wrap, IDIV and MOD round to minus infinity and x // 0 = x % 0 = 0, float32 results are float32's,
float16 and bfloat16 are computed in float32 and rounded, float -> int casts truncate and saturate. Knows ops
and dtypes, no nodes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

from polygrad.dtype import DType, dtypes, float_from_bits, float_to_bits, rounded
from polygrad.uop.ops import GroupOp, Ops


def _trunc(x: float) -> float:
    return math.copysign(float(math.trunc(x)), x) if math.isfinite(x) else x


def _exp2(x: float) -> float:
    try:
        return math.exp2(x)
    except OverflowError:
        return math.inf


def _log2(x: float) -> float:
    return math.log2(x) if x > 0 else -math.inf if x == 0 else math.nan


def _pow(a: float, e: float) -> float:
    try:
        return math.pow(a, e)
    except OverflowError:
        return -math.inf if a < 0 and e % 2 == 1 else math.inf
    except ValueError:  # 0 to a negative power, or a negative base to a fraction
        if a != 0:
            return math.nan
        return math.copysign(math.inf, a) if e % 2 == 1 else math.inf


def _fdiv(a: float, b: float) -> float:
    if b != 0:
        return a / b
    return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)


def _max(a: Any, b: Any) -> Any:
    return a if a != a or (b == b and a > b) else b


_FLOAT: dict[Ops, Callable[..., float]] = {
    Ops.ADD: lambda a, b: a + b,
    Ops.SUB: lambda a, b: a - b,
    Ops.MUL: lambda a, b: a * b,
    Ops.FDIV: _fdiv,
    Ops.MAX: _max,
    Ops.NEG: lambda a: -a,
    Ops.RECIPROCAL: lambda a: _fdiv(1.0, a),
    Ops.TRUNC: _trunc,
    Ops.SQRT: lambda a: math.sqrt(a) if a >= 0 else math.nan,
    Ops.EXP2: _exp2,
    Ops.LOG2: _log2,
    Ops.SIN: lambda a: math.sin(a) if math.isfinite(a) else math.nan,
    Ops.POW: _pow,
}
_INTEGER: dict[Ops, Callable[..., int]] = {
    Ops.ADD: lambda a, b: a + b,
    Ops.SUB: lambda a, b: a - b,
    Ops.MUL: lambda a, b: a * b,
    Ops.NEG: lambda a: -a,
    Ops.IDIV: lambda a, b: a // b if b else 0,
    Ops.MOD: lambda a, b: a % b if b else 0,
    Ops.MAX: max,
    Ops.AND: lambda a, b: a & b,
    Ops.OR: lambda a, b: a | b,
    Ops.XOR: lambda a, b: a ^ b,
    Ops.SHL: lambda a, b: a << b,
    Ops.SHR: lambda a, b: a >> b,
    Ops.MULACC: lambda a, b, c: a * b + c,
}
_COMPARE: dict[Ops, Callable[..., bool]] = {
    Ops.CMPLT: lambda a, b: a < b,
    Ops.CMPNE: lambda a, b: a != b,
    Ops.CMPEQ: lambda a, b: a == b,
}


def identity_element(op: Ops, dtype: DType) -> Any:
    """The identity of an op of GroupOp.Reduce: x op identity = x for any x of `dtype`."""
    return {Ops.ADD: 0, Ops.MUL: 1, Ops.MAX: dtype.min}[op]


def evaluate(op: Ops, dtype: DType, operands: Sequence[Any]) -> Any:
    """The result of `op` on Python scalars of `dtype` (for WHERE: of the last two). None where nothing is
    folded: for an op that the dtype does not have, a shift amount out of range, and THREEFRY and a float
    MULACC, which are decomposed or fused later.
    """
    if op is Ops.WHERE:
        return operands[1] if operands[0] else operands[2]
    if dtype.is_float:
        values = [rounded(dtype, x) for x in operands]
        if op in GroupOp.Comparison:
            # ExactFloat constants tell -0.0 from 0.0; floats as a device compares them do not
            return _COMPARE[op](*[float(x) for x in values])
        function = _FLOAT.get(op)
        if function is None:
            return None
        out = function(*values)
        return rounded(dtype, out if dtype is dtypes.float64 else rounded(dtypes.float32, out))
    if op in GroupOp.Comparison:
        return _COMPARE[op](*operands)
    if op in (Ops.SHL, Ops.SHR) and not 0 <= operands[1] < dtype.bits:
        return None
    whole = _INTEGER.get(op)
    return None if whole is None else dtype.cast(whole(*operands))


def convert(value: Any, src: DType, dst: DType) -> Any:
    """CAST of a Python scalar."""
    if src.is_float:
        value = rounded(src, value)
        if dst.is_float:
            return rounded(dst, value)
        if dst.is_bool:
            return bool(value != 0)
        if value != value:
            return 0
        return int(max(dst.min, min(dst.max, value if math.isinf(value) else math.trunc(value))))
    if dst.is_float:
        return rounded(dst, int(value))
    return dst.cast(value)


def reinterpret(value: Any, src: DType, dst: DType) -> Any:
    """BITCAST of a Python scalar; None when the sizes differ or `dtypes.index` takes part."""
    if src.itemsize != dst.itemsize or dtypes.index in (src, dst):
        return None
    raw = bytes_of(src, value)
    if dst.fmt is None:  # floats that struct does not know
        return float_from_bits(dst, int.from_bytes(raw, "little"))
    return struct.unpack(f"<{dst.fmt}", raw)[0]


def bytes_of(dtype: DType, value: Any) -> bytes:
    """A Python scalar as an element of memory."""
    if dtype.fmt is None:
        return float_to_bits(dtype, value).to_bytes(dtype.itemsize, "little")
    return struct.pack(f"<{dtype.fmt}", rounded(dtype, value) if dtype.is_float else value)
