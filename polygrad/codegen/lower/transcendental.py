"""EXP2, LOG2, SIN and POW of float32 and float64 as graphs of additions, multiplications and selections.

Results are within 2 ulp of the true value everywhere, and right at signed zeros, infinities, NaN, denormals
and huge arguments. There are no branches (except in slow_paths.py) and no tables in memory, and fused
operations are not needed, so the functions suit SIMD and GPUs.

Knows scalar nodes, no kernels. EXP2 has the steps of SLEEF's xexp2 in the form tinygrad records (Shibata and
Petrogalli, arXiv:2001.09258). LOG2 is fdlibm's log with the base changed last: SLEEF's form, at the recorded
length, is off by 4 ulp in float32. SIN is a Payne-Hanek reduction of every argument from 1 up and fdlibm's
kernels; one that is known to be near 0 takes Cody and Waite's reduction.
POW has the logarithm in two floats, an idea of fdlibm's too.
Polynomials are interpolations at Chebyshev nodes, the constant term last; float32's `log2_rest` is the one
with the least greatest error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from polygrad.dtype import DType, dtypes, rounded
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.power import MAX_MULTIPLIED_POWER, whole_power
from polygrad.uop.symbolic import simplify


@dataclass(frozen=True)
class _Format:
    """A float format, and the polynomials that are good enough for it.

    `digits`: bits of the significand, the implicit one included. `bias`: of the exponent. `least`: the
    argument of exp2 below which the result is 0. `rescale`: the power of two that makes a denormal normal.
    `root_half`: the bits of the square root of 1/2;
    `three_quarters`: of 3/4.
    """

    signed: DType
    unsigned: DType
    digits: int
    bias: int
    least: float
    rescale: int
    root_half: int
    three_quarters: int
    exp2: tuple[float, ...]  # 2^x, |x| <= 1/2
    log: tuple[float, ...]  # 2*(atanh(s)/s - 1)/s^2 of s^2, s <= (sqrt 2 - 1)/(sqrt 2 + 1)
    log_tail: tuple[float, ...]  # 3*(atanh(s)/s - 1 - s^2/3)/s^4 of s^2
    log2_heads: int  # how many coefficients of log2(1 + x)/x are in two floats
    log2_rest: tuple[float, ...]  # those that follow, -1/4 <= x <= 1/7
    reach: tuple[float, float]  # of the short reduction of sin, fused and not
    sin: tuple[float, ...]  # (sin(x)/x - 1)/x^2 of x^2, |x| <= 1
    cos: tuple[float, ...]  # ((cos(x) - 1)/x^2 + 1/2)/x^2 of x^2, |x| <= pi/4

    @property
    def bits(self) -> int:
        return self.signed.bits


_FORMATS = {
    dtypes.float32: _Format(
        dtypes.int32, dtypes.uint32, 24, 127, -150.0, 32, 0x3F3504F3, 0x3F400000,
        exp2=(
            1.545316294512069e-04, 1.3390863364671234e-03, 9.618082557277852e-03, 5.550357114219078e-02,
            2.4022650760568126e-01, 6.931471880262288e-01, 1.0,
        ),
        log=(0.2958005304318844, 0.39988778282162807, 0.6666668504515603),
        log_tail=(0.34572229705595864, 0.4284335695563463, 0.6000002257677326),
        log2_heads=3,
        log2_rest=(
            -0.2527956316, 0.1493185651, -0.1766921407, 0.2065964952, -0.2404862997, 0.2885345295,
            -0.3606736417,
        ),
        reach=(2.0**12, 2.0**9),
        sin=(2.706066853968361e-06, -1.983817423628769e-04, 8.333327148835267e-03, -1.6666666647343995e-01),
        cos=(2.4547942085071572e-05, -1.3888303035894866e-03, 4.166666465950221e-02),
    ),
    dtypes.float64: _Format(
        dtypes.int64, dtypes.uint64, 53, 1023, -1075.0, 64, 0x3FE6A09E667F3BCD, 0x3FE8000000000000,
        exp2=(
            4.434359082926529454e-10, 7.073164598085707425e-09, 1.017819260921760451e-07,
            1.321543872511327615e-06, 1.525273353517584730e-05, 1.540353045101147808e-04,
            1.333355814670499073e-03, 9.618129107597600536e-03, 5.550410866482046596e-02,
            2.402265069591012214e-01, 6.931471805599452862e-01, 1.0,
        ),
        log=(
            0.14616585424888623, 0.15331710618210773, 0.18182889455674947, 0.22222211130259878,
            0.2857142862600327, 0.39999999999899444, 0.666666666666667,
        ),
        log_tail=(
            0.19370244100204728, 0.19928950910835924, 0.23078361750688242, 0.272727123774111,
            0.3333333340661617, 0.4285714285700784, 0.6000000000000004,
        ),
        log2_heads=5,
        log2_rest=(
            0.1867925781485719, -0.0355237313521143973, 0.0731678190010251263, -0.0827962181913316352,
            0.0847094489247373945, -0.0900979447381981978, 0.0961870121065846719, -0.103050554529071096,
            0.110976423741916406, -0.12022458075254583, 0.131154095477244329, -0.144269504108451412,
            0.160299448985096094, -0.180336880111093175, 0.20609929155556838, -0.240449173481493909,
        ),
        reach=(2.0**26, 2.0**20),
        sin=(
            -7.549371704181243e-13, 1.6057701922579786e-10, -2.5052099244914114e-08, 2.755731919201122e-06,
            -1.9841269841216566e-04, 8.3333333333333e-03, -1.6666666666666666e-01,
        ),
        cos=(
            -1.1382632425521717e-11, 2.08761462684032e-09, -2.7557317271729793e-07, 2.480158729876569e-05,
            -1.3888888888887398e-03, 4.1666666666666664e-02,
        ),
    ),
}  # fmt: skip

_DTYPES = {f.digits: dtype for dtype, f in _FORMATS.items()}


def _where(condition: UOp, a: UOp, b: UOp) -> UOp:
    return UOp(Ops.WHERE, a.dtype, (condition, a, b))


def _sub(a: UOp, b: UOp) -> UOp:
    return UOp(Ops.SUB, a.dtype, (a, b))


def _fdiv(a: UOp, b: UOp) -> UOp:
    return UOp(Ops.FDIV, a.dtype, (a, b))


def _polynomial(x: UOp, coefficients: Sequence[float], fused: bool) -> UOp:
    out = UOp.const(x.dtype, coefficients[0])
    for c in coefficients[1:]:
        constant = UOp.const(x.dtype, c)
        out = UOp(Ops.MULACC, x.dtype, (out, x, constant)) if fused else out * x + constant
    return out


# --- exp2 -------------------------------------------------------------------------------------------------


def exp2(d: UOp, fused: bool = False) -> UOp:
    """2^d for a float32 or float64 node: 2^n * 2^s, n the integer nearest to d."""
    f, const = _FORMATS[d.dtype], UOp.const
    zero = const(d.dtype, 0.0)
    # a finite argument, for the arithmetic between
    x = _where(d.ne(-math.inf), d, zero)
    x = _where(d.ne(d), zero, x)
    x = _where(d.ne(math.inf), x, zero)
    n = (x + _where(x < zero, const(d.dtype, -0.5), const(d.dtype, 0.5))).cast(f.signed)
    s = _sub(x, n.cast(d.dtype))
    # 2^n in two steps, for n beyond the exponents of normal numbers; both halves round to zero
    half = (n + _where(n < 0, const(f.signed, 1), const(f.signed, 0))) >> 1
    u = _polynomial(s, f.exp2, fused) * _power(half, f, d.dtype) * _power(_sub(n, half), f, d.dtype)
    u = _where((d < f.bias + 1.0).logical_not(), const(d.dtype, math.inf), u)
    u = _where(d < f.least, zero, u)
    return _where(d.ne(d), const(d.dtype, math.nan), u)


def lean_exp2(d: UOp, fused: bool = False) -> UOp:
    """2^d for a float32 or float64 node in less than half the operations: for optimised kernels.

    Adding 1.5 * 2^(digits - 1) leaves the nearest integer in the low bits. Infinities are clamped to numbers
    for which the result is 0 or overflows by itself; a NaN goes through every step.
    """
    f = _FORMATS[d.dtype]
    x, magic = _clamp(d, *_exponents(f)), _magic(2 * f.bias, f, d.dtype)
    shifted = x + magic
    return _scaled_exp2(_sub(x, _sub(shifted, magic)), shifted, f, fused)


def lean_exp2_of_product(x: UOp, c: float, fused: bool = False, nonpositive: bool = False) -> UOp:
    """2^(x c) for a constant c as it was written, of more digits than the dtype has: `exp` is 2^(x log2 e).

    The product determines the nearest integer only. The remainder is not that of the rounded product, whose
    error would grow with x: two fused operations subtract from x c or, where nothing fuses, Cody and Waite's
    reduction, whose products are exact, subtracts from x. `nonpositive`: x c is at most 0 or NaN, for which
    the result has the same bits in fewer operations.
    """
    f, dtype = _FORMATS[x.dtype], x.dtype
    head, tail = _in_two(_exactly(c), f)
    if tail == 0 and math.frexp(c)[0] in (0.5, -0.5):
        return lean_exp2(x * c, fused)  # the product of a power of two is exact
    if nonpositive:
        offset = _nonpositive_offset(f)
        bound = UOp.const(dtype, rounded(dtype, (0.25 - offset) / head))
        x = _where(x < bound, bound, x) if head > 0 else _where(bound < x, bound, x)
    else:
        offset = 2 * f.bias
        x = _clamp(x, *sorted(limit / head for limit in _exponents(f)))
    magic = _magic(offset, f, dtype)
    if fused:
        shifted = UOp(Ops.MULACC, dtype, (x, UOp.const(dtype, head), magic))
        s = UOp(Ops.MULACC, dtype, (x, UOp.const(dtype, head), _sub(magic, shifted)))
        s = s if tail == 0 else UOp(Ops.MULACC, dtype, (x, UOp.const(dtype, tail), s))
    else:
        shifted = x * head + magic
        whole = _sub(shifted, magic)
        step, step_tail = _inverse_in_two(c, f)
        s = _sub(_sub(x, whole * step), whole * step_tail) * c
    return (_rescaled_exp2 if nonpositive else _scaled_exp2)(s, shifted, f, fused)


def _exponents(f: _Format) -> tuple[float, float]:
    """Arguments for which exp2 is 0 and infinity, while all intermediate values are finite.

    The nearest integer of the first is -2 bias. Its halves make two factors that are 0, so masked scores of
    -inf or -1e9 do not underflow, which is slow on processors.
    """
    return 0.25 - 2.0 * f.bias, f.bias + 2.0


def _clamp(x: UOp, lower: float, upper: float) -> UOp:
    """x between two numbers; a NaN stays."""
    low, high = UOp.const(x.dtype, rounded(x.dtype, lower)), UOp.const(x.dtype, rounded(x.dtype, upper))
    x = _where(x < low, low, x)
    return _where(high < x, high, x)


def _magic(offset: int, f: _Format, dtype: DType) -> UOp:
    """m for which the low bits of d + m are an even offset and the integer nearest to d."""
    return UOp.const(dtype, 1.5 * 2.0 ** (f.digits - 1) + offset)


def _scaled_exp2(s: UOp, shifted: UOp, f: _Format, fused: bool) -> UOp:
    """2^s times 2 to the integer in the low bits of `shifted`, in two steps, also for subnormal results.

    The halves of 2 bias + n are the exponents of the two powers. The bits above them in half of `shifted` are
    zeros, so shifting the exponents to their place drops all other bits.
    """
    bits, shift = shifted.bitcast(f.unsigned), f.digits - 1
    half = bits >> 1
    first, second = ((n << shift).bitcast(s.dtype) for n in (half, _sub(bits, half)))
    return _polynomial(s, f.exp2, fused) * first * second


def _rescaled_exp2(s: UOp, shifted: UOp, f: _Format, fused: bool) -> UOp:
    """2^s times 2 to the integer n <= 0, whose sum with an offset is in the low bits of `shifted`.

    One power has these bits as its exponent; the other is a constant, so that subnormal results are rounded
    once.
    """
    power = (shifted.bitcast(f.unsigned) << (f.digits - 1)).bitcast(s.dtype)
    return _polynomial(s, f.exp2, fused) * power * 2.0 ** (f.bias - _nonpositive_offset(f))


def _nonpositive_offset(f: _Format) -> int:
    """Added to the exponent of any power of two from the least subnormal number to 1, this is the exponent of
    a normal number as its bits are."""
    return f.bias + f.rescale + 1


_LOG2_E = Fraction(0xB8AA3B295C17F0BBBE87FED0691D3E88EB57, 1 << 143)


def _exactly(c: float) -> Fraction:
    """The constant that was meant: a multiple of log2 e by a power of two has more digits than a float."""
    ratio = c * math.log(2.0)
    nearest = 2.0 ** round(math.log2(abs(ratio))) if ratio else 0.0
    if nearest and abs(abs(ratio) - nearest) <= 4 * math.ulp(nearest):
        return _LOG2_E * Fraction(math.copysign(nearest, ratio))
    return Fraction(c)


def _in_two(exact: Fraction, f: _Format) -> tuple[float, float]:
    """A number of the format, towards 0, and the rest: of one sign, so that infinities do not cancel."""
    head = _cut(exact, f.digits)
    return float(head), rounded(_DTYPES[f.digits], float(exact - head))


def _inverse_in_two(c: float, f: _Format) -> tuple[float, float]:
    """1 / c in a part whose products with the exponents of the format are exact, and the rest."""
    exact = 1 / _exactly(c)
    head = _cut(exact, f.digits - f.bias.bit_length() - 1)
    return float(head), rounded(_DTYPES[f.digits], float(exact - head))


def _cut(x: Fraction, digits: int) -> Fraction:
    """The leading binary digits of x."""
    unit = Fraction(2) ** (math.frexp(float(x))[1] - digits)
    return int(x / unit) * unit


def _power(n: UOp, f: _Format, dtype: DType) -> UOp:
    """2^n for integers n of normal numbers' exponents."""
    return ((n + f.bias) << (f.digits - 1)).bitcast(dtype)


# --- log2 -------------------------------------------------------------------------------------------------


def log2(d: UOp, fused: bool = False) -> UOp:
    """The logarithm to base 2 of a float32 or float64 node: e + log2(m), m between the roots of 1/2 and 2."""
    f, const = _FORMATS[d.dtype], UOp.const
    e, m = _exponent_and_significand(d, f, f.root_half, f.bias)
    x = m + -1.0
    s = _fdiv(x, m + 1.0)
    z = s * s
    # ln(1 + x) = x + correction, and log2(e) = 1 + 0.44...: x is exact, all rounded terms are smaller
    correction = s * _sub(z * _polynomial(z, f.log, fused), x)
    out = e.cast(d.dtype) + (x + (correction + (x + correction) * (1.0 / math.log(2.0) - 1.0)))
    out = _where(d < math.inf, out, const(d.dtype, math.inf))
    special = _where(d.eq(0.0), const(d.dtype, -math.inf), const(d.dtype, math.nan))
    return _where(UOp.const(d.dtype, 0.0) < d, out, special)


def _exponent_and_significand(d: UOp, f: _Format, least: int, bias: int) -> tuple[UOp, UOp]:
    """e + f.bias - bias and m with d = 2^e * m for a positive finite d. `least`: the bits of the least number
    that m may be; it is less than twice that number."""
    const, shift = UOp.const, f.digits - 1
    small = d < 2.0 ** (1 - f.bias)
    bits = _where(small, d * 2.0**f.rescale, d).bitcast(f.signed) + ((f.bias << shift) - least)
    e = (bits >> shift) + _where(small, const(f.signed, -bias - f.rescale), const(f.signed, -bias))
    return e, ((bits & ((1 << shift) - 1)) + least).bitcast(d.dtype)


# --- pow --------------------------------------------------------------------------------------------------


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


def log2_magnitude(a: UOp, fused: bool = False) -> tuple[UOp, UOp]:
    """log2 |a| of a finite a other than 0 as a sum: a head, and the rest. Where nothing fuses, the head has
    the leading half of the digits."""
    f = _FORMATS[a.dtype]
    head, tail = (_log2_by_series if fused else _log2_by_halves)(_magnitude(a), f)
    return (simplify(head), simplify(tail)) if a.is_const else (head, tail)


def ordinary_power(a: UOp, e: UOp, log: tuple[UOp, UOp], fused: bool = False) -> tuple[UOp, UOp]:
    """a^e with the logarithm of |a| for arguments that need no special case; and whether they are such: a is
    a positive normal number, and the power is not near the ends of the exponents. The bits are `power`'s."""
    f, const = _FORMATS[a.dtype], UOp.const
    shift, reach = f.digits - 1, f.bias - 2
    s, shifted = _fraction_of_product(e, *log, f, fused, 0)
    exponent, significand = shifted.bitcast(f.unsigned), _polynomial(s, f.exp2, fused)
    power = (significand.bitcast(f.unsigned) + (exponent << shift)).bitcast(a.dtype)
    least, infinity = 1 << shift, (2 * f.bias + 1) << shift
    is_normal = _sub(a.bitcast(f.unsigned), const(f.unsigned, least)) < infinity - least
    zero = ((f.bias + shift) << shift) + (1 << (shift - 1))  # the bits of `shifted` for an exponent of 0
    return power, is_normal & (_sub(exponent, const(f.unsigned, zero - reach)) < 2 * reach)


def special_power(a: UOp, e: UOp, log: tuple[UOp, UOp], fused: bool = False) -> UOp:
    """a^e with the logarithm of |a| for any arguments."""
    f, const, dtype = _FORMATS[a.dtype], UOp.const, a.dtype
    magnitude, exponent = _magnitude(a), _constant(e)
    head = _where(magnitude < math.inf, log[0], magnitude)
    head = _where(magnitude.eq(0.0), const(dtype, -math.inf), head)
    product = e * head
    s, shifted = _fraction_of_product(e, *log, f, fused, 2 * f.bias)
    # far away from the exponents of numbers s means nothing, and the product says what the power is
    out = _where(product < 2.0 * f.bias, _scaled_exp2(s, shifted, f, fused), const(dtype, math.inf))
    out = _where(const(dtype, -2.0 * f.bias) < product, out, const(dtype, 0.0))
    out = _where(product.ne(product), product, out)
    if exponent is None or not math.isfinite(exponent) or exponent == 0:
        out = _where(magnitude.eq(1.0) | e.eq(0.0), const(dtype, 1.0), out)  # of NaN too
    if a.is_const and a.arg > 0:
        return out
    sign = 1 << (f.bits - 1)
    whole = UOp(Ops.TRUNC, dtype, (e,)).eq(e)
    halved = e * 0.5
    odd = whole & UOp(Ops.TRUNC, dtype, (halved,)).ne(halved)
    of_odd = _where(odd, a.bitcast(f.unsigned) & sign, const(f.unsigned, 0))
    out = (out.bitcast(f.unsigned) ^ of_odd).bitcast(dtype)
    finite_negative = (a < 0.0) & (magnitude < math.inf)
    return _where(finite_negative & whole.logical_not(), const(dtype, math.nan), out)


def _fraction_of_product(
    e: UOp, head: UOp, tail: UOp, f: _Format, fused: bool, offset: int
) -> tuple[UOp, UOp]:
    """e (head + tail) less the nearest integer, and a number whose low bits are that integer + offset. A
    constant e is taken as it was written: 0.3, not float32's nearest number."""
    exponent, magic = _constant(e), _magic(offset, f, e.dtype)
    e_head = e if fused else _leading(e, f)
    e_tail = None if fused else _sub(e, e_head)
    if exponent is not None and not math.isnan(exponent):
        e_head = UOp.const(e.dtype, exponent) if fused else simplify(e_head)
        e_tail = UOp.const(e.dtype, e.arg - e_head.arg)
    if fused:
        shifted = _fma(e_head, head + tail, magic)
        s = _fma(e, tail, _fma(e_head, head, _sub(magic, shifted)))
        return s if e_tail is None else _fma(e_tail, head, s), shifted
    assert e_tail is not None
    product, remainder = e_head * head, e_tail * head + e * tail
    shifted = product + remainder + magic
    return _sub(product, _sub(shifted, magic)) + remainder, shifted


def _magnitude(x: UOp) -> UOp:
    f = _FORMATS[x.dtype]
    return (x.bitcast(f.unsigned) & ((1 << (f.bits - 1)) - 1)).bitcast(x.dtype)


def _short_power(a: UOp, exponent: float) -> UOp:
    """a^exponent for an integer or half-integer exponent; for +-1/2 with the square root's special cases, as
    in torch."""
    f, dtype, n = _FORMATS[a.dtype], a.dtype, int(abs(exponent))
    if n == abs(exponent):
        out = whole_power(a, n)
    elif n == 0:
        out = UOp(Ops.SQRT, dtype, (a,))
    else:
        magnitude = (a.bitcast(f.unsigned) & ((1 << (f.bits - 1)) - 1)).bitcast(dtype)
        out = whole_power(magnitude, n) * UOp(Ops.SQRT, dtype, (magnitude,))
        out = _where((a < 0.0) & (magnitude < math.inf), UOp.const(dtype, math.nan), out)
    return out if exponent > 0 else _fdiv(UOp.const(dtype, 1.0), out)


def _leading(x: UOp, f: _Format) -> UOp:
    """The leading half of the digits of `x`: products of two such numbers are exact."""
    cleared = f.digits - f.digits // 2
    return (x.bitcast(f.unsigned) & ((1 << f.bits) - (1 << cleared))).bitcast(x.dtype)


def _log2_e(piece: int) -> tuple[float, float]:
    """2/3 log2(e) in a part of `piece` bits and the rest."""
    whole = 0xF6384EE1D01FEBA4FE0AA915E17C5361  # 2/3 log2(e) * 2^128
    head = whole >> (128 - piece) << (128 - piece)
    return head / 2.0**128, (whole - head) / 2.0**128


_LOG2_OF_4_3 = Fraction(0x6A3FE5C6042978605FF4EDF5F974522F, 1 << 128)


def _log2_by_series(d: UOp, f: _Format) -> tuple[UOp, UOp]:
    """log2(d) as a sum, with fused operations, which give the error of a product (T. J. Dekker, 1971, without
    his splitting)."""
    dtype, const = d.dtype, UOp.const
    e, m = _exponent_and_significand(d, f, f.three_quarters, 0)
    # m = (1 + x) / c, -1/4 <= x <= 1/7; c has few digits, so x is exact, and so is e + the head of -log2(c)
    high, shift = const(dtype, 8 / 7) < m, _fixed_in_two(_LOG2_OF_4_3, f)
    x = _fma(m, _where(high, const(dtype, 3 / 4), const(dtype, 1.0)), const(dtype, -1.0))
    whole = e.cast(dtype) + _where(high, const(dtype, shift[0] - f.bias), const(dtype, -f.bias))
    # log2(1 + x) = x (series + rest) by Horner's rule, and the errors of the leading coefficients too
    heads, tails = zip(
        *(_in_two(_LOG2_E * Fraction((-1) ** i, i + 1), f) for i in range(f.log2_heads)), strict=True
    )
    series, error = const(dtype, heads[-1]), const(dtype, 0.0)
    for head in heads[-2::-1]:
        longer = _fma(series, x, const(dtype, head))
        missing = _fma(series, x, _sub(const(dtype, head), longer))
        error = missing if series.is_const else _fma(error, x, missing)
        series = longer
    rest = _polynomial(x, (*f.log2_rest, *tails[::-1]), fused=True) + error
    head = _fma(x, series, whole)
    tail = _fma(x, rest, _fma(x, series, _sub(whole, head)))
    return head, tail + _where(high, const(dtype, shift[1]), const(dtype, -0.0))


def _fixed_in_two(x: Fraction, f: _Format) -> tuple[float, float]:
    """x in a part that an exponent of the format is added to without an error, and the rest."""
    unit = Fraction(1, 1 << (f.digits - f.bias.bit_length() - 1))
    head = round(x / unit) * unit
    return float(head), rounded(_DTYPES[f.digits], float(x - head))


def _fma(a: UOp, b: UOp | float, c: UOp) -> UOp:
    """a b + c, rounded once."""
    b = b if isinstance(b, UOp) else UOp.const(a.dtype, b)
    return UOp(Ops.MULACC, a.dtype, (a, b, c))


def _log2_by_halves(d: UOp, f: _Format) -> tuple[UOp, UOp]:
    """log2(d) as a sum. Products of numbers with half as many digits are exact."""
    e, m = _exponent_and_significand(d, f, f.root_half, f.bias)
    whole = e.cast(d.dtype)
    x, y = m + -1.0, m + 1.0
    s = _fdiv(x, y)
    # x / (m + 1) as a head and what it lacks: the products are exact, and m + 1 is taken in two parts
    s_head, y_head = _leading(s, f), _leading(y, f)
    y_tail = _sub(m, y_head + -1.0)
    s_tail = _fdiv(_sub(_sub(x, s_head * y_head), s_head * y_tail), y)
    # 3/2 ln(m) = s (3 + s^2 + s^4 Q(s^2)), what is in the brackets as a head and a rest too
    z, z_head = s * s, s_head * s_head
    small = z * z * _polynomial(z, f.log_tail, fused=False) + s_tail * (s_head + s)
    series_head = _leading(z_head + 3.0 + small, f)
    series_tail = _sub(small, _sub(series_head + -3.0, z_head))
    high, low = s_head * series_head, s_tail * series_head + series_tail * s
    ln_head = _leading(high + low, f)
    ln_tail = _sub(low, _sub(ln_head, high))
    # times 2/3 log2(e), and with the exponent
    c_head, c_tail = _log2_e(f.digits // 2)
    high, low = ln_head * c_head, ln_head * c_tail + ln_tail * (c_head + c_tail)
    head = _leading(low + high + whole, f)
    tail = _sub(low, _sub(_sub(head, whole), high))
    return head, tail


# --- sin --------------------------------------------------------------------------------------------------

# 1/(2 pi) * 2^1216: what 2^1023 needs, and 128 bits more
_TURNS = int(
    "28be60db9391054a7f09d5f47d4d377036d8a5664f10e4107f9458eaf7aef158"
    "6dc91b8e909374b801924bba827464873f877ac72c4a69cfba208d7d4baed121"
    "3a671c09ad17df904e64758e60d4ce7d272117e2ef7e4a0ec7fe25fff7816603"
    "fbcbc462d6829b47db4d9fb3c9f2c26dd3d18fd9a797fa8b5d49eeb1faf97c5e"
    "cf41ce7de294a4ba9afed7ec47e357421580cc11bf1edaea",
    16,
)
_TURNS_BITS = 1216


def sin(d: UOp, fused: bool = False) -> UOp:
    """The sine of a float32 or float64 node. An argument below 1 is its own remainder."""
    f, const = _FORMATS[d.dtype], UOp.const
    sign = 1 << (f.bits - 1)
    bits = d.bitcast(f.unsigned)
    magnitude = (bits & (sign - 1)).bitcast(d.dtype)
    hi, lo, quadrant = _quarter_turns(bits & (sign - 1), f, d.dtype)
    small = magnitude < 1.0
    hi = _where(small, magnitude, hi)
    lo = _where(small, const(d.dtype, 0.0), lo)
    quadrant = _where(small, const(f.unsigned, 0), quadrant)
    z = hi * hi
    sine = hi + (hi * z * _polynomial(z, f.sin, fused) + lo)
    cosine = _sub(z * (z * _polynomial(z, f.cos, fused) + -0.5), hi * lo) + 1.0
    out = _where((quadrant & 1).ne(0), cosine, sine).bitcast(f.unsigned)
    out = (out ^ ((quadrant & 2) << (f.bits - 2)) ^ (bits & sign)).bitcast(d.dtype)
    return _where(magnitude < math.inf, out, const(d.dtype, math.nan))


def is_far(d: UOp, fused: bool = False) -> UOp:
    """Whether a float32 or float64 node is a number that `near_sin` is not for."""
    f = _FORMATS[d.dtype]
    magnitude = (d.bitcast(f.unsigned) & ((1 << (f.bits - 1)) - 1)).bitcast(d.dtype)
    near = magnitude < f.reach[not fused]
    return near.logical_not() & (magnitude < math.inf)


def near_sin(d: UOp, fused: bool = False) -> UOp:
    """The sine of a float32 or float64 node that is not `is_far`, in a fifth of the operations.

    Cody and Waite's reduction: the nearest multiple of pi/2 is taken away in parts, so many that what is left
    is right to its last digit. Fused, each part is a whole float, for a product is not rounded; else it has
    half of the digits, for the product with a multiple of so many digits to be exact.
    """
    f, const, dtype = _FORMATS[d.dtype], UOp.const, d.dtype
    sign = 1 << (f.bits - 1)
    bits = d.bitcast(f.unsigned)
    x = (bits & (sign - 1)).bitcast(dtype)
    magic = const(dtype, 1.5 * 2.0 ** (f.digits - 1))
    turns = const(dtype, 2.0 / math.pi)
    shifted = UOp(Ops.MULACC, dtype, (x, turns, magic)) if fused else x * turns + magic
    quadrant = shifted.bitcast(f.unsigned)  # in the last two bits
    n = _sub(shifted, magic)
    if fused:
        for part in _half_pi(f.digits):
            x = UOp(Ops.MULACC, dtype, (n, const(dtype, -part), x))
    else:
        p0, p1, p2, p3, p4 = _half_pi(f.digits // 2, 5)
        a = _sub(_sub(x, n * p0), n * p1)  # exact: it has no digit below the last one of x
        high = _sub(a, n * p2)
        low = _sub(_sub(a, high), n * p2)  # exact
        x = _sub(high, n * p3) + _sub(low, n * p4)
    z = x * x
    sine, cosine = _polynomial(z, f.sin, fused), _polynomial(z, f.cos, fused)
    if fused:
        sine = UOp(Ops.MULACC, dtype, (x * z, sine, x))
        cosine = UOp(Ops.MULACC, dtype, (z, cosine, const(dtype, -0.5)))
        cosine = UOp(Ops.MULACC, dtype, (z, cosine, const(dtype, 1.0)))
    else:
        sine = x + x * z * sine
        cosine = z * (z * cosine + -0.5) + 1.0
    out = _where((quadrant & 1).ne(0), cosine, sine).bitcast(f.unsigned)
    return (out ^ ((quadrant & 2) << (f.bits - 2)) ^ (bits & sign)).bitcast(dtype)


def _quarter_turns(bits: UOp, f: _Format, dtype: DType) -> tuple[UOp, UOp, UOp]:
    """A float of at least 1, by its bits, less the nearest multiple of pi/2 as hi + lo; the multiple modulo
    4.

    Payne and Hanek: the fraction of x/(2 pi) in two words, from those three words of 1/(2 pi) that matter for
    x. In the notation below x = significand * 2^(exponent - digits + 1).
    """
    width, shift = f.bits, f.digits - 1
    exponent = (bits >> shift) - f.bias
    significand = (bits & ((1 << shift) - 1)) | (1 << shift)
    w = [_word(exponent, i, f) for i in range(4)]
    # the words start at `exponent` modulo the width; two shifts, as one by the whole width has no meaning
    left = exponent & (width - 1)
    right = left ^ (width - 1)
    w0, w1, w2 = ((w[i] << left) | ((w[i + 1] >> 1) >> right) for i in range(3))
    middle = significand * w1
    low = middle + _high_product(significand, w2)
    high = significand * w0 + _high_product(significand, w1) + (low < middle).cast(f.unsigned)
    quadrant = (high + (1 << (width - 3))) >> (width - 2)
    # the remainder of a quarter turn, without its sign, in pieces whose products with pieces of pi/2 are
    # exact
    high, low = (high << 2) | (low >> (width - 2)), low << 2
    negative = (high.bitcast(f.signed) >> (width - 1)).bitcast(f.unsigned)
    high, low = high ^ negative, low ^ negative
    piece = f.digits // 2
    last_piece = (high << (2 * piece)) | (low >> (width - 2 * piece))
    a = (high >> (width - piece)).bitcast(f.signed).cast(dtype)
    b = ((high >> (width - 2 * piece)) & ((1 << piece) - 1)).bitcast(f.signed).cast(dtype)
    c = (last_piece >> 1).bitcast(f.signed).cast(dtype)
    p0, p1, p2 = _half_pi(piece)
    scale = 2.0**-piece
    hi = a * (p0 * scale)
    lo = (a * (p1 * scale) + b * (p0 * scale**2)) + (
        a * (p2 * scale) + (b * (p1 * scale**2) + c * (math.pi / 2 * scale**2 * 2.0 ** (1 - width)))
    )
    total = hi + lo
    lo = _sub(hi, total) + lo
    sign = negative << (width - 1)
    return (
        (total.bitcast(f.unsigned) ^ sign).bitcast(dtype),
        (lo.bitcast(f.unsigned) ^ sign).bitcast(dtype),
        quadrant,
    )


def _word(exponent: UOp, i: int, f: _Format) -> UOp:
    """Word exponent // width + i of 1/(2 pi) * 2^(1 - digits), selected by the bits of the exponent."""
    count = (f.bias + 1) // f.bits
    words = []
    for j in range(i, count + i):
        value = _TURNS >> (_TURNS_BITS + f.digits - 1 - f.bits * (j + 1))
        words.append(UOp.const(f.unsigned, value & ((1 << f.bits) - 1)))
    bit = f.bits
    while len(words) > 1:
        chosen = (exponent & bit).ne(0)
        words = [_where(chosen, b, a) for a, b in zip(words[::2], words[1::2], strict=True)]
        bit *= 2
    return words[0]


def _high_product(a: UOp, b: UOp) -> UOp:
    """The upper word of the product of two unsigned words."""
    half = a.dtype.bits // 2
    mask = (1 << half) - 1
    a0, a1, b0, b1 = a & mask, a >> half, b & mask, b >> half
    cross = a1 * b0 + ((a0 * b0) >> half)
    return a1 * b1 + (cross >> half) + ((a0 * b1 + (cross & mask)) >> half)


def _half_pi(piece: int, count: int = 3) -> tuple[float, ...]:
    """pi/2 in parts of `piece` bits, the last one rounded."""
    remainder = 0x3243F6A8885A308D313198A2E03707344A4093822299F31D00  # pi/2 * 2^197
    out = []
    for i in range(1, count):
        top = 198 - i * piece  # the leading bit has weight 2^197
        out.append(remainder >> top << top)
        remainder -= out[-1]
    return tuple(x / 2.0**197 for x in (*out, remainder))
