"""LOG2, and the logarithm in two floats that POW needs.

LOG2 is fdlibm's log with the base changed last: SLEEF's form, at the recorded length, is off by 4 ulp in
float32. A logarithm in two floats is an idea of fdlibm's, too.
"""

from __future__ import annotations

import math
from fractions import Fraction

from polygrad.codegen.lower.transcendental.formats import (
    DTYPES,
    FORMATS,
    LOG2_E,
    Format,
    fdiv,
    fma,
    in_two,
    leading,
    polynomial,
    sub,
    where,
    without_sign,
)
from polygrad.dtype import rounded
from polygrad.uop.node import UOp
from polygrad.uop.symbolic import simplify


def log2(d: UOp, fused: bool = False) -> UOp:
    """The logarithm to base 2 of a float32 or float64 node: e + log2(m), m between the roots of 1/2 and 2."""
    f, const = FORMATS[d.dtype], UOp.const
    e, m = _exponent_and_significand(d, f, f.root_half, f.bias)
    x = m + -1.0
    s = fdiv(x, m + 1.0)
    z = s * s
    # ln(1 + x) = x + correction, and log2(e) = 1 + 0.44...: x is exact, all rounded terms are smaller
    correction = s * sub(z * polynomial(z, f.log, fused), x)
    out = e.cast(d.dtype) + (x + (correction + (x + correction) * (1.0 / math.log(2.0) - 1.0)))
    out = where(d < math.inf, out, const(d.dtype, math.inf))
    special = where(d.eq(0.0), const(d.dtype, -math.inf), const(d.dtype, math.nan))
    return where(UOp.const(d.dtype, 0.0) < d, out, special)


def log2_magnitude(a: UOp, fused: bool = False) -> tuple[UOp, UOp]:
    """log2 |a| of a finite a other than 0 as a sum: a head, and the rest. Where nothing fuses, the head has
    the leading half of the digits."""
    f = FORMATS[a.dtype]
    head, tail = (_log2_by_series if fused else _log2_by_halves)(without_sign(a), f)
    return (simplify(head), simplify(tail)) if a.is_const else (head, tail)


def _exponent_and_significand(d: UOp, f: Format, least: int, bias: int) -> tuple[UOp, UOp]:
    """e + f.bias - bias and m with d = 2^e * m for a positive finite d. `least`: the bits of the least number
    that m may be; it is less than twice that number."""
    const, shift = UOp.const, f.digits - 1
    small = d < 2.0 ** (1 - f.bias)
    bits = where(small, d * 2.0**f.rescale, d).bitcast(f.signed) + ((f.bias << shift) - least)
    e = (bits >> shift) + where(small, const(f.signed, -bias - f.rescale), const(f.signed, -bias))
    return e, ((bits & ((1 << shift) - 1)) + least).bitcast(d.dtype)


_LOG2_OF_4_3 = Fraction(0x6A3FE5C6042978605FF4EDF5F974522F, 1 << 128)


def _log2_by_series(d: UOp, f: Format) -> tuple[UOp, UOp]:
    """log2(d) as a sum, with fused operations, which give the error of a product (T. J. Dekker, 1971, without
    his splitting)."""
    dtype, const = d.dtype, UOp.const
    e, m = _exponent_and_significand(d, f, f.three_quarters, 0)
    # m = (1 + x) / c, -1/4 <= x <= 1/7; c has few digits, so x is exact, and so is e + the head of -log2(c)
    high, shift = const(dtype, 8 / 7) < m, _fixed_in_two(_LOG2_OF_4_3, f)
    x = fma(m, where(high, const(dtype, 3 / 4), const(dtype, 1.0)), const(dtype, -1.0))
    whole = e.cast(dtype) + where(high, const(dtype, shift[0] - f.bias), const(dtype, -f.bias))
    # log2(1 + x) = x (series + rest) by Horner's rule, and the errors of the leading coefficients too
    heads, tails = zip(
        *(in_two(LOG2_E * Fraction((-1) ** i, i + 1), f) for i in range(f.log2_heads)), strict=True
    )
    series, error = const(dtype, heads[-1]), const(dtype, 0.0)
    for head in heads[-2::-1]:
        longer = fma(series, x, const(dtype, head))
        missing = fma(series, x, sub(const(dtype, head), longer))
        error = missing if series.is_const else fma(error, x, missing)
        series = longer
    rest = polynomial(x, (*f.log2_rest, *tails[::-1]), fused=True) + error
    head = fma(x, series, whole)
    tail = fma(x, rest, fma(x, series, sub(whole, head)))
    return head, tail + where(high, const(dtype, shift[1]), const(dtype, -0.0))


def _fixed_in_two(x: Fraction, f: Format) -> tuple[float, float]:
    """x in a part that an exponent of the format is added to without an error, and the rest."""
    unit = Fraction(1, 1 << (f.digits - f.bias.bit_length() - 1))
    head = round(x / unit) * unit
    return float(head), rounded(DTYPES[f.digits], float(x - head))


def _log2_by_halves(d: UOp, f: Format) -> tuple[UOp, UOp]:
    """log2(d) as a sum. Products of numbers with half as many digits are exact."""
    e, m = _exponent_and_significand(d, f, f.root_half, f.bias)
    whole = e.cast(d.dtype)
    x, y = m + -1.0, m + 1.0
    s = fdiv(x, y)
    # x / (m + 1) as a head and what it lacks: the products are exact, and m + 1 is taken in two parts
    s_head, y_head = leading(s, f), leading(y, f)
    y_tail = sub(m, y_head + -1.0)
    s_tail = fdiv(sub(sub(x, s_head * y_head), s_head * y_tail), y)
    # 3/2 ln(m) = s (3 + s^2 + s^4 Q(s^2)), what is in the brackets as a head and a rest too
    z, z_head = s * s, s_head * s_head
    small = z * z * polynomial(z, f.log_tail, fused=False) + s_tail * (s_head + s)
    series_head = leading(z_head + 3.0 + small, f)
    series_tail = sub(small, sub(series_head + -3.0, z_head))
    high, low = s_head * series_head, s_tail * series_head + series_tail * s
    ln_head = leading(high + low, f)
    ln_tail = sub(low, sub(ln_head, high))
    # times 2/3 log2(e), and with the exponent
    c_head, c_tail = _log2_e(f.digits // 2)
    high, low = ln_head * c_head, ln_head * c_tail + ln_tail * (c_head + c_tail)
    head = leading(low + high + whole, f)
    tail = sub(low, sub(sub(head, whole), high))
    return head, tail


def _log2_e(piece: int) -> tuple[float, float]:
    """2/3 log2(e) in a part of `piece` bits and the rest."""
    whole = 0xF6384EE1D01FEBA4FE0AA915E17C5361  # 2/3 log2(e) * 2^128
    head = whole >> (128 - piece) << (128 - piece)
    return head / 2.0**128, (whole - head) / 2.0**128
