"""Materialising a row of values that a kernel would compute twice: once to sum them up, once for its result.

    for each row: { sum of exp(x[k]) over k;                     for every c: out[c] = exp(x[c]) / sum }
    for each row: { every row[k] = exp(x[k]); sum of row[k];     for every c: out[c] = row[c] / sum }

where `row` is memory of the kernel's own, small enough for the nearest cache.
"""

from __future__ import annotations

from polygrad.codegen.stage import LOCAL_SLOT
from polygrad.dtype import dtypes
from polygrad.uop.node import Param, UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.scopes import scopes

_MIN_ROW, _MAX_ROW = 32, 8 << 10  # elements


def materialize_rows(sink: UOp) -> UOp:
    """Materialise one such row in every output nest of a kernel that is yet to be tiled."""
    return UOp.sink(*(_materialize(nest, LOCAL_SLOT + i) for i, nest in enumerate(sink.src)))


def _materialize(nest: UOp, slot: int) -> UOp:
    if nest.op is not Ops.END:
        return nest
    store, *loops = nest.src
    column = max(loops, key=lambda r: r.arg)
    order = store.src[1].toposort()
    everything = set(order)
    for total in order:
        if total.op is not Ops.REDUCE or len(total.src) != 2 or total.src[1].src != column.src:
            continue
        k = total.src[1]
        for value in reversed(total.src[0].toposort()):
            if not _is_expensive(value, k):
                continue
            recomputed = value.substitute({k: column})
            if recomputed in everything:
                return _with_row(nest, value, recomputed, k, column, slot)
    return nest


def _is_expensive(value: UOp, k: UOp) -> bool:
    """A transcendental of what `k` counts, if that is neither few nor too many."""
    if value.op not in GroupOp.Transcendental or not k.src[0].is_const:
        return False
    return _MIN_ROW <= k.src[0].arg <= _MAX_ROW and k in value.toposort()


def loops_around_rows(sink: UOp) -> set[UOp]:
    """The loops that a materialised row is inside of: untiled, for there is one row at a time."""
    order = sink.toposort()
    scope = scopes(order)
    out: set[UOp] = set()
    for n in order:
        if n.op is Ops.STORE and n.src[0].src[0].op is Ops.PARAM and n.src[0].src[0].arg.slot >= LOCAL_SLOT:
            inside = set(scope.of(n.src[0]))
            out.update(r for r in scope.of(n.src[1]) if r not in inside)
    return out


def _with_row(nest: UOp, value: UOp, recomputed: UOp, k: UOp, column: UOp, slot: int) -> UOp:
    row = UOp(Ops.PARAM, value.dtype, (), Param(slot, k.src[0].arg))
    at = UOp.range(k.src[0], 1 + max(int(n.arg.id) for n in nest.toposort() if n.op is Ops.RANGE))
    written = UOp(Ops.INDEX, value.dtype, (row, at))
    fill = UOp(Ops.END, dtypes.void, (UOp(Ops.STORE, dtypes.void, (written, value.substitute({k: at}))), at))
    filled = UOp(Ops.AFTER, value.dtype, (row, fill))

    def read(r: UOp) -> UOp:
        return UOp(Ops.LOAD, value.dtype, (UOp(Ops.INDEX, value.dtype, (filled, r)),))

    return nest.substitute({value: read(k), recomputed: read(column)})
