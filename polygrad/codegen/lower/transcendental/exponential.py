"""EXP2.

It has the steps of SLEEF's xexp2 in the form tinygrad records (Shibata and Petrogalli, arXiv:2001.09258).
Optimised kernels take a shorter form, which multiplies by a constant first where there is one.
"""

from __future__ import annotations

import math

from polygrad.codegen.lower.transcendental.formats import (
    DTYPES,
    FORMATS,
    Format,
    cut,
    exactly,
    in_two,
    magic_number,
    polynomial,
    sub,
    where,
)
from polygrad.dtype import DType, rounded
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def exp2(d: UOp, fused: bool = False) -> UOp:
    """2^d for a float32 or float64 node: 2^n * 2^s, n the integer nearest to d."""
    f, const = FORMATS[d.dtype], UOp.const
    zero = const(d.dtype, 0.0)
    # a finite argument, for the arithmetic between
    x = where(d.ne(-math.inf), d, zero)
    x = where(d.ne(d), zero, x)
    x = where(d.ne(math.inf), x, zero)
    n = (x + where(x < zero, const(d.dtype, -0.5), const(d.dtype, 0.5))).cast(f.signed)
    s = sub(x, n.cast(d.dtype))
    # 2^n in two steps, for n beyond the exponents of normal numbers; both halves round to zero
    half = (n + where(n < 0, const(f.signed, 1), const(f.signed, 0))) >> 1
    u = polynomial(s, f.exp2, fused) * _power(half, f, d.dtype) * _power(sub(n, half), f, d.dtype)
    u = where((d < f.bias + 1.0).logical_not(), const(d.dtype, math.inf), u)
    u = where(d < f.least, zero, u)
    return where(d.ne(d), const(d.dtype, math.nan), u)


def lean_exp2(d: UOp, fused: bool = False) -> UOp:
    """2^d for a float32 or float64 node in less than half the operations: for optimised kernels.

    Adding 1.5 * 2^(digits - 1) leaves the nearest integer in the low bits. Infinities are clamped to numbers
    for which the result is 0 or overflows by itself; a NaN goes through every step.
    """
    f = FORMATS[d.dtype]
    x, magic = _clamp(d, *_exponents(f)), magic_number(2 * f.bias, f, d.dtype)
    shifted = x + magic
    return scaled_exp2(sub(x, sub(shifted, magic)), shifted, f, fused)


def lean_exp2_of_product(x: UOp, c: float, fused: bool = False, nonpositive: bool = False) -> UOp:
    """2^(x c) for a constant c as it was written, of more digits than the dtype has: `exp` is 2^(x log2 e).

    The product determines the nearest integer only. The remainder is not that of the rounded product, whose
    error would grow with x: two fused operations subtract from x c or, where nothing fuses, Cody and Waite's
    reduction, whose products are exact, subtracts from x. `nonpositive`: x c is at most 0 or NaN, for which
    the result has the same bits in fewer operations.
    """
    f, dtype = FORMATS[x.dtype], x.dtype
    head, tail = in_two(exactly(c), f)
    if tail == 0 and math.frexp(c)[0] in (0.5, -0.5):
        return lean_exp2(x * c, fused)  # the product of a power of two is exact
    if nonpositive:
        offset = _nonpositive_offset(f)
        bound = UOp.const(dtype, rounded(dtype, (0.25 - offset) / head))
        x = where(x < bound, bound, x) if head > 0 else where(bound < x, bound, x)
    else:
        offset = 2 * f.bias
        x = _clamp(x, *sorted(limit / head for limit in _exponents(f)))
    magic = magic_number(offset, f, dtype)
    if fused:
        shifted = UOp(Ops.MULACC, dtype, (x, UOp.const(dtype, head), magic))
        s = UOp(Ops.MULACC, dtype, (x, UOp.const(dtype, head), sub(magic, shifted)))
        s = s if tail == 0 else UOp(Ops.MULACC, dtype, (x, UOp.const(dtype, tail), s))
    else:
        shifted = x * head + magic
        whole = sub(shifted, magic)
        step, step_tail = _inverse_in_two(c, f)
        s = sub(sub(x, whole * step), whole * step_tail) * c
    return (_rescaled_exp2 if nonpositive else scaled_exp2)(s, shifted, f, fused)


def _exponents(f: Format) -> tuple[float, float]:
    """Arguments for which exp2 is 0 and infinity, while all intermediate values are finite.

    The nearest integer of the first is -2 bias. Its halves make two factors that are 0, so masked scores of
    -inf or -1e9 do not underflow, which is slow on processors.
    """
    return 0.25 - 2.0 * f.bias, f.bias + 2.0


def _clamp(x: UOp, lower: float, upper: float) -> UOp:
    """x between two numbers; a NaN stays."""
    low, high = UOp.const(x.dtype, rounded(x.dtype, lower)), UOp.const(x.dtype, rounded(x.dtype, upper))
    x = where(x < low, low, x)
    return where(high < x, high, x)


def scaled_exp2(s: UOp, shifted: UOp, f: Format, fused: bool) -> UOp:
    """2^s times 2 to the integer in the low bits of `shifted`, in two steps, also for subnormal results.

    The halves of 2 bias + n are the exponents of the two powers. The bits above them in half of `shifted` are
    zeros, so shifting the exponents to their place drops all other bits.
    """
    bits, shift = shifted.bitcast(f.unsigned), f.digits - 1
    half = bits >> 1
    first, second = ((n << shift).bitcast(s.dtype) for n in (half, sub(bits, half)))
    return polynomial(s, f.exp2, fused) * first * second


def _rescaled_exp2(s: UOp, shifted: UOp, f: Format, fused: bool) -> UOp:
    """2^s times 2 to the integer n <= 0, whose sum with an offset is in the low bits of `shifted`.

    One power has these bits as its exponent; the other is a constant, so that subnormal results are rounded
    once.
    """
    power = (shifted.bitcast(f.unsigned) << (f.digits - 1)).bitcast(s.dtype)
    return polynomial(s, f.exp2, fused) * power * 2.0 ** (f.bias - _nonpositive_offset(f))


def _nonpositive_offset(f: Format) -> int:
    """Added to the exponent of any power of two from the least subnormal number to 1, this is the exponent of
    a normal number as its bits are."""
    return f.bias + f.rescale + 1


def _inverse_in_two(c: float, f: Format) -> tuple[float, float]:
    """1 / c in a part whose products with the exponents of the format are exact, and the rest."""
    exact = 1 / exactly(c)
    head = cut(exact, f.digits - f.bias.bit_length() - 1)
    return float(head), rounded(DTYPES[f.digits], float(exact - head))


def _power(n: UOp, f: Format, dtype: DType) -> UOp:
    """2^n for integers n of normal numbers' exponents."""
    return ((n + f.bias) << (f.digits - 1)).bitcast(dtype)
