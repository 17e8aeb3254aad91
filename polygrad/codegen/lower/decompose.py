"""Decomposition of each op that a target lacks into ops that every target has.

`decompose` gives one table for a kernel whose other passes are done. It runs once, and no simplification
follows. Each concern has a table of its own; the equation stands above each row. Afterwards no EXP2, LOG2,
SIN, POW, THREEFRY or RECIPROCAL is left, no arithmetic of float16 or bfloat16, and no integer division by a
value that may be 0 or -1.

Knows scalar nodes and the Target. The choice of late forms (SHL, SHR, AND, NEG, SUB, FDIV) is tinygrad's. MAX
stays: as a comparison and a selection it would lose a NaN.
"""

from __future__ import annotations

import functools
import math

from polygrad.codegen.lower.threefry import threefry
from polygrad.codegen.lower.transcendental import exponential, logarithm, power, sine
from polygrad.codegen.lower.transcendental.formats import fdiv, sub, without_sign
from polygrad.codegen.target import Target
from polygrad.dtype import DType, dtypes, rounded
from polygrad.helpers import is_pow2
from polygrad.uop.args import Exponent, Magnitude
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.pattern import PatternMatcher, UPat


def decompose(target: Target, optimized: bool = True) -> PatternMatcher:
    """The table for `target`. MULACC is only made where multiply-add is fused, and only when `optimized`."""
    return _table(optimized, target.fma, target.scalar_fma, target.float64)


@functools.cache
def _table(optimized: bool, fma: bool, scalar_fma: bool, float64: bool) -> PatternMatcher:
    if not optimized:
        table = _PLAIN
    elif not fma:
        table = _LEAN
    else:
        table = _FUSED if scalar_fma else _FUSED_SUMS
    return table + (by_float64 if float64 else without_float64)


_HALVES = (dtypes.float16, dtypes.bfloat16)
_SINGLE = (dtypes.float32, dtypes.float64)
_INTS = (dtypes.index, *dtypes.ints)
_SIGNED = tuple(d for d in _INTS if not d.is_unsigned)

_x, _y, _a, _b = UPat.var("x"), UPat.var("y"), UPat.var("a"), UPat.var("b")
_c = UPat.cvar("c")
_nx = UPat.var("x", _INTS)


def _op(op: Ops, *src: UPat, dtype: DType | tuple[DType, ...] | None = None, name: str | None = None) -> UPat:
    return UPat(op, dtype, src, name=name)


# --- 16-bit floats ----------------------------------------------------------------------------------------


def _wide(x: UOp) -> UOp:
    if x.dtype not in _HALVES:
        return x
    return UOp.const(dtypes.float32, rounded(x.dtype, x.arg)) if x.is_const else x.cast(dtypes.float32)


def _in_float32(u: UOp) -> UOp:
    return UOp(u.op, dtypes.float32, tuple([_wide(s) for s in u.src]), u.arg).cast(u.dtype)


def _compare_in_float32(u: UOp) -> UOp:
    return UOp(u.op, dtypes.bool, tuple([_wide(s) for s in u.src]))


halves = PatternMatcher([
    # op(x, y) = float16(op(float32(x), float32(y))): every operation rounds, as if the target had it
    (UPat((GroupOp.ALU - {Ops.WHERE}) | {Ops.REDUCE}, _HALVES, name="u"), _in_float32),
    # x < y = float32(x) < float32(y)
    (UPat(GroupOp.Comparison, src=(UPat.var(dtype=_HALVES), UPat.var()), name="u"), _compare_in_float32),
])  # fmt: skip

# Where there is no float64, a Builder rounds integers once by itself.
by_float64 = PatternMatcher([
    # bfloat16(n) = bfloat16(float64(n)): an int32 is rounded once
    (UPat(Ops.CAST, dtypes.bfloat16, (UPat.var("x", tuple(d for d in _INTS if d.bits >= 32)),)),
     lambda x: x.cast(dtypes.float64).cast(dtypes.bfloat16)),
])  # fmt: skip


def _in_single(u: UOp, x: UOp) -> UOp | None:
    """float64 arithmetic of Variables and constants, as of Python's numbers, in float32."""
    order = x.toposort()
    if any(n.op not in GroupOp.Elementwise and n.op not in (Ops.CONST, Ops.DEFINE_VAR) for n in order):
        return None
    new: dict[UOp, UOp] = {}
    for n in order:
        dtype = dtypes.float32 if n.dtype is dtypes.float64 else n.dtype
        arg = rounded(dtype, n.arg) if n.op is Ops.CONST and dtype is dtypes.float32 else n.arg
        new[n] = UOp(n.op, dtype, tuple(new[s] for s in n.src), arg)
    return new[x].cast(u.dtype)


without_float64 = PatternMatcher([
    # float32(i / 2) for an integer i: of what memory holds, float64 is refused
    (UPat(Ops.CAST, (dtypes.float32, *_HALVES), (UPat.var("x", dtypes.float64),), name="u"), _in_single),
])  # fmt: skip


# --- transcendental functions and random bits ----------------------------------------------------------


def _products(fused: bool) -> PatternMatcher:
    def of_product(x: UOp, c: UOp, u: UOp) -> UOp | None:
        ordinary = math.isfinite(c.arg) and 2.0**-20 < abs(c.arg) < 2.0**20
        if u.arg is None or not ordinary:
            return None
        return exponential.lean_exp2_of_product(x, c.arg, fused, u.arg is Exponent.NONPOSITIVE)

    return PatternMatcher([
        # 2^(x * c), with all digits of c
        (UPat(Ops.EXP2, _SINGLE, (_op(Ops.MUL, _x, _c),), name="u"), of_product),
    ])  # fmt: skip


def _transcendentals(lean: bool, fused: bool) -> PatternMatcher:
    exp2 = exponential.lean_exp2 if lean else exponential.exp2
    return (_products(fused) if lean else PatternMatcher([])) + PatternMatcher([
        (UPat(Ops.EXP2, _SINGLE, (_x,)), lambda x: exp2(x, fused)),
        (UPat(Ops.LOG2, _SINGLE, (_x,)), lambda x: logarithm.log2(x, fused)),
        (UPat(Ops.SIN, _SINGLE, (_x,), arg=Magnitude.NEAR), lambda x: sine.near_sin(x, fused)),
        (UPat(Ops.SIN, _SINGLE, (_x,)), lambda x: sine.sin(x, fused)),
        (UPat(Ops.POW, _SINGLE, (_x, _y)), lambda x, y: power.power(x, y, fused)),
    ])  # fmt: skip


_U32, _U64 = dtypes.uint32, dtypes.uint64
_HIGH_PART = _op(Ops.SHL, UPat(Ops.CAST, _U64, (UPat.var("y", _U32),)), UPat.const(None, 32))
_PAIR = _op(Ops.OR, _HIGH_PART, UPat(Ops.CAST, _U64, (UPat.var("x", _U32),)))


def _high_of_pair(y: UOp, c: UOp) -> UOp | None:
    if not 32 <= c.arg < 64:
        return None
    return (y >> (c.arg - 32) if c.arg > 32 else y).cast(_U64)


words = PatternMatcher([
    # see threefry.py: a pair of 32-bit words, uint64(y) << 32 | uint64(x)
    (UPat(Ops.THREEFRY, _U64, (_x, _y)), lambda x, y: threefry(x, y)),
    # uint32(y << 32 | x) = x
    (UPat(Ops.CAST, _U32, (_PAIR,)), lambda x, y: x),
    # (y << 32 | x) >> c = y >> (c - 32)  for c >= 32
    (_op(Ops.SHR, _PAIR, _c), lambda x, y, c: _high_of_pair(y, c)),
    # t(uint64(x)) = t(x)  for a uint32 x and every t
    (_op(Ops.CAST, UPat(Ops.CAST, _U64, (UPat.var("x", _U32),)), name="u"), lambda u, x: x.cast(u.dtype)),
])  # fmt: skip


# --- integer division --------------------------------------------------------------------------------------


def _guard(u: UOp, x: UOp, y: UOp) -> UOp | None:
    """x // y and x % y where y may be 0 or, signed, -1: 1 is divided by there."""
    wrong = _undefined_divisor(y)
    if wrong is None or (
        y.op is Ops.WHERE and y.src[0] is _undefined_divisor(y.src[2]) and _is_one(y.src[1])
    ):
        return None
    safe = UOp(u.op, u.dtype, (x, wrong.where(UOp.const(y.dtype, 1), y)))
    # x // y is x*y for both: 0 and -x
    return wrong.where(x * y if u.op is Ops.IDIV else UOp.const(u.dtype, 0), safe)


def _is_one(y: UOp) -> bool:
    return y.is_const and bool(y.arg == 1)


def _undefined_divisor(y: UOp) -> UOp | None:
    """The condition under which a divisor must not reach a Builder; None when its bounds rule that out."""
    lo, hi = y.bounds or (y.dtype.min, y.dtype.max)
    is_undefined = y.eq(UOp.const(y.dtype, 0)) if lo <= 0 <= hi else None
    if lo <= -1 <= hi:
        minus_one = y.eq(UOp.const(y.dtype, -1))
        is_undefined = minus_one if is_undefined is None else is_undefined | minus_one
    return is_undefined


def _log2(n: int) -> int:
    return n.bit_length() - 1


divisions = PatternMatcher([
    # x // 2^n = x >> n,  x % 2^n = x & (2^n - 1): floor, so signed x too
    (_op(Ops.IDIV, _nx, _c), lambda x, c: x >> _log2(c.arg) if is_pow2(c.arg) else None),
    (_op(Ops.MOD, _nx, _c), lambda x, c: x & UOp.const(c.dtype, c.arg - 1) if is_pow2(c.arg) else None),
    # x // 0 = x % 0 = 0,  x // -1 = -x,  x % -1 = 0
    (UPat(Ops.IDIV, _INTS, (_x, _y), name="u"), _guard),
    (UPat(Ops.MOD, _INTS, (_x, _y), name="u"), _guard),
])  # fmt: skip


# --- cheaper forms -----------------------------------------------------------------------------------------


def _neg(x: UOp) -> UOp:
    return UOp(Ops.NEG, x.dtype, (x,))


def _subtract_shifted(x: UOp, y: UOp, c: UOp) -> UOp | None:
    return sub(x, y << _log2(-c.arg)) if is_pow2(-c.arg) else None


def _load_or_else(a: UOp, i: UOp, c: UOp) -> UOp:
    return UOp(Ops.LOAD, c.dtype, (i, c))


_MINUS_ONE = UPat(Ops.CONST, (*_SIGNED, *_SINGLE), arg=-1)

cheaper = PatternMatcher([
    # x * -1 = -x
    (_op(Ops.MUL, _x, _MINUS_ONE), _neg),
    # x * 2^n = x << n
    (_op(Ops.MUL, _nx, _c), lambda x, c: x << _log2(c.arg) if is_pow2(c.arg) else None),
    # x + -y = x - y,  -x + y = y - x
    (_op(Ops.ADD, _x, _op(Ops.NEG, _y)), lambda x, y: sub(x, y)),
    (_op(Ops.ADD, _op(Ops.NEG, _y), _x), lambda x, y: sub(x, y)),
    # x + y * -2^n = x - (y << n)
    (_op(Ops.ADD, _nx, _op(Ops.MUL, _y, _c)), _subtract_shifted),
    # a ? (a ? p[i] : b) : c = a ? p[i] : c
    (_op(Ops.WHERE, _a, _op(Ops.LOAD, _op(Ops.INDEX, UPat(), UPat(), _a, name="i"), UPat()), _c),
     _load_or_else),
    # reciprocal(x) = 1 / x
    (UPat(Ops.RECIPROCAL, _SINGLE, (_x,)), lambda x: fdiv(UOp.const(x.dtype, 1), x)),
])  # fmt: skip


lean_magnitudes = PatternMatcher([
    # max(x, -x) = max(-x, x) = x without its sign bit
    (_op(Ops.MAX, _x, _op(Ops.NEG, _x), dtype=_SINGLE), without_sign),
    (_op(Ops.MAX, _op(Ops.NEG, _x), _x, dtype=_SINGLE), without_sign),
])  # fmt: skip


def _dot(a: UOp, b: UOp, c: UOp, x: UOp, u: UOp) -> UOp | None:
    return UOp(Ops.DOT, u.dtype, (a, b, x), u.arg) if c.arg == 0 else None


dots = PatternMatcher([
    # x + dot(a, b, 0) = dot(a, b, x)
    (_op(Ops.ADD, _x, _op(Ops.DOT, _a, _b, _c, name="u")), _dot),
])  # fmt: skip


def _wmma(x: UOp, u: UOp) -> UOp | None:
    c = u.src[2]
    return u.replace(src=(*u.src[:2], x, *u.src[3:])) if c.op is Ops.CONST and c.arg == 0 else None


tensor_cores = PatternMatcher([
    # x + wmma(a, b, 0) = wmma(a, b, x)
    (_op(Ops.ADD, _x, UPat(Ops.WMMA, name="u")), _wmma),
])  # fmt: skip

# --- fused multiply-add ------------------------------------------------------------------------------------
#
# Multiply-adds are fused only where a sum adds a product, and in polynomials (those above, and MULACCs of the
# tensor graph). Other expressions round the same in every kernel that computes them, whichever of their parts
# it finds in memory: the gradient of a maximum compares it with values that were computed again. Where only
# SIMD values fuse, the MULACCs of the tensor graph do not.


def _mulacc(a: UOp, b: UOp, x: UOp) -> UOp | None:
    pointer = x.src[0].src[0] if x.op is Ops.LOAD else x
    if pointer.op is not Ops.AFTER or pointer.src[0].op is not Ops.DEFINE_REG:
        return None
    return UOp(Ops.MULACC, x.dtype, (a, b, x))


sums = PatternMatcher([
    # r + a*b = mulacc(a, b, r)  for a register r
    (UPat(Ops.ADD, _SINGLE, (UPat(Ops.LOAD, name="x"), _op(Ops.MUL, _a, _b))), _mulacc),
])  # fmt: skip


def _unfuse(a: UOp, b: UOp, x: UOp) -> UOp | None:
    return None if _mulacc(a, b, x) is not None else a * b + x


unfused = PatternMatcher([
    # mulacc(a, b, x) = a*b + x  for an x that is no register
    (_op(Ops.MULACC, _a, _b, _x, dtype=_SINGLE), _unfuse),
])  # fmt: skip

_REST = halves + words + divisions + cheaper
_PLAIN = _transcendentals(lean=False, fused=False) + _REST
_LEAN = _transcendentals(lean=True, fused=False) + _REST + lean_magnitudes + dots + tensor_cores
_FUSED_SUMS = _LEAN + sums + unfused
_FUSED = _transcendentals(lean=True, fused=True) + _REST + lean_magnitudes + dots + tensor_cores + sums
