"""POW: 2^(e log2 |a|), or multiplications where the exponent is a small constant."""

from __future__ import annotations

import math

from polygrad.codegen.lower.transcendental.exponential import scaled_exp2
from polygrad.codegen.lower.transcendental.formats import (
    FORMATS,
    Format,
    fdiv,
    fma,
    leading,
    magic_number,
    polynomial,
    sub,
    where,
    without_sign,
)
from polygrad.codegen.lower.transcendental.logarithm import log2_magnitude
from polygrad.dtype import rounded
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.power import MAX_MULTIPLIED_POWER, whole_power
from polygrad.uop.symbolic import simplify


def power(a: UOp, e: UOp, fused: bool = False) -> UOp:
    """a^e for float32 or float64 nodes, special cases as in C (ISO 9899, F.10.4.4).

    It is 2^(e log2 |a|), with the sign of an odd power. An exponent of 100 makes the error of the logarithm
    100 times as large, so the logarithm has half as many digits again: small integer powers of integers come
    out exact. A constant integer or half-integer exponent takes multiplications and a square root.
    """
    if (exponent := _short_exponent(e)) is not None:
        return _short_power(a, exponent)
    return special_power(a, e, log2_magnitude(a, fused), fused)


def has_ordinary_power(a: UOp, e: UOp) -> bool:
    """Whether `ordinary_power` saves much: not where the logarithm is a constant, or none is taken."""
    return not a.is_const and _short_exponent(e) is None


def _short_exponent(e: UOp) -> float | None:
    """A constant integer or half-integer exponent that is small enough for multiplications."""
    x = _constant(e)
    is_short = x is not None and 0 < abs(x) <= MAX_MULTIPLIED_POWER and (2 * x).is_integer()
    return x if is_short else None


def _constant(x: UOp) -> float | None:
    return rounded(x.dtype, x.arg) if x.is_const else None


def ordinary_power(a: UOp, e: UOp, log: tuple[UOp, UOp], fused: bool = False) -> tuple[UOp, UOp]:
    """a^e with the logarithm of |a| for arguments that need no special case; and whether they are such: a is
    a positive normal number, and the power is not near the ends of the exponents. The bits are `power`'s."""
    f, const = FORMATS[a.dtype], UOp.const
    shift, reach = f.digits - 1, f.bias - 2
    s, shifted = _fraction_of_product(e, *log, f, fused, 0)
    exponent, significand = shifted.bitcast(f.unsigned), polynomial(s, f.exp2, fused)
    power = (significand.bitcast(f.unsigned) + (exponent << shift)).bitcast(a.dtype)
    least, infinity = 1 << shift, (2 * f.bias + 1) << shift
    is_normal = sub(a.bitcast(f.unsigned), const(f.unsigned, least)) < infinity - least
    zero = ((f.bias + shift) << shift) + (1 << (shift - 1))  # the bits of `shifted` for an exponent of 0
    return power, is_normal & (sub(exponent, const(f.unsigned, zero - reach)) < 2 * reach)


def special_power(a: UOp, e: UOp, log: tuple[UOp, UOp], fused: bool = False) -> UOp:
    """a^e with the logarithm of |a| for any arguments."""
    f, const, dtype = FORMATS[a.dtype], UOp.const, a.dtype
    magnitude, exponent = without_sign(a), _constant(e)
    head = where(magnitude < math.inf, log[0], magnitude)
    head = where(magnitude.eq(0.0), const(dtype, -math.inf), head)
    product = e * head
    s, shifted = _fraction_of_product(e, *log, f, fused, 2 * f.bias)
    # far away from the exponents of numbers s means nothing, and the product says what the power is
    out = where(product < 2.0 * f.bias, scaled_exp2(s, shifted, f, fused), const(dtype, math.inf))
    out = where(const(dtype, -2.0 * f.bias) < product, out, const(dtype, 0.0))
    out = where(product.ne(product), product, out)
    if exponent is None or not math.isfinite(exponent) or exponent == 0:
        out = where(magnitude.eq(1.0) | e.eq(0.0), const(dtype, 1.0), out)  # of NaN too
    if a.is_const and a.arg > 0:
        return out
    sign = 1 << (f.bits - 1)
    whole = UOp(Ops.TRUNC, dtype, (e,)).eq(e)
    halved = e * 0.5
    odd = whole & UOp(Ops.TRUNC, dtype, (halved,)).ne(halved)
    of_odd = where(odd, a.bitcast(f.unsigned) & sign, const(f.unsigned, 0))
    out = (out.bitcast(f.unsigned) ^ of_odd).bitcast(dtype)
    finite_negative = (a < 0.0) & (magnitude < math.inf)
    return where(finite_negative & whole.logical_not(), const(dtype, math.nan), out)


def _fraction_of_product(
    e: UOp, head: UOp, tail: UOp, f: Format, fused: bool, offset: int
) -> tuple[UOp, UOp]:
    """e (head + tail) less the nearest integer, and a number whose low bits are that integer + offset. A
    constant e is taken as it was written: 0.3, not float32's nearest number."""
    exponent, magic = _constant(e), magic_number(offset, f, e.dtype)
    e_head = e if fused else leading(e, f)
    e_tail = None if fused else sub(e, e_head)
    if exponent is not None and not math.isnan(exponent):
        e_head = UOp.const(e.dtype, exponent) if fused else simplify(e_head)
        e_tail = UOp.const(e.dtype, e.arg - e_head.arg)
    if fused:
        shifted = fma(e_head, head + tail, magic)
        s = fma(e, tail, fma(e_head, head, sub(magic, shifted)))
        return s if e_tail is None else fma(e_tail, head, s), shifted
    assert e_tail is not None
    product, remainder = e_head * head, e_tail * head + e * tail
    shifted = product + remainder + magic
    return sub(product, sub(shifted, magic)) + remainder, shifted


def _short_power(a: UOp, exponent: float) -> UOp:
    """a^exponent for an integer or half-integer exponent; for +-1/2 with the square root's special cases, as
    in torch."""
    dtype, n = a.dtype, int(abs(exponent))
    if n == abs(exponent):
        out = whole_power(a, n)
    elif n == 0:
        out = UOp(Ops.SQRT, dtype, (a,))
    else:
        magnitude = without_sign(a)
        out = whole_power(magnitude, n) * UOp(Ops.SQRT, dtype, (magnitude,))
        out = where((a < 0.0) & (magnitude < math.inf), UOp.const(dtype, math.nan), out)
    return out if exponent > 0 else fdiv(UOp.const(dtype, 1.0), out)
