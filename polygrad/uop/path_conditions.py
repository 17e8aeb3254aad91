"""Path conditions: expressions are simplified under a condition that holds where they are evaluated.

A gated load is executed only where its gate is true, so its address may assume the gate. Each conjunct `e <
c` or `c < e` narrows the bounds of the terms of e. An expression with narrower bounds is replaced by a
variable with these bounds, everything is simplified, and the variable is replaced back. The idea is
tinygrad's `uop_given_valid`.
"""

from __future__ import annotations

from typing import NamedTuple

from polygrad.dtype import dtypes
from polygrad.helpers import ceildiv
from polygrad.uop.args import Var
from polygrad.uop.divmod import build
from polygrad.uop.linear import linear_terms, scaled_bounds
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.symbolic import memos, simplify

_MEMO_LIMIT = 1 << 12
_memo: dict[tuple[UOp, UOp], UOp] = {}
memos.append(_memo)

Facts = dict[UOp, tuple[int, int]]  # the bounds of expressions on the path


class _Comparison(NamedTuple):
    """lower <= expression <= upper; None where there is no bound."""

    expression: UOp
    lower: int | None
    upper: int | None


def conjuncts(condition: UOp) -> list[UOp]:
    """The conditions whose conjunction `condition` is, from left to right."""
    parts, stack = [], [condition]
    while stack:
        c = stack.pop()
        if c.op is Ops.AND:
            stack.extend(c.src[::-1])
        else:
            parts.append(c)
    return parts


def simplify_under(x: UOp, condition: UOp) -> UOp:
    """Simplify x under the path condition `condition`, a bool. Where that is false, the result may be any
    value."""
    if condition.op is Ops.CONST:
        return simplify(x)
    key = (x, condition)
    result = _memo.get(key)
    if result is None:
        if len(_memo) >= _MEMO_LIMIT:
            _memo.clear()
        result = _memo[key] = _simplify_under(simplify(x), simplify(condition))
    return result


def _simplify_under(x: UOp, condition: UOp) -> UOp:
    parts = conjuncts(condition)
    bools = _known_bools(parts)
    facts = bounds_under(parts)
    if facts is None:
        return x  # the conditions contradict each other
    # Sums first: a fact about a sum cannot be used after its terms were replaced by variables.
    nodes = set(x.toposort())
    sums = {e: b for e, b in facts.items() if e.op is Ops.ADD and e in nodes}
    for e, b in sums.items():
        x = _assume(x, {e: b}, bools)
    return _assume(x, {e: b for e, b in facts.items() if e.op is not Ops.ADD}, bools)


def _assume(x: UOp, facts: Facts, bools: dict[UOp, UOp]) -> UOp:
    nodes = set(x.toposort())
    replacements: dict[UOp, UOp] = {}
    originals: dict[UOp, UOp] = {}  # by variable, the expression that it replaces
    for i, (e, (lo, hi)) in enumerate(facts.items()):
        if e in nodes and (lo, hi) != e.bounds:
            if lo == hi:
                replacements[e] = UOp.const(e.dtype, lo)
            else:
                replacements[e] = variable = UOp(Ops.DEFINE_VAR, e.dtype, (), Var(f"~{i}", lo, hi))
                originals[variable] = e
    replacements.update({e: value for e, value in bools.items() if e in nodes})
    if not replacements:
        return x
    # A RANGE keeps its size, even if a fact about a Variable would make the size constant.
    replacements.update({n: n for n in nodes if n.op is Ops.RANGE and n not in replacements})
    return simplify(simplify(x.substitute(replacements)).substitute(originals))


def _known_bools(parts: list[UOp]) -> dict[UOp, UOp]:
    """Each conjunct becomes True, and an expression that a conjunct negates becomes False."""
    values = {}
    for p in parts:
        if p.op is not Ops.CONST:
            values[p] = UOp.const(dtypes.bool, True)
        if p.op is Ops.CMPNE and p.src[1].op is Ops.CONST and p.src[1].arg is True:
            values[p.src[0]] = UOp.const(dtypes.bool, False)
    return values


def _comparisons(parts: list[UOp]) -> list[_Comparison]:
    """The conjuncts that compare an `index` expression with a constant."""
    out = []
    for p in parts:
        if p.op is Ops.CMPLT and p.src[0].dtype is dtypes.index:
            a, b = p.src
            if b.op is Ops.CONST:
                out.append(_Comparison(a, None, b.arg - 1))
            elif a.op is Ops.CONST:
                out.append(_Comparison(b, a.arg + 1, None))
        elif p.op is Ops.CMPEQ and p.src[0].dtype is dtypes.index and p.src[1].op is Ops.CONST:
            out.append(_Comparison(p.src[0], p.src[1].arg, p.src[1].arg))
    return out


def bounds_under(parts: list[UOp]) -> Facts | None:
    """The bounds that follow from conjuncts; None when they contradict each other."""
    comparisons = _comparisons(parts)
    facts: Facts = {}

    def narrow(e: UOp, lower: int | None, upper: int | None) -> bool:
        lo, hi = facts.get(e) or e.bounds  # type: ignore[misc]
        lo = lo if lower is None else max(lo, lower)
        hi = hi if upper is None else min(hi, upper)
        facts[e] = (lo, hi)
        return lo <= hi

    for _ in range(2):  # twice: the bounds of one term narrow those of the others
        for e, lower, upper in comparisons:
            terms, k = linear_terms(e)
            total = build(terms, 0, dtypes.index)
            if not narrow(total, None if lower is None else lower - k, None if upper is None else upper - k):
                return None
            lo, hi = facts[total]
            ends = [scaled_bounds(facts.get(t) or t.bounds or (0, 0), c) for t, c in terms.items()]
            lowest, highest = sum(end[0] for end in ends), sum(end[1] for end in ends)
            for (term, c), end in zip(terms.items(), ends, strict=True):
                # term*c >= lo - (the most that the others add up to),  term*c <= hi - (the least)
                first, last = lo - (highest - end[1]), hi - (lowest - end[0])
                if c < 0:
                    first, last = last, first
                if not narrow(term, ceildiv(first, c), last // c):
                    return None
    return facts
