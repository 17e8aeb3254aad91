"""Staging: an operand of a reduction copied, tile by tile, into a buffer of the kernel's own, in the order it
is read.

A matrix product reads the same panel of one operand for every row tile. Where that panel is scattered over
memory (a long stride from one reduced element to the next, or SIMD lanes that are not neighbours), the kernel
copies it once, then reads it in sequence:

    for column tile:
        for k: panel[k, :] = b[k, columns]
        for row tile: sums over k of a[rows, k] * panel[k, :]

Column tiles become the outer loop, so that the panel stays in the cache while the rows go by; where the rows
are more than a cache holds, several column tiles at a time, so that fewer go by.
"""

from __future__ import annotations

from polygrad.codegen.split import substituted
from polygrad.codegen.tile import is_tile
from polygrad.dtype import dtypes
from polygrad.helpers import prod
from polygrad.schedule.index_maps import flat_index
from polygrad.uop.linear import linear_terms
from polygrad.uop.node import Axis, AxisKind, Param, UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.scopes import Scopes, scopes

LOCAL_SLOT = 1 << 16  # PARAMs from this slot on are memory of the kernel's own, which nobody binds

_MIN_ROW_TILES = 16  # how often a panel must be read to be worth copying
_MIN_GATHERED_ROW_TILES = 40  # and where the copy goes lane by lane
_MIN_SPREAD = 256 << 10  # bytes that a panel is scattered over
_MAX_PANEL = 1 << 20  # bytes; half of a second-level cache
_MIN_ROWS_BYTES = 2 << 20  # of the rows for column tiles to go several at a time
_MAX_BLOCK, _MIN_BLOCKS = 512 << 10, 16  # bytes of their panels; how many blocks, for threads to share


def stage_operands(sink: UOp) -> UOp:
    """Stage what is worth it in every output nest of a tiled kernel."""
    slot = free_slot(sink)
    return UOp.sink(*(_stage_operand(n, slot + i) if n.op is Ops.END else n for i, n in enumerate(sink.src)))


def free_slot(sink: UOp) -> int:
    """The first slot from which on a kernel has no memory of its own yet."""
    return max(LOCAL_SLOT, 1 + max((n.arg.slot for n in sink.toposort() if n.op is Ops.PARAM), default=0))


def _stage_operand(nest: UOp, slot: int) -> UOp:
    order = nest.toposort()
    scope = scopes(order)
    reduces = [n for n in order if n.op is Ops.REDUCE]
    if len(reduces) != 1:
        return nest
    ks = sorted(reduces[0].src[1:], key=lambda r: int(r.arg.id))
    if any(is_tile(k) or not k.src[0].is_const for k in ks):
        return nest
    summed = scope.mask_of(ks)
    inside = reduces[0].src[0].toposort()
    for load in inside:
        if load.op is not Ops.LOAD or len(load.src[0].src) != 2 or scope.mask[load] & summed != summed:
            continue
        rows = [r for r in nest.src[1:] if not scope.mask[load] & scope.bit[r]]
        tile = [r for r in scope.of(load) if is_tile(r)]
        if rows and tile and _is_worth_it(load, rows, tile, ks, scope):
            operand = _operand(load, inside, scope)
            beside = scope.mask_of(r for n in inside if _is_beside(n, operand) for r in scope.of(n))
            block = _column_block(nest, load, rows, tile, ks, beside, scope)
            if block is None:
                return _staged(nest, operand, load, rows, tile, ks, None, slot)
            column, outer, inner = block
            new = {column: outer * inner.src[0].arg + inner}
            loops = [x for r in nest.src[1:] for x in ((outer, inner) if r is column else (r,))]
            nest = UOp(Ops.END, dtypes.void, (substituted(nest.src[0], new), *loops))
            operand, load = substituted(operand, new), substituted(load, new)
            return _staged(nest, operand, load, rows, tile, ks, inner, slot)
    return nest


def _is_beside(node: UOp, operand: UOp) -> bool:
    return node.op is Ops.LOAD and node not in operand.toposort()


def _column_block(
    nest: UOp, load: UOp, rows: list[UOp], tile: list[UOp], ks: list[UOp], beside: int, scope: Scopes
) -> tuple[UOp, UOp, UOp] | None:
    """A loop over column tiles that what is `beside` the operand does not depend on, and the two loops that
    replace it: over blocks, and over the tiles of one."""
    columns = [r for r in nest.src[1:] if r not in rows and r.src[0].is_const and not scope.bit[r] & beside]
    other = [r for r in scope.of(nest.src[0].src[0]) if is_tile(r) and r not in tile]  # a tile's rows
    depth, item = int(prod(k.src[0].arg for k in ks)), load.dtype.itemsize
    if not columns or prod(r.src[0].arg for r in (*rows, *other)) * depth * item < _MIN_ROWS_BYTES:
        return None
    column = max(columns, key=lambda r: int(r.arg.id))
    most = _MAX_BLOCK // (int(prod(r.src[0].arg for r in tile)) * depth * item)
    size = column.src[0].arg
    fits = [d for d in range(2, min(8, most, size // _MIN_BLOCKS) + 1) if size % d == 0]
    if not fits:
        return None
    count = fits[-1]
    first = 1 + max(int(r.arg.id) for r in scope.ranges)
    return column, UOp.range(size // count, column.arg.id), UOp.range(count, first)


def _operand(load: UOp, inside: list[UOp], scope: Scopes) -> UOp:
    """The longest expression of a load that depends on no other loop or tile: it is computed once, too."""
    out = load
    for node in inside:
        if node.op in GroupOp.Elementwise and out in node.src and not scope.mask[node] & ~scope.mask[load]:
            out = node
    return out


def _is_worth_it(load: UOp, rows: list[UOp], tile: list[UOp], ks: list[UOp], scope: Scopes) -> bool:
    if not all(r.src[0].is_const for r in rows):
        return False
    row_tiles = int(prod(r.src[0].arg for r in rows))
    terms, _ = linear_terms(load.src[0].src[1])
    size, item = int(prod(k.src[0].arg for k in ks)), load.dtype.itemsize
    if not any(r.arg.kind is AxisKind.LANE for r in tile):
        return False
    if any(scope.mask[a] & scope.mask_of(tile) and a not in tile for a in terms):
        return False
    if prod(r.src[0].arg for r in tile) * size * item > _MAX_PANEL:
        return False
    if any(terms.get(r) != 1 for r in tile if r.arg.kind is AxisKind.LANE):
        return row_tiles >= _MIN_GATHERED_ROW_TILES
    return row_tiles >= _MIN_ROW_TILES and abs(terms.get(ks[-1], 0)) * size * item >= _MIN_SPREAD


def _staged(
    nest: UOp,
    operand: UOp,
    load: UOp,
    rows: list[UOp],
    tile: list[UOp],
    ks: list[UOp],
    block: UOp | None,
    slot: int,
) -> UOp:
    width = int(prod(r.src[0].arg for r in tile))
    outer = [*([block] if block is not None else []), *ks]
    sizes = [r.src[0].arg for r in outer]
    panel = UOp(Ops.PARAM, operand.dtype, (), Param(slot, width * int(prod(sizes))))
    first = 1 + max(n.arg.id for n in nest.toposort() if n.op is Ops.RANGE)
    copy = {r: UOp.range(r.src[0], first + i, r.arg.kind) for i, r in enumerate(tile)}
    copy.update({r: UOp.range(r.src[0], first + len(tile) + i) for i, r in enumerate(outer)})
    loops = [copy[r] for r in outer]
    if (across := _transposed(load, tile, ks)) is not None:
        lanes = next(r.src[0].arg for r in tile if r.arg.kind is AxisKind.LANE)
        inner = UOp.range(lanes, first + len(tile) + len(outer), AxisKind.UPCAST)
        blocks = UOp.range(across.src[0].arg // lanes, copy[across].arg.id)
        loops[outer.index(across)] = blocks
        copy[across] = blocks * lanes + inner

    def place(ranges: dict[UOp, UOp]) -> UOp:
        return place_in_tile(flat_index(tuple(sizes), tuple(ranges[r] for r in outer)) * width, tile, ranges)

    store = UOp(
        Ops.STORE,
        dtypes.void,
        (UOp(Ops.INDEX, operand.dtype, (panel, place(copy))), operand.substitute(copy)),
    )
    filled = UOp(Ops.AFTER, operand.dtype, (panel, UOp(Ops.END, dtypes.void, (store, *loops))))
    read = UOp(
        Ops.LOAD,
        operand.dtype,
        (UOp(Ops.INDEX, operand.dtype, (filled, place({r: r for r in (*tile, *outer)}))),),
    )
    return _rows_innermost(nest.substitute({operand: read}), rows, block)


def place_in_tile(start: UOp, tile: list[UOp], ranges: dict[UOp, UOp]) -> UOp:
    """Where an element of a tile that starts at `start` lies; lanes are neighbours."""
    step = 1
    for r in sorted(tile, key=lambda r: r.arg.kind is not AxisKind.LANE):
        start = start + (ranges[r] * step if step > 1 else ranges[r])
        step *= r.src[0].arg
    return start


def _transposed(load: UOp, tile: list[UOp], ks: list[UOp]) -> UOp | None:
    """The summed axis along which the operand's memory goes, when its lanes jump: copied in blocks, the
    emitter loads along it and transposes."""
    lanes = next(r for r in tile if r.arg.kind is AxisKind.LANE)
    terms, _ = linear_terms(load.src[0].src[1])
    if terms.get(lanes, 0) in (0, 1):
        return None
    return next((k for k in ks if terms.get(k) == 1 and k.src[0].arg % lanes.src[0].arg == 0), None)


def _rows_innermost(nest: UOp, rows: list[UOp], block: UOp | None) -> UOp:
    """Renumber the output loops so that `rows` run inside all others, but for those of a block."""
    loops = sorted(nest.src[1:], key=lambda r: (r is block, r in rows, r.arg.id))
    ids = sorted(r.arg.id for r in loops)
    return nest.substitute(
        {r: UOp(Ops.RANGE, r.dtype, r.src, Axis(i, r.arg.kind)) for r, i in zip(loops, ids, strict=True)}
    )
