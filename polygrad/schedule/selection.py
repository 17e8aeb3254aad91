"""Selections by position: comparisons of a loop with a position that is read from memory, and their meaning.

    sum(index[i] == v ? x[i, c] : 0 for i)      each x[i, c] belongs to v = index[i] alone

Gradients of gathers, histograms and writes at positions have this form; so has a gather, as a sum over v.
"""

from __future__ import annotations

from collections.abc import Collection

from polygrad.dtype import dtypes
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.path_conditions import conjuncts


def factors(value: UOp) -> tuple[list[UOp], list[UOp]]:
    """`value` as a product of terms and of conditions (1 where they hold, 0 elsewhere)."""
    terms, picks, stack = [], [], [value]
    while stack:
        v = stack.pop()
        if v.op is Ops.MUL:
            stack.extend(reversed(v.src))
        elif v.op is Ops.CAST and v.src[0].dtype.is_bool:
            picks += conjuncts(v.src[0])
        elif v.op is Ops.WHERE and v.src[2].is_const and v.src[2].arg == 0:
            picks += conjuncts(v.src[0])
            stack.append(v.src[1])
        elif v.op is Ops.AND and v.dtype.is_bool:  # of integers it is none of conditions
            stack.extend(reversed(v.src))
        else:
            terms.append(v)
    return [t for t in terms if not (t.is_const and t.arg == 1)], picks


def equality_with(condition: UOp, r: UOp) -> UOp | None:
    """The i of a condition `i == r`, with i independent of r."""
    if condition.op is Ops.CMPNE and condition.src[1].is_const and condition.src[1].arg is True:
        inner = condition.src[0]  # not (i != r)
        if inner.op is not Ops.CMPNE:
            return None
    elif condition.op is Ops.CMPEQ:
        inner = condition
    else:
        return None
    for a, b in (inner.src, inner.src[::-1]):
        plain = b.src[0] if b.op is Ops.CAST and b.dtype.is_int else b
        if plain is r and a.dtype.is_int and r not in a.ranges:
            return a
    return None


def is_within(position: UOp, size: UOp) -> UOp:
    """The condition that an integer of any dtype is one of 0, 1, ..., size - 1."""
    if position.dtype == dtypes.uint64:  # an index cannot hold all of its values
        return position < size.cast(dtypes.uint64)
    index = position.cast(dtypes.index)
    return (index < 0).logical_not() & (index < size)


def find_positions(
    conditions: list[UOp], loops: Collection[UOp], of: Collection[UOp] = ()
) -> tuple[dict[UOp, UOp], list[UOp]]:
    """The position along each of the loops that a condition compares with one, and the other conditions.
    `of`: only positions that depend on one of these ranges, if there are any."""
    positions: dict[UOp, UOp] = {}
    others = list(conditions)
    for condition in conditions:
        for r in sorted(condition.ranges & frozenset(loops), key=lambda r: r.arg):
            element = equality_with(condition, r)
            if element is not None and r not in positions and not (of and element.ranges.isdisjoint(of)):
                positions[r] = element
                others.remove(condition)
                break
    return positions, others
