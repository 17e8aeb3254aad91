"""Long running values of few rows, in parts (reduce, then scan).

    scan(x[i] for i < n)  ->  total[p] = the part p of x combined; start = scan(total), shifted by one;
                              scan(x[p*n/parts + i] for i < n/parts), from start[p] on

One running value waits for the one before it: parts go side by side, in lanes or threads. How many there are
depends on the sizes alone, so the result does not depend on the number of threads, by the bit.
"""

from __future__ import annotations

from polygrad.helpers import ceildiv, prod
from polygrad.uop.axes import arange_axis, pad_axis, shrink_axis
from polygrad.uop.node import UOp

_MIN_PART = 1024  # elements
_MIN_ROWS = 64  # that are enough to go side by side


def split_scan(node: UOp) -> UOp | None:
    """A SCAN_AXIS in parts; None to leave it as it is."""
    (x, initial, *factor), (op, (axis,)) = node.src, node.arg
    if factor or not all(isinstance(n, int) for n in x.shape):
        return None
    n = x.shape[axis]
    rows = prod(x.shape) // max(n, 1)
    parts = min(ceildiv(_MIN_ROWS, max(rows, 1)), n // _MIN_PART)
    if rows >= _MIN_ROWS or parts < 2:
        return None
    size = ceildiv(n, parts)
    outer, inner = x.shape[:axis], x.shape[axis + 1 :]
    if not initial.shape:  # a constant
        initial = initial.reshape((1,) * x.ndim).expand(x.shape)

    whole = pad_axis(x, axis, 0, parts * size - n)  # no value comes back from there
    blocks = whole.reshape((*outer, parts, size, *inner))
    first = shrink_axis(initial, axis, 0, 1)
    totals = blocks.reduce_axis(op, (axis + 1,)).contiguous().reshape((*outer, parts, *inner))
    through = totals.scan_axis(op, axis, first.expand((*outer, parts, *inner)))  # each part's end
    shifted = shrink_axis(pad_axis(through, axis, 1, 0), axis, 0, parts)
    is_first = arange_axis(totals.shape, axis) < 1
    start = is_first.where(first.expand(totals.shape), shifted)
    starts = start.reshape((*outer, parts, 1, *inner)).expand(blocks.shape)
    return shrink_axis(blocks.scan_axis(op, axis + 1, starts).reshape(whole.shape), axis, 0, n)
