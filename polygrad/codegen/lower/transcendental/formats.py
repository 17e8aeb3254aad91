"""The float formats with the polynomials for them, and arithmetic that the functions share.

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


@dataclass(frozen=True)
class Format:
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


FORMATS = {
    dtypes.float32: Format(
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
    dtypes.float64: Format(
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

DTYPES = {f.digits: dtype for dtype, f in FORMATS.items()}


def where(condition: UOp, a: UOp, b: UOp) -> UOp:
    return UOp(Ops.WHERE, a.dtype, (condition, a, b))


def sub(a: UOp, b: UOp) -> UOp:
    return UOp(Ops.SUB, a.dtype, (a, b))


def fdiv(a: UOp, b: UOp) -> UOp:
    return UOp(Ops.FDIV, a.dtype, (a, b))


def fma(a: UOp, b: UOp | float, c: UOp) -> UOp:
    """a b + c, rounded once."""
    b = b if isinstance(b, UOp) else UOp.const(a.dtype, b)
    return UOp(Ops.MULACC, a.dtype, (a, b, c))


def polynomial(x: UOp, coefficients: Sequence[float], fused: bool) -> UOp:
    out = UOp.const(x.dtype, coefficients[0])
    for c in coefficients[1:]:
        constant = UOp.const(x.dtype, c)
        out = UOp(Ops.MULACC, x.dtype, (out, x, constant)) if fused else out * x + constant
    return out


def without_sign(x: UOp) -> UOp:
    """|x|, also of a NaN."""
    f = FORMATS[x.dtype]
    return (x.bitcast(f.unsigned) & ((1 << (f.bits - 1)) - 1)).bitcast(x.dtype)


def leading(x: UOp, f: Format) -> UOp:
    """The leading half of the digits of `x`: products of two such numbers are exact."""
    cleared = f.digits - f.digits // 2
    return (x.bitcast(f.unsigned) & ((1 << f.bits) - (1 << cleared))).bitcast(x.dtype)


def magic_number(offset: int, f: Format, dtype: DType) -> UOp:
    """m for which the low bits of d + m are an even offset and the integer nearest to d."""
    return UOp.const(dtype, 1.5 * 2.0 ** (f.digits - 1) + offset)


LOG2_E = Fraction(0xB8AA3B295C17F0BBBE87FED0691D3E88EB57, 1 << 143)


def exactly(c: float) -> Fraction:
    """The constant that was meant: a multiple of log2 e by a power of two has more digits than a float."""
    ratio = c * math.log(2.0)
    nearest = 2.0 ** round(math.log2(abs(ratio))) if ratio else 0.0
    if nearest and abs(abs(ratio) - nearest) <= 4 * math.ulp(nearest):
        return LOG2_E * Fraction(math.copysign(nearest, ratio))
    return Fraction(c)


def in_two(exact: Fraction, f: Format) -> tuple[float, float]:
    """A number of the format, towards 0, and the rest: of one sign, so that infinities do not cancel."""
    head = cut(exact, f.digits)
    return float(head), rounded(DTYPES[f.digits], float(exact - head))


def cut(x: Fraction, digits: int) -> Fraction:
    """The leading binary digits of x."""
    unit = Fraction(2) ** (math.frexp(float(x))[1] - digits)
    return int(x / unit) * unit
