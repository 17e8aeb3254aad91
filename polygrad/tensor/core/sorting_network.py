"""The positions that sort an axis: a bitonic network over keys (Batcher, 1968).

A key is an int64: the element's bits as an integer of the same order, above its position. So no two keys are
equal, the sort is stable, and NaN comes after every number, as in numpy and torch. A step of the network
compares each key with one whose place is known, all at once: log2(n) * (log2(n) + 1) / 2 kernels, which lanes
and threads divide. In short rows the position of an element is counted: how many keys are less.

All functions are of nodes, and go along the last axis.
"""

from __future__ import annotations

from polygrad.dtype import dtypes
from polygrad.uop.axes import arange_axis, pad_axis, shrink_axis
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.shapes import Sint, sint_max

MAX_RANKED = 32  # elements of a row in which keys are counted
MAX_PICKED = 32  # elements that are picked one after the other, before sorting all of them is less work
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
    """The positions (int32) of the `k` greatest elements of `x`, or of the least, in order."""
    order = _ordered(x, not largest)
    if not isinstance(k, int) or k > MAX_PICKED or order.dtype is not dtypes.int32:
        return shrink_axis(argsort(x, largest), x.ndim - 1, 0, k)
    last = dtypes.int32.max  # of equals, the first is the greatest
    keys = _above(order, last + _arange(order.shape) * -1).contiguous()
    out = found = None
    for i in range(k):
        left = keys if found is None else (keys < found.expand(keys.shape)).where(keys, dtypes.int64.min)
        found = left.reduce_axis(Ops.MAX, (keys.ndim - 1,)).contiguous()
        place = pad_axis(found, keys.ndim - 1, i, k - 1 - i)
        out = place if out is None else out + place
    assert out is not None
    return last + (out & 0xFFFFFFFF).cast(dtypes.int32) * -1


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
    size = 1 << (sint_max(n) - 1).bit_length()
    padded = pad_axis(keys, order.ndim - 1, 0, size - n)
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
    return shrink_axis((keys & 0xFFFFFFFF).cast(dtypes.int32), order.ndim - 1, 0, n)


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
