"""The hyperbolic tangent of a number that is not negative, as a node: e / (e + 2) for e = exp(2x) - 1.

2x is n ln(2) + 2h with a whole n and |h| <= ln(2) / 4, so e = 2^n (exp(2h) - 1) + (2^n - 1): one polynomial
serves small and large numbers, and what is subtracted is exact. The reduction is Cody and Waite's. Adding a
number without fraction bits rounds to n and leaves the exponent of 2^n in the low bits, as in `lean_exp2`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from polygrad.dtype import DType, dtypes
from polygrad.tensor.core.base import broadcast_constant
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


class _TanhFormat(NamedTuple):
    """A float type. From `largest` on tanh is 1. `half_log_2`: ln(2) / 2 in two parts; products of the first
    with any n are exact. `expm1`: (exp(2h) - 1) / h, interpolated at Chebyshev nodes, highest power first."""

    unsigned: DType
    bias: int
    largest: float
    half_log_2: tuple[float, float]
    expm1: tuple[float, ...]


_FORMATS = {
    dtypes.float32: _TanhFormat(
        dtypes.uint32, 127, 9.02, (0.3465576171875, 1.597309164935723e-05),
        (0.08917535841464996, 0.26781296730041504, 0.6666634678840637, 1.3333203792572021, 2.0, 2.0),
    ),
    dtypes.float64: _TanhFormat(
        dtypes.uint64, 1023, 19.1, (0.3465735901845619, 9.541074646352939e-11),
        (8.568069217338465e-06, 5.142538077146861e-05, 0.0002821863759778662, 0.0014109307334261693,
         0.0063492063581292125, 0.025396825459297796, 0.08888888888882607, 0.26666666666622685,
         0.6666666666666669, 1.3333333333333344, 2.0, 2.0),
    ),
}  # fmt: skip
TANH_DTYPES = frozenset(_FORMATS)


def tanh_of_magnitude(x: UOp) -> UOp:
    """tanh of a float32 or float64 node that is not negative, or NaN; within 4 ulp."""
    dtype, f = x.dtype, _FORMATS[x.dtype]
    largest = broadcast_constant(dtype, f.largest, x.shape)
    h = (largest < x).where(largest, x)  # a NaN stays
    exponents = dtype.significand - 1
    magic = 1.5 * 2.0**exponents + f.bias
    shifted = _multiply_add(h, 2 / math.log(2), magic)
    n = shifted + -magic
    for part in f.half_log_2:
        h = _multiply_add(n, -part, h)
    expm1 = UOp.const(dtype, f.expm1[0])
    for c in f.expm1[1:]:
        expm1 = _multiply_add(h, expm1, c)
    power = (shifted.bitcast(f.unsigned) << exponents).bitcast(dtype)
    e = _multiply_add(h * expm1, power, power + -1.0)
    return UOp(Ops.FDIV, dtype, (e, e + 2.0))


def _multiply_add(a: UOp, b: UOp | float, c: UOp | float) -> UOp:
    """a b + c, which devices may fuse."""
    b, c = (x if isinstance(x, UOp) else UOp.const(a.dtype, x) for x in (b, c))
    return UOp(Ops.MULACC, a.dtype, (a, b, c))
