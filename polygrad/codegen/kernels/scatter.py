"""Scatter: a sum over one-hots becomes additions at positions.

    for v: out[v, c] = sum(index[i] == v ? x[i, c] : 0 for i)

    ->  for v: out[v, c] = 0;   for i, in order: out[index[i], c] += x[i, c]

The gradient of a gather is such a sum, and so are histograms and sums of segments. The additions go in the
order of `i`; threads divide the loops over `c`. So the bits do not depend on the number of threads. A GPU
keeps the sum unless its elements are very many: additions in order leave most of a GPU idle.
"""

from __future__ import annotations

from polygrad.codegen.kernels.accumulation import (
    Accumulation,
    combine,
    is_compared,
    make_accumulator,
    make_fill,
    make_ordered_nest,
    replace_by_accumulations,
    substitute_positions,
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
    """The kernels, with an Accumulation in the place of each reduction over one-hots."""
    return replace_by_accumulations(calls, lambda call: _scatter(call, target))


def _scatter(call: KernelCall, target: Target) -> Accumulation | None:
    info = kernel_info(call.ast)
    if info.only_nest is None or not info.only_nest.loops or not info.has(Ops.CMPEQ, Ops.CMPNE):
        return None
    info = kernel_info(graph_rewrite(call.ast, symbolic))
    only = info.nests[0].only_sum
    if only is None or not info.is_static:
        return None
    ast, total = info.ast, only.node
    if is_compared(total.ranges, target) or (picked := _find_terms(total)) is None:
        return None
    positions, value = picked
    if min(rounds(positions), rounds(total.src[1:])) < cost.MIN_SCATTERED:
        return None
    loops = sorted(total.ranges, key=lambda r: r.arg)
    if (accumulator := make_accumulator(ast, total, loops, len(call.args))) is None:
        return None
    place, read = accumulator
    fill = make_fill(place, identity_element(total.arg, total.dtype), loops)
    return Accumulation(fill, _make_addition(total, positions, value, place, loops), read)


def _find_terms(total: UOp) -> tuple[dict[UOp, UOp], UOp] | None:
    """The position along each output loop that a term of a reduction over one-hots is added at, and the term.

    sum(index[i] == v ? x[i] : 0 for i)  ->  {v: index[i]}, x[i]
    """
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


def _make_addition(total: UOp, positions: dict[UOp, UOp], value: UOp, place: UOp, loops: list[UOp]) -> UOp:
    """for i, in order: place[position of i] += value of i"""
    named = frozenset().union(*[element.ranges for element in positions.values()])
    inner = tuple(r for r in total.src[1:] if r not in named)  # their terms have the same position
    if inner:
        value = UOp(Ops.REDUCE, total.dtype, (value, *inner), total.arg)
    inside, at = substitute_positions(positions)
    value = simplify(inside).where(value, identity_element(total.arg, total.dtype))
    pointer = place.replace(src=(place.src[0], simplify(place.src[1].substitute(at))))
    outer = [r for r in total.src[1:] if r in named]
    nest = [*outer, *(r for r in loops if r not in positions)]
    return make_ordered_nest(pointer, combine(pointer, total.arg, value), nest, tuple(outer))
