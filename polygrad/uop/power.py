"""x to a constant power, by a few multiplications, a square root or a reciprocal, or by POW.

Used where a graph is made (the Tensor's pow, the gradient's table) and where POW is decomposed.
"""

from __future__ import annotations

from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

MAX_MULTIPLIED_POWER = 64  # the greatest exponent that becomes multiplications


def whole_power(x: UOp, n: int) -> UOp:
    """x^n for n >= 1, by repeated squaring (Knuth, The Art of Computer Programming 2, 4.6.3)."""
    out = None
    while True:
        if n & 1:
            out = x if out is None else out * x
        n >>= 1
        if not n:
            assert out is not None
            return out
        x = x * x


def constant_power(x: UOp, exponent: float) -> UOp:
    """x^exponent for a float node `x` of any shape and an exponent other than 0.

    Only forms with a correct derivative, also at 0 and infinity, are used; that of x*x*sqrt(x) at 0 would be
    NaN. Other powers are POW, for which code generation has cheap forms of its own.
    """
    if 1 <= exponent <= MAX_MULTIPLIED_POWER and exponent == int(exponent):
        return whole_power(x, int(exponent))
    if exponent == 0.5:
        return UOp(Ops.SQRT, x.dtype, (x,))
    if exponent == -1:
        return UOp(Ops.RECIPROCAL, x.dtype, (x,))
    return UOp(Ops.POW, x.dtype, (x, UOp.const(x.dtype, exponent)))
