"""Separable windows: a reduction over windows of several axes, along one axis after the others.

    for y, x: out[y, x] = max(v[2*y + ky, 2*x + kx] for ky < 3, kx < 3)

    ->  for y, u: part[y, u] = max(v[2*y + ky, u] for ky < 3)
        for y, x: out[y, x] = max(part[y, 2*x + kx] for kx < 3)

Windows overlap, so one part serves several of them, and only the second reduction reads elements that are
some distance apart. The part of a few rows stays in the first cache (compute_at.py). Image processing calls
such a filter separable.
"""

from __future__ import annotations

from collections.abc import Iterator

from polygrad.codegen.kernels.boxes import BoxAxis, find_box, move_to
from polygrad.codegen.kernels.compute_at import propose_temporary_at
from polygrad.codegen.kernels.division import (
    axes_of,
    canonical_info,
    canonical_sum,
    is_temporary,
    store_value,
)
from polygrad.codegen.kernels.kernel_opt import AxisId, KernelContext, KernelOpt, Kind, Proposal
from polygrad.codegen.lower.reductions import identity_element
from polygrad.codegen.opts import cost
from polygrad.codegen.target import Target
from polygrad.errors import OptError
from polygrad.schedule.index_maps import flat_index
from polygrad.schedule.kernel_info import NestInfo, Sum, kernel_info, rounds
from polygrad.schedule.kernels import KernelCall
from polygrad.uop.args import Param
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.path_conditions import conjuncts


def propose_separation(call: KernelCall, context: KernelContext) -> Iterator[Proposal]:
    """The innermost axis of windows, after the reduction along their other axes."""
    if not kernel_info(call.ast).is_sum_of(context.least(cost.MIN_COPIED_FOR)):
        return
    (nest,) = canonical_info(call.ast).nests
    only = nest.only_sum
    if only is None or not (axes := _window_axes(only)):
        return
    axis = axes[-1]
    along = tuple(r.arg.id for r in only.loops if r in axis.ranges)
    if len(along) == len(only.loops):
        return
    large = kernel_info(call.ast).is_sum_of(cost.MIN_COPIED_FOR)
    yield Proposal(KernelOpt(Kind.SEPARATE, (), along), large and _pays(nest, only, axis, context.target))


def propose_part_at(producer: KernelCall, reader: KernelCall, context: KernelContext) -> Proposal | None:
    """The loop of a reduction over windows at which a part of it can be a STAGE: rows that were written last
    are read from the first cache."""
    nest = kernel_info(reader.ast).only_nest
    if not is_temporary(producer.args[0]) or nest is None or nest.only_sum is None:
        return None
    if not kernel_info(producer.ast).has(Ops.REDUCE) or not _window_axes(nest.only_sum):
        return None
    return propose_temporary_at(producer, reader, context, context.target.cache[0])


def _window_axes(only: Sum) -> list[BoxAxis]:
    """The axes of what a reduction combines along which its windows lie, the one with the shortest step
    last. Empty for a product, whose operands are read by several windows."""
    box = None if only.factors is not None else find_box(only.value)
    if box is None:
        return []
    loops = frozenset(only.loops)
    return [a for a in box.axes if not a.ranges.isdisjoint(loops) and not a.ranges <= loops]


def _pays(nest: NestInfo, only: Sum, axis: BoxAxis, target: Target) -> bool:
    """Whether both reductions have less work for a SIMD value of outputs than the one."""
    itemsize, innermost = only.value.dtype.itemsize, nest.loops[-1]
    lanes = min(cost.native_lanes(target, itemsize), 1 << innermost.src[0].arg.bit_length() - 1)
    step = axis.form.get(innermost, 0) * axis.step
    load = cost.strided_load(step, lanes, itemsize, target) if abs(step) > 1 else 1.0
    combine = cost.run_cost(only.op)
    length = rounds([r for r in only.loops if r in axis.ranges])
    rows = only.terms // length
    along = axis.ranges.difference(only.loops)
    parts = axis.size / rounds(along)  # for each output
    first = next(i for i, r in enumerate(nest.loops) if r in along)
    vectors = rounds(nest.loops[first:]) / lanes  # of a row
    together = rows * length * (load + combine)
    separate = parts * (rows * (1 + combine) + 1) + length * (load + combine) + cost.WINDOW_ROW / vectors
    return separate * cost.MIN_WINDOW_GAIN <= together


# --- the mechanism


def separate(ast: UOp, slots: int, along: tuple[AxisId, ...]) -> tuple[UOp, ...]:
    """A kernel that reduces over all loops of the only reduction of `ast` but those `along` an axis of its
    windows, and `ast` with the reduction of these parts. `slots`: the number of the kernel's arguments."""
    info, only = canonical_sum(ast)
    loops = axes_of(info, along)
    axis = next((a for a in _window_axes(only) if a.ranges.intersection(only.loops) == set(loops)), None)
    others = tuple(r for r in only.loops if r not in loops)
    if axis is None or not others:
        raise OptError("expected loops of a reduction along one of several axes of its windows")
    outer = [r for r in info.nests[0].loops if r in only.value.ranges]
    unit = max(axis.ranges.difference(loops), key=lambda r: r.arg)
    place = UOp.range(axis.size, unit.arg)
    part_loops = [place if r is unit else r for r in outer if r is unit or r not in axis.ranges]
    part = _reduced(move_to(only.value, [axis], [place]), others, only.op)
    memory = UOp(Ops.PARAM, part.dtype, (), Param(slots, rounds(part_loops)))
    position = flat_index(
        tuple(r.src[0].arg for r in part_loops),
        tuple(axis.position if r is place else r for r in part_loops),
    )
    load = UOp(Ops.LOAD, part.dtype, (UOp(Ops.INDEX, part.dtype, (memory, position)),))
    total = UOp(Ops.REDUCE, part.dtype, (load, *loops), only.op)
    return store_value(part, part_loops, slots), info.ast.substitute({only.node: total})


def _reduced(value: UOp, loops: tuple[UOp, ...], op: Ops) -> UOp:
    """A reduction. Conditions that are the same in all its rounds are checked after it.

    REDUCE(a(u) & b(u, k) ? x : identity, k)  ->  a(u) ? REDUCE(b(u, k) ? x : identity, k) : identity
    """
    identity = identity_element(op, value.dtype)
    condition: UOp | None = None
    if value.op is Ops.WHERE and value.src[2] is identity:
        changing = []
        for c in conjuncts(value.src[0]):
            if c.ranges.isdisjoint(loops):
                condition = c if condition is None else condition & c
            else:
                changing.append(c)
        value = value.src[1]
        for c in changing:
            value = c.where(value, identity)
    out = UOp(Ops.REDUCE, value.dtype, (value, *loops), op)
    return out if condition is None else condition.where(out, identity)
