"""Rules of arithmetic: constants, sums, products, divisions. symbolic.py has the rulebook."""

from __future__ import annotations

import math

from polygrad.dtype import dtypes
from polygrad.uop.alu import convert, evaluate, reinterpret
from polygrad.uop.divmod import build, fold_divmod, is_positive
from polygrad.uop.linear import Terms, linear_terms
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.pattern import PatternMatcher, UPat
from polygrad.uop.pattern_names import (
    FLOATS,
    INDEX,
    MAX_TERMS,
    WHOLE,
    c,
    const,
    d,
    fx,
    ix,
    nx,
    op,
    wx,
    x,
    y,
    z,
)
from polygrad.uop.sizes import add_terms

# --- constants ------------------------------------------------------------------------------------------


def _fold_to_bounds(u: UOp) -> UOp | None:
    b = u.bounds
    return UOp.const(u.dtype, b[0]) if b is not None and b[0] == b[1] else None


def _fold(u: UOp) -> UOp | None:
    value = evaluate(u.op, u.src[-1].dtype, [s.arg for s in u.src])
    return None if value is None else UOp.const(u.dtype, value)


def _fold_cast(u: UOp, c: UOp) -> UOp:
    return UOp.const(u.dtype, convert(c.arg, c.dtype, u.dtype))


def _fold_bitcast(u: UOp, c: UOp) -> UOp | None:
    value = reinterpret(c.arg, c.dtype, u.dtype)
    if value is None or value != value:  # constants know one NaN only: its bits would be lost
        return None
    return UOp.const(u.dtype, value)


def _move_constant_right(u: UOp, c: UOp, x: UOp) -> UOp:
    return UOp(u.op, u.dtype, (x, c))


def reassociate(u: UOp, x: UOp, c: UOp, d: UOp) -> UOp | None:
    value = evaluate(u.op, u.dtype, [c.arg, d.arg])
    return None if value is None else UOp(u.op, u.dtype, (x, UOp.const(u.dtype, value)))


def _push_into_where(u: UOp, w: UOp, gate: UOp, a: UOp, b: UOp) -> UOp | None:
    """An op of a WHERE between constants, and constants."""
    folded = []
    for choice in (a, b):
        src = tuple([choice if s is w else s for s in u.src])
        value = constants.rewrite(UOp(u.op, u.dtype, src, u.arg))
        if value is None or value.op is not Ops.CONST:
            return None
        folded.append(value)
    return gate.where(*folded)


_WHERE_OF_CONSTS = UPat(Ops.WHERE, src=(UPat.var("gate"), UPat.cvar("a"), UPat.cvar("b")), name="w")

constants = PatternMatcher([
    # op(c, ...) = its value
    (op(GroupOp.Unary, UPat(Ops.CONST), name="u"), _fold),
    (op(GroupOp.Binary, UPat(Ops.CONST), UPat(Ops.CONST), name="u"), _fold),
    (op(Ops.CAST, c, name="u"), _fold_cast),
    (op(Ops.BITCAST, c, name="u"), _fold_bitcast),
    # c + x = x + c, for every commutative op
    (op(GroupOp.Commutative, c, x, name="u"), _move_constant_right),
    # an integer whose bounds meet is a constant
    (UPat(GroupOp.Elementwise, WHOLE, name="u"), _fold_to_bounds),
    # op(gate ? a : b, c) = gate ? op(a, c) : op(b, c)  between constants
    (op(GroupOp.Unary | {Ops.CAST, Ops.BITCAST}, _WHERE_OF_CONSTS, name="u"), _push_into_where),
    (op(GroupOp.Binary, _WHERE_OF_CONSTS, UPat(Ops.CONST), name="u"), _push_into_where),
    (op(GroupOp.Binary, UPat(Ops.CONST), _WHERE_OF_CONSTS, name="u"), _push_into_where),
])  # fmt: skip


# --- sums -----------------------------------------------------------------------------------------------


def _term(x: UOp) -> tuple[UOp, int]:
    if x.op is Ops.MUL and x.src[1].op is Ops.CONST:
        return x.src[0], x.src[1].arg
    return x, 1


def _collect(u: UOp, x: UOp, y: UOp) -> UOp | None:
    """x + y of `index`, y a single term: merged with a like term (or a quotient with its remainder) of x."""
    base, m = _term(y)
    right_terms: list[UOp] = []  # of x, to the right of `term`
    spine, term = x, x
    for _ in range(MAX_TERMS):
        is_sum = spine.op is Ops.ADD
        term = spine.src[1] if is_sum else spine
        term_base, n = _term(term)
        if term_base is base:
            merged: tuple[UOp, int] | None = (base, m + n)  # x*m + x*n = x*(m+n)
        elif term_base.op in _DIVMOD or base.op in _DIVMOD:
            merged = _recombine(base, m, term_base, n) or _recombine(term_base, n, base, m)
        else:
            merged = None
        if merged is not None:
            out = build(dict([merged]), 0, u.dtype)
            if is_sum:
                out = spine.src[0] if merged[1] == 0 else spine.src[0] + out
            elif merged[1] == 0 and right_terms:
                out = right_terms.pop()
            while right_terms:
                out = out + right_terms.pop()
            return out
        if not is_sum:
            return None
        right_terms.append(term)
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


def _is_congruent(p: UOp, q: UOp, c: int) -> bool:
    """Whether p % c = q % c is known: simplification takes multiples of c from the operand of a remainder."""
    terms, constant = linear_terms(q)
    ours, k = linear_terms(p)
    return (constant - k) % c == 0 and all(
        (terms.get(a, 0) - ours.get(a, 0)) % c == 0 for a in {*terms, *ours}
    )


def _recombine(a: UOp, m: int, b: UOp, n: int) -> tuple[UOp, int] | None:
    """a*m + b*n as one term."""
    if a.op is Ops.MOD and a.src[1].op is Ops.CONST and a.src[1].arg > 0 and m * a.src[1].arg == n:
        p, c = a.src[0], a.src[1].arg
        # (p % c)*m + (p // c)*(c*m) = p*m
        if _is_quotient(b, p, c):
            return p, m
        # (p % c)*m + (q // c)*(c*m) = q*m  where p % c = q % c
        if b.op is Ops.IDIV and b.src[1] is a.src[1] and _is_congruent(p, b.src[0], c):
            return b.src[0], m
        # (p % c)*m + ((p // c) % d)*(c*m) = (p % (c*d))*m
        if b.op is Ops.MOD and b.src[1].op is Ops.CONST and b.src[1].arg > 0 and _is_quotient(b.src[0], p, c):
            return p % UOp.const(p.dtype, c * b.src[1].arg), m
    # p*m + (p // c)*(-c*m) = (p % c)*m
    if b.op is Ops.IDIV and b.src[0] is a and b.src[1].op is Ops.CONST:
        d = b.src[1].arg
        return (a % b.src[1], m) if d > 0 and n == -m * d else None
    return None


sums = PatternMatcher([
    # x + 0 = x; for floats too, see the rulebook
    (op(Ops.ADD, x, const(0)), lambda x: x),
    (op(Ops.ADD, fx, UPat.const(None, UOp.const(dtypes.float64, -0.0).arg)), lambda x: x),
    # (x + c) + d = x + (c + d)
    (op(Ops.ADD, op(Ops.ADD, nx, c), d, name="u"), reassociate),
    # (x + c) + y = (x + y) + c,  x + (y + z) = (x + y) + z
    (op(Ops.ADD, op(Ops.ADD, ix, c), y), lambda x, y, c: (x + y) + c),
    (op(Ops.ADD, ix, op(Ops.ADD, y, z)), lambda x, y, z: (x + y) + z),
    # x*c + x*d = x*(c + d),  (x % c) + (x // c)*c = x, and so on
    (op(Ops.ADD, ix, y, name="u"), _collect),
    # x + x = x*2
    (op(Ops.ADD, UPat.var("x", (*dtypes.ints, *FLOATS)), x), lambda x: x * 2),
    # x*c + x*d = x*(c + d),  x*c + x = x*(c + 1)  in wrapping integers
    (op(Ops.ADD, op(Ops.MUL, nx, c), op(Ops.MUL, x, d)), lambda x, c, d: x * (c.arg + d.arg)),
    (op(Ops.ADD, op(Ops.MUL, nx, c), x), lambda x, c: x * (c.arg + 1)),
    (op(Ops.ADD, nx, op(Ops.MUL, x, c)), lambda x, c: x * (c.arg + 1)),
])  # fmt: skip


# --- products -------------------------------------------------------------------------------------------


def _distribute(x: UOp, y: UOp, c: UOp) -> UOp:
    return x * c + y * c


def _is_exact_scale(value: float) -> bool:
    """Whether it is a power of two, and far from the limits of float16."""
    return math.frexp(abs(value))[0] == 0.5 and 2**-8 <= abs(value) <= 2**8


products = PatternMatcher([
    # x*1 = x,  x*0 = 0 (not of floats: NaN and infinities)
    (op(Ops.MUL, x, const(1)), lambda x: x),
    (op(Ops.MUL, wx, UPat.const(WHOLE, 0).named("c")), lambda x, c: c),
    # (x*c)*d = x*(c*d)
    (op(Ops.MUL, op(Ops.MUL, nx, c), d, name="u"), reassociate),
    # (x*-1)*c = (x*c)*-1 = x*-c,  1 / (x*-1) = (1/x)*-1  in floats: exact, as no other constants are
    (op(Ops.MUL, op(Ops.MUL, fx, const(-1)), c), lambda x, c: x * -c.arg),
    (op(Ops.MUL, op(Ops.MUL, fx, c), const(-1)), lambda x, c: x * -c.arg),
    (op(Ops.RECIPROCAL, op(Ops.MUL, fx, const(-1))), lambda x: x.alu(Ops.RECIPROCAL) * -1),
    # (x + y)*c = x*c + y*c
    (op(Ops.MUL, op(Ops.ADD, ix, y), c), _distribute),
    # (x*c)*y = (x*y)*c,  x*(y*c) = (x*y)*c
    (op(Ops.MUL, op(Ops.MUL, ix, c), y), lambda x, y, c: (x * y) * c),
    (op(Ops.MUL, ix, op(Ops.MUL, y, c)), lambda x, y, c: (x * y) * c),
    # -(-x) = x,  x - 0 = x,  x / 1 = x
    (op(Ops.NEG, op(Ops.NEG, x)), lambda x: x),
    (op(Ops.SUB, x, const(0)), lambda x: x),
    (op(Ops.FDIV, x, const(1)), lambda x: x),
    # x / 2^n = x * 2^-n,  1 / x = reciprocal(x)
    (op(Ops.FDIV, fx, c), lambda x, c: x * (1 / c.arg) if _is_exact_scale(c.arg) else None),
    (op(Ops.FDIV, const(1), fx), lambda x: x.alu(Ops.RECIPROCAL)),
    # trunc(trunc(x)) = trunc(x),  trunc(cast(n)) = cast(n)
    (op(Ops.TRUNC, UPat(Ops.TRUNC, name="x")), lambda x: x),
    (op(Ops.TRUNC, UPat(Ops.CAST, src=(UPat(None, WHOLE),), name="x")), lambda x: x),
])  # fmt: skip


# --- divisions ------------------------------------------------------------------------------------------


def _symbolic_divmod(u: UOp, x: UOp, n: UOp) -> UOp | None:
    """x // n or x % n for a size n > 0 that is not a constant."""
    if n.op is Ops.CONST or n.vmin <= 0:
        return None
    base, m = _term(n)
    terms, constant = linear_terms(x)
    quotient: Terms = {}
    quotient_constant = 0
    remaining: Terms = {}
    for t, k in terms.items():
        if k % m == 0 and t is base:
            quotient_constant = k // m
        elif k % m == 0 and t.op is Ops.MUL and base in t.src:
            a = t.src[0] if t.src[1] is base else t.src[1]
            quotient[a] = quotient.get(a, 0) + k // m
        else:
            remaining[t] = k
    remainder = build(remaining, constant, INDEX)
    # (a*n + b) // n = a + b // n,  (a*n + b) % n = b % n;  b // n = 0 and b % n = b  when 0 <= b < n
    size = linear_terms(n)
    is_below = remainder.vmin >= 0 and is_positive(
        add_terms(size.terms, remaining, -1), size.constant - constant
    )
    is_divisible = bool(quotient) or quotient_constant != 0
    if u.op is Ops.MOD:
        return remainder if is_below else remainder % n if is_divisible else None
    if is_below:
        return build(quotient, quotient_constant, INDEX)
    if not is_divisible:
        return None
    return build(add_terms(quotient, {remainder // n: 1}), quotient_constant, INDEX)


divisions = PatternMatcher([
    # x // 1 = x,  x // 0 = 0,  x // -1 = -x,  x % 1 = x % -1 = x % 0 = 0
    (op(Ops.IDIV, x, const(1)), lambda x: x),
    (op(Ops.IDIV, x, UPat.const(WHOLE, 0).named("c")), lambda c: c),
    (op(Ops.IDIV, nx, const(-1)), lambda x: x * -1),
    (op(Ops.MOD, nx, UPat.cvar("c")), lambda x, c: UOp.const(x.dtype, 0) if c.arg in (0, 1, -1) else None),
    # x % x = 0,  x // x = 1  for x > 0
    (op(Ops.MOD, nx, x), lambda x: UOp.const(x.dtype, 0)),
    (op(Ops.IDIV, nx, x), lambda x: UOp.const(x.dtype, 1) if x.vmin > 0 else None),
    # see divmod.py
    (op(_DIVMOD, nx, c, name="u"), lambda u, x, c: fold_divmod(u, x, c) if c.arg > 0 else None),
    (op(_DIVMOD, ix, UPat.var("n"), name="u"), _symbolic_divmod),
])  # fmt: skip

arithmetic = constants + sums + products + divisions
