"""Where values go in ascending rows: a binary search of all of them at once.

Of each value two bounds are kept, in the halves of an int64. A step looks at the element between them, and is
a kernel that all steps share. In short rows, elements are compared with all values.

All functions are of nodes, and go along the last axis.
"""

from __future__ import annotations

from polygrad.dtype import dtypes
from polygrad.tensor.core.sorting_network import taken
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.shapes import sint_max

MAX_COMPARED = 64  # elements of a row that are compared with each value


def places(rows: UOp, values: UOp, right: bool) -> UOp:
    """How many elements of each row are less than a value, or, `right`, not greater (int32). NaN is the
    greatest. `rows`: (..., n); `values`: (..., m) of the same axes before."""
    n = rows.shape[-1]
    if sint_max(n) <= MAX_COMPARED:
        shape = (*values.shape, n)
        spread = rows.reshape((*rows.shape[:-1], 1, n)).expand(shape)
        value = values.reshape((*values.shape, 1)).expand(shape)
        before = _goes_before(spread, value, right).cast(dtypes.int32)
        return before.reduce_axis(Ops.ADD, (len(shape) - 1,)).reshape(values.shape)
    state = UOp.index(n).cast(dtypes.int64).reshape((1,) * values.ndim).expand(values.shape).contiguous()
    for _ in range(sint_max(n).bit_length()):
        low, high = (state >> 32).cast(dtypes.int32), (state & 0xFFFFFFFF).cast(dtypes.int32)
        middle = (low + high) >> 1
        later = (low < high) & _goes_before(taken(rows, middle), values, right)
        low, high = later.where(middle + 1, low), later.where(high, middle)
        state = ((low.cast(dtypes.int64) << 32) | high.cast(dtypes.int64)).contiguous()
    return (state >> 32).cast(dtypes.int32)


def _goes_before(element: UOp, value: UOp, right: bool) -> UOp:
    """Whether an element stands before the place of a value."""
    return _less(value, element).logical_not() if right else _less(element, value)


def _less(a: UOp, b: UOp) -> UOp:
    return a < b if not a.dtype.is_float else (a < b) | (b.ne(b) & a.eq(a))
