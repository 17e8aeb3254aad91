"""Staging: an operand of a reduction copied, tile by tile, into a buffer of the kernel's own, in the order it
is read.

A matrix product reads the same panel of one operand for every row tile. Where that panel is scattered over
memory (a long stride from one reduced element to the next, or SIMD lanes that are not neighbours), the kernel
copies it once, then reads it in sequence:

    for column tile:  { for k: panel[k, :] = b[k, columns] }   for row tile: { sums over k of a[rows, k] *
    panel[k, :] }

Column tiles become the outer loop, so that the panel stays in the cache while the rows go by.
"""

from __future__ import annotations

from polygrad.codegen.tile import is_tile
from polygrad.dtype import dtypes
from polygrad.helpers import prod
from polygrad.schedule.movement import flat_index
from polygrad.uop.linear import linear_terms
from polygrad.uop.node import Axis, AxisKind, Param, UOp
from polygrad.uop.ops import Ops
from polygrad.uop.scopes import Scopes, scopes

LOCAL_SLOT = 1 << 16  # PARAMs from this slot on are memory of the kernel's own, which nobody binds

_MIN_ROW_TILES = 16  # how often a panel must be read to be worth copying
_MIN_GATHERED_ROW_TILES = 40  # and where the copy goes lane by lane
_MIN_SPREAD = 512 << 10  # bytes that a panel is scattered over
_MAX_PANEL = 1 << 20  # bytes; half of a second-level cache


def stage(sink: UOp) -> UOp:
    """Stage what is worth it in every output nest of an optimised kernel."""
    slots = LOCAL_SLOT
    nests = []
    for nest in sink.src:
        staged = _stage_nest(nest, slots) if nest.op is Ops.END else nest
        slots += staged is not nest
        nests.append(staged)
    return UOp.sink(*nests)


def _stage_nest(nest: UOp, slot: int) -> UOp:
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
            return _staged(nest, load, rows, tile, ks, slot)
    return nest


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


def _staged(nest: UOp, load: UOp, rows: list[UOp], tile: list[UOp], ks: list[UOp], slot: int) -> UOp:
    width = int(prod(r.src[0].arg for r in tile))
    sizes = [k.src[0].arg for k in ks]
    panel = UOp(Ops.PARAM, load.dtype, (), Param(slot, width * int(prod(sizes))))
    first = 1 + max(n.arg.id for n in nest.toposort() if n.op is Ops.RANGE)
    copy = {r: UOp.range(r.src[0], first + i, r.arg.kind) for i, r in enumerate(tile)}
    copy.update({k: UOp.range(k.src[0], first + len(tile) + i) for i, k in enumerate(ks)})
    loops = [copy[k] for k in ks]
    if (across := _transposed(load, tile, ks)) is not None:
        lanes = next(r.src[0].arg for r in tile if r.arg.kind is AxisKind.LANE)
        inner = UOp.range(lanes, first + len(tile) + len(ks), AxisKind.UPCAST)
        blocks = UOp.range(across.src[0].arg // lanes, copy[across].arg.id)
        loops[ks.index(across)] = blocks
        copy[across] = blocks * lanes + inner

    def place(ranges: dict[UOp, UOp]) -> UOp:
        at = flat_index(tuple(sizes), tuple(ranges[k] for k in ks)) * width
        step = 1
        for r in sorted(tile, key=lambda r: r.arg.kind is not AxisKind.LANE):  # lanes are neighbours
            at = at + (ranges[r] * step if step > 1 else ranges[r])
            step *= r.src[0].arg
        return at

    store = UOp(
        Ops.STORE, dtypes.void, (UOp(Ops.INDEX, load.dtype, (panel, place(copy))), load.substitute(copy))
    )
    filled = UOp(Ops.AFTER, load.dtype, (panel, UOp(Ops.END, dtypes.void, (store, *loops))))
    read = UOp(
        Ops.LOAD, load.dtype, (UOp(Ops.INDEX, load.dtype, (filled, place({r: r for r in (*tile, *ks)}))),)
    )
    return _rows_innermost(nest.substitute({load: read}), rows)


def _transposed(load: UOp, tile: list[UOp], ks: list[UOp]) -> UOp | None:
    """The summed axis along which the operand's memory goes, when its lanes jump: copied in blocks, the
    emitter loads along it and transposes."""
    lanes = next(r for r in tile if r.arg.kind is AxisKind.LANE)
    terms, _ = linear_terms(load.src[0].src[1])
    if terms.get(lanes, 0) in (0, 1):
        return None
    return next((k for k in ks if terms.get(k) == 1 and k.src[0].arg % lanes.src[0].arg == 0), None)


def _rows_innermost(nest: UOp, rows: list[UOp]) -> UOp:
    """Renumber the output loops so that `rows` run inside all others."""
    loops = sorted(nest.src[1:], key=lambda r: (r in rows, r.arg.id))
    ids = sorted(r.arg.id for r in loops)
    return nest.substitute(
        {r: UOp(Ops.RANGE, r.dtype, r.src, Axis(i, r.arg.kind)) for r, i in zip(loops, ids, strict=True)}
    )
