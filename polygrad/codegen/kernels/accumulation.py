"""Reductions whose running results are in memory: a kernel that fills it, one that combines terms with it, in
order, and one that then reads it.

scatter.py and interchange.py make such kernels, and index_put.py those that write in order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import NamedTuple

from polygrad.codegen.kernels.fission import temporary
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
    """The kernel that fills memory, and the one that adds to it; `rest`: what then reads it for the kernel's
    output, unless that is the memory."""

    fill: UOp
    add: UOp
    rest: UOp | None


def accumulated(
    calls: list[KernelCall], find: Callable[[KernelCall], Accumulation | None]
) -> list[KernelCall]:
    """The calls, those that `find` has an Accumulation for as its kernels."""
    out: list[KernelCall] = []
    found: dict[tuple[UOp, int], Accumulation | None] = {}
    for call in calls:
        key = call.ast, len(call.args)
        if key not in found:
            found[key] = find(call)
        made = found[key]
        if made is None:
            out.append(call)
            continue
        memory = call.args[0]
        if made.rest is not None:
            place, value = made.fill.src[0].src[0].src
            memory = temporary(place.src[0].arg.size, value.dtype)
        for ast in (made.fill, made.add):
            reads_others = any(n.op is Ops.PARAM and n.arg.slot > 0 for n in ast.toposort())
            out.append(replace(call, ast=ast, args=(memory, *call.args[1:]) if reads_others else (memory,)))
        if made.rest is not None:
            out.append(replace(call, ast=made.rest, args=(*call.args, memory)))
    return out


def accumulator(ast: UOp, total: UOp, loops: list[UOp], slot: int) -> tuple[UOp, UOp | None] | None:
    """Where `total` is added up: the kernel's output, if that is all it stores; else memory, number `slot` of
    the kernel that then reads it. None where what is added up comes from the output itself."""
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


def filled(place: UOp, value: UOp, loops: list[UOp]) -> UOp:
    """The kernel that stores `value` for all of the loops."""
    store = UOp(Ops.STORE, dtypes.void, (place, value))
    return UOp.sink(UOp(Ops.END, dtypes.void, (store, *loops)))


def combined(place: UOp, op: Ops, value: UOp) -> UOp:
    """What memory has, and `value`."""
    return UOp(op, value.dtype, (UOp(Ops.LOAD, value.dtype, (place,)), value))


def ordered(place: UOp, value: UOp, loops: list[UOp], in_order: tuple[UOp, ...]) -> UOp:
    """The kernel that stores `value`: of the loops, outermost first, those `in_order` go in order."""
    store = UOp(Ops.STORE, dtypes.void, (place, value))
    if not loops:
        return UOp.sink(store)
    scans = {r: r.replace(arg=r.arg._replace(kind=AxisKind.SCAN)) for r in in_order}
    return UOp.sink(UOp(Ops.END, dtypes.void, (store, *loops)).substitute(scans))


# --- at positions that memory says


def is_compared(loops: Collection[UOp], target: Target) -> bool:
    """Whether a GPU has compared all elements of output loops, which it computes side by side, with one-hots
    before few invocations would have gone through the terms in order."""
    limits = target.workgroups
    return limits is not None and not limits.software and rounds(loops) <= cost.MAX_COMPARED


def moved_to(positions: dict[UOp, UOp]) -> tuple[UOp, dict[UOp, UOp]]:
    """Whether the elements `positions` of loops are inside of them, and the loops' values there; 0 where they
    are not."""
    inside = UOp.const(dtypes.bool, True)
    at: dict[UOp, UOp] = {}
    for r, element in positions.items():
        position = element.cast(dtypes.index)
        valid = (position < 0).logical_not() & (position < r.src[0])
        inside = inside & valid
        at[r] = valid.where(position, UOp.index(0))
    return inside, at
