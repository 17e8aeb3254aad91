"""Sums of columns, a block of rows at a time (TVM calls the step rfactor).

    sum(x[k, c] for k < K)  ->  part[b, c] = sum(x[64*b + k, c] for k < 64);  sum(part[b, c] for b < K / 64)

A sum of columns goes through them a few at a time, and each time from row to row. Where pages are small, the
processor has the addresses of few at hand: those of a block of rows stay for all of its columns. `part` is
computed by a kernel of its own, before; rows beyond the last block are summed up beside it.
"""

from __future__ import annotations

from typing import NamedTuple

from polygrad.codegen import cost
from polygrad.codegen.target import Target
from polygrad.helpers import prod
from polygrad.schedule.index_maps import flat_index
from polygrad.uop.args import Axis, AxisKind, Param
from polygrad.uop.linear import linear_terms
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


class Partials(NamedTuple):
    """A reduction in terms of those of blocks: `value` for all of `loops`, outermost first, which `total`
    reads from memory."""

    total: UOp
    value: UOp
    loops: tuple[UOp, ...]


def rfactor(total: UOp, slot: int, target: Target) -> Partials | None:
    """The reduction `total` in blocks of rows, if that pays; `slot`: the number of their memory's PARAM."""
    if not target.pages or len(total.src) != 2:
        return None
    k = total.src[1]
    columns, nbytes = _columns(total, k)
    rows = target.pages * max(target.page // nbytes, 1)
    if not columns or k.src[0].arg < cost.MIN_ROW_BLOCKS * rows:
        return None
    count, rest = divmod(k.src[0].arg, rows)
    depth = len(columns) + 1
    blocks = UOp.range(count, Axis((0,), AxisKind.LOOP))
    loops = [UOp.range(c.src[0].arg, Axis((i,), AxisKind.LOOP)) for i, c in enumerate(columns, 1)]
    row = UOp.range(rows, Axis((depth,), AxisKind.REDUCE))
    at = {k: blocks * rows + row, **dict(zip(columns, loops, strict=True))}
    part = UOp(Ops.REDUCE, total.dtype, (total.src[0].substitute(at), row), total.arg)
    block = UOp.range(count, k.arg.child(0))
    sizes = (count, *(c.src[0].arg for c in columns))
    memory = UOp(Ops.PARAM, total.dtype, (), Param(slot, int(prod(sizes))))
    index = UOp(Ops.INDEX, total.dtype, (memory, flat_index(sizes, (block, *columns))))
    out = UOp(Ops.REDUCE, total.dtype, (UOp(Ops.LOAD, total.dtype, (index,)), block), total.arg)
    if rest:
        last = UOp.range(rest, k.arg.child(1))
        beyond = total.src[0].substitute({k: last + count * rows})
        out = UOp(total.arg, total.dtype, (out, UOp(Ops.REDUCE, total.dtype, (beyond, last), total.arg)))
    return Partials(out, part, (blocks, *loops))


def _columns(total: UOp, k: UOp) -> tuple[list[UOp], int]:
    """The loops that a reduction is inside of, outermost first, if it reads something once, row by row; and
    how many bytes a row is."""
    value = total.src[0]
    for load in value.toposort():
        if load.op is not Ops.LOAD or load.ranges != value.ranges:
            continue
        terms, _ = linear_terms(load.src[0].src[1])
        if terms.keys() != load.ranges or 1 not in terms.values():
            continue
        nbytes = abs(terms[k]) * load.dtype.itemsize
        if nbytes >= cost.MIN_FAR_ROW:
            return sorted(load.ranges - {k}, key=lambda r: -abs(terms[r])), nbytes
    return [], 1
