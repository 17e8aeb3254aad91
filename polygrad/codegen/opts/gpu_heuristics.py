"""The Opts of a kernel for a machine with workgroups, by Target and cost model.

- products and convolutions: square tiles of output elements to a workgroup, a smaller one to each invocation,
  the operands in chunks in shared memory; several parts of the sums where the grid is small. Where a
  processor does a GPU's work, larger tiles in registers, and nothing in shared memory
- reductions: one workgroup shares those of an output element, or of a row of them (softmax, normalisations);
  where memory goes along the output elements, of several. Where a processor does a GPU's work, one invocation
  has those of an output element
- everything else: a flat grid, whose invocations have a vector each where memory allows, else several rows;
  of a transpose a block
- what is left of sums' loops: short rounds are unrolled
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from polygrad.codegen.opts import cost
from polygrad.codegen.opts.decisions import Decide, Decisions, opt_of, stage_of
from polygrad.codegen.opts.loops import mergeable
from polygrad.codegen.opts.opt import AxisId, Opt, OptKind
from polygrad.codegen.opts.stage import nodes_of
from polygrad.codegen.opts.tile import is_bound, is_tile
from polygrad.codegen.target import Target, Workgroups
from polygrad.dtype import dtypes
from polygrad.helpers import ceildiv, prod
from polygrad.schedule.kernel_info import Access, NestInfo, Product, Sum, kernel_info, rounds
from polygrad.uop.args import AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.shapes import sint_max


def limits_of(target: Target) -> Workgroups:
    assert target.workgroups is not None
    return target.workgroups


def find_unbound_nest(kernel: UOp, target: Target) -> NestInfo | None:
    """The kernel's only output nest, if nothing of it is bound yet and it is not more than a grid has (nor
    memory: such a kernel does not run)."""
    info = kernel_info(kernel)
    if len(info.nests) != 1 or any(map(is_bound, info.ranges)):
        return None
    nest = info.nests[0]
    return nest if rounds(nest.parallel) <= limits_of(target).count ** 2 else None


def _opt(kind: OptKind, axis: AxisId, *numbers: int) -> Opt:
    return Opt(kind, (axis,), numbers)


def power(n: int) -> int:
    """The greatest power of 2 that is at most n."""
    return 1 << (n.bit_length() - 1)


# --- vectors


def _vectors(nest: NestInfo, r: UOp, target: Target, gathered: bool = False) -> bool:
    """Whether a range in vectors of 4 makes memory accesses vectors, all of them aligned; `gathered`: those
    that write, what is read may lie anywhere."""
    lanes = cost.VECTOR
    if target.simd_bytes < 4 * lanes or not r.src[0].is_const or r.src[0].arg % lanes:
        return False
    for n in nest.order:
        if n.op is not Ops.STORE and (n.op is not Ops.LOAD or gathered):
            wide = n.dtype is not dtypes.index and n.dtype.itemsize > 4
            if wide and (n.op in GroupOp.Elementwise or n.op is Ops.LOAD) and r in n.ranges:
                return False
            continue
        access, dtype = Access(n), n.src[-1].dtype if n.op is Ops.STORE else n.dtype
        if r not in access.ranges:
            continue
        others = {a: f for a, f in access.terms.items() if a is not r}
        if (
            (dtype.itemsize not in (2, 4) and dtype not in target.packed)
            or access.stride(r) != 1
            or any(r in a.ranges for a in others)
        ):
            return False
        if any(f % lanes for f in (*others.values(), access.offset)):
            return False
        if access.condition is not None and r in access.condition.ranges:
            return False
    return True


# --- products


def find_tiled_product(nest: NestInfo, min_side: int = cost.MIN_PRODUCT_SIDE) -> Product | None:
    """The only sum of a nest, if it is a product with many terms and at least so many rows and columns; of
    its loops those that fill a workgroup's tile, the columns along memory."""
    if nest.only_sum is None or nest.only_sum.terms < cost.MIN_PRODUCT_TERMS:
        return None
    side = cost.MAX_PRODUCT_TILE

    def rank(p: Product) -> tuple[int, bool]:
        sizes = min(p.rows.src[0].arg, side) * min(p.columns.src[0].arg, side)
        return sizes, nest.write.stride(p.columns) == 1

    return max(nest.products(min_side), key=rank, default=None)


def _products(kernel: UOp, target: Target) -> Decisions:
    nest = find_unbound_nest(kernel, target)
    if nest is None or nest.is_ordered:
        return
    limits = limits_of(target)
    if limits.software:
        if (product := find_tiled_product(nest, cost.MIN_SOFTWARE_SIDE)) is not None:
            yield from _register_tiles(nest, product, target)
        return
    if (product := find_tiled_product(nest)) is None:
        return
    total, rows, columns = product.total, product.rows, product.columns
    tile = cost.product_tile(limits)
    sides = [min(tile.elements, power(r.src[0].arg)) for r in (rows, columns)]
    others = prod(sint_max(r.src[0]) for r in nest.parallel if r not in (rows, columns))

    def workgroups() -> int:
        tiles = (ceildiv(r.src[0].arg, side) for r, side in zip((rows, columns), sides, strict=True))
        return int(others * prod(tiles))

    while workgroups() < tile.workgroups and max(sides) > 2 * tile.side:
        sides[sides.index(max(sides))] //= 2
    vectors = _vectors(nest, columns, target) and sides[1] >= 2 * cost.VECTOR
    for r in nest.parallel:
        kernel = yield opt_of(OptKind.GLOBAL, r)
    row, column = rows.arg.id, columns.arg.id
    each = [max(side // tile.side, 1) for side in sides]
    kernel = yield _opt(OptKind.LOCAL, row, sides[0])
    if each[0] > 1:
        kernel = yield _opt(OptKind.UPCAST, (*row, 1), each[0])
    if vectors:
        count = max(each[1] // cost.VECTOR, 1) if limits.copies else 1
        each[1] = cost.VECTOR * count
        kernel = yield _opt(OptKind.SIMD, column, cost.VECTOR, count)
        kernel = yield _opt(OptKind.LOCAL, (*column, 0), sides[1] // each[1])
    else:
        kernel = yield _opt(OptKind.LOCAL, column, sides[1])
        if each[1] > 1:
            kernel = yield _opt(OptKind.UPCAST, (*column, 1), each[1])
    parts = 1
    if workgroups() < tile.workgroups:
        parts = _parts(total, sides, prod(sides) // prod(each), limits)
        if parts > 1:
            kernel = yield opt_of(OptKind.GROUP, _longest(total, parts), numbers=(parts,))
    room = limits.shared_bytes - (_part_bytes(total, sides, parts) if parts > 1 else 0)
    max_chunk = room // (sum(sides) * total.dtype.itemsize * parts * tile.depth)
    chunk = min(tile.chunk // parts, max_chunk)
    staged, size = list[AxisId](), 1
    for k in reversed([r for r in _total(kernel).src[1:] if r.arg.kind is AxisKind.REDUCE]):
        count = k.src[0].arg
        if size * count <= min(chunk + chunk // 4, max_chunk):
            staged.insert(0, k.arg.id)
            size *= count
            continue
        rounds = chunk // size
        if rounds > 1:
            fits = (n for n in range(rounds, rounds // 2, -1) if count % n == 0)
            kernel = yield opt_of(OptKind.SPLIT, k, numbers=(next(fits, rounds),))
            staged.insert(0, (*k.arg.id, 1))
        break
    while (operand := operand_to_stage(_total(kernel), staged, (row, column))) is not None:
        axes = [r for r in _total(kernel).src[1:] if r.arg.id in staged and r in operand.ranges]
        kernel = yield stage_of(kernel, operand, axes, tile.depth)


def _register_tiles(nest: NestInfo, product: Product, target: Target) -> Decisions:
    """A product without shared memory: what an invocation reads again is in its registers."""
    rows, columns = product.rows, product.columns
    loops, sides = nest.parallel, [r.src[0].arg for r in (rows, columns)]
    tiles = [ceildiv(side, cost.SOFTWARE_TILE) for side in sides]
    each = [ceildiv(side, n) for side, n in zip(sides, tiles, strict=True)]  # that overlap the least
    if is_vector := _vectors(nest, columns, target):  # all lanes of a tile are stored, or none
        each[1] = cost.SOFTWARE_TILE if sides[1] % cost.SOFTWARE_TILE == 0 else cost.VECTOR
    others = prod(sint_max(r.src[0]) for r in loops if r not in (rows, columns))
    while (
        others * prod(ceildiv(side, n) for side, n in zip(sides, each, strict=True))
        < cost.SOFTWARE_INVOCATIONS
        and max(each) > cost.VECTOR
    ):
        each[each.index(max(each))] //= 2
    vectors = each[1] // cost.VECTOR if is_vector else 0
    count = [min(cost.SOFTWARE_SIDE, power(max(side // n, 1))) for side, n in zip(sides, each, strict=True)]
    for r in loops:
        yield opt_of(OptKind.GLOBAL, r)
    row, column = rows.arg.id, columns.arg.id
    yield _opt(OptKind.LOCAL, row, each[0] * count[0])
    if each[0] > 1:
        yield _opt(OptKind.UPCAST, (*row, 1), each[0])
    if vectors:
        yield _opt(OptKind.SIMD, column, cost.VECTOR, vectors)
        if sides[1] > each[1]:
            yield _opt(OptKind.LOCAL, (*column, 0), count[1])
        return
    yield _opt(OptKind.LOCAL, column, each[1] * count[1])
    if each[1] > 1:
        yield _opt(OptKind.UPCAST, (*column, 1), each[1])


def _total(kernel: UOp) -> UOp:
    return next(n for n in nodes_of(kernel) if n.op is Ops.REDUCE)


def _parts(total: UOp, sides: Sequence[int], invocations: int, limits: Workgroups) -> int:
    """How many parts of a product's sums the invocations of a workgroup divide."""
    terms = rounds(total.src[1:])
    parts = cost.MAX_SPLIT_K
    while parts > 1 and (
        terms < parts * cost.MIN_SPLIT_TERMS
        or invocations * parts > limits.invocations
        or parts > limits.sizes[2]
        or 2 * _part_bytes(total, sides, parts) > limits.shared_bytes
        or _longest(total, parts).src[0].arg % parts
    ):
        parts //= 2
    return parts


def _part_bytes(total: UOp, sides: Sequence[int], parts: int) -> int:
    return parts * prod(sides) * total.dtype.itemsize


def _longest(total: UOp, parts: int) -> UOp:
    """The reduced loop to divide: the longest that it divides evenly, if one is."""
    return max(total.src[1:], key=lambda r: (r.src[0].arg % parts == 0, r.src[0].arg, r.arg))


def operand_to_stage(total: UOp, staged: Sequence[AxisId], sides: Sequence[AxisId]) -> UOp | None:
    """An operand of a product that is read again by other rows or by other columns: a load from a buffer, and
    what is computed of it alone."""
    nodes = nodes_of(total.src[0])
    for load in nodes:
        if load.op is not Ops.LOAD or load.src[0].src[0].op is not Ops.PARAM:  # of a buffer
            continue
        ids = [r.arg.id for r in load.ranges]
        if all(any(id[: len(side)] == side for id in ids) for side in sides):
            continue
        if not any(id in staged for id in ids):
            continue
        value = load
        for node in nodes:
            if node.op in GroupOp.Elementwise and value in node.src and node.ranges <= load.ranges:
                value = node
        return value
    return None


# --- reductions


class _SharedReduction(NamedTuple):
    """A reduction that a workgroup may share: over the range `over`, along memory if `contiguous`."""

    total: UOp
    over: UOp
    contiguous: bool


def _describe_shared(total: Sum) -> _SharedReduction:
    max_rounds = max((rounds(n.ranges) for n in total.loads), default=0)
    strides: dict[UOp, int] = {}
    for n in total.loads:
        if rounds(n.ranges) == max_rounds:  # what most of the traffic is
            for r in total.loops:
                if step := abs(n.stride(r)):
                    strides[r] = min(step, strides.get(r, step))

    def rank(r: UOp) -> tuple[bool, int]:
        size = sint_max(r.src[0])
        return strides.get(r) == 1 and size >= cost.MIN_GROUP, size

    over = max(total.loops, key=rank)
    return _SharedReduction(total.node, over, strides.get(over) == 1)


def _outer_sums(nest: NestInfo) -> list[_SharedReduction]:
    """The reductions of a nest but for those that another computes in each of its rounds."""
    nested = {
        n
        for t in nest.sums
        for n in t.value.toposort()
        if n.op is Ops.REDUCE and not n.ranges.isdisjoint(t.loops)
    }
    return [_describe_shared(t) for t in nest.sums if t.node not in nested]


def _merged_sums(kernel: UOp, target: Target) -> Decisions:
    """Neighbouring loops of sums as one, which a workgroup shares as a whole."""
    while (nest := find_unbound_nest(kernel, target)) is not None:
        pairs = (pair for total in nest.sums for pair in itertools.pairwise(total.loops))
        constant = (p for p in pairs if all(r.src[0].is_const for r in p))
        pair_to_merge = next((pair for pair in constant if mergeable(nest.node, *pair)), None)
        if pair_to_merge is None or find_tiled_product(nest) is not None:
            return
        kernel = yield opt_of(OptKind.MERGE, *pair_to_merge)


def _sums(kernel: UOp, target: Target) -> Decisions:
    nest = find_unbound_nest(kernel, target)
    if nest is None or nest.is_ordered:
        return
    sums = _outer_sums(nest)
    sizes = [sint_max(s.over.src[0]) for s in sums]
    if not sums or min(sizes) < cost.MIN_GROUP:
        return
    around = frozenset[UOp]().union(*(s.total.ranges for s in sums))
    loops, limits = nest.parallel, limits_of(target)
    outputs = [r for r in loops if r in around]
    if limits.software and rounds(outputs) >= cost.SOFTWARE_INVOCATIONS:
        yield from _unshared_sums(nest, sums, outputs, target)
        return
    across = [r for r in loops if r not in around]
    contiguous = all(s.contiguous for s in sums)
    if not contiguous and not across and rounds(outputs) >= cost.MANY_SUMS:
        return
    row = across[-1] if across else None  # what each workgroup computes with its sums
    if row is not None and (not row.src[0].is_const or nest.is_in_place):
        return
    columns, count = _group(nest, sums, outputs, row, limits)
    if count < 2:
        return
    beside = outputs[-1] if columns > 1 else None
    vector = None
    if row is None and contiguous and len(sums) == 1:
        over = sums[0].over
        if _vectors(nest, over, target) and over.src[0].arg >= cost.VECTOR * count:
            vector = over
    for r in (*outputs, *across[:-1]):
        kernel = yield opt_of(OptKind.GLOBAL, r)
    if beside is not None:
        kernel = yield opt_of(OptKind.LOCAL, beside, numbers=(columns,))
    if row is not None and count > 1:
        kernel = yield opt_of(OptKind.LOCAL, row, numbers=(count,))
    if vector is not None:
        kernel = yield opt_of(OptKind.SIMD, vector, numbers=(cost.VECTOR, 1))
    for s in sums:
        id = (*s.over.arg.id, 0) if s.over is vector else s.over.arg.id
        kernel = yield _opt(OptKind.GROUP, id, count)


def _group(
    nest: NestInfo,
    sums: Sequence[_SharedReduction],
    outputs: Sequence[UOp],
    row: UOp | None,
    limits: Workgroups,
) -> tuple[int, int]:
    """Of how many output elements a workgroup has the sums, neighbours where memory goes along those, and how
    many invocations share each. Where a processor does a GPU's work each takes its time to wait, so there are
    few."""
    sizes = [sint_max(s.over.src[0]) for s in sums]
    along = row is not None or all(s.contiguous for s in sums)
    width = min(limits.invocations, cost.SOFTWARE_GROUP if limits.software else cost.INVOCATIONS)
    count = power(min(max(max(sizes) // cost.GROUP_TERMS, cost.MIN_GROUP), min(sizes)))
    if row is not None:
        count = min(count, power(row.src[0].arg))
    columns = 1
    if outputs and outputs[-1].src[0].is_const and not nest.is_in_place:
        if along:
            max_columns = min(rounds(outputs) // cost.MANY_WORKGROUPS, width // min(count, width))
        else:
            max_columns = cost.SOFTWARE_COLUMNS if limits.software else cost.GROUP_COLUMNS
        columns = power(max(min(max_columns, outputs[-1].src[0].arg, limits.sizes[1]), 1))
    count = min(count, width // columns)
    if columns > 1 or row is not None:  # in two dimensions
        count = min(count, power(limits.sizes[1]))
    return columns, count


def _unshared_sums(
    nest: NestInfo, sums: Sequence[_SharedReduction], outputs: Sequence[UOp], target: Target
) -> Decisions:
    """Every sum, and the row that is computed of it, by one invocation: where a processor does a GPU's work a
    barrier switches between all that wait at it, which takes longer than adding. An invocation has the sums
    of four neighbours where memory goes along them; else it takes in vectors what it goes along itself."""
    last = outputs[-1]
    id, size = last.arg.id, last.src[0]
    enough = rounds(outputs) >= cost.SOFTWARE_INVOCATIONS * cost.VECTOR
    beside = enough and not nest.is_in_place and _vectors(nest, last, target)
    along = [] if beside else [r for r in _rows(nest, sums, outputs) if _vectors(nest, r, target)]
    for r in outputs:
        yield opt_of(OptKind.GLOBAL, r)
    if beside:
        yield opt_of(OptKind.SIMD, last, numbers=(cost.VECTOR, 1))
        id, size = (*id, 0), UOp.index(size.arg // cost.VECTOR)
    count = power(min(cost.SOFTWARE_SIDE**2, sint_max(size)))
    if count > 1 and size.is_const:
        yield _opt(OptKind.LOCAL, id, count)
    for r in along:
        yield opt_of(OptKind.SIMD, r, numbers=(cost.VECTOR, 1))


def _rows(nest: NestInfo, sums: Sequence[_SharedReduction], outputs: Sequence[UOp]) -> list[UOp]:
    """What an invocation that has a row goes along: the loops of its sums, and of what is made of these."""
    across = [r for r in nest.parallel if r not in outputs]
    return [*dict.fromkeys([*(s.over for s in sums if s.contiguous), *across[-1:]])]


def workgroups_of_sum(nest: NestInfo, total: Sum, tile: tuple[int, int] | None) -> tuple[int, int]:
    """How many workgroups the only sum of a nest has, about, and how many terms each part of it should have
    that has as many. `tile`: rows and columns that a workgroup computes of a product, if that is known."""
    outputs = rounds(total.outer)
    if (product := find_tiled_product(nest)) is not None:
        sides = [r.src[0].arg for r in (product.rows, product.columns)]
        tile = tile or (cost.MAX_PRODUCT_TILE, cost.MAX_PRODUCT_TILE)
        tiles = outputs // prod(sides) * prod(map(ceildiv, sides, tile))
        return int(tiles), cost.MIN_PART_TERMS
    if _describe_shared(total).contiguous:
        return outputs, cost.MIN_PART_ROW
    each = cost.INVOCATIONS if outputs >= cost.MANY_SUMS else cost.GROUP_COLUMNS
    return ceildiv(outputs, each), cost.MIN_PART_TERMS


# --- everything else


def _flat(kernel: UOp, target: Target) -> Decisions:
    nest = find_unbound_nest(kernel, target)
    if nest is None or not nest.parallel:
        return
    write, in_place = nest.write, nest.is_in_place
    loops = sorted(nest.parallel, key=lambda r: abs(write.stride(r)) or 1 << 62)  # along memory first
    vector = loops[0] if write.stride(loops[0]) == 1 and _vectors(nest, loops[0], target) else None
    if nest.is_ordered or rounds(loops) < cost.VECTOR * cost.INVOCATIONS:
        vector = None
    for r in nest.parallel:
        kernel = yield opt_of(OptKind.GLOBAL, r)
    limits = limits_of(target)
    many = rounds(loops) >= cost.BLOCK * cost.INVOCATIONS * cost.MIN_WORKGROUPS
    if vector is None and not nest.is_ordered and not in_place:
        if (other := _read_along(nest, loops[0])) is not None:
            yield from _blocks(nest, loops[0], other, limits)
            return
        if many and write.stride(loops[0]) == 1 and _vectors(nest, loops[0], target, gathered=True):
            vector = loops[0]
        elif many and (rows := _rows_beside(loops)) is not None:
            loops.remove(rows)
            kernel = yield opt_of(OptKind.LOCAL, rows, numbers=(cost.BLOCK,))
            kernel = yield _opt(OptKind.UPCAST, (*rows.arg.id, 1), cost.BLOCK)
    if vector is not None:
        kernel = yield opt_of(OptKind.SIMD, vector, numbers=(cost.VECTOR, 1))
    room = min(cost.INVOCATIONS, limits.invocations)
    for r, limit in zip(loops, limits.sizes, strict=False):
        id, size = r.arg.id, r.src[0]
        if r is vector:
            id, size = (*id, 0), UOp.index(size.arg // cost.VECTOR)
        count = _invocations(size, min(room, limit), in_place)
        if count > 1:
            kernel = yield _opt(OptKind.LOCAL, id, count)
            room //= count


def _rows_beside(loops: Sequence[UOp]) -> UOp | None:
    """The loop of which an invocation may have several elements: those along memory are its neighbours'."""
    fits = (r for r in loops[1:] if r.src[0].is_const and r.src[0].arg >= cost.BLOCK)
    return next(fits, None)


def _read_along(nest: NestInfo, written: UOp) -> UOp | None:
    """The loop along which a nest reads memory that it writes along another: a transpose, of some length."""
    loops = frozenset(nest.parallel)
    if nest.sums:
        return None
    along = {r for n in nest.loads if n.ranges >= loops for r in loops if abs(n.stride(r)) == 1}
    long = all(r.src[0].is_const and r.src[0].arg >= cost.MIN_BLOCK_SIDE for r in (*along, written))
    return next(iter(along)) if long and len(along) == 1 and written not in along else None


def _blocks(nest: NestInfo, written: UOp, read: UOp, limits: Workgroups) -> Decisions:
    """A block of both axes to each invocation: what it reads are neighbours, and what it writes."""
    enough = rounds(nest.parallel) // (cost.BLOCK**2 * cost.MIN_WORKGROUPS)  # for so many workgroups
    room = min(cost.INVOCATIONS, limits.invocations, max(enough, cost.BLOCKS))
    for r, limit in zip((written, read), limits.sizes, strict=False):
        count = min(power(r.src[0].arg // cost.BLOCK), cost.BLOCKS, power(room), limit)
        yield opt_of(OptKind.LOCAL, r, numbers=(count * cost.BLOCK,))
        yield _opt(OptKind.UPCAST, (*r.arg.id, 1), cost.BLOCK)
        room //= count


def _invocations(size: UOp, limit: int, in_place: bool) -> int:
    """How many invocations go along a loop."""
    if not size.is_const:
        return 1 if in_place else min(limit, power(max(sint_max(size), 1)))
    if size.arg <= limit:
        return int(size.arg)
    if in_place:
        return next(n for n in range(limit, 0, -1) if size.arg % n == 0)
    return limit


# --- what invocations go round


def _unrolled(kernel: UOp, target: Target) -> Decisions:
    """Short loops of sums whole, of longer ones some rounds at a time: the loads of one need not wait for
    those of another, and a round costs more than what is added in it."""
    while (loop := _to_unroll(kernel)) is not None:
        r, count = loop
        kernel = yield opt_of(OptKind.UNROLL, r, numbers=(count,))


def _to_unroll(kernel: UOp) -> tuple[UOp, int] | None:
    """The innermost loop of a sum whose rounds are short, and how many of them make one."""
    order = nodes_of(kernel)
    if any(n.op in (Ops.WMMA, Ops.STAGE) for n in order):  # a product, whose rounds are long
        return None
    fixed = frozenset[UOp]().union(*(n.ranges - {n} for n in order if n.op is Ops.RANGE))
    for total in order:
        loops = [r for r in total.src[1:] if r.arg.kind is AxisKind.REDUCE] if total.op is Ops.REDUCE else []
        if not loops or not (r := loops[-1]).src[0].is_const or r in fixed:
            continue
        nodes = [n for n in nodes_of(total.src[0]) if r in n.ranges]
        tile = [q.src[0].arg for q in total.src[0].ranges if is_tile(q)]
        sibling = (*r.arg.id[:-1], 1)  # where this loop is what is left of one, its rounds
        of_rounds = any(q.arg.id == sibling and q.arg.kind is AxisKind.UNROLL for q in total.src[1:])
        if of_rounds or prod(tile) >= cost.LONG_ROUND or any(n.op is Ops.REDUCE for n in nodes):
            continue
        size = r.src[0].arg
        work = prod(tile) * (1 + sum(cost.run_cost(n.op) for n in nodes if cost.is_counted(n)))
        if size <= cost.SHORT_LOOP and size * work <= cost.UNROLLED:
            return r, size
        is_short = cost.ROUNDS * work <= cost.UNROLLED and 2 * prod(tile) <= cost.LONG_ROUND
        if is_short and size >= cost.ROUNDS:
            return r, next((n for n in (4, 3, 5) if size % n == 0), cost.ROUNDS)
    return None


WORKGROUP_DECISIONS: tuple[Decide, ...] = (_products, _merged_sums, _sums, _flat, _unrolled)
