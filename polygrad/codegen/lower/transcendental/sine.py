"""SIN.

Every argument from 1 up takes Payne and Hanek's reduction, one that is known to be near 0 that of Cody and
Waite. The polynomials after it are those of fdlibm's kernels.
"""

from __future__ import annotations

import math

from polygrad.codegen.lower.transcendental.formats import (
    FORMATS,
    Format,
    polynomial,
    sub,
    where,
    without_sign,
)
from polygrad.dtype import DType
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

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
    f, const = FORMATS[d.dtype], UOp.const
    sign = 1 << (f.bits - 1)
    bits = d.bitcast(f.unsigned)
    magnitude = (bits & (sign - 1)).bitcast(d.dtype)
    hi, lo, quadrant = _quarter_turns(bits & (sign - 1), f, d.dtype)
    small = magnitude < 1.0
    hi = where(small, magnitude, hi)
    lo = where(small, const(d.dtype, 0.0), lo)
    quadrant = where(small, const(f.unsigned, 0), quadrant)
    z = hi * hi
    sine = hi + (hi * z * polynomial(z, f.sin, fused) + lo)
    cosine = sub(z * (z * polynomial(z, f.cos, fused) + -0.5), hi * lo) + 1.0
    out = where((quadrant & 1).ne(0), cosine, sine).bitcast(f.unsigned)
    out = (out ^ ((quadrant & 2) << (f.bits - 2)) ^ (bits & sign)).bitcast(d.dtype)
    return where(magnitude < math.inf, out, const(d.dtype, math.nan))


def is_far(d: UOp, fused: bool = False) -> UOp:
    """Whether a float32 or float64 node is a number that `near_sin` is not for."""
    magnitude = without_sign(d)
    near = magnitude < FORMATS[d.dtype].reach[not fused]
    return near.logical_not() & (magnitude < math.inf)


def near_sin(d: UOp, fused: bool = False) -> UOp:
    """The sine of a float32 or float64 node that is not `is_far`, in a fifth of the operations.

    Cody and Waite's reduction: the nearest multiple of pi/2 is taken away in parts, so many that what is left
    is right to its last digit. Fused, each part is a whole float, for a product is not rounded; else it has
    half of the digits, for the product with a multiple of so many digits to be exact.
    """
    f, const, dtype = FORMATS[d.dtype], UOp.const, d.dtype
    sign = 1 << (f.bits - 1)
    bits = d.bitcast(f.unsigned)
    x = (bits & (sign - 1)).bitcast(dtype)
    magic = const(dtype, 1.5 * 2.0 ** (f.digits - 1))
    turns = const(dtype, 2.0 / math.pi)
    shifted = UOp(Ops.MULACC, dtype, (x, turns, magic)) if fused else x * turns + magic
    quadrant = shifted.bitcast(f.unsigned)  # in the last two bits
    n = sub(shifted, magic)
    if fused:
        for part in _half_pi(f.digits):
            x = UOp(Ops.MULACC, dtype, (n, const(dtype, -part), x))
    else:
        p0, p1, p2, p3, p4 = _half_pi(f.digits // 2, 5)
        a = sub(sub(x, n * p0), n * p1)  # exact: it has no digit below the last one of x
        high = sub(a, n * p2)
        low = sub(sub(a, high), n * p2)  # exact
        x = sub(high, n * p3) + sub(low, n * p4)
    z = x * x
    sine, cosine = polynomial(z, f.sin, fused), polynomial(z, f.cos, fused)
    if fused:
        sine = UOp(Ops.MULACC, dtype, (x * z, sine, x))
        cosine = UOp(Ops.MULACC, dtype, (z, cosine, const(dtype, -0.5)))
        cosine = UOp(Ops.MULACC, dtype, (z, cosine, const(dtype, 1.0)))
    else:
        sine = x + x * z * sine
        cosine = z * (z * cosine + -0.5) + 1.0
    out = where((quadrant & 1).ne(0), cosine, sine).bitcast(f.unsigned)
    return (out ^ ((quadrant & 2) << (f.bits - 2)) ^ (bits & sign)).bitcast(dtype)


def _quarter_turns(bits: UOp, f: Format, dtype: DType) -> tuple[UOp, UOp, UOp]:
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
    lo = sub(hi, total) + lo
    sign = negative << (width - 1)
    return (
        (total.bitcast(f.unsigned) ^ sign).bitcast(dtype),
        (lo.bitcast(f.unsigned) ^ sign).bitcast(dtype),
        quadrant,
    )


def _word(exponent: UOp, i: int, f: Format) -> UOp:
    """Word exponent // width + i of 1/(2 pi) * 2^(1 - digits), selected by the bits of the exponent."""
    count = (f.bias + 1) // f.bits
    words = []
    for j in range(i, count + i):
        value = _TURNS >> (_TURNS_BITS + f.digits - 1 - f.bits * (j + 1))
        words.append(UOp.const(f.unsigned, value & ((1 << f.bits) - 1)))
    bit = f.bits
    while len(words) > 1:
        chosen = (exponent & bit).ne(0)
        words = [where(chosen, b, a) for a, b in zip(words[::2], words[1::2], strict=True)]
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
