"""Algebra on scalar nodes: constants folded, identities, index arithmetic brought to one form.

Rows are grouped by op, an equation above each. The rulebook:
- no row makes worse code: none adds operations, but for a constant moved out of a division, which others then absorb;
- one canonical order: constants stand right of a commutative op; other operands stay in the order they came. Sums of
  `dtypes.index` lean left, like terms collected where the first stood, the constant last;
- a comparison with a constant is `x < c` or `c < x`, never a negated one;
- `index` never overflows; a user's integers wrap, and a row that needs more than ring arithmetic proves by bounds that
  nothing wrapped. IDIV and MOD are floor, x // 0 = x % 0 = 0;
- floats: x*0 stays (NaN, inf). x + 0 -> x is taken, so -0.0 + 0.0 gives -0.0 here; (x*a)*b -> x*(a*b) may differ in the
  last place. Sums of floats are never reassociated.

Nodes are kernel nodes: every value is a scalar. Knows nothing of schedules or devices. After tinygrad's `symbolic` and
the rules of Cranelift's mid-end in spirit.
"""

from __future__ import annotations

import math
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.uop.alu import convert, evaluate, reinterpret
from polygrad.uop.divmod import bounds, build, exact, fold_divmod, fold_greater, fold_less, linear
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.pattern import PatternMatcher, UPat
from polygrad.uop.rewrite import rewrite_into

_INDEX, _BOOL = dtypes.index, dtypes.bool
_INTS = (_INDEX, *dtypes.ints)
_WHOLE = (*_INTS, _BOOL)
_FLOATS = dtypes.floats
_WALK = 32  # terms or conjuncts looked at for a partner; longer sums stay as they are


# --- constants ------------------------------------------------------------------------------------------


def _pinned(u: UOp) -> UOp | None:
    b = u.bounds
    return UOp.const(u.dtype, b[0]) if b is not None and b[0] == b[1] else None


def _fold(u: UOp) -> UOp | None:
    value = evaluate(u.op, u.src[-1].dtype, [s.arg for s in u.src])
    return None if value is None else UOp.const(u.dtype, value)


def _fold_cast(u: UOp, c: UOp) -> UOp:
    return UOp.const(u.dtype, convert(c.arg, c.dtype, u.dtype))


def _fold_bitcast(u: UOp, c: UOp) -> UOp | None:
    value = reinterpret(c.arg, c.dtype, u.dtype)
    return None if value is None else UOp.const(u.dtype, value)


def _const_right(u: UOp, c: UOp, x: UOp) -> UOp:
    return UOp(u.op, u.dtype, (x, c))


def _reassociate(u: UOp, x: UOp, c: UOp, d: UOp) -> UOp | None:
    value = evaluate(u.op, u.dtype, [c.arg, d.arg])
    return None if value is None else UOp(u.op, u.dtype, (x, UOp.const(u.dtype, value)))


def _through_where(u: UOp, w: UOp, gate: UOp, a: UOp, b: UOp) -> UOp | None:
    """An op of a WHERE between constants, and constants."""
    first, second = (UOp(u.op, u.dtype, tuple([s if s is not w else v for s in u.src]), u.arg) for v in (a, b))
    folded = [symbolic.rewrite(first), symbolic.rewrite(second)]
    if any(f is None or f.op is not Ops.CONST for f in folded):
        return None
    return gate.where(*folded)


# --- sums -----------------------------------------------------------------------------------------------


def _term(x: UOp) -> tuple[UOp, int]:
    if x.op is Ops.MUL and x.src[1].op is Ops.CONST:
        return x.src[0], x.src[1].arg
    return x, 1


def _collect(u: UOp, x: UOp, y: UOp) -> UOp | None:
    """x + y of `index`, y a single term: merged with a like term (or a quotient with its remainder) of x."""
    base, m = _term(y)
    later: list[UOp] = []
    spine, term = x, x
    for _ in range(_WALK):
        more = spine.op is Ops.ADD
        term = spine.src[1] if more else spine
        other, n = _term(term)
        if other is base:
            merged: tuple[UOp, int] | None = (base, m + n)  # x*m + x*n = x*(m+n)
        elif other.op in _DIVMOD or base.op in _DIVMOD:
            merged = _recombine(base, m, other, n) or _recombine(other, n, base, m)
        else:
            merged = None
        if merged is not None:
            out = build([merged], 0, u.dtype)
            if more:
                out = spine.src[0] if merged[1] == 0 else spine.src[0] + out
            elif merged[1] == 0 and later:
                out = later.pop()
            while later:
                out = out + later.pop()
            return out
        if not more:
            return None
        later.append(term)
        spine = spine.src[0]
    return None


_DIVMOD = frozenset({Ops.IDIV, Ops.MOD})


def _is_quotient(q: UOp, p: UOp, c: int) -> bool:
    """Whether q is p // c, as simplification leaves it."""
    if q.op is not Ops.IDIV or q.src[1].op is not Ops.CONST:
        return False
    if q.src[0] is p and q.src[1].arg == c:
        return True
    if p.op is not Ops.IDIV or p.src[1].op is not Ops.CONST:
        return False
    return q.src[0] is p.src[0] and q.src[1].arg == p.src[1].arg * c and p.src[1].arg > 0


def _recombine(a: UOp, m: int, b: UOp, n: int) -> tuple[UOp, int] | None:
    """a*m + b*n as one term."""
    if a.op is Ops.MOD and a.src[1].op is Ops.CONST and a.src[1].arg > 0 and m * a.src[1].arg == n:
        p, c = a.src[0], a.src[1].arg
        # (p % c)*m + (p // c)*(c*m) = p*m
        if _is_quotient(b, p, c):
            return p, m
        # (p % c)*m + ((p // c) % d)*(c*m) = (p % (c*d))*m
        if b.op is Ops.MOD and b.src[1].op is Ops.CONST and b.src[1].arg > 0 and _is_quotient(b.src[0], p, c):
            return p % UOp.const(p.dtype, c * b.src[1].arg), m
    # p*m + (p // c)*(-c*m) = (p % c)*m
    if b.op is Ops.IDIV and b.src[0] is a and b.src[1].op is Ops.CONST and b.src[1].arg > 0 and n == -m * b.src[1].arg:
        return a % b.src[1], m
    return None


def _distribute(u: UOp, x: UOp, y: UOp, c: UOp) -> UOp:
    return x * c + y * c


def _float_scales(x: UOp, c: UOp, d: UOp) -> UOp | None:
    value = evaluate(Ops.MUL, x.dtype, [c.arg, d.arg])
    return x * UOp.const(x.dtype, value) if _is_normal(value, x.dtype) else None


def _reciprocal_of_scaled(x: UOp, c: UOp) -> UOp | None:
    value = evaluate(Ops.RECIPROCAL, x.dtype, [c.arg])
    ok = _is_normal(value, x.dtype) and _is_normal(c.arg, x.dtype)
    return x.alu(Ops.RECIPROCAL) * UOp.const(x.dtype, value) if ok else None


def _is_normal(value: float, dtype: DType) -> bool:
    least = 2.0**-14 if dtype is dtypes.float16 else 2.0**-1022 if dtype is dtypes.float64 else 2.0**-126
    return math.isfinite(value) and abs(value) >= least


def _is_mask(n: int) -> bool:
    return n > 0 and n & (n + 1) == 0


# --- comparisons and bools -------------------------------------------------------------------------------


def _not_less(x: UOp, c: UOp) -> UOp:
    return UOp.const(x.dtype, c.arg - 1) < x


def _not_greater(x: UOp, c: UOp) -> UOp:
    return x < UOp.const(x.dtype, c.arg + 1)


def _equal_shifted(u: UOp, x: UOp, c: UOp, d: UOp) -> UOp:
    return UOp(u.op, _BOOL, (x, UOp.const(x.dtype, d.arg - c.arg)))


def _equal_scaled(u: UOp, y: UOp, x: UOp, c: UOp, d: UOp) -> UOp | None:
    if c.arg == 0 or not exact(y):
        return None
    if d.arg % c.arg:
        return UOp.const(_BOOL, u.op is Ops.CMPNE)
    return UOp(u.op, _BOOL, (x, UOp.const(x.dtype, d.arg // c.arg)))


def _compare_sums(x: UOp, y: UOp) -> UOp | None:
    """x < y decided by y - x: terms of both cancel, and a RANGE is at most one less than its symbolic size."""
    if x.op is Ops.CONST or y.op is Ops.CONST:
        return None
    left, right = linear(x), linear(y)
    difference: dict[UOp, int] = dict(right.terms)
    for base, c in left.terms:
        difference[base] = difference.get(base, 0) - c
    cancelled = len(difference) < len(left.terms) + len(right.terms)
    if not cancelled and not any(b.op is Ops.RANGE and b.src[0].op is not Ops.CONST for b in difference):
        return None  # what bounds alone say was asked before
    constant = right.constant - left.constant
    if _positive(list(difference.items()), constant):
        return UOp.const(_BOOL, True)
    if _positive([(b, -c) for b, c in difference.items()], 1 - constant):
        return UOp.const(_BOOL, False)
    if not cancelled:
        return None
    # a + x < a + y = x < y
    below = build([(b, -c) for b, c in difference.items() if c < 0], 0, _INDEX)
    return below < build([t for t in difference.items() if t[1] > 0], constant, _INDEX)


def _compare_casts(u: UOp, x: UOp, y: UOp) -> UOp | None:
    a, b = x.src[0], y.src[0]
    if a.dtype is b.dtype and a.dtype.is_int and _keeps_value(a, x.dtype) and _keeps_value(b, y.dtype):
        return UOp(u.op, _BOOL, (a, b))
    return None


def _compare_cast_with(u: UOp, y: UOp, c: UOp) -> UOp | None:
    x = y.src[0]
    if not (x.dtype.is_int and y.dtype.is_int and x.dtype.min <= c.arg <= x.dtype.max and _keeps_value(x, y.dtype)):
        return None
    d = UOp.const(x.dtype, c.arg)
    return UOp(u.op, _BOOL, (d, x) if u.src[0] is c else (x, d))


def _conjunction(u: UOp, x: UOp, y: UOp) -> UOp | None:
    """x & y, y one condition: merged with one of x that implies it, is implied by it or excludes it."""
    later: list[UOp] = []
    spine = x
    for _ in range(_WALK):
        more = spine.op is Ops.AND
        term = spine.src[1] if more else spine
        merged = _both(term, y)
        if merged is not None:
            out = spine.src[0] & merged if more else merged
            while later:
                out = out & later.pop()
            return out
        if not more:
            return None
        later.append(term)
        spine = spine.src[0]
    return None


def _both(a: UOp, b: UOp) -> UOp | None:
    """a & b as one condition, or None."""
    if a is b:
        return a
    if a.op is not Ops.CMPLT or b.op is not Ops.CMPLT:
        return UOp.const(_BOOL, False) if _is_not(a, b) or _is_not(b, a) else None
    (al, ar), (bl, br) = a.src, b.src
    if al is bl and ar.op is Ops.CONST and br.op is Ops.CONST:
        return a if ar.arg <= br.arg else b  # x < c & x < d = x < min(c, d)
    if ar is br and al.op is Ops.CONST and bl.op is Ops.CONST:
        return a if al.arg >= bl.arg else b  # c < x & d < x = max(c, d) < x
    if al is br and ar.op is Ops.CONST and bl.op is Ops.CONST:
        return _window(bl, al, ar)
    if ar is bl and al.op is Ops.CONST and br.op is Ops.CONST:
        return _window(al, ar, br)
    return None


def _window(c: UOp, x: UOp, d: UOp) -> UOp | None:
    # c < x & x < d = False  when no integer lies between
    return UOp.const(_BOOL, False) if x.bounds is not None and d.arg - c.arg <= 1 else None


def _is_not(a: UOp, b: UOp) -> bool:
    return a.op is Ops.CMPNE and a.src[0] is b and a.src[1].op is Ops.CONST and a.src[1].arg is True


# --- casts ----------------------------------------------------------------------------------------------


def _keeps_value(x: UOp, dtype: DType) -> bool:
    """Whether casting `x` to `dtype` keeps its value exactly."""
    src = x.dtype
    if dtype.is_bool or src is dtype:
        return src is dtype
    if src.is_float:
        return dtype.is_float and (dtype is dtypes.float64 or (dtype is dtypes.float32 and src.itemsize == 2))
    lo, hi = x.bounds  # type: ignore[misc]
    if dtype.is_float:
        limit = 1 << {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[dtype.name]
        return -limit <= lo and hi <= limit
    return bool(lo >= dtype.min and hi <= dtype.max)


def _double_cast(u: UOp, m: UOp, x: UOp) -> UOp | None:
    a, b, c = x.dtype, m.dtype, u.dtype
    # cast(cast(x, b), c) = cast(x, c)  when b holds x exactly, or when all are integers and c keeps no more bits
    if _keeps_value(x, b) or (
        a.is_int and b.is_int and c.is_int and _INDEX not in (a, b, c) and c.itemsize <= b.itemsize
    ):
        return x.cast(c)
    return None


def _cast_inwards(u: UOp, y: UOp) -> UOp | None:
    """cast(a + b, index) = cast(a, index) + cast(b, index), and so for *, where nothing wrapped and no cast is added:
    all leaves but one are constants or came from index."""
    others, rest = 0, [y]
    for _ in range(_WALK):
        if not rest:
            a, b = y.src
            return UOp(y.op, _INDEX, (a.cast(_INDEX), b.cast(_INDEX)))
        x = rest.pop()
        if x.op is Ops.ADD or x.op is Ops.MUL:
            if not exact(x):
                return None
            rest.extend(x.src)
        elif x.op is not Ops.CONST and not (x.op is Ops.CAST and x.src[0].dtype is _INDEX):
            others += 1
            if others > 1:
                return None
    return None


# --- maxima ---------------------------------------------------------------------------------------------


def _max_by_bounds(x: UOp, y: UOp) -> UOp | None:
    if x.bounds is None or y.bounds is None:
        return None
    return x if x.bounds[0] >= y.bounds[1] else y if y.bounds[0] >= x.bounds[1] else None


def _symbolic_divmod(u: UOp, x: UOp, n: UOp) -> UOp | None:
    """x // n or x % n for a size n > 0 that is not a constant."""
    if n.bounds is None or n.bounds[0] <= 0:
        return None
    base, m = _term(n)
    terms, k = linear(x)
    whole: list[tuple[UOp, int]] = []
    rest: list[tuple[UOp, int]] = []
    for t, c in terms:
        if c % m == 0 and t is base:
            whole.append((UOp.const(_INDEX, 1), c // m))
        elif c % m == 0 and t.op is Ops.MUL and base in t.src:
            whole.append((t.src[0] if t.src[1] is base else t.src[1], c // m))
        else:
            rest.append((t, c))
    remainder = build(rest, k, _INDEX)
    # (a*n + b) // n = a + b // n,  (a*n + b) % n = b % n;  b // n = 0 and b % n = b  when 0 <= b < n
    within = remainder.vmin >= 0 and _positive([(base, m), *((t, -c) for t, c in rest)], -k)
    if u.op is Ops.MOD:
        return remainder if within else remainder % n if whole else None
    if within:
        return build(whole, 0, _INDEX)
    return build([*whole, (remainder // n, 1)], 0, _INDEX) if whole else None


def _positive(terms: list[tuple[UOp, int]], constant: int) -> bool:
    """Whether a sum is above 0: as it stands, or with its subtracted RANGEs at the last of their symbolic sizes."""
    if bounds(terms, constant)[0] > 0:
        return True
    last: list[tuple[UOp, int]] = []
    for base, c in terms:
        if base.op is Ops.RANGE and base.src[0].op is not Ops.CONST and c < 0:
            last.append((base.src[0], c))
            constant -= c
        else:
            last.append((base, c))
    # not `simplify`: this runs inside it, and it may drop the memo
    return bool(rewrite_into(_memo, build(last, constant, _INDEX), symbolic).vmin > 0)


# --- the table ------------------------------------------------------------------------------------------
# x, y: anything; c, d: constants; sources in the order written

_x, _y, _z = UPat.var("x"), UPat.var("y"), UPat.var("z")
_c, _d = UPat.cvar("c"), UPat.cvar("d")
_ix, _iy = UPat.var("x", _INDEX), UPat.var("y", _INDEX)
_nx = UPat.var("x", _INTS)  # an integer
_wx = UPat.var("x", _WHOLE)  # an integer or a bool
_bx, _by = UPat.var("x", _BOOL), UPat.var("y", _BOOL)
_fx = UPat.var("x", _FLOATS)


def _op(op: Ops | frozenset[Ops], *src: UPat, dtype: DType | tuple[DType, ...] | None = None, name: str | None = None) -> UPat:
    return UPat(op, dtype, src, name=name)


def _k(value: float) -> UPat:
    return UPat.const(None, value)


def _not(x: UPat) -> UPat:
    return _op(Ops.CMPNE, x, UPat.const(_BOOL, True))


_SAME = frozenset({Ops.CMPNE, Ops.CMPEQ})
_WHERE_OF_CONSTS = UPat(Ops.WHERE, src=(UPat.var("gate"), UPat.cvar("a"), UPat.cvar("b")), name="w")

constants = PatternMatcher([
    # op(c, ...) = its value
    (_op(GroupOp.Unary, UPat(Ops.CONST), name="u"), _fold),
    (_op(GroupOp.Binary, UPat(Ops.CONST), UPat(Ops.CONST), name="u"), _fold),
    (_op(Ops.CAST, _c, name="u"), _fold_cast),
    (_op(Ops.BITCAST, _c, name="u"), _fold_bitcast),
    # c + x = x + c, for every commutative op
    (_op(GroupOp.Commutative, _c, _x, name="u"), _const_right),
    # an integer whose bounds meet is a constant
    (UPat(GroupOp.Elementwise, _WHOLE, name="u"), _pinned),
    # op(gate ? a : b, c) = gate ? op(a, c) : op(b, c)  between constants
    (_op(GroupOp.Unary | {Ops.CAST, Ops.BITCAST}, _WHERE_OF_CONSTS, name="u"), _through_where),
    (_op(GroupOp.Binary, _WHERE_OF_CONSTS, UPat(Ops.CONST), name="u"), _through_where),
    (_op(GroupOp.Binary, UPat(Ops.CONST), _WHERE_OF_CONSTS, name="u"), _through_where),
])  # fmt: skip

sums = PatternMatcher([
    # x + 0 = x; for floats too, see the rulebook
    (_op(Ops.ADD, _x, _k(0)), lambda x: x),
    (_op(Ops.ADD, _fx, UPat.const(None, UOp.const(dtypes.float64, -0.0).arg)), lambda x: x),
    # (x + c) + d = x + (c + d)
    (_op(Ops.ADD, _op(Ops.ADD, _nx, _c), _d, name="u"), _reassociate),
    # (x + c) + y = (x + y) + c,  x + (y + z) = (x + y) + z
    (_op(Ops.ADD, _op(Ops.ADD, _ix, _c), _y), lambda x, y, c: (x + y) + c),
    (_op(Ops.ADD, _ix, _op(Ops.ADD, _y, _z)), lambda x, y, z: (x + y) + z),
    # x*c + x*d = x*(c + d),  (x % c) + (x // c)*c = x, and so on
    (_op(Ops.ADD, _ix, _y, name="u"), _collect),
    # x + x = x*2
    (_op(Ops.ADD, UPat.var("x", (*dtypes.ints, *_FLOATS)), _x), lambda x: x * UOp.const(x.dtype, 2)),
    # x*c + x*d = x*(c + d),  x*c + x = x*(c + 1)  in wrapping integers
    (_op(Ops.ADD, _op(Ops.MUL, _nx, _c), _op(Ops.MUL, _x, _d)), lambda x, c, d: x * UOp.const(x.dtype, c.arg + d.arg)),
    (_op(Ops.ADD, _op(Ops.MUL, _nx, _c), _x), lambda x, c: x * UOp.const(x.dtype, c.arg + 1)),
    (_op(Ops.ADD, _nx, _op(Ops.MUL, _x, _c)), lambda x, c: x * UOp.const(x.dtype, c.arg + 1)),
])  # fmt: skip

products = PatternMatcher([
    # x*1 = x,  x*0 = 0 (not of floats: NaN and infinities)
    (_op(Ops.MUL, _x, _k(1)), lambda x: x),
    (_op(Ops.MUL, _wx, UPat.const(_WHOLE, 0).named("c")), lambda x, c: c),
    # (x*c)*d = x*(c*d)
    (_op(Ops.MUL, _op(Ops.MUL, _nx, _c), _d, name="u"), _reassociate),
    (_op(Ops.MUL, _op(Ops.MUL, _fx, _c), _d), _float_scales),
    # (x + y)*c = x*c + y*c
    (_op(Ops.MUL, _op(Ops.ADD, _ix, _y), _c, name="u"), _distribute),
    # (x*c)*y = (x*y)*c,  x*(y*c) = (x*y)*c
    (_op(Ops.MUL, _op(Ops.MUL, _ix, _c), _y), lambda x, y, c: (x * y) * c),
    (_op(Ops.MUL, _ix, _op(Ops.MUL, _y, _c)), lambda x, y, c: (x * y) * c),
    # 1 / (x*c) = (1/x)*(1/c)
    (_op(Ops.RECIPROCAL, _op(Ops.MUL, _fx, _c)), _reciprocal_of_scaled),
    # -(-x) = x,  x - 0 = x,  x / 1 = x
    (_op(Ops.NEG, _op(Ops.NEG, _x)), lambda x: x),
    (_op(Ops.SUB, _x, _k(0)), lambda x: x),
    (_op(Ops.FDIV, _x, _k(1)), lambda x: x),
    # trunc(trunc(x)) = trunc(x),  trunc(cast(n)) = cast(n)
    (_op(Ops.TRUNC, UPat(Ops.TRUNC, name="x")), lambda x: x),
    (_op(Ops.TRUNC, UPat(Ops.CAST, src=(UPat(None, _WHOLE),), name="x")), lambda x: x),
])  # fmt: skip

divisions = PatternMatcher([
    # x // 1 = x,  x // 0 = 0,  x // -1 = -x,  x % 1 = x % -1 = x % 0 = 0
    (_op(Ops.IDIV, _x, _k(1)), lambda x: x),
    (_op(Ops.IDIV, _x, UPat.const(_WHOLE, 0).named("c")), lambda c: c),
    (_op(Ops.IDIV, _nx, _k(-1)), lambda x: x * UOp.const(x.dtype, -1)),
    (_op(Ops.MOD, _nx, UPat.cvar("c")), lambda x, c: UOp.const(x.dtype, 0) if c.arg in (0, 1, -1) else None),
    # x % x = 0,  x // x = 1  for x > 0
    (_op(Ops.MOD, _nx, _x), lambda x: UOp.const(x.dtype, 0)),
    (_op(Ops.IDIV, _nx, _x), lambda x: UOp.const(x.dtype, 1) if x.vmin > 0 else None),
    # see divmod.py
    (_op(frozenset({Ops.IDIV, Ops.MOD}), _nx, _c, name="u"), lambda u, x, c: fold_divmod(u, x, c) if c.arg > 0 else None),
    (_op(frozenset({Ops.IDIV, Ops.MOD}), _ix, UPat.var("n"), name="u"), _symbolic_divmod),
])  # fmt: skip

comparisons = PatternMatcher([
    # x < x = False,  x != x = False,  x == x = True, of integers
    (_op(frozenset({Ops.CMPLT, Ops.CMPNE}), _wx, _x), lambda x: UOp.const(_BOOL, False)),
    (_op(Ops.CMPEQ, _wx, _x), lambda x: UOp.const(_BOOL, True)),
    # x < y  where y - x is of one sign
    (_op(Ops.CMPLT, _ix, _y), _compare_sums),
    # cast(b) < 1 = !b,  0 < cast(b) = b,  cast(b) != 0 = b,  cast(b) != 1 = !b,  and == the other way round
    (_op(Ops.CMPLT, _op(Ops.CAST, _bx), _k(1)), lambda x: x.logical_not()),
    (_op(Ops.CMPLT, _k(0), _op(Ops.CAST, _bx)), lambda x: x),
    (_op(Ops.CMPNE, _op(Ops.CAST, _bx), _k(0)), lambda x: x),
    (_op(Ops.CMPNE, _op(Ops.CAST, _bx), _k(1)), lambda x: x.logical_not()),
    (_op(Ops.CMPEQ, _op(Ops.CAST, _bx), _k(0)), lambda x: x.logical_not()),
    (_op(Ops.CMPEQ, _op(Ops.CAST, _bx), _k(1)), lambda x: x),
    # cast(x) < cast(y) = x < y,  cast(x) < c = x < c  when the casts keep every value; != and == too
    (_op(GroupOp.Comparison, UPat(Ops.CAST, name="x"), UPat(Ops.CAST, name="y"), name="u"), _compare_casts),
    (_op(GroupOp.Comparison, UPat(Ops.CAST, name="y"), _c, name="u"), _compare_cast_with),
    (_op(Ops.CMPLT, _c, UPat(Ops.CAST, name="y"), name="u"), _compare_cast_with),
    # x + c < d = x < d - c,  x*c < d = x < ceil(d/c),  x//c < d = x < d*c, and more: see divmod.py
    (_op(Ops.CMPLT, _nx, _c, name="u"), fold_less),
    (_op(Ops.CMPLT, _c, _nx, name="u"), fold_greater),
    # x + c != d = x != d - c,  x*c != d = x != d/c, True when c does not divide d
    (_op(_SAME, _op(Ops.ADD, _nx, _c), _d, name="u"), _equal_shifted),
    (_op(_SAME, UPat(Ops.MUL, src=(_nx, _c), name="y"), _d, name="u"), _equal_scaled),
    # !!x = x,  x != False = x,  x == True = x,  x == False = !x
    (_not(_not(_x)), lambda x: x),
    (_op(Ops.CMPNE, _x, UPat.const(_BOOL, False)), lambda x: x),
    (_op(Ops.CMPEQ, _x, UPat.const(_BOOL, True)), lambda x: x),
    (_op(Ops.CMPEQ, _x, UPat.const(_BOOL, False)), lambda x: x.logical_not()),
    # !(x < c) = c - 1 < x,  !(c < x) = x < c + 1,  of integers (at the dtype's ends bounds have decided)
    (_not(_op(Ops.CMPLT, _nx, _c)), _not_less),
    (_not(_op(Ops.CMPLT, _c, _nx)), _not_greater),
    # !(x == y) = x != y,  !(x != y) = x == y  (for NaN too)
    (_not(_op(Ops.CMPEQ, _x, _y)), lambda x, y: x.ne(y)),
    (_not(_op(Ops.CMPNE, _x, _y)), lambda x, y: x.eq(y)),
])  # fmt: skip

bits = PatternMatcher([
    # x & x = x | x = x,  x ^ x = 0
    (_op(frozenset({Ops.AND, Ops.OR}), _x, _x), lambda x: x),
    (_op(Ops.XOR, _x, _x), lambda x: UOp.const(x.dtype, 0)),
    # x & True = x,  x & False = False,  x | True = True
    (_op(Ops.AND, _x, UPat.const(_BOOL, True)), lambda x: x),
    (_op(Ops.AND, _bx, UPat.const(_BOOL, False).named("c")), lambda x, c: c),
    (_op(Ops.OR, _bx, UPat.const(_BOOL, True).named("c")), lambda x, c: c),
    # x | 0 = x ^ 0 = x << 0 = x >> 0 = x,  x & 0 = 0,  x & -1 = x,  x & (2^n - 1) = x  for 0 <= x < 2^n
    (_op(frozenset({Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR}), _x, _k(0)), lambda x: x),
    (_op(Ops.AND, _nx, UPat.const(_INTS, 0).named("c")), lambda x, c: c),
    (_op(Ops.AND, _nx, _c), lambda x, c: x if c.arg == -1 or (x.vmin >= 0 and _is_mask(c.arg) and x.vmax <= c.arg) else None),
    # (x op c) op d = x op (c op d)
    (_op(Ops.AND, _op(Ops.AND, _x, _c), _d, name="u"), _reassociate),
    (_op(Ops.OR, _op(Ops.OR, _x, _c), _d, name="u"), _reassociate),
    (_op(Ops.XOR, _op(Ops.XOR, _x, _c), _d, name="u"), _reassociate),
    # (x < c) & (x < d) = x < min(c, d), and other pairs of conditions
    (_op(Ops.AND, _bx, _y, name="u"), _conjunction),
    # x | !x = True
    (_op(Ops.OR, _bx, _y), lambda x, y: UOp.const(_BOOL, True) if _is_not(x, y) or _is_not(y, x) else None),
])  # fmt: skip

maxima = PatternMatcher([
    # max(x, x) = x,  max(x, -inf) = x (NaN too),  max(max(x, c), d) = max(x, max(c, d))
    (_op(Ops.MAX, _x, _x), lambda x: x),
    (_op(Ops.MAX, _fx, _k(-math.inf)), lambda x: x),
    (_op(Ops.MAX, _op(Ops.MAX, _x, _c), _d, name="u"), _reassociate),
    # max(x, y) = x  when no y is greater
    (_op(Ops.MAX, _wx, _y), _max_by_bounds),
])  # fmt: skip

choices = PatternMatcher([
    # gate ? x : x = x,  True ? x : y = x,  False ? x : y = y
    (_op(Ops.WHERE, UPat.var("gate"), _x, _x), lambda gate, x: x),
    (_op(Ops.WHERE, _c, _x, _y), lambda c, x, y: x if c.arg else y),
    # !gate ? x : y = gate ? y : x
    (_op(Ops.WHERE, _not(UPat.var("gate")), _x, _y), lambda gate, x, y: gate.where(y, x)),
    # gate ? True : False = gate,  gate ? False : True = !gate,  gate ? x : False = gate & x,  gate ? True : x = gate | x
    (_op(Ops.WHERE, UPat.var("gate"), UPat.const(_BOOL, True), UPat.const(_BOOL, False)), lambda gate: gate),
    (_op(Ops.WHERE, UPat.var("gate"), UPat.const(_BOOL, False), UPat.const(_BOOL, True)), lambda gate: gate.logical_not()),
    (_op(Ops.WHERE, UPat.var("gate"), _bx, UPat.const(_BOOL, False)), lambda gate, x: gate & x),
    (_op(Ops.WHERE, UPat.var("gate"), UPat.const(_BOOL, True), _bx), lambda gate, x: gate | x),
    # gate ? (gate ? x : y) : z = gate ? x : z,  gate ? x : (gate ? y : z) = gate ? x : z
    (_op(Ops.WHERE, UPat.var("gate"), _op(Ops.WHERE, UPat.var("gate"), _x, _y), _z), lambda gate, x, y, z: gate.where(x, z)),
    (_op(Ops.WHERE, UPat.var("gate"), _x, _op(Ops.WHERE, UPat.var("gate"), _y, _z)), lambda gate, x, y, z: gate.where(x, z)),
    # a ? (b ? x : y) : y = a & b ? x : y
    (_op(Ops.WHERE, UPat.var("a"), _op(Ops.WHERE, UPat.var("b"), _x, _y), _y), lambda a, b, x, y: (a & b).where(x, y)),
])  # fmt: skip

casts = PatternMatcher([
    # cast(x, its own dtype) = x
    (_op(Ops.CAST, _x, name="u"), lambda u, x: x if u.dtype is x.dtype else None),
    (_op(Ops.BITCAST, _x, name="u"), lambda u, x: x if u.dtype is x.dtype else None),
    (_op(Ops.CAST, UPat(Ops.CAST, src=(_x,), name="m"), name="u"), _double_cast),
    (_op(Ops.BITCAST, UPat(Ops.BITCAST, src=(_x,)), name="u"), lambda u, x: x.bitcast(u.dtype)),
    (_op(Ops.CAST, UPat(frozenset({Ops.ADD, Ops.MUL}), dtypes.ints, name="y"), dtype=_INDEX, name="u"), _cast_inwards),
])  # fmt: skip

loads = PatternMatcher([
    # load(p[i] if True else y) = load(p[i]),  load(p[i] if False else y) = y
    (_op(Ops.LOAD, UPat(Ops.INDEX, src=(_x, _y, _c), name="i"), _z),
     lambda x, y, c, z, i: UOp(Ops.LOAD, z.dtype, (i.replace(src=(x, y)),)) if c.arg else z),
])  # fmt: skip

symbolic = constants + sums + products + divisions + comparisons + bits + maxima + choices + casts + loads


# --- the memo -------------------------------------------------------------------------------------------

_MEMO_LIMIT = 1 << 15
_memo: dict[UOp, UOp] = {}
memos: list[dict[Any, UOp]] = [_memo]  # all that `clear_caches` clears


def simplify(x: UOp) -> UOp:
    """`x` under `symbolic`, to a fixed point.

    What was simplified once is remembered, so a new node over simplified sources costs little more than its own rows.
    The memory holds its nodes alive; it is dropped when it grows past a limit and by `clear_caches`.
    """
    found = _memo.get(x)
    if found is not None:
        return found
    if not x.src:
        return x
    out = rewrite_into(_memo, x, symbolic)
    if len(_memo) > _MEMO_LIMIT:
        _memo.clear()
    return out


def clear_caches() -> None:
    """Forget every simplified node, so that `node.collect` can free them."""
    for memo in memos:
        memo.clear()
