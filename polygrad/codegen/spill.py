"""Accumulator spill (TVM's cache_write): a register tile of sums goes to memory of the kernel's own before a
long epilogue, which becomes a loop over the rows of the tile.

    sums[row] of k ...;  out[row] = epilogue(sums[row]) for all rows at once, unrolled
    sums[row] of k ...;  tile[row] = sums[row];  for row: out[row] = epilogue(tile[row])

In registers, sums and temporaries at once would be more than there are, and compilers then keep sums in
memory all through the inner loop.
"""

from __future__ import annotations

from polygrad.codegen.stage import free_slot, place_in_tile
from polygrad.codegen.tile import is_tile
from polygrad.dtype import dtypes
from polygrad.helpers import prod
from polygrad.uop.node import AxisKind, Param, UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.scopes import scopes

_MIN_ROWS = 4  # of a tile
_MIN_EPILOGUE = 6  # operations on each sum


def spill_accumulators(sink: UOp) -> UOp:
    """Spill what is worth it in every output nest of a tiled kernel."""
    slot = free_slot(sink)
    return UOp.sink(*(_spill(n, slot + i) if n.op is Ops.END else n for i, n in enumerate(sink.src)))


def _spill(nest: UOp, slot: int) -> UOp:
    """A register tile with a long epilogue, in memory between the two."""
    order = nest.toposort()
    scope = scopes(order)
    reduces = [n for n in order if n.op is Ops.REDUCE]
    if len(reduces) != 1:
        return nest
    (total,) = reduces
    tile = [r for r in scope.of(nest.src[0].src[0]) if is_tile(r)]
    rows = max((r for r in tile if r.arg.kind is AxisKind.UPCAST), key=lambda r: r.src[0].arg, default=None)
    if rows is None or rows.src[0].arg < _MIN_ROWS or _epilogue(order, total) < _MIN_EPILOGUE:
        return nest
    memory = UOp(Ops.PARAM, total.dtype, (), Param(slot, int(prod(r.src[0].arg for r in tile))))
    first = 1 + max(n.arg.id for n in order if n.op is Ops.RANGE)
    copy = {r: UOp.range(r.src[0], first + i, r.arg.kind) for i, r in enumerate(tile)}
    copy[rows] = UOp.range(rows.src[0], copy[rows].arg.id)

    def at(pointer: UOp, ranges: dict[UOp, UOp]) -> UOp:
        return UOp(Ops.INDEX, total.dtype, (pointer, place_in_tile(UOp.index(0), tile, ranges)))

    store = UOp(Ops.STORE, dtypes.void, (at(memory, {r: r for r in tile}), total))
    filled = UOp(Ops.AFTER, total.dtype, (memory, store))
    result = nest.src[0].substitute({**copy, total: UOp(Ops.LOAD, total.dtype, (at(filled, copy),))})
    return UOp(Ops.END, dtypes.void, (result, *nest.src[1:], copy[rows]))


def _epilogue(order: list[UOp], total: UOp) -> int:
    """How many operations there are beside those summed up."""
    summed = set(total.toposort())
    return sum(n.op in GroupOp.ALU and n.dtype is not dtypes.index and n not in summed for n in order)
