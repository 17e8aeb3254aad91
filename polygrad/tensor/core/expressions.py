"""Expressions that methods of several modules share: functions from nodes to nodes, or from Tensors to
Tensors."""

from __future__ import annotations

import math
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.tensor.core.base import broadcast_constant
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

# sinh(x)/x, of x², highest power first
SINH = tuple(1 / math.factorial(2 * k + 1) for k in range(7, -1, -1))


def negate(a: UOp) -> UOp:
    return UOp(Ops.MUL, a.dtype, (a, UOp.const(a.dtype, -1)))


def complement(a: UOp) -> UOp:
    return UOp(Ops.XOR, a.dtype, (a, UOp.const(a.dtype, True if a.dtype.is_bool else -1)))


def mirror(a: UOp) -> UOp:
    """Reverse the order of numbers, so that a minimum becomes a maximum: -x of floats, ~x of integers and
    bools."""
    return negate(a) if a.dtype.is_float else complement(a)


def logical_not(a: UOp) -> UOp:
    return UOp(Ops.CMPNE, dtypes.bool, (a, broadcast_constant(dtypes.bool, True, a.shape)))


def floor_of(a: UOp) -> UOp:
    t = UOp(Ops.TRUNC, a.dtype, (a,))
    return UOp(Ops.WHERE, a.dtype, (UOp(Ops.CMPLT, dtypes.bool, (a, t)), t + -1.0, t))


def ceil_of(a: UOp) -> UOp:
    t = UOp(Ops.TRUNC, a.dtype, (a,))
    return UOp(Ops.WHERE, a.dtype, (UOp(Ops.CMPLT, dtypes.bool, (t, a)), t + 1.0, t))


def remainder_of(a: UOp, b: UOp) -> UOp:
    """a - b trunc(a / b). If the quotient is 0, the result is a, also for an infinite b."""
    quotient = UOp(Ops.TRUNC, a.dtype, (UOp(Ops.FDIV, a.dtype, (a, b)),))
    is_zero = UOp(Ops.CMPEQ, dtypes.bool, (quotient, broadcast_constant(a.dtype, 0.0, a.shape)))
    return UOp(Ops.WHERE, a.dtype, (is_zero, a, a + negate(quotient * b)))


def floor_quotient(a: UOp, b: UOp) -> UOp:
    return UOp(Ops.IDIV, a.dtype, (a, b))


def trunc_quotient(a: UOp, b: UOp) -> UOp:
    """The quotient rounded to 0: one more than the floor if the quotient is inexact and negative."""
    q = floor_quotient(a, b)
    if a.dtype.is_unsigned or a.dtype.is_bool:
        return q
    zero = broadcast_constant(a.dtype, 0, a.shape)
    inexact = UOp(Ops.CMPNE, dtypes.bool, (q * b, a))
    is_negative = UOp(Ops.CMPLT, dtypes.bool, (a ^ b, zero))
    nonzero = UOp(Ops.CMPNE, dtypes.bool, (b, zero))
    return q + (inexact & is_negative & nonzero).cast(a.dtype)


def greatest_finite(dtype: DType) -> float:
    """The greatest number of a float dtype."""
    return (2.0 - 2.0 ** (1 - dtype.significand)) * (2.0 / dtype.smallest_normal)


def with_sign(magnitude: Any, x: Any) -> Any:
    """`magnitude`, whose sign bit is clear, with the sign bit of `x`: floats of one dtype. No gradient."""
    unsigned = {d.itemsize: d for d in dtypes.uints}[magnitude.dtype.itemsize]
    sign = x.uop.bitcast(unsigned) & (1 << (unsigned.bits - 1))
    return magnitude._join((magnitude.uop.bitcast(unsigned) | sign).bitcast(magnitude.dtype), x)


def polynomial(x: Any, coefficients: tuple[float, ...]) -> Any:
    """Evaluate a polynomial, highest power first, by Horner's scheme, with multiply-adds that devices may
    fuse."""
    dtype, value = x.dtype, x.uop
    out = UOp.const(dtype, coefficients[0])
    for c in coefficients[1:]:
        out = UOp(Ops.MULACC, dtype, (value, out, UOp.const(dtype, c)))
    return x._with(out)


def shift(op: Ops, a: UOp, b: UOp) -> UOp:
    """`a` shifted by `b` bits (SHL or SHR) for any b. A b that is negative, or at least the number of bits,
    shifts all bits out: the result is 0, or the sign for SHR of a signed integer."""
    dtype = a.dtype
    if b.bounds is not None and b.bounds[0] >= 0 and b.bounds[1] < dtype.bits:
        return UOp(op, dtype, (a, b))
    is_outside = UOp(Ops.CMPLT, dtypes.bool, (broadcast_constant(b.dtype, dtype.bits - 1, b.shape), b))
    if not dtype.is_unsigned:
        is_outside = is_outside | UOp(Ops.CMPLT, dtypes.bool, (b, broadcast_constant(b.dtype, 0, b.shape)))
    amount = UOp(Ops.WHERE, b.dtype, (is_outside, broadcast_constant(b.dtype, 0, b.shape), b))
    sign = broadcast_constant(dtype, 0, a.shape)
    if op is Ops.SHR and not dtype.is_unsigned:
        sign = UOp(Ops.SHR, dtype, (a, broadcast_constant(dtype, dtype.bits - 1, a.shape)))
    return UOp(Ops.WHERE, dtype, (is_outside, sign, UOp(op, dtype, (a, amount))))
