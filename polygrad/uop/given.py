"""`simplify_given`: an expression simplified where a condition is known to hold.

A padded load is only read inside its gate, so its address may assume the gate. Each conjunct `e < c` or `c <
e` narrows the bounds of the terms of e; an expression whose bounds shrank is replaced by a variable with the
new ones, everything is simplified, and the variable replaced back. The idea is tinygrad's `uop_given_valid`.
"""

from __future__ import annotations

from polygrad.dtype import dtypes
from polygrad.uop.divmod import build, linear
from polygrad.uop.node import UOp, Var
from polygrad.uop.ops import Ops
from polygrad.uop.symbolic import memos, simplify

_MEMO_LIMIT = 1 << 12
_memo: dict[tuple[UOp, UOp], UOp] = {}
memos.append(_memo)

Facts = dict[UOp, tuple[int, int]]  # the bounds of expressions


def simplify_given(x: UOp, condition: UOp) -> UOp:
    """`simplify(x)`, its value right at least wherever the bool `condition` holds."""
    if condition.op is Ops.CONST:
        return simplify(x)
    key = (x, condition)
    found = _memo.get(key)
    if found is None:
        if len(_memo) >= _MEMO_LIMIT:
            _memo.clear()
        found = _memo[key] = _given(simplify(x), simplify(condition))
    return found


def _given(x: UOp, condition: UOp) -> UOp:
    parts = _conjuncts(condition)
    known = _known_bools(parts)
    facts = _facts(parts)
    if facts is None:
        return x  # the condition never holds
    # sums first: a fact about a sum is lost once its terms are variables
    nodes = set(x.toposort())
    sums = {e: b for e, b in facts.items() if e.op is Ops.ADD and e in nodes}
    for e, b in sums.items():
        x = _assume(x, {e: b}, known)
    return _assume(x, {e: b for e, b in facts.items() if e.op is not Ops.ADD}, known)


def _assume(x: UOp, facts: Facts, known: dict[UOp, UOp]) -> UOp:
    nodes = set(x.toposort())
    there: dict[UOp, UOp] = {}
    back: dict[UOp, UOp] = {}
    for i, (e, (lo, hi)) in enumerate(facts.items()):
        if e in nodes and (lo, hi) != e.bounds:
            if lo == hi:
                there[e] = UOp.const(e.dtype, lo)
            else:
                there[e] = stand_in = UOp(Ops.DEFINE_VAR, e.dtype, (), Var(f"~{i}", lo, hi))
                back[stand_in] = e
    there.update({e: value for e, value in known.items() if e in nodes})
    if not there:
        return x
    # a loop stays the loop that it is, also where what is known of a Variable says how long it is
    there.update({n: n for n in nodes if n.op is Ops.RANGE and n not in there})
    return simplify(simplify(x.substitute(there)).substitute(back))


def _conjuncts(condition: UOp) -> list[UOp]:
    parts, rest = [], [condition]
    while rest:
        c = rest.pop()
        if c.op is Ops.AND:
            rest.extend(c.src[::-1])
        else:
            parts.append(c)
    return parts


def _known_bools(parts: list[UOp]) -> dict[UOp, UOp]:
    """What each conjunct (and what a negated one denies) is as a constant."""
    out = {}
    for p in parts:
        if p.op is not Ops.CONST:
            out[p] = UOp.const(dtypes.bool, True)
        if p.op is Ops.CMPNE and p.src[1].op is Ops.CONST and p.src[1].arg is True:
            out[p.src[0]] = UOp.const(dtypes.bool, False)
    return out


def _facts(parts: list[UOp]) -> Facts | None:
    """Bounds that follow from comparing `index` expressions with constants; None when they contradict."""
    sums: list[tuple[UOp, int | None, int | None]] = []
    for p in parts:
        if p.op is Ops.CMPLT and p.src[0].dtype is dtypes.index:
            a, b = p.src
            if b.op is Ops.CONST:
                sums.append((a, None, b.arg - 1))
            elif a.op is Ops.CONST:
                sums.append((b, a.arg + 1, None))
        elif p.op is Ops.CMPEQ and p.src[0].dtype is dtypes.index and p.src[1].op is Ops.CONST:
            sums.append((p.src[0], p.src[1].arg, p.src[1].arg))
    facts: Facts = {}

    def narrow(e: UOp, lo: int | None, hi: int | None) -> bool:
        before = facts.get(e) or e.bounds
        assert before is not None
        low = before[0] if lo is None else max(before[0], lo)
        high = before[1] if hi is None else min(before[1], hi)
        facts[e] = (low, high)
        return low <= high

    for _ in range(2):  # once more: what is known of one term narrows the others
        for e, lo, hi in sums:
            terms, k = linear(e)
            bare = build(terms, 0, dtypes.index)
            if not narrow(bare, None if lo is None else lo - k, None if hi is None else hi - k):
                return None
            low, high = facts[bare]
            ends = []
            for base, c in terms:
                least, most = facts.get(base) or base.bounds or (0, 0)
                ends.append((least * c, most * c) if c > 0 else (most * c, least * c))
            least, most = sum(end[0] for end in ends), sum(end[1] for end in ends)
            for (base, c), end in zip(terms, ends, strict=True):
                # base*c >= low - (what the others make at most),  base*c <= high - (at least)
                at_least, at_most = low - (most - end[1]), high - (least - end[0])
                if c < 0:
                    at_least, at_most = at_most, at_least
                if not narrow(base, -(-at_least // c), at_most // c):
                    return None
    return facts
