"""Scatter: a sum over all inputs that picks those of one output, turned round.

    for v: out[v, c] = sum(index[i] == v ? x[i, c] : 0 for i)

    ->  for v: out[v, c] = 0;   for i, in order: out[index[i], c] += x[i, c]

The gradient of a gather is such a sum, and so are histograms and sums of segments. The additions go in the
order of `i`, so the result is the same by the bit, whichever loops over `c` threads divide. A GPU, which one
thread after the other would leave idle, keeps the sum unless its elements are very many.
"""

from __future__ import annotations

from polygrad.codegen.kernels.accumulation import (
    Accumulation,
    accumulated,
    accumulator,
    combined,
    filled,
    is_compared,
    moved_to,
    ordered,
)
from polygrad.codegen.lower.reductions import equality_with, factors, identity_element
from polygrad.codegen.opts import cost
from polygrad.codegen.target import Target
from polygrad.schedule.kernel_info import kernel_info, rounds
from polygrad.schedule.kernels import KernelCall
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.path_conditions import conjuncts
from polygrad.uop.rewrite import graph_rewrite
from polygrad.uop.symbolic import simplify, symbolic


def scatter(calls: list[KernelCall], target: Target) -> list[KernelCall]:
    """The kernels, with what fills and what adds to memory in the place of a reduction over one-hots."""
    return accumulated(calls, lambda call: _scatter(call, target))


def _scatter(call: KernelCall, target: Target) -> Accumulation | None:
    info = kernel_info(call.ast)
    if info.only_nest is None or not info.only_nest.loops or not info.has(Ops.CMPEQ, Ops.CMPNE):
        return None
    info = kernel_info(graph_rewrite(call.ast, symbolic))
    only = info.nests[0].only_sum
    if only is None or not info.is_static:
        return None
    ast, total = info.ast, only.node
    if is_compared(total.ranges, target) or (picked := _picked(total)) is None:
        return None
    positions, value = picked
    if min(rounds(positions), rounds(total.src[1:])) < cost.MIN_SCATTERED:
        return None
    loops = sorted(total.ranges, key=lambda r: r.arg)
    if (found := accumulator(ast, total, loops, len(call.args))) is None:
        return None
    place, rest = found
    fill = filled(place, identity_element(total.arg, total.dtype), loops)
    return Accumulation(fill, _adding(total, positions, value, place, loops), rest)


def _picked(total: UOp) -> tuple[dict[UOp, UOp], UOp] | None:
    """Of a reduction over one-hots: which element of each output loop a term is for, and the term."""
    value = total.src[0]
    conditions: list[UOp] = []
    if total.arg is Ops.ADD:
        terms, conditions = factors(value)
        value = UOp.const(total.dtype, 1) if not terms else terms[0]
        for t in terms[1:]:
            value = value * t
    elif total.arg is Ops.MAX:
        nothing = identity_element(Ops.MAX, total.dtype)
        while value.op is Ops.WHERE and value.src[2] is nothing:
            conditions += conjuncts(value.src[0])
            value = value.src[1]
    positions: dict[UOp, UOp] = {}
    for condition in list(conditions):
        for r in sorted(condition.ranges & total.ranges, key=lambda r: r.arg):
            element = equality_with(condition, r)
            if element is not None and r not in positions and not element.ranges.isdisjoint(total.src[1:]):
                positions[r] = element
                conditions.remove(condition)
                break
    others = (value, *conditions, *positions.values())
    if not positions or any(not n.ranges.isdisjoint(positions) for n in others):
        return None
    for condition in conditions:
        value = condition.where(value, identity_element(total.arg, total.dtype))
    return positions, value


def _adding(total: UOp, positions: dict[UOp, UOp], value: UOp, place: UOp, loops: list[UOp]) -> UOp:
    """The kernel that combines each term with the element of `place` that it is for."""
    named = frozenset().union(*[element.ranges for element in positions.values()])
    inner = tuple(r for r in total.src[1:] if r not in named)  # many terms for one element
    if inner:
        value = UOp(Ops.REDUCE, total.dtype, (value, *inner), total.arg)
    inside, at = moved_to(positions)
    value = simplify(inside).where(value, identity_element(total.arg, total.dtype))
    pointer = place.replace(src=(place.src[0], simplify(place.src[1].substitute(at))))
    outer = [r for r in total.src[1:] if r in named]
    nest = [*outer, *(r for r in loops if r not in positions)]
    return ordered(pointer, combined(pointer, total.arg, value), nest, tuple(outer))
