"""Relayout: an operand of a large product that is costly to read is copied first.

    sum(ok(y, ky) ? x[y - ky] : 0) * w[ky]  ->  copy[u] = ok(u) ? x[u - 1] : 0; sum(copy[y - ky + 1] * w[ky])

Four kinds of operands are copied. The first is read under conditions (the padding of a convolution, the
zeros between a transposed convolution's elements): the copy evaluates them once for each element instead of
in each term. The second is read in long steps along the summed axis (`a.T @ b`): the copy is its transpose.
The third is computed (float16 converted to float32) and read as scalars, so each vector of the output would
compute it again. The fourth has rows that go along columns of the output (`a.T @ b.T`): after it is
transposed, SIMD values go along rows. The copy is a separate kernel, tiled and divided between threads as any
other. oneDNN calls it a reorder, TVM a layout rewrite. The padding of a pooling is copied, too.

Where the operand depends on loops only through sums (y - ky: the windows of a convolution), the copy has an
axis for each sum and holds each element once: it is the bounding box of the elements that are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from polygrad.codegen.kernels.boxes import Box, BoxAxis, find_box, move_to
from polygrad.codegen.kernels.division import axes_of, canonical_info, canonical_sum, store_value
from polygrad.codegen.kernels.dot_products import DotForm, find_dot_form
from polygrad.codegen.kernels.kernel_opt import AxisId, KernelContext, KernelOpt, Kind, Proposal
from polygrad.codegen.kernels.narrow_storage import narrow_value
from polygrad.codegen.kernels.window_dots import find_window_dot_form
from polygrad.codegen.opts import cost
from polygrad.codegen.opts.tensor_core_heuristics import workgroup_tile
from polygrad.codegen.opts.tiling import Tiling
from polygrad.codegen.target import Target
from polygrad.errors import OptError
from polygrad.helpers import dedup, prod
from polygrad.schedule.index_maps import flat_index
from polygrad.schedule.kernel_info import KernelInfo, NestInfo, Sum, kernel_info, rounds
from polygrad.schedule.kernels import KernelCall
from polygrad.uop.args import Param
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def propose_copies(call: KernelCall, context: KernelContext) -> Iterator[Proposal]:
    """The operands of a kernel's only sum that are worth a copy, or both as words of dot products. Of a
    reduction that is no product: what windows read under conditions."""
    if not kernel_info(call.ast).is_sum_of(context.least(cost.MIN_COPIED_FOR)):
        return
    info, target = canonical_info(call.ast), context.target
    only = info.nests[0].only_sum
    if only is None:
        return
    large = kernel_info(call.ast).is_sum_of(cost.MIN_COPIED_FOR)
    tiles = Tiling(info.ast.src[0], target).choose()
    lanes = next((r for r, tile in tiles.items() if tile.lanes > 1), None)
    tile = tiles[lanes].size if lanes is not None else 1
    if lanes is not None and (dots := _find_dots(info, only, lanes, len(call.args), target)) is not None:
        nbytes = sum(p.size * p.dtype.itemsize for p in dots.packed)
        pays = large and only.work >= cost.MIN_COPIED_READS * nbytes
        yield Proposal(KernelOpt(Kind.DOT_PRODUCT, (), (lanes.arg.id,)), pays)
        return
    is_product = only.factors is not None
    min_reads = cost.MIN_COPIED_READS if is_product else cost.MIN_COPIED_WINDOW_READS
    for number, factor in enumerate(only.operands):
        box = find_box(factor)
        if box is None or (only.work < min_reads * box.size and not context.searching):
            continue
        if not is_product and not box.guarded:
            continue
        axes = _axes_in_order(box, only.node, lanes, tile, target)
        if lanes is not None and _conflicts_in_output(box, info.nests[0], lanes, tile, target):
            axes = sorted(box.axes, key=lambda a: a.ranges.issubset(only.loops))
        pays = axes != box.axes or box.guarded or _is_computed(factor, box, lanes)
        if not pays and not context.searching:
            continue
        if not pays:
            axes = sorted(box.axes, key=lambda a: a.ranges.issubset(only.loops))
        order = tuple(box.axes.index(a) for a in axes)
        pays = pays and large and only.work >= min_reads * box.size
        yield Proposal(KernelOpt(Kind.RELAYOUT, (), (), (number, *order)), pays)


def propose_operands(call: KernelCall, context: KernelContext) -> Iterator[Proposal]:
    """The operands of a product on a core that reads memory which are computed (a weight is converted, a row
    normalised): each workgroup of a row, or of a column, would compute them again, and wait for it. A plain
    operand is copied while the core computes."""
    target = context.target
    if not kernel_info(call.ast).is_sum_of(context.least(cost.MIN_COPIED_FOR)):
        return
    info = kernel_info(call.ast)
    if info.only_nest is None or not info.is_static:
        return
    info = canonical_info(call.ast)
    (nest,) = info.nests
    tile = workgroup_tile(nest, target)
    if tile is None or nest.only_sum is None or nest.only_sum.factors is None:
        return
    formats = {core.operands for core in target.tensor_cores if core.in_memory}
    for number, factor in enumerate(dedup(nest.only_sum.factors)):
        values = [v for d in formats if (v := narrow_value(factor, d)) is not None]
        box = None if any(v.op is Ops.LOAD for v in values) else find_box(factor)
        if box is None:
            continue
        pays = nest.only_sum.work >= cost.MIN_OPERAND_READS * max(tile) * box.size
        yield Proposal(KernelOpt(Kind.RELAYOUT, (), (), (number, *range(len(box.axes)))), pays)


# --- the mechanism


def relayout(ast: UOp, slots: int, number: int, *order: int) -> tuple[UOp, ...]:
    """A kernel that copies a factor of the only sum of `ast`, and `ast` reading the copy. `number`: of the
    factor; `order`: of the copy's axes. `slots`: the number of the kernel's arguments.

    out[m, n] = sum(a[k, m] * b[k, n] for k)

    ->  copy[m, k] = a[k, m];  out[m, n] = sum(copy[m, k] * b[k, n] for k)
    """
    info, only = canonical_sum(ast)
    operands = only.operands
    if number >= len(operands) or (box := find_box(operands[number])) is None:
        raise OptError(f"expected an operand of a sum that depends on sums of loops, got {number}")
    if sorted(order) != list(range(len(box.axes))):
        raise OptError(f"expected an order of the {len(box.axes)} axes of the copy, got {list(order)}")
    axes, factor = [box.axes[i] for i in order], operands[number]
    memory = UOp(Ops.PARAM, factor.dtype, (), Param(slots, box.size))
    position = flat_index(tuple(a.size for a in axes), tuple(a.position for a in axes))
    load = UOp(Ops.LOAD, factor.dtype, (UOp(Ops.INDEX, factor.dtype, (memory, position)),))
    return _make_copy(factor, axes, slots), info.ast.substitute({factor: load})


def dot_product(ast: UOp, slots: int, lanes: Sequence[AxisId], target: Target) -> tuple[UOp, ...]:
    """The kernels that pack a product's operands of few bits, and the product as DOTs. `lanes`: the loop of
    the SIMD lanes. `slots`: the number of the kernel's arguments.

    out[m, n] = sum(int32(a[m, k]) * int32(b[k, n]) for k < K)

    ->  a'[m, w] = word of a[m, 4*w + i];  b'[w, n] = word of b[4*w + i, n];
        out[m, n] = sum(DOT(a'[m, w], b'[w, n], 0) for w < K / 4)
    """
    info, only = canonical_sum(ast)
    dots = _find_dots(info, only, axes_of(info, lanes)[0], slots, target)
    if dots is None:
        raise OptError("expected a sum of products of narrow numbers, and a target with DOTs of them")
    packs = [store_value(p.value, p.loops, slots + i) for i, p in enumerate(dots.packed)]
    return *packs, info.ast.substitute({only.node: dots.total})


def _find_dots(info: KernelInfo, only: Sum, lanes: UOp, first: int, target: Target) -> DotForm | None:
    summed_loads = {n.node for n in only.loads}
    bytewise = {n.slot for n in info.loads if n.node not in summed_loads and n.slot is not None}
    return find_dot_form(only, lanes, first, target, bytewise) or find_window_dot_form(
        only, lanes, first, target
    )


# --- the order of a copy's axes


def _axes_in_order(box: Box, total: UOp, lanes: UOp | None, tile: int, target: Target) -> list[BoxAxis]:
    """The axes of an operand's box in the best order to read it. `tile`: the elements along the lanes that a
    round of the product computes.

    The order changes in two cases. If the operand depends on the lanes, these go last if they are not
    neighbours and a panel is more than a cache holds. If it does not, the summed axes go last if they step
    far over memory; of a window's axes that of the innermost loop goes last.
    """
    summed = frozenset(total.src[1:])
    inner = [a for a in box.axes if a.ranges <= summed]
    if lanes is None or lanes in summed or not inner:
        return box.axes
    along = next((a for a in box.axes if lanes in a.ranges), None)
    if any(not a.ranges <= summed and not a.ranges.isdisjoint(summed) for a in box.axes):
        inner = [a for a in inner if total.src[-1] in a.ranges and along is None]
    nbytes = int(prod(a.size for a in inner)) * total.dtype.itemsize
    if along is not None and inner:
        if along.step == 1 or nbytes * tile <= cost.panel_bytes(target):
            return box.axes
        return [*(a for a in box.axes if a is not along), along]
    if not inner or not cost.is_far(min(a.step for a in inner), nbytes, target):
        return box.axes
    return [*(a for a in box.axes if a not in inner), *inner]


def _conflicts_in_output(box: Box, nest: NestInfo, lanes: UOp, tile: int, target: Target) -> bool:
    """Whether SIMD values along the rows of an operand, a matrix, are stored in columns of the output whose
    elements evict each other, and could go along rows of the output instead. The operand has no more elements
    than the output."""
    step_of, operand = nest.write.stride, {r for a in box.axes for r in a.ranges}
    if rounds(nest.loops) < box.size or any(len(a.form) > 1 for a in box.axes):
        return False
    if not cost.conflicts(abs(step_of(lanes)) * nest.value.dtype.itemsize, tile, target.cache[0]):
        return False
    is_row = any(a.step == 1 and lanes in a.ranges for a in box.axes)
    return is_row and any(step_of(r) == 1 and r not in operand and rounds([r]) >= tile for r in nest.loops)


def _is_computed(factor: UOp, box: Box, lanes: UOp | None) -> bool:
    """Whether each vector of the output would compute the operand again, because it is more than a load and
    is read as scalars."""
    return factor.op is not Ops.LOAD and lanes is not None and all(lanes not in a.ranges for a in box.axes)


# --- the kernel that copies


def _make_copy(value: UOp, axes: list[BoxAxis], slot: int) -> UOp:
    """copy[u, v, ...] = the operand at u, v, ... along the axes of its box"""
    loops = [UOp.range(a.size, i) if a.size > 1 else UOp.index(0) for i, a in enumerate(axes)]
    return store_value(move_to(value, axes, loops), loops, slot)
