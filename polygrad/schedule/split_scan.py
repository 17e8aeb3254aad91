"""Long running values of few rows, in parts (reduce, then scan).

    scan(x[i] for i < n)  ->  total[p] = the part p of x combined; start = scan(total), shifted by one;
                              scan(x[p*n/parts + i] for i < n/parts), from start[p] on

One running value waits for the one before it: parts go side by side, in lanes or threads. How many there are
depends on the sizes alone, so the result does not depend on the number of threads, by the bit.
"""

from __future__ import annotations

from polygrad.dtype import dtypes
from polygrad.helpers import ceildiv, prod
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

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

    def along(lo: int, hi: int) -> tuple[tuple[int, int], ...]:
        return (*((0, 0) for _ in outer), (lo, hi), *((0, 0) for _ in inner))

    whole = x.pad(along(0, parts * size - n)) if parts * size > n else x  # no value goes back from there
    blocks = whole.reshape((*outer, parts, size, *inner))
    first = initial.shrink((*((0, m) for m in outer), (0, 1), *((0, m) for m in inner)))
    totals = blocks.reduce_axis(op, (axis + 1,)).contiguous().reshape((*outer, parts, *inner))
    through = totals.scan_axis(op, axis, first.expand((*outer, parts, *inner)))  # each part's end
    number = UOp(Ops.ARANGE, dtypes.int32, (), parts).reshape(
        tuple(parts if i == axis else 1 for i in range(x.ndim))
    )
    at_first = UOp(Ops.CMPLT, dtypes.bool, (number, UOp.const(dtypes.int32, 1))).expand(totals.shape)
    shifted = through.pad(along(1, 0)).shrink(
        (*((0, m) for m in outer), (0, parts), *((0, m) for m in inner))
    )
    start = UOp(Ops.WHERE, node.dtype, (at_first, first.expand(totals.shape), shifted))
    starts = start.reshape((*outer, parts, 1, *inner)).expand(blocks.shape)
    out = blocks.scan_axis(op, axis + 1, starts).reshape(whole.shape)
    return (
        out.shrink((*((0, m) for m in outer), (0, n), *((0, m) for m in inner))) if parts * size > n else out
    )
