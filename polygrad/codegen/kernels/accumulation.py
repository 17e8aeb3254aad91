"""Reductions that accumulate in memory, as three kernels: the first fills the memory, the second combines
each term with it, in order, the third reads the results.

scatter.py and interchange.py make all three, index_put.py kernels that write in order.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from polygrad.codegen.kernels.division import load_value, make_nest
from polygrad.codegen.opts import cost
from polygrad.codegen.target import Target
from polygrad.dtype import dtypes
from polygrad.errors import OptError
from polygrad.schedule.kernel_info import rounds
from polygrad.schedule.selection import is_within
from polygrad.uop.args import AxisKind
from polygrad.uop.linear import linear_terms
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def make_accumulator(ast: UOp, total: UOp, loops: list[UOp], slot: int) -> tuple[UOp, tuple[UOp, ...]]:
    """The element of memory that `total` is accumulated in, and the kernel that reads it there.

        out[i] = f(total)  ->  memory[i], out[i] = f(memory[i])

    The memory is argument `slot`. If the output is `total` itself, it is accumulated in the output, and no
    kernel reads it. Raises OptError if the terms come from the output.
    """
    nest = ast.src[0]
    store = nest.src[0]
    if store.src[0].src[0] in total.toposort():
        raise OptError("expected a sum of other memory than the output")
    if store.src[1] is total and set(nest.src[1:]) == set(loops) and len(store.src[0].src) == 2:
        return store.src[0], ()
    load = load_value(total.dtype, loops, slot)
    return load.src[0], (ast.substitute({total: load}),)


def combine(place: UOp, op: Ops, value: UOp) -> UOp:
    """place op value"""
    return UOp(op, value.dtype, (UOp(Ops.LOAD, value.dtype, (place,)), value))


def nest_writers(
    place: UOp, writers: Sequence[UOp], others: Sequence[UOp], positions: dict[UOp, UOp]
) -> list[UOp]:
    """The loops of a kernel that writes at positions, outermost first. A loop whose rounds have positions of
    their own goes around the writers if each round writes to memory of its own; others go inside."""
    steps, _ = linear_terms(place.src[1])
    extent = max((steps.get(r, 0) for r in positions), default=0)
    own = frozenset().union(*[element.ranges for element in positions.values()])
    outer = [r for r in others if r in own and steps.get(r, 0) > extent]
    return [*outer, *writers, *(r for r in others if r not in outer)]


def make_ordered_nest(place: UOp, value: UOp, loops: list[UOp], in_order: tuple[UOp, ...]) -> UOp:
    """for loops: place = value, where the loops `in_order` go in order. `loops`: outermost first."""
    scans = {r: r.replace(arg=r.arg._replace(kind=AxisKind.SCAN)) for r in in_order}
    return make_nest(place, value, loops).substitute(scans)


# --- writes at positions that are read from memory


def is_compared(loops: Collection[UOp], target: Target) -> bool:
    """Whether a GPU keeps the comparison of each output element with all positions. All its invocations
    compare at once, while additions in order are the work of a few invocations."""
    limits = target.workgroups
    return limits is not None and not limits.software and rounds(loops) <= cost.MAX_COMPARED


def substitute_positions(positions: dict[UOp, UOp]) -> tuple[UOp, dict[UOp, UOp]]:
    """The condition that all positions are within their loops, and the replacement of each loop's RANGE: the
    position, or 0 where it is not within the loop."""
    is_inside = UOp.const(dtypes.bool, True)
    replacements: dict[UOp, UOp] = {}
    for r, element in positions.items():
        valid = is_within(element, r.src[0])
        is_inside = is_inside & valid
        replacements[r] = valid.where(element.cast(dtypes.index), UOp.index(0))
    return is_inside, replacements
