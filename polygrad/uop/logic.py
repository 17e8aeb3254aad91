"""Rules of logic: casts, comparisons, bools and bits, maxima, choices. symbolic.py has the rulebook."""

from __future__ import annotations

import math

from polygrad.dtype import DType, dtypes
from polygrad.uop.arithmetic import reassociate
from polygrad.uop.divmod import build, fold_greater, fold_less, is_exact, is_positive
from polygrad.uop.linear import linear_terms
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.pattern import PatternMatcher, UPat
from polygrad.uop.pattern_names import (
    BOOL,
    FALSE,
    INDEX,
    INTS,
    MAX_TERMS,
    TRUE,
    bx,
    c,
    const,
    d,
    fx,
    gate,
    ix,
    not_,
    nx,
    op,
    wx,
    x,
    y,
    z,
)  # fmt: skip
from polygrad.uop.sizes import add_terms

# --- casts ----------------------------------------------------------------------------------------------


def _keeps_value(x: UOp, dtype: DType) -> bool:
    """Whether casting `x` to `dtype` keeps its value exactly."""
    src = x.dtype
    if dtype.is_bool or src is dtype:
        return src is dtype
    if src.is_float:
        return dtype.is_float and (dtype is dtypes.float64 or (dtype is dtypes.float32 and src.itemsize <= 2))
    lo, hi = x.bounds  # type: ignore[misc]
    if dtype.is_float:
        limit = 1 << dtype.significand
        return -limit <= lo and hi <= limit
    return bool(lo >= dtype.min and hi <= dtype.max)


def _double_cast(u: UOp, m: UOp, x: UOp) -> UOp | None:
    a, b, c = x.dtype, m.dtype, u.dtype
    # cast(cast(x, b), c) = cast(x, c)  when b holds x exactly, or all are integers and c keeps no more bits;
    # from a float an integer saturates, from an integer it wraps
    if a.is_int and b.is_float and c.is_int and not c.min <= a.min <= a.max <= c.max:
        return None
    if _keeps_value(x, b) or (
        a.is_int and b.is_int and c.is_int and INDEX not in (a, b, c) and c.itemsize <= b.itemsize
    ):
        return x.cast(c)
    return None


def _push_cast_inwards(y: UOp) -> UOp | None:
    """cast(a + b, index) = cast(a, index) + cast(b, index), and so for *, where nothing wrapped and no cast
    is added: all leaves but one are constants or came from index."""
    leaves, stack = 0, [y]  # `leaves` that are no constants and need a cast
    for _ in range(MAX_TERMS):
        if not stack:
            a, b = y.src
            return UOp(y.op, INDEX, (a.cast(INDEX), b.cast(INDEX)))
        x = stack.pop()
        if x.op is Ops.ADD or x.op is Ops.MUL:
            if not is_exact(x):
                return None
            stack.extend(x.src)
        elif x.op is not Ops.CONST and not (x.op is Ops.CAST and x.src[0].dtype is INDEX):
            leaves += 1
            if leaves > 1:
                return None
    return None


casts = PatternMatcher([
    # cast(x, its own dtype) = x
    (op(Ops.CAST, x, name="u"), lambda u, x: x if u.dtype is x.dtype else None),
    (op(Ops.BITCAST, x, name="u"), lambda u, x: x if u.dtype is x.dtype else None),
    (op(Ops.CAST, UPat(Ops.CAST, src=(x,), name="m"), name="u"), _double_cast),
    (op(Ops.BITCAST, UPat(Ops.BITCAST, src=(x,)), name="u"), lambda u, x: x.bitcast(u.dtype)),
    # cast(a + b, index) = cast(a, index) + cast(b, index)
    (op(Ops.CAST, UPat((Ops.ADD, Ops.MUL), dtypes.ints, name="y"), dtype=INDEX), _push_cast_inwards),
])  # fmt: skip


# --- comparisons ----------------------------------------------------------------------------------------


def _not_less(x: UOp, c: UOp) -> UOp:
    return UOp.const(x.dtype, c.arg - 1) < x


def _not_greater(x: UOp, c: UOp) -> UOp:
    return x < UOp.const(x.dtype, c.arg + 1)


def _equal_shifted(u: UOp, x: UOp, c: UOp, d: UOp) -> UOp:
    return UOp(u.op, BOOL, (x, UOp.const(x.dtype, d.arg - c.arg)))


def _equal_scaled(u: UOp, y: UOp, x: UOp, c: UOp, d: UOp) -> UOp | None:
    if c.arg == 0 or not is_exact(y):
        return None
    if d.arg % c.arg:
        return UOp.const(BOOL, u.op is Ops.CMPNE)
    return UOp(u.op, BOOL, (x, UOp.const(x.dtype, d.arg // c.arg)))


def _compare_sums(x: UOp, y: UOp) -> UOp | None:
    """x < y decided by y - x: terms of both cancel, and a RANGE is less than its symbolic size."""
    if x.op is Ops.CONST or y.op is Ops.CONST:
        return None
    left, right = linear_terms(x), linear_terms(y)
    difference = add_terms(right.terms, left.terms, -1)
    cancelled = len(difference) < len(left.terms) + len(right.terms)
    if not cancelled and not any(b.op is Ops.RANGE and b.src[0].op is not Ops.CONST for b in difference):
        return None  # bounds alone have decided before
    constant = right.constant - left.constant
    if is_positive(difference, constant):
        return UOp.const(BOOL, True)
    if is_positive({b: -m for b, m in difference.items()}, 1 - constant):
        return UOp.const(BOOL, False)
    if not cancelled:
        return None
    # a + x < a + y = x < y
    less = build({b: -m for b, m in difference.items() if m < 0}, 0, INDEX)
    return less < build({b: m for b, m in difference.items() if m > 0}, constant, INDEX)


def _compare_casts(u: UOp, x: UOp, y: UOp) -> UOp | None:
    a, b = x.src[0], y.src[0]
    if a.dtype is b.dtype and a.dtype.is_int and _keeps_value(a, x.dtype) and _keeps_value(b, y.dtype):
        return UOp(u.op, BOOL, (a, b))
    return None


def _compare_cast_with(u: UOp, y: UOp, c: UOp) -> UOp | None:
    x = y.src[0]
    if not (x.dtype.is_int and y.dtype.is_int and _keeps_value(x, y.dtype)):
        return None
    if not x.dtype.min <= c.arg <= x.dtype.max:
        return None
    d = UOp.const(x.dtype, c.arg)
    return UOp(u.op, BOOL, (d, x) if u.src[0] is c else (x, d))


_SAME = frozenset({Ops.CMPNE, Ops.CMPEQ})

comparisons = PatternMatcher([
    # x < x = False,  x != x = False,  x == x = True, of integers
    (op(frozenset({Ops.CMPLT, Ops.CMPNE}), wx, x), lambda x: UOp.const(BOOL, False)),
    (op(Ops.CMPEQ, wx, x), lambda x: UOp.const(BOOL, True)),
    # x < y  where y - x is of one sign
    (op(Ops.CMPLT, ix, y), _compare_sums),
    # cast(b) < 1 = !b,  0 < cast(b) = b,  cast(b) != 0 = b,  cast(b) != 1 = !b,  and == the other way round
    (op(Ops.CMPLT, op(Ops.CAST, bx), const(1)), lambda x: x.logical_not()),
    (op(Ops.CMPLT, const(0), op(Ops.CAST, bx)), lambda x: x),
    (op(Ops.CMPNE, op(Ops.CAST, bx), const(0)), lambda x: x),
    (op(Ops.CMPNE, op(Ops.CAST, bx), const(1)), lambda x: x.logical_not()),
    (op(Ops.CMPEQ, op(Ops.CAST, bx), const(0)), lambda x: x.logical_not()),
    (op(Ops.CMPEQ, op(Ops.CAST, bx), const(1)), lambda x: x),
    # cast(x) < cast(y) = x < y,  cast(x) < c = x < c  when the casts keep every value; != and == too
    (op(GroupOp.Comparison, UPat(Ops.CAST, name="x"), UPat(Ops.CAST, name="y"), name="u"), _compare_casts),
    (op(GroupOp.Comparison, UPat(Ops.CAST, name="y"), c, name="u"), _compare_cast_with),
    (op(Ops.CMPLT, c, UPat(Ops.CAST, name="y"), name="u"), _compare_cast_with),
    # x + c < d = x < d - c,  x*c < d = x < ceil(d/c),  x//c < d = x < d*c, and more: see divmod.py
    (op(Ops.CMPLT, nx, c), fold_less),
    (op(Ops.CMPLT, c, nx), fold_greater),
    # x + c != d = x != d - c,  x*c != d = x != d/c, True when c does not divide d
    (op(_SAME, op(Ops.ADD, nx, c), d, name="u"), _equal_shifted),
    (op(_SAME, UPat(Ops.MUL, src=(nx, c), name="y"), d, name="u"), _equal_scaled),
    # !!x = x,  x != False = x,  x == True = x,  x == False = !x
    (not_(not_(x)), lambda x: x),
    (op(Ops.CMPNE, x, FALSE), lambda x: x),
    (op(Ops.CMPEQ, x, TRUE), lambda x: x),
    (op(Ops.CMPEQ, x, FALSE), lambda x: x.logical_not()),
    # !(x < c) = c - 1 < x,  !(c < x) = x < c + 1,  of integers (at the dtype's ends bounds have decided)
    (not_(op(Ops.CMPLT, nx, c)), _not_less),
    (not_(op(Ops.CMPLT, c, nx)), _not_greater),
    # !(x == y) = x != y,  !(x != y) = x == y  (for NaN too)
    (not_(op(Ops.CMPEQ, x, y)), lambda x, y: x.ne(y)),
    (not_(op(Ops.CMPNE, x, y)), lambda x, y: x.eq(y)),
])  # fmt: skip


# --- bools and bits -------------------------------------------------------------------------------------


def _conjunction(x: UOp, y: UOp) -> UOp | None:
    """x & y, y one condition: merged with one of x that implies it, is implied by it or excludes it."""
    right_terms: list[UOp] = []  # of x, to the right of `term`
    spine = x
    for _ in range(MAX_TERMS):
        is_conjunction = spine.op is Ops.AND
        term = spine.src[1] if is_conjunction else spine
        merged = _merge_conditions(term, y)
        if merged is not None:
            out = spine.src[0] & merged if is_conjunction else merged
            while right_terms:
                out = out & right_terms.pop()
            return out
        if not is_conjunction:
            return None
        right_terms.append(term)
        spine = spine.src[0]
    return None


def _merge_conditions(a: UOp, b: UOp) -> UOp | None:
    """a & b as one condition, or None."""
    if a is b:
        return a
    if a.op is not Ops.CMPLT or b.op is not Ops.CMPLT:
        return UOp.const(BOOL, False) if _negates(a, b) or _negates(b, a) else None
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
    return UOp.const(BOOL, False) if x.bounds is not None and d.arg - c.arg <= 1 else None


def _negates(a: UOp, b: UOp) -> bool:
    """Whether `a` is !b."""
    return a.op is Ops.CMPNE and a.src[0] is b and a.src[1].op is Ops.CONST and a.src[1].arg is True


def _drop_mask(x: UOp, c: UOp) -> UOp | None:
    ones = c.arg == -1 or (c.arg & (c.arg + 1) == 0 and x.vmin >= 0 and x.vmax <= c.arg)
    return x if ones else None


bits = PatternMatcher([
    # x & x = x | x = x,  x ^ x = 0
    (op(frozenset({Ops.AND, Ops.OR}), x, x), lambda x: x),
    (op(Ops.XOR, x, x), lambda x: UOp.const(x.dtype, 0)),
    # x & True = x,  x & False = False,  x | True = True
    (op(Ops.AND, x, TRUE), lambda x: x),
    (op(Ops.AND, bx, FALSE.named("c")), lambda x, c: c),
    (op(Ops.OR, bx, TRUE.named("c")), lambda x, c: c),
    # x | 0 = x ^ 0 = x << 0 = x >> 0 = x,  x & 0 = 0,  x & -1 = x,  x & (2^n - 1) = x  for 0 <= x < 2^n
    (op(frozenset({Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR}), x, const(0)), lambda x: x),
    (op(Ops.AND, nx, UPat.const(INTS, 0).named("c")), lambda x, c: c),
    (op(Ops.AND, nx, c), _drop_mask),
    # (x op c) op d = x op (c op d)
    (op(Ops.AND, op(Ops.AND, x, c), d, name="u"), reassociate),
    (op(Ops.OR, op(Ops.OR, x, c), d, name="u"), reassociate),
    (op(Ops.XOR, op(Ops.XOR, x, c), d, name="u"), reassociate),
    # (x < c) & (x < d) = x < min(c, d), and other pairs of conditions
    (op(Ops.AND, bx, y), _conjunction),
    # x | !x = True
    (op(Ops.OR, bx, y), lambda x, y: UOp.const(BOOL, True) if _negates(x, y) or _negates(y, x) else None),
])  # fmt: skip


# --- maxima and choices ---------------------------------------------------------------------------------


def _merge_gates(gate: UOp, b: UOp, x: UOp, y: UOp) -> UOp:
    return (gate & b).where(x, y)


def _max_by_bounds(x: UOp, y: UOp) -> UOp | None:
    if x.bounds is None or y.bounds is None:
        return None
    return x if x.bounds[0] >= y.bounds[1] else y if y.bounds[0] >= x.bounds[1] else None


maxima = PatternMatcher([
    # max(x, x) = x,  max(x, -inf) = x (NaN too),  max(max(x, c), d) = max(x, max(c, d))
    (op(Ops.MAX, x, x), lambda x: x),
    (op(Ops.MAX, fx, const(-math.inf)), lambda x: x),
    (op(Ops.MAX, op(Ops.MAX, x, c), d, name="u"), reassociate),
    # max(x, y) = x  when no y is greater
    (op(Ops.MAX, wx, y), _max_by_bounds),
])  # fmt: skip

choices = PatternMatcher([
    # gate ? x : x = x,  True ? x : y = x,  False ? x : y = y
    (op(Ops.WHERE, gate, x, x), lambda gate, x: x),
    (op(Ops.WHERE, c, x, y), lambda c, x, y: x if c.arg else y),
    # !gate ? x : y = gate ? y : x
    (op(Ops.WHERE, not_(gate), x, y), lambda gate, x, y: gate.where(y, x)),
    # gate ? True : False = gate,  gate ? False : True = !gate,
    # gate ? x : False = gate & x,  gate ? True : x = gate | x
    (op(Ops.WHERE, gate, TRUE, FALSE), lambda gate: gate),
    (op(Ops.WHERE, gate, FALSE, TRUE), lambda gate: gate.logical_not()),
    (op(Ops.WHERE, gate, bx, FALSE), lambda gate, x: gate & x),
    (op(Ops.WHERE, gate, TRUE, bx), lambda gate, x: gate | x),
    # gate ? (gate ? x : y) : z = gate ? x : z,  gate ? x : (gate ? y : z) = gate ? x : z
    (op(Ops.WHERE, gate, op(Ops.WHERE, gate, x, y), z), lambda gate, x, y, z: gate.where(x, z)),
    (op(Ops.WHERE, gate, x, op(Ops.WHERE, gate, y, z)), lambda gate, x, y, z: gate.where(x, z)),
    # a ? (b ? x : y) : y = a & b ? x : y
    (op(Ops.WHERE, gate, op(Ops.WHERE, bx.named("b"), x, y), y), _merge_gates),
])  # fmt: skip

loads = PatternMatcher([
    # load(p[i] if True else y) = load(p[i]),  load(p[i] if False else y) = y
    (op(Ops.LOAD, UPat(Ops.INDEX, src=(x, y, c), name="i"), z),
     lambda x, y, c, z, i: UOp(Ops.LOAD, z.dtype, (i.replace(src=(x, y)),)) if c.arg else z),
])  # fmt: skip

logic = comparisons + bits + maxima + choices + casts + loads
