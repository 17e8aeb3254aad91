"""The positions that sort an axis: a bitonic network over keys (Batcher, 1968).

A key is an int64: the element's bits as an integer of the same order, above its position. So no two keys are
equal, the sort is stable, and NaN comes after every number, as in numpy and torch. A step of the network
compares each key with one whose place is known, all at once: log2(n) * (log2(n) + 1) / 2 kernels, which lanes
and threads divide. In short rows the position of an element is counted: how many keys are less.

All functions are of nodes, and go along the last axis.
"""

from __future__ import annotations

import math

from polygrad.dtype import dtypes
from polygrad.uop.axes import arange_axis, pad_axis, shrink_axis
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.shapes import Sint, sint_max

MAX_RANKED = 32  # elements of a row in which keys are counted
MAX_PICKED = 32  # elements that are picked one after the other, before sorting all of them is less work
MIN_BLOCKS_FOR = 512  # elements of a row that is divided into blocks for its greatest elements
MAX_BLOCK = 64  # elements of such a block
_NAN = 0x7FC00000, 0x7FF8000000000000


def argsort(x: UOp, descending: bool) -> UOp:
    """The positions (int32) that sort `x`, stably."""
    order = _ordered(x, descending)
    if order.dtype is dtypes.int32:
        return _positions(order)
    lower = _positions((order.cast(dtypes.int32)) ^ dtypes.int32.min)  # by the lower half,
    upper = taken((order >> 32).cast(dtypes.int32), lower)
    return taken(lower, _positions(upper))  # and then, stably, by the upper


def greatest(x: UOp, k: Sint, largest: bool) -> UOp:
    """The positions (int32) of the `k` greatest elements of `x`, or of the least, in order. Of equal elements
    the first counts as greater."""
    order = _ordered(x, not largest)
    if order.dtype is dtypes.int32 and isinstance(k, int):
        return _greatest(order, k)
    return shrink_axis(argsort(x, largest), x.ndim - 1, 0, k)


def _greatest(order: UOp, k: int) -> UOp:
    """The positions of the `k` greatest of int32 numbers.

    They are in the k blocks whose greatest elements are greatest: where another block comes before an
    element's own, so does that block's greatest element. So a long row is read once, for these.
    """
    *rows, n = order.shape
    position = _arange(order.shape)
    width = _block_width(n, k)
    if width:
        blocks = -(-n // width)
        padded = pad_axis(order, len(rows), 0, blocks * width - n)
        padded = (_arange(padded.shape) < n).where(padded, dtypes.int32.min).reshape((*rows, blocks, width))
        best = _greatest(
            padded.reduce_axis(Ops.MAX, (len(rows) + 1,)).reshape((*rows, blocks)).contiguous(), k
        )
        best = best.contiguous().reshape((*rows, k, 1)).expand((*rows, k, width))
        position = (best * width + arange_axis(best.shape, len(rows) + 1)).reshape((*rows, k * width))
        order = _taken_blocks(padded, best).reshape(position.shape)
    last = dtypes.int32.max
    keys = _above(order, last + position * -1).contiguous()
    found = _picked(keys, k) if k <= MAX_PICKED else shrink_axis(_sorted(keys ^ -1), len(rows), 0, k) ^ -1
    return last + (found & 0xFFFFFFFF).cast(dtypes.int32) * -1


def _picked(keys: UOp, k: int) -> UOp:
    """The `k` greatest keys, one after the other."""
    out = found = None
    for i in range(k):
        left = keys if found is None else (keys < found.expand(keys.shape)).where(keys, dtypes.int64.min)
        found = left.reduce_axis(Ops.MAX, (keys.ndim - 1,)).contiguous()
        place = pad_axis(found, keys.ndim - 1, i, k - 1 - i)
        out = place if out is None else out + place
    assert out is not None
    return out


def _block_width(n: Sint, k: int) -> int:
    """How many elements the blocks have in which the greatest are looked for; 0 where there are none.

    What is read again is least with blocks of sqrt(n / k): the greatest elements of n / width blocks, and
    k * width elements.
    """
    if not isinstance(n, int) or n < max(MIN_BLOCKS_FOR, 16 * k):
        return 0
    return 1 << min(math.isqrt(n // k).bit_length() - 1, MAX_BLOCK.bit_length() - 1)


def _taken_blocks(x: UOp, blocks: UOp) -> UOp:
    """`x` (..., blocks, width) in blocks (..., k, width): a sum over a one-hot, which is a load."""
    *rows, count, width = x.shape
    n = len(rows)
    shape = (*blocks.shape, count)
    spread = x.permute((*range(n), n + 1, n)).reshape((*rows, 1, width, count)).expand(shape)
    hit = blocks.reshape((*blocks.shape, 1)).expand(shape).eq(_arange(shape))
    return hit.where(spread, 0).reduce_axis(Ops.ADD, (n + 2,)).reshape(blocks.shape)


def taken(x: UOp, positions: UOp) -> UOp:
    """`x` at `positions`: a sum over a one-hot, which is a load."""
    shape = (*positions.shape, x.shape[-1])
    spread = x.reshape((*x.shape[:-1], 1, x.shape[-1])).expand(shape)
    hit = positions.reshape((*positions.shape, 1)).expand(shape).eq(_arange(shape))
    return hit.where(spread, 0).reduce_axis(Ops.ADD, (len(shape) - 1,)).reshape(positions.shape)


def _arange(shape: tuple[Sint, ...]) -> UOp:
    """The position along the last axis, int32, of this shape."""
    return arange_axis(shape, len(shape) - 1)


def _ordered(x: UOp, descending: bool) -> UOp:
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


def _positions(order: UOp) -> UOp:
    """The positions that sort int32 numbers, stably."""
    n = order.shape[-1]
    keys = _above(order, _arange(order.shape))
    if sint_max(n) <= MAX_RANKED:
        return _ranked(keys.contiguous())
    return (_sorted(keys) & 0xFFFFFFFF).cast(dtypes.int32)


def _sorted(keys: UOp) -> UOp:
    """Keys in ascending order."""
    axis, n = keys.ndim - 1, keys.shape[-1]
    size = 1 << (sint_max(n) - 1).bit_length()
    padded = pad_axis(keys, axis, 0, size - n)
    inside = _arange(padded.shape) < UOp.index(n).cast(dtypes.int32)
    keys = inside.where(padded, dtypes.int64.max).contiguous()
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
    """Of each two keys of a block, the lesser in the lower half. Its counterpart is as far into the other
    half, or, `mirrored`, as far from the block's end."""
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


def _ranked(keys: UOp) -> UOp:
    """The positions that sort keys, by counting those that are less than each."""
    *rows, n = keys.shape
    shape, last = (*rows, n, n), len(rows) + 1
    mine, others = keys.reshape((*rows, n, 1)).expand(shape), keys.reshape((*rows, 1, n)).expand(shape)
    less = (others < mine).cast(dtypes.int32).reduce_axis(Ops.ADD, (last,))
    rank = less.reshape((*rows, 1, n)).contiguous().expand(shape)
    chosen = rank.eq(arange_axis(shape, last - 1)).where(_arange(shape), 0)
    return chosen.reduce_axis(Ops.ADD, (last,)).reshape(keys.shape)
