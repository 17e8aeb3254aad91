"""The positions that sort an axis: a bitonic network over keys (Batcher, 1968).

A key is an int64: the upper half is an integer in the order of the elements, the lower half the position. So
no two keys are equal, the sort is stable, and NaN comes after every number, as in numpy and torch. A step of
the network compares all keys with their counterparts: log2(n) * (log2(n) + 1) / 2 kernels, which are
vectorised and threaded. In short rows the rank of an element is counted: the number of lesser keys. Long rows
are sorted by their digits (`radix_sort.py`) where the device goes through loops in order (`in_order`).

All functions take nodes, and work along the last axis.
"""

from __future__ import annotations

import math

from polygrad.dtype import dtypes
from polygrad.tensor.core import radix_sort
from polygrad.uop.axes import arange_axis, pad_axis, shrink_axis
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.shapes import Sint, max_numel, sint_max

MAX_RANKED = 32  # up to this row length, ranks are counted
MAX_NETWORK = 1024  # above this row length, digits are less work than a network;
MAX_CACHED_NETWORK = 256  # also above this one, where there are
MAX_CACHED_KEYS = 1 << 16  # more keys than this in all rows, for which a network goes through memory
MAX_PICKED = 32  # up to this k, the greatest elements are selected one by one; above it, sorting is less work
MIN_BLOCKS_FOR = 512  # from this row length on, the greatest elements are searched for in blocks
MAX_BLOCK = 64  # elements of a block
_NAN = 0x7FC00000, 0x7FF8000000000000


def argsort(x: UOp, descending: bool, in_order: bool) -> UOp:
    """The positions (int32) that sort `x`, stably."""
    order = _order_preserving_ints(x, descending)
    if order.dtype is dtypes.int32:
        return _argsort_int32(order, in_order)
    low = order.cast(dtypes.int32) ^ dtypes.int32.min
    lower = _argsort_int32(low, in_order)  # by the lower half (unsigned),
    upper = take((order >> 32).cast(dtypes.int32), lower)
    return take(lower, _argsort_int32(upper, in_order))  # and then, stably, by the upper


def greatest(x: UOp, k: Sint, largest: bool, in_order: bool) -> UOp:
    """The positions (int32) of the `k` greatest (or least) elements of `x`, in order. Of equal elements the
    first counts as greater."""
    order = _order_preserving_ints(x, not largest)
    if order.dtype is dtypes.int32 and isinstance(k, int):
        return _greatest(order, k, in_order)
    return shrink_axis(argsort(x, largest, in_order), x.ndim - 1, 0, k)


def _greatest(order: UOp, k: int, in_order: bool) -> UOp:
    """The positions of the `k` greatest of int32 numbers.

    They are in the k blocks with the greatest maxima: if k other blocks have greater maxima than an element's
    block, then k elements are greater than it. So a long row is read once, to compute the maxima.
    """
    *rows, n = order.shape
    position = _arange(order.shape)
    width = _block_width(n, k)
    by_digits = k > MAX_PICKED and _is_by_digits((*rows, k * width or n), in_order)
    if width:
        blocks = -(-n // width)
        padded_rows = pad_axis(order, len(rows), 0, blocks * width - n)
        padded_rows = (
            (_arange(padded_rows.shape) < n)
            .where(padded_rows, dtypes.int32.min)
            .reshape((*rows, blocks, width))
        )
        maxima = padded_rows.reduce_axis(Ops.MAX, (len(rows) + 1,)).reshape((*rows, blocks)).contiguous()
        best = _greatest(maxima, k, in_order)
        if by_digits:  # ascending, so that of equal elements the first is first
            best = take(best.contiguous(), _argsort_int32(best, in_order))
        best = best.contiguous().reshape((*rows, k, 1)).expand((*rows, k, width))
        position = (best * width + arange_axis(best.shape, len(rows) + 1)).reshape((*rows, k * width))
        order = _take_blocks(padded_rows, best).reshape(position.shape)
    if by_digits:
        first = shrink_axis(radix_sort.argsort(order ^ -1), len(rows), 0, k)
        return take(position.contiguous(), first) if width else first
    last = dtypes.int32.max
    keys = _above(order, last + position * -1).contiguous()
    greatest_keys = (
        _select_greatest(keys, k)
        if k <= MAX_PICKED
        else shrink_axis(_bitonic_sort(keys ^ -1), len(rows), 0, k) ^ -1
    )
    return last + (greatest_keys & 0xFFFFFFFF).cast(dtypes.int32) * -1


def _select_greatest(keys: UOp, k: int) -> UOp:
    """The `k` greatest keys, selected one by one."""
    out = greatest_key = None
    for i in range(k):
        left = (
            keys
            if greatest_key is None
            else (keys < greatest_key.expand(keys.shape)).where(keys, dtypes.int64.min)
        )
        greatest_key = left.reduce_axis(Ops.MAX, (keys.ndim - 1,)).contiguous()
        place = pad_axis(greatest_key, keys.ndim - 1, i, k - 1 - i)
        out = place if out is None else out + place
    assert out is not None
    return out


def _block_width(n: Sint, k: int) -> int:
    """The width of the blocks in which the greatest elements are searched for; 0: do not use blocks.

    The second step reads the maxima of n / width blocks and k * width elements. This is least for a width of
    sqrt(n / k).
    """
    if not isinstance(n, int) or n < max(MIN_BLOCKS_FOR, 16 * k):
        return 0
    return 1 << min(math.isqrt(n // k).bit_length() - 1, MAX_BLOCK.bit_length() - 1)


def _take_blocks(x: UOp, blocks: UOp) -> UOp:
    """`x` (..., blocks, width) in blocks (..., k, width): a sum over a one-hot, which is a load."""
    *rows, count, width = x.shape
    n = len(rows)
    shape = (*blocks.shape, count)
    spread_blocks = x.permute((*range(n), n + 1, n)).reshape((*rows, 1, width, count)).expand(shape)
    hit = blocks.reshape((*blocks.shape, 1)).expand(shape).eq(_arange(shape))
    return hit.where(spread_blocks, 0).reduce_axis(Ops.ADD, (n + 2,)).reshape(blocks.shape)


def take(x: UOp, positions: UOp) -> UOp:
    """`x` at `positions`: a sum over a one-hot, which is a load."""
    shape = (*positions.shape, x.shape[-1])
    spread_rows = x.reshape((*x.shape[:-1], 1, x.shape[-1])).expand(shape)
    hit = positions.reshape((*positions.shape, 1)).expand(shape).eq(_arange(shape))
    return hit.where(spread_rows, 0).reduce_axis(Ops.ADD, (len(shape) - 1,)).reshape(positions.shape)


def _arange(shape: tuple[Sint, ...]) -> UOp:
    """The position along the last axis, int32, of this shape."""
    return arange_axis(shape, len(shape) - 1)


def _order_preserving_ints(x: UOp, descending: bool) -> UOp:
    """Integers in the order of the elements: int32, or int64 where these have 64 bits."""
    wide = x.dtype.itemsize == 8
    signed = dtypes.int64 if wide else dtypes.int32
    if x.dtype.is_float:
        x = x if wide else x.cast(dtypes.float32)
        bits = x.eq(0.0).where(0.0, x).bitcast(signed)  # of both zeros the same
        bits = (bits < 0).where(bits ^ signed.max, bits)
        out = x.ne(x).where(UOp.const(signed, _NAN[wide]), bits)
    elif x.dtype.is_unsigned and x.dtype.itemsize >= 4:
        out = x.bitcast(signed) ^ signed.min
    else:
        out = x.cast(signed)
    return out ^ -1 if descending else out


def _above(order: UOp, position: UOp) -> UOp:
    """Keys: `order` in the upper 32 bits, `position` in the lower."""
    return (order.cast(dtypes.int64) << 32) | position.cast(dtypes.int64)


def _is_by_digits(shape: tuple[Sint, ...], in_order: bool) -> bool:
    """Whether rows are sorted by their digits."""
    if not in_order or not isinstance(shape[-1], int):
        return False
    return shape[-1] > (MAX_CACHED_NETWORK if max_numel(shape) > MAX_CACHED_KEYS else MAX_NETWORK)


def _argsort_int32(order: UOp, in_order: bool) -> UOp:
    """The positions that sort int32 numbers, stably."""
    n = order.shape[-1]
    if _is_by_digits(order.shape, in_order):
        return radix_sort.argsort(order)
    keys = _above(order, _arange(order.shape))
    if sint_max(n) <= MAX_RANKED:
        return _argsort_by_rank(keys.contiguous())
    return (_bitonic_sort(keys) & 0xFFFFFFFF).cast(dtypes.int32)


def _bitonic_sort(keys: UOp) -> UOp:
    """Keys in ascending order."""
    axis, n = keys.ndim - 1, keys.shape[-1]
    size = 1 << (sint_max(n) - 1).bit_length()
    padded_keys = pad_axis(keys, axis, 0, size - n)
    is_element = _arange(padded_keys.shape) < UOp.index(n).cast(dtypes.int32)
    keys = is_element.where(padded_keys, dtypes.int64.max).contiguous()
    block = 2
    while block <= size:
        keys = _step(keys, block, mirrored=True)
        distance = block // 4
        while distance:
            keys = _step(keys, 2 * distance, mirrored=False)
            distance //= 2
        block *= 2
    return shrink_axis(keys, axis, 0, n)


def _step(keys: UOp, block: int, mirrored: bool) -> UOp:
    """Compare and exchange: of each pair of keys in a block, the lesser goes to the lower half. The
    counterpart of a key has the same offset in the other half or, if `mirrored`, the same distance from the
    block's end."""
    *rows, n = keys.shape
    halves = (*rows, n // block, 2, block // 2)
    axis = len(rows)
    if mirrored:
        other = keys.reshape((*rows, n // block, block)).flip((axis + 1,))
    else:
        other = keys.reshape(halves).flip((axis + 1,))
    other = other.reshape(keys.shape)
    keeps_less = arange_axis(halves, axis + 1).reshape(keys.shape) < 1
    return (keys < other).eq(keeps_less).where(keys, other).contiguous()


def _argsort_by_rank(keys: UOp) -> UOp:
    """The positions that sort keys, by counting the lesser keys of each."""
    *rows, n = keys.shape
    shape, last = (*rows, n, n), len(rows) + 1
    own_keys, other_keys = (
        keys.reshape((*rows, n, 1)).expand(shape),
        keys.reshape((*rows, 1, n)).expand(shape),
    )
    rank_terms = (other_keys < own_keys).cast(dtypes.int32).reduce_axis(Ops.ADD, (last,))
    rank = rank_terms.reshape((*rows, 1, n)).contiguous().expand(shape)
    position_terms = rank.eq(arange_axis(shape, last - 1)).where(_arange(shape), 0)
    return position_terms.reduce_axis(Ops.ADD, (last,)).reshape(keys.shape)
