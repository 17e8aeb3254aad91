"""`choose`: the Opts of a kernel for a processor, from the cost model.

Decisions are made one after the other, each for the kernel with the earlier ones carried out: the loops, the
memory for rows, the tiles that are computed in registers, the memory for tiles, the threads.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Generator, Sequence
from typing import NamedTuple

from polygrad.codegen.opts import cost
from polygrad.codegen.opts.decisions import Decide, Decisions, merges
from polygrad.codegen.opts.decisions import opt_of as _opt
from polygrad.codegen.opts.decisions import stage_of as _stage
from polygrad.codegen.opts.gpu_heuristics import WORKGROUP_DECISIONS
from polygrad.codegen.opts.loops import mergeable, stage_filled_over
from polygrad.codegen.opts.matmul import WordProduct, fits_beside, has_matrices, product_of, row_axis_of
from polygrad.codegen.opts.opt import Opt, OptKind, apply
from polygrad.codegen.opts.partition import divisions
from polygrad.codegen.opts.split import substituted
from polygrad.codegen.opts.stage import loops_around, nests_of, nodes_of
from polygrad.codegen.opts.tensor_core_heuristics import tensor_core_products
from polygrad.codegen.opts.tile import is_tile
from polygrad.codegen.opts.tiling import Tiling
from polygrad.codegen.target import Target
from polygrad.dtype import dtypes
from polygrad.helpers import prod
from polygrad.schedule.kernel_info import Access, Sum, nest_info, rounds
from polygrad.uop.args import Axis, AxisKind
from polygrad.uop.linear import linear_terms
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops


def choose(kernel: UOp, target: Target) -> tuple[Opt, ...]:
    """The Opts for a kernel, in the order in which they apply."""
    return tuple(opt for opt, _ in optimize(kernel, target))


def optimize(kernel: UOp, target: Target) -> list[tuple[Opt, UOp]]:
    """The Opts for a kernel in order, with the kernel after each."""
    steps: list[tuple[Opt, UOp]] = []
    for decide in _decisions(target):
        decisions = decide(kernel, target)
        opt = next(decisions, None)
        while opt is not None:
            kernel = apply(kernel, opt)
            steps.append((opt, kernel))
            try:
                opt = decisions.send(kernel)
            except StopIteration:
                break
    return steps


def _decisions(target: Target) -> Sequence[Decide]:
    if target.workgroups is not None:
        return (merges, tensor_core_products, *WORKGROUP_DECISIONS)
    return _DECISIONS if target.simd_bytes else _LOOP_DECISIONS


# --- loops


def _merged_sums(kernel: UOp, target: Target) -> Decisions:
    """Neighbouring loops of a sum that goes through memory in order (the rows and columns of an image): SIMD
    values overlap at the end of the one loop, not at the end of each row."""
    while True:
        sums = [(nest, total) for nest in kernel.src for total in nest_info(nest).sums if total.is_static]
        pairs = ((nest, *pair) for nest, total in sums for pair in itertools.pairwise(total.loops))
        loops = next(((a, b) for nest, a, b in pairs if mergeable(kernel, a, b)), None)
        if loops is None:
            return
        kernel = yield _opt(OptKind.MERGE, *loops)


def _partitions(kernel: UOp, target: Target) -> Decisions:
    """Partitions of loops of output nests on which conditions change few times and far apart, and of loops at
    whose ends windows look beyond a row."""
    max_nests = len(kernel.src) * cost.MAX_PARTS
    while division := next(
        (f for nest in kernel.src if (f := _partition(nest, max_nests - len(kernel.src)))), None
    ):
        r, bounds = division
        kernel = yield _opt(OptKind.PARTITION, r, numbers=bounds)


def _partition(nest: UOp, max_new_nests: int) -> tuple[UOp, tuple[int, ...]] | None:
    """A loop to divide, and the places, for up to `max_new_nests` more nests."""
    info = nest_info(nest)
    if info.is_in_place:
        return None
    for r, bounds in divisions(info):
        sizes = [b - a for a, b in itertools.pairwise((0, *bounds, r.src[0].arg))]
        is_copied_row = not info.sums and r.src[0].arg >= cost.MIN_COPIED_ROW
        looks_beyond = _looks_beyond(nest, r)
        smallest = max(sizes) if is_copied_row or looks_beyond else min(sizes)
        least = cost.MIN_WINDOW_ROWS if looks_beyond and r is not nest.src[-1] else cost.MIN_PART
        if len(sizes) <= min(cost.MAX_PARTS, max_new_nests + 1) and smallest >= least:
            return r, bounds
    return None


def _looks_beyond(nest: UOp, r: UOp) -> bool:
    """Whether windows at the ends of `r` look beyond a row, and the check of that is expensive: in the
    innermost loop each lane would make it; in others it may cost as much as the work that it guards."""
    info = nest_info(nest)
    if not info.sums:
        return False
    return r is nest.src[-1] or not any(_shares_operands(total, info.parallel) for total in info.sums)


def _shares_operands(total: Sum, outputs: Sequence[UOp]) -> bool:
    """Whether a sum is of products whose operands several output elements share. In a depthwise convolution
    they do not, because each output element has its own elements of the image."""
    return total.value.op is Ops.MUL and not any(load.ranges.issuperset(outputs) for load in total.loads)


def _periods(kernel: UOp, target: Target) -> Decisions:
    """Loops of output nests in which loads go through the same elements again and again (a repetition), in
    blocks of a period: the loop inside of a block goes along memory."""
    lanes = cost.native_lanes(target)
    while division := next((f for nest in kernel.src if (f := _period(nest, lanes))), None):
        r, period = division
        kernel = yield _opt(OptKind.SPLIT, r, numbers=(period,))


def _period(nest: UOp, min_period: int) -> tuple[UOp, int] | None:
    """A loop to divide, and the size of its blocks."""
    info = nest_info(nest)
    for load in info.loads:
        for a in load.terms:
            if a.op is not Ops.MOD or not a.src[1].is_const or a.src[0] not in info.parallel:
                continue
            r, period = a.src[0], a.src[1].arg
            if r.src[0].is_const and r.src[0].arg % period == 0 and period >= min_period:
                return r, period
    return None


# --- memory of the kernel's own, for rows


def _rows(kernel: UOp, target: Target) -> Decisions:
    """In each output nest, an expensive value that is summed along a row, and used again along it."""
    while row := next((f for n in nests_of(kernel) if n.op is Ops.END and (f := _row(n, target))), None):
        value, k = row
        kernel = yield _stage(kernel, value, [k])


def _row(nest: UOp, target: Target) -> tuple[UOp, UOp] | None:
    info, column = nest_info(nest), nest.src[-1]
    everything = set(info.order)
    for total in info.sums:
        if len(total.loops) != 1 or total.loops[0].src != column.src:
            continue
        (k,) = total.loops
        if not k.src[0].is_const or not cost.MIN_ROW <= k.src[0].arg <= target.cache[0] // 4:
            continue
        for value in reversed(nodes_of(total.value)):
            if value.op in GroupOp.Transcendental and k in value.ranges:
                if value.substitute({k: column}) in everything:
                    return value, k
    return None


# --- tiles


def _tiles(kernel: UOp, target: Target) -> Decisions:
    """The tiles of all output nests. These share no ranges, but have SIMD values of one width."""
    lanes: int | None = None
    while True:
        nests = nests_of(kernel)
        tilings = (Tiling(nest, target, lanes, nest in kernel.src) for nest in nests)
        chosen = {r: tile for tiling in tilings for r, tile in tiling.choose().items()}
        widths = {tile.lanes for tile in chosen.values() if tile.lanes > 1}
        if len(widths) < 2:
            break
        lanes = min(widths)
    for r, tile in chosen.items():
        axes = {n.arg for n in kernel.toposort() if n.op is Ops.RANGE}
        for axis in _parts(r.arg, axes):
            if tile.lanes > 1:
                kernel = yield Opt(OptKind.SIMD, (axis.id,), (tile.lanes, tile.unroll))
            elif tile.unroll > 1:
                kind = OptKind.UNROLL if r.arg.kind is AxisKind.REDUCE else OptKind.UPCAST
                kernel = yield Opt(kind, (axis.id,), (tile.unroll,))


def _parts(axis: Axis, axes: Collection[Axis]) -> list[Axis]:
    """An axis, or its parts where an earlier decision divided it: of a summed one the first, which has nearly
    all of it."""
    if axis in axes:
        return [axis]
    depth = len(axis.id)
    numbers = {a.id[depth] for a in axes if len(a.id) > depth and a.id[:depth] == axis.id}
    parts = [_parts(axis.child(n), axes) for n in sorted(numbers)]
    return parts[0] if axis.kind is AxisKind.REDUCE else list(itertools.chain(*parts))


# --- memory of the kernel's own, for tiles


def _only_sum(nest: UOp) -> Sum | None:
    """The only sum of a nest whose loops may go in any order."""
    info = nest_info(nest)
    return info.only_sum if info.loops and not info.is_ordered else None


def _operands(kernel: UOp, target: Target) -> Decisions:
    """In each output nest, an operand of its only sum that is scattered over memory and read again and again.

    Column tiles become the outer loop, so that the panel stays in the cache while the rows are read. If the
    rows are more than a cache holds, there are several column tiles at a time, so that the rows are read less
    often.
    """
    done: set[Axis] = set()  # axes of sums
    while True:
        nest, total = next(
            ((n, t) for n in nests_of(kernel) if (t := _only_sum(n)) and t.loops[0].arg not in done),
            (None, None),
        )
        if nest is None or total is None:
            return
        done.add(total.loops[0].arg)
        product = _matrix_product(nest, total, target) if nest in kernel.src else None
        operand = _operand(nest, total, product, target)
        if operand is None:
            continue
        panel, rows = operand
        extent, innermost = list(panel.reduced), list(rows)
        column, count = None, 1
        if nest in kernel.src:
            column, count = _column_block(nest, total, panel, rows, product is not None, target)
        value = panel.value
        around = loops_around(nest)
        if around - panel.value.ranges:
            # each round of a loop outside reads the operand again: all of it is copied once
            extent[:0] = [r for r in nest.src[1:] if r in panel.value.ranges and r not in around]
        elif column is not None:
            kernel = yield _opt(OptKind.SPLIT, column, numbers=(count,))
            nest = next(n for n in kernel.src if total.loops[0] in n.toposort())
            tiles_of_block = next(r for r in nest.src[1:] if r.arg == column.arg.child(1))
            blocks = next(r for r in nest.src[1:] if r.arg == column.arg.child(0))
            value = substituted(value, {column: blocks * count + tiles_of_block})
            extent.insert(0, tiles_of_block)
            innermost.append(tiles_of_block)
        number = sum(n.op is Ops.STAGE for n in kernel.toposort())
        kernel = yield _stage(kernel, value, extent)
        kernel = yield from _transpose_panel(
            kernel, panel, [k.arg.copy(number, AxisKind.LOOP) for k in panel.reduced]
        )
        loops = sorted(nest.src[1:], key=lambda r: innermost.index(r) if r in innermost else -1)
        if loops != list(nest.src[1:]):
            kernel = yield _opt(OptKind.REORDER, *loops)


def _transpose_panel(kernel: UOp, panel: _Panel, axes: list[Axis]) -> Generator[Opt, UOp, UOp]:
    """A panel whose lanes are not neighbours in memory is copied in blocks, if memory goes along a summed
    axis (one of `axes`, or several as one): the emitter loads along that axis and transposes."""
    if panel.step in (0, 1):
        return kernel
    fills = [next(n for n in kernel.toposort() if n.op is Ops.RANGE and n.arg == a) for a in axes]
    for outer, inner in reversed(list(itertools.pairwise(fills))):
        stage = stage_filled_over(kernel, outer)
        assert stage is not None
        inner_loop = next((r for r in stage.src[2:] if r.arg == inner.arg), inner)
        if mergeable(stage, outer, inner_loop):
            kernel = yield _opt(OptKind.MERGE, outer, inner_loop)
    for a in axes:
        r = next((n for n in kernel.toposort() if n.op is Ops.RANGE and n.arg == a), None)
        stage = stage_filled_over(kernel, r) if r is not None else None
        if r is None or stage is None or r.src[0].arg < panel.lanes.src[0].arg:
            continue
        loads = [n for n in stage.src[0].toposort() if n.op is Ops.LOAD and r in n.ranges]
        if all(linear_terms(n.src[0].src[1]).terms.get(r) == 1 for n in loads):
            return (yield Opt(OptKind.UPCAST, (a.id,), (panel.lanes.src[0].arg,)))
    return kernel


class _Panel(NamedTuple):
    """A copied operand of a product: its value, which depends on the ranges of one load, and its ranges."""

    value: UOp
    reduced: list[UOp]  # loops of the sum, outermost first
    tile: list[UOp]
    lanes: UOp  # the range of `tile` that is lanes
    step: int  # the distance of neighbouring lanes in memory, in elements
    itemsize: int  # bytes that are read for an element

    @property
    def nbytes(self) -> int:
        """The bytes of one column tile."""
        return int(prod(r.src[0].arg for r in (*self.tile, *self.reduced))) * self.itemsize


def _operand(
    nest: UOp, total: Sum, product: WordProduct | None, target: Target
) -> tuple[_Panel, list[UOp]] | None:
    """An operand that is worth copying, and the loops that read it again. `product`: what matrix registers
    are going to compute."""
    ks = sorted(total.loops, key=lambda r: r.arg)
    if any(is_tile(k) or not k.src[0].is_const for k in ks):
        return None
    nodes = nodes_of(total.value)
    around = loops_around(nest)
    for load in map(Access, (n for n in nodes if n.op is Ops.LOAD)):
        if load.condition is not None or not load.ranges.issuperset(ks):
            continue
        rows = [r for r in nest.src[1:] if r not in load.ranges and r not in around]
        tile = sorted((r for r in load.ranges if is_tile(r)), key=lambda r: r.arg)
        lanes = next((r for r in tile if r.arg.kind is AxisKind.LANE), None)
        if not rows or lanes is None or not all(r.src[0].is_const for r in rows):
            continue
        # the longest expression of the load that depends on no other range: it is also computed once
        value = load.node
        for node in nodes:
            if node.op in GroupOp.Elementwise and value in node.src and node.ranges <= load.ranges:
                value = node
        others = [a for a in load.terms if a not in tile and not a.ranges.isdisjoint(tile)]
        if any(lanes in a.ranges or not a.ranges.issubset(tile) for a in others):
            continue
        itemsize = sum(n.dtype.itemsize for n in value.toposort() if n.op is Ops.LOAD)
        panel = _Panel(value, ks, tile, lanes, load.stride(lanes), itemsize)
        if panel.nbytes > cost.panel_bytes(target):
            continue
        row_tiles = rounds(rows)
        if product is not None and product.needs_panel(lanes):
            return panel, rows
        if panel.step != 1:
            if row_tiles >= cost.MIN_GATHERED_ROW_TILES:
                return panel, rows
            continue
        step = abs(load.stride(ks[-1])) * load.itemsize
        conflict = cost.conflicts(step, rounds(ks), target.cache[1])
        min_row_tiles = cost.MIN_CONFLICTING_ROW_TILES if conflict else cost.MIN_ROW_TILES
        if row_tiles >= min_row_tiles and cost.is_far(step, rounds(ks), target):
            return panel, rows
    return None


def _matrix_product(nest: UOp, total: Sum, target: Target) -> WordProduct | None:
    """The product of a nest that matrix registers are going to compute; None for another."""
    lanes = next((r for r in nest.src[0].ranges if r.arg.kind is AxisKind.LANE), None)
    product = product_of(total.node, lanes) if target.matrices and lanes is not None else None
    return product if product is not None and has_matrices(product.kinds, target) else None


def _column_block(
    nest: UOp, total: Sum, panel: _Panel, rows: list[UOp], is_matrix: bool, target: Target
) -> tuple[UOp | None, int]:
    """A loop over column tiles that only the panel depends on, and the number of tiles of a block.
    `is_matrix`: matrix registers compute the product, so fast that they wait for memory sooner."""
    in_panel = set(panel.value.toposort())
    others = [n.ranges for n in total.loads if n.node not in in_panel]
    columns = [
        r
        for r in nest.src[1:]
        if r not in rows and r.src[0].is_const and not any(r in loops for loops in others)
    ]
    unrolled_rows = [r for r in nest.src[0].src[0].ranges if is_tile(r) and r not in panel.tile]
    rows_bytes = rounds([*rows, *unrolled_rows, *panel.reduced]) * panel.itemsize
    if not columns or (rows_bytes < target.cache[1] and not is_matrix):
        return None, 1
    column = columns[-1]
    size = column.src[0].arg
    min_blocks = target.threads if is_matrix else cost.MIN_BLOCKS
    max_tiles = min(cost.MAX_BLOCK, target.cache[1] // 4 // panel.nbytes, size // min_blocks)
    fits = [d for d in range(2, max_tiles + 1) if size % d == 0]
    return (column, fits[-1]) if fits else (None, 1)


def _orders(kernel: UOp, target: Target) -> Decisions:
    """The order of the loops around the only sum of each output nest with which the fewest bytes are read
    again from beyond the second cache."""
    for i in range(len(kernel.src)):
        nest = kernel.src[i]
        total = _only_sum(nest)
        if total is None or any(n.op is Ops.STAGE for n in nest.toposort()):
            continue
        loops = list(nest.src[1:])
        if not 1 < len(loops) <= cost.MAX_REORDERED or any(not r.src[0].is_const for r in loops):
            continue
        summed = frozenset(total.loops)

        def traffic(order: Sequence[UOp], total: Sum = total, summed: frozenset[UOp] = summed) -> float:
            return sum(_traffic(n, order, summed, target) for n in total.loads)

        best = min(itertools.permutations(loops), key=traffic)  # the first of equals: the present order
        if traffic(best) * cost.MIN_LESS_TRAFFIC <= traffic(loops):
            kernel = yield _opt(OptKind.REORDER, *best)


def _traffic(load: Access, order: Sequence[UOp], inner_loops: frozenset[UOp], target: Target) -> float:
    """The bytes that a load inside of loops in this `order` fetches from beyond the second cache;
    `inner_loops`: loops further in."""
    loops = [r for r in load.ranges if r in inner_loops or is_tile(r)]
    touched = rounds(loops) * load.itemsize  # by one round of the inner loops
    fetched = float(touched)
    for r in reversed(order):
        if r in load.ranges:
            touched, fetched = touched * r.src[0].arg, fetched * r.src[0].arg
        elif touched > target.cache[1] // 2:
            fetched *= r.src[0].arg
    return fetched


def _matrices(kernel: UOp, target: Target) -> Decisions:
    """In each output nest, a register tile of sums that matrix registers compute."""
    for i in range(len(kernel.src)):
        total = _only_sum(kernel.src[i]) if target.matrices else None
        rows = None if total is None else row_axis_of(total.node)
        if total is None or rows is None or not has_matrices(total.value.arg, target):
            continue
        if fits_beside(kernel, rows):
            kernel = yield _opt(OptKind.MATMUL, rows)


def _epilogues(kernel: UOp, target: Target) -> Decisions:
    """In each output nest, a register tile of sums with a long epilogue."""
    for i in range(len(kernel.src)):
        nest = kernel.src[i]
        total = _only_sum(nest)
        if total is None:
            continue
        summed = set(total.node.toposort())
        operations = [n for n in nest.toposort() if n.op in GroupOp.ALU and n.dtype is not dtypes.index]
        tile = [r for r in nest.src[0].src[0].ranges if r.arg.kind is AxisKind.UPCAST]
        rows = max(tile, key=lambda r: (r.src[0].arg, r.arg), default=None)
        if rows is None or rows.src[0].arg < cost.MIN_STAGED_ROWS:
            continue
        if sum(n not in summed for n in operations) >= cost.LONG_EPILOGUE:
            kernel = yield _stage(kernel, total.node, [rows])


# --- threads


def _parallel(kernel: UOp, target: Target) -> Decisions:
    """In each output nest, the outermost loop that gives every thread a share. If there are sums, they have
    to be inside of that loop, as every thread would compute all sums outside of it. Nests without such a loop
    (the columns that remain beside tiles) are computed by one thread, if they are little work."""
    count, work = target.threads, _work(kernel)
    if count < 2 or any(n.op is not Ops.END for n in kernel.src) or work < cost.PARALLEL:
        return
    loop_of_nest = {nest: _find_divided_loop(nest, count) for nest in kernel.src}
    loops = [r for r in loop_of_nest.values() if r is not None]
    serial_work = sum(_work(nest) for nest, r in loop_of_nest.items() if r is None)
    if loops and serial_work * count * cost.LITTLE <= work:
        yield _opt(OptKind.PARALLEL, *loops, numbers=(count,))


def _find_divided_loop(nest: UOp, threads: int) -> UOp | None:
    info = nest_info(nest)
    around = frozenset().union(*[total.outer for total in info.sums])
    candidates = (r for r in info.parallel if r.src[0].is_const)
    loops = sorted(candidates, key=lambda r: r not in around)
    fair = (r for r in loops if r.src[0].arg >= cost.MIN_SHARES * threads or r.src[0].arg % threads == 0)
    return next(fair, next((r for r in loops if r.src[0].arg >= threads), None))


def _work(kernel: UOp) -> int:
    """The number of the kernel's operations; a SIMD operation counts once."""
    total = 0
    for node in kernel.toposort():
        if node.op in GroupOp.ALU or node.op in (Ops.LOAD, Ops.STORE):
            loops = [r for r in node.ranges if r.arg.kind is not AxisKind.LANE]
            total += rounds(loops) * cost.run_cost(node.op)
    return total


_LOOP_DECISIONS: tuple[Decide, ...] = (merges, _merged_sums, _partitions, _periods, _rows)
_DECISIONS = (*_LOOP_DECISIONS, _tiles, _operands, _orders, _matrices, _epilogues, _parallel)
