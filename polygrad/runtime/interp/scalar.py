"""INTERP's operations on one element: Python's arithmetic, rounded to the dtype. Simple rather than fast.

A float16, bfloat16 or float32 is held as the Python float of the same value. Independent of the constant
folding in `uop/alu.py` on purpose, because INTERP is the reference for everything else.
"""

from __future__ import annotations

import math
import struct
from fractions import Fraction

from polygrad.dtype import DType, dtypes

# float dtype -> bits of the significand, exponent of the last place of the least normal number
_SHAPES = {
    dtypes.float16: (11, -24),
    dtypes.bfloat16: (8, -133),
    dtypes.float32: (24, -149),
    dtypes.float64: (53, -1074),
}
_LARGEST = {
    dtypes.float16: 65504.0,
    dtypes.bfloat16: (2.0 - 2.0**-7) * 2.0**127,
    dtypes.float32: (2.0 - 2.0**-23) * 2.0**127,
    dtypes.float64: (2.0 - 2.0**-52) * 2.0**1023,
}


def round_float(dtype: DType, x: float | int) -> float:
    """`x` rounded once to the float `dtype`, to nearest, ties to even; infinity beyond the largest."""
    if isinstance(x, float) and (dtype is dtypes.float64 or x == 0 or not math.isfinite(x)):
        return x
    digits, least = _SHAPES[dtype]
    exact = Fraction(x)
    exponent = max(_floor_log2(abs(exact)) - digits + 1, least) if x else 0
    unit = Fraction(2) ** exponent
    rounded = round(exact / unit) * unit  # Fraction's round is to even
    if abs(rounded) > _LARGEST[dtype]:
        return math.copysign(math.inf, x)
    return math.copysign(float(rounded), x)


def _floor_log2(x: Fraction) -> int:
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if Fraction(2) ** guess <= x else guess - 1


def float_to_int(dtype: DType, x: float) -> int:
    """Truncated and saturated; 0 for NaN."""
    if x != x:
        return 0
    if math.isinf(x):
        return int(dtype.max if x > 0 else dtype.min)
    return int(min(max(math.trunc(x), dtype.min), dtype.max))


def wrap(dtype: DType, n: int) -> int:
    """An integer modulo 2^bits, in the range of `dtype`."""
    n &= (1 << dtype.bits) - 1
    return n - (1 << dtype.bits) if n > dtype.max else n


def divide(a: float, b: float) -> float:
    if b:
        return a / b
    if a == 0 or a != a or b != b:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def maximum(a: float, b: float) -> float:
    """The greater; NaN when either is."""
    return a if a != a or a > b else b


def square_root(x: float) -> float:
    return math.sqrt(x) if x >= 0 else math.nan


def truncate(x: float) -> float:
    return math.copysign(math.trunc(x), x) if math.isfinite(x) else x


def exp2(x: float) -> float:
    try:
        return math.exp2(x)
    except OverflowError:
        return math.inf


def log2(x: float) -> float:
    return math.log2(x) if x > 0 else -math.inf if x == 0 else math.nan


def sin(x: float) -> float:
    return math.sin(x) if math.isfinite(x) else math.nan


def half_from_bits(bits: int) -> float:
    return float(struct.unpack("<e", struct.pack("<H", bits))[0])


def half_to_bits(x: float) -> int:
    """The bits of `x`, which is a float16 value."""
    return int(struct.unpack("<H", struct.pack("<e", x))[0])


def bfloat_from_bits(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", bits << 16))[0])


def bfloat_to_bits(x: float) -> int:
    """The bits of `x`, which is a bfloat16 value."""
    return int(struct.unpack("<I", struct.pack("<f", x))[0]) >> 16


def reinterpret(src: DType, dst: DType, x: float | int) -> float | int:
    """The same bits as another dtype of the same size."""
    fmt = {dtypes.float16: "e", dtypes.bfloat16: "f"}
    raw = struct.pack(f"<{fmt.get(src) or src.fmt}", x)
    raw = raw[2:] if src is dtypes.bfloat16 else raw
    raw = b"\0\0" + raw if dst is dtypes.bfloat16 else raw
    return struct.unpack(f"<{fmt.get(dst) or dst.fmt}", raw)[0]  # type: ignore[no-any-return]
