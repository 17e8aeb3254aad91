"""Reductions that accumulate in memory, as three kernels: the first fills the memory, the second combines
each term with it, in order, the third reads the results.

scatter.py and interchange.py make all three, index_put.py kernels that write in order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import NamedTuple

from polygrad.codegen.kernels.fission import make_temporary
from polygrad.codegen.opts import cost
from polygrad.codegen.target import Target
from polygrad.dtype import dtypes
from polygrad.helpers import prod
from polygrad.schedule.index_maps import flat_index
from polygrad.schedule.kernel_info import rounds
from polygrad.schedule.kernels import KernelCall
from polygrad.uop.args import AxisKind, Param
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


class Accumulation(NamedTuple):
    """Three kernels: `fill` the memory, `add` to it, and `read` the results; None where the memory is the
    output itself."""

    fill: UOp
    add: UOp
    read: UOp | None


def replace_by_accumulations(
    calls: list[KernelCall], find: Callable[[KernelCall], Accumulation | None]
) -> list[KernelCall]:
    """The calls, with the kernels of an Accumulation in the place of each for which `find` gives one."""
    out: list[KernelCall] = []
    accumulations: dict[tuple[UOp, int], Accumulation | None] = {}
    for call in calls:
        key = call.ast, len(call.args)
        if key not in accumulations:
            accumulations[key] = find(call)
        kernels = accumulations[key]
        if kernels is None:
            out.append(call)
            continue
        memory = call.args[0]
        if kernels.read is not None:
            place, value = kernels.fill.src[0].src[0].src
            memory = make_temporary(place.src[0].arg.size, value.dtype)
        for ast in (kernels.fill, kernels.add):
            reads_others = any(n.op is Ops.PARAM and n.arg.slot > 0 for n in ast.toposort())
            out.append(replace(call, ast=ast, args=(memory, *call.args[1:]) if reads_others else (memory,)))
        if kernels.read is not None:
            out.append(replace(call, ast=kernels.read, args=(*call.args, memory)))
    return out


def make_accumulator(ast: UOp, total: UOp, loops: list[UOp], slot: int) -> tuple[UOp, UOp | None] | None:
    """The element of memory that `total` is accumulated in, and the kernel that reads it there.

        out[i] = f(total)  ->  memory[i], out[i] = f(memory[i])

    The memory is argument `slot` of that kernel. If the output is `total` itself, it is accumulated in the
    output, and no kernel reads it. None if the terms come from the output.
    """
    store = ast.src[0].src[0]
    output = store.src[0].src[0]
    if output in total.toposort():
        return None
    if store.src[1] is total and set(ast.src[0].src[1:]) == set(loops) and len(store.src[0].src) == 2:
        return store.src[0], None
    sizes = tuple(r.src[0].arg for r in loops)
    memory = UOp(Ops.PARAM, total.dtype, (), Param(0, int(prod(sizes))))
    place = UOp(Ops.INDEX, total.dtype, (memory, flat_index(sizes, tuple(loops))))
    at = place.replace(src=(memory.replace(arg=memory.arg._replace(slot=slot)), place.src[1]))
    return place, ast.substitute({total: UOp(Ops.LOAD, total.dtype, (at,))})


def make_fill(place: UOp, value: UOp, loops: list[UOp]) -> UOp:
    """for loops: place = value"""
    store = UOp(Ops.STORE, dtypes.void, (place, value))
    return UOp.sink(UOp(Ops.END, dtypes.void, (store, *loops)))


def combine(place: UOp, op: Ops, value: UOp) -> UOp:
    """place op value"""
    return UOp(op, value.dtype, (UOp(Ops.LOAD, value.dtype, (place,)), value))


def make_ordered_nest(place: UOp, value: UOp, loops: list[UOp], in_order: tuple[UOp, ...]) -> UOp:
    """for loops: place = value, where the loops `in_order` go in order. `loops`: outermost first."""
    store = UOp(Ops.STORE, dtypes.void, (place, value))
    if not loops:
        return UOp.sink(store)
    scans = {r: r.replace(arg=r.arg._replace(kind=AxisKind.SCAN)) for r in in_order}
    return UOp.sink(UOp(Ops.END, dtypes.void, (store, *loops)).substitute(scans))


# --- writes at positions that are read from memory


def is_compared(loops: Collection[UOp], target: Target) -> bool:
    """Whether a GPU keeps the comparison of each output element with all positions. Its invocations compare
    side by side; additions in order would be the work of a few of them."""
    limits = target.workgroups
    return limits is not None and not limits.software and rounds(loops) <= cost.MAX_COMPARED


def substitute_positions(positions: dict[UOp, UOp]) -> tuple[UOp, dict[UOp, UOp]]:
    """Whether each position is within its loop, and what the loop's RANGE becomes: the position, or 0 if it
    is not within."""
    inside = UOp.const(dtypes.bool, True)
    at: dict[UOp, UOp] = {}
    for r, element in positions.items():
        position = element.cast(dtypes.index)
        valid = (position < 0).logical_not() & (position < r.src[0])
        inside = inside & valid
        at[r] = valid.where(position, UOp.index(0))
    return inside, at
