"""searchsorted: the positions of values in ascending rows, by a binary search for all values at once.

Each value has two bounds, in the halves of an int64. A step compares it with the element between them; all
steps share one kernel. In short rows, every element is compared with every value.

All functions take nodes, and work along the last axis.
"""

from __future__ import annotations

from polygrad.dtype import dtypes
from polygrad.tensor.core.sorting_network import take
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.shapes import sint_max

MAX_COMPARED = 64  # elements of a row that are compared with each value


def places(rows: UOp, values: UOp, right: bool) -> UOp:
    """The number of elements of each row (int32) that are less than a value, or, if `right`, not greater. NaN
    is the greatest. `rows`: (..., n); `values`: (..., m), with the same leading axes."""
    n = rows.shape[-1]
    if sint_max(n) <= MAX_COMPARED:
        shape = (*values.shape, n)
        spread_rows = rows.reshape((*rows.shape[:-1], 1, n)).expand(shape)
        value = values.reshape((*values.shape, 1)).expand(shape)
        before = _goes_before(spread_rows, value, right).cast(dtypes.int32)
        return before.reduce_axis(Ops.ADD, (len(shape) - 1,)).reshape(values.shape)
    state = UOp.index(n).cast(dtypes.int64).reshape((1,) * values.ndim).expand(values.shape).contiguous()
    for _ in range(sint_max(n).bit_length()):
        low, high = (state >> 32).cast(dtypes.int32), (state & 0xFFFFFFFF).cast(dtypes.int32)
        middle = (low + high) >> 1
        later = (low < high) & _goes_before(take(rows, middle), values, right)
        low, high = later.where(middle + 1, low), later.where(high, middle)
        state = ((low.cast(dtypes.int64) << 32) | high.cast(dtypes.int64)).contiguous()
    return (state >> 32).cast(dtypes.int32)


def _goes_before(element: UOp, value: UOp, right: bool) -> UOp:
    """Whether an element comes before the insert position of a value."""
    return _less(value, element).logical_not() if right else _less(element, value)


def _less(a: UOp, b: UOp) -> UOp:
    return a < b if not a.dtype.is_float else (a < b) | (b.ne(b) & a.eq(a))
