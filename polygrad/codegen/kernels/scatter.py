"""Scatter: a sum over one-hots becomes additions at positions.

    for v: out[v, c] = sum(index[i] == v ? x[i, c] : 0 for i)

    ->  for v: out[v, c] = 0;   for i, in order: out[index[i], c] += x[i, c]

The gradient of a gather is such a sum, and so are histograms and sums of segments. The additions go in the
order of `i`; threads divide the loops over `c`. So the bits do not depend on the number of threads. A GPU
keeps the sum unless it has very many elements: additions in order leave most of a GPU idle.
"""

from __future__ import annotations

from collections.abc import Iterator

from polygrad.codegen.kernels.accumulation import (
    combine,
    is_compared,
    make_accumulator,
    make_ordered_nest,
    nest_writers,
    substitute_positions,
)
from polygrad.codegen.kernels.division import make_nest
from polygrad.codegen.kernels.kernel_opt import KernelContext, KernelOpt, Kind, Proposal
from polygrad.codegen.lower.reductions import identity_element
from polygrad.codegen.opts import cost
from polygrad.errors import OptError
from polygrad.schedule.kernel_info import KernelInfo, Selection, Sum, kernel_info, rounds
from polygrad.schedule.kernels import KernelCall
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.rewrite import graph_rewrite
from polygrad.uop.symbolic import simplify, symbolic


def propose_scatter(call: KernelCall, context: KernelContext) -> Iterator[Proposal]:
    """A reduction over one-hots that is accumulated at positions."""
    if (selected := _find_selection(call.ast)) is None:
        return
    info, total, selection = selected
    pays = not is_compared(total.outer, context.target)
    pays = pays and min(rounds(selection.positions), total.terms) >= cost.MIN_SCATTERED
    if info.nests[0].write.memory not in total.node.toposort():
        yield Proposal(KernelOpt(Kind.SCATTER), pays)


def _find_selection(ast: UOp) -> tuple[KernelInfo, Sum, Selection] | None:
    """The simplified kernel, its only sum, if that is over one-hots, and their selection."""
    info = kernel_info(ast)
    if info.only_nest is None or not info.only_nest.loops or not info.has(Ops.CMPEQ, Ops.CMPNE):
        return None
    if not info.has(Ops.REDUCE):
        return None
    info = kernel_info(graph_rewrite(ast, symbolic))
    only = info.nests[0].only_sum
    if only is None or not info.is_static or only.selection is None:
        return None
    return info, only, only.selection


# --- the mechanism


def scatter(ast: UOp, slots: int) -> tuple[UOp, ...]:
    """The kernels that accumulate the terms of a kernel's only sum at positions. `slots`: the number of its
    arguments.

    for v, c: out[v, c] = sum(index[i] == v ? x[i, c] : 0 for i)

    ->  for v, c: out[v, c] = 0;  for i, in order, for c: out[index[i], c] += x[i, c]
    """
    if (selected := _find_selection(ast)) is None:
        raise OptError("expected a kernel with one sum, over one-hots of output elements")
    info, only, selection = selected
    total = only.node
    loops = sorted(only.outer, key=lambda r: r.arg)
    place, read = make_accumulator(info.ast, total, loops, slots)
    fill = make_nest(place, identity_element(total.arg, total.dtype), loops)
    return fill, _make_addition(total, selection.positions, selection.value, place, loops), *read


def _make_addition(total: UOp, positions: dict[UOp, UOp], value: UOp, place: UOp, loops: list[UOp]) -> UOp:
    """for i, in order: place[position of i] += value of i"""
    writers = frozenset().union(*[element.ranges for element in positions.values()])
    inner = tuple(r for r in total.src[1:] if r not in writers)  # their terms have the same position
    if inner:
        value = UOp(Ops.REDUCE, total.dtype, (value, *inner), total.arg)
    is_inside, replacements = substitute_positions(positions)
    pointer = place.replace(src=(place.src[0], simplify(place.src[1].substitute(replacements))))
    new, old = combine(pointer, total.arg, value), UOp(Ops.LOAD, total.dtype, (pointer,))
    outer = [r for r in total.src[1:] if r in writers]
    nest = nest_writers(place, outer, [r for r in loops if r not in positions], positions)
    return make_ordered_nest(pointer, simplify(is_inside).where(new, old), nest, tuple(outer))
