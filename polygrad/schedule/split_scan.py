"""Long running values of few rows, in parts (reduce, then scan).

    scan(x[i] for i < n)  ->  total[p] = the part p of x combined; start = scan(total), shifted by one;
                              scan(x[p*n/parts + i] for i < n/parts), from start[p] on

Each running value waits for the one before it, so parts run side by side, in lanes or threads. The number of
parts depends on the sizes and the kind of machine alone, so results have the same bits for any number of
threads. Products of floats and linear recurrences stay whole: the product of a part may leave the range of
its dtype where running values do not (a 0 before a part whose product is infinite would become NaN).
"""

from __future__ import annotations

from typing import NamedTuple

from polygrad.helpers import ceildiv, prod
from polygrad.uop.axes import arange_axis, pad_axis, shrink_axis
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


class SideBySide(NamedTuple):
    """How a machine divides running values: into `rows` that run side by side, of at least `least` elements
    each."""

    rows: int
    least: int


CORES = SideBySide(64, 1024)
GPU = SideBySide(4096, 128)


def split_scans(sink: UOp, target: SideBySide) -> UOp:
    """The graph with its long SCAN_AXIS nodes in parts."""
    new: dict[UOp, UOp] = {}
    for node in sink.toposort():
        changed = node.over(tuple([new[s] for s in node.src]))
        new[node] = changed if node.op is not Ops.SCAN_AXIS else split_scan(changed, target) or changed
    return new[sink]


def split_scan(node: UOp, target: SideBySide) -> UOp | None:
    """A SCAN_AXIS in parts; None to leave it as it is.

    SCAN_AXIS(x: (n,), initial)

    ->  blocks = x as (parts, n / parts);  total = REDUCE_AXIS(blocks, axis 1);
        start = SCAN_AXIS(total), shifted by one;  SCAN_AXIS(blocks, start, axis 1) as (n,)
    """
    (x, initial, *factor), (op, (axis,)) = node.src, node.arg
    leaves_range = op is Ops.MUL and x.dtype.is_float
    if factor or leaves_range or not all(isinstance(n, int) for n in x.shape):
        return None
    n = x.shape[axis]
    rows = prod(x.shape) // max(n, 1)
    parts = min(ceildiv(target.rows, max(rows, 1)), n // target.least)
    if rows >= target.rows or parts < 2:
        return None
    size = ceildiv(n, parts)
    if not initial.shape:  # a constant
        initial = initial.reshape((1,) * x.ndim).expand(x.shape)

    outer, inner = x.shape[:axis], x.shape[axis + 1 :]
    whole = pad_axis(x, axis, 0, parts * size - n)  # the result leaves out the padding
    blocks = whole.reshape((*outer, parts, size, *inner))
    first = shrink_axis(initial, axis, 0, 1)
    totals = blocks.reduce_axis(op, (axis + 1,)).contiguous().reshape((*outer, parts, *inner))
    through = totals.scan_axis(op, axis, first.expand(totals.shape))  # each part's end
    through = split_scan(through, target) or through
    shifted = shrink_axis(pad_axis(through, axis, 1, 0), axis, 0, parts)
    start = (arange_axis(totals.shape, axis) < 1).where(first.expand(totals.shape), shifted)
    starts = start.reshape((*outer, parts, 1, *inner)).expand(blocks.shape)
    return shrink_axis(blocks.scan_axis(op, axis + 1, starts).reshape(whole.shape), axis, 0, n)
