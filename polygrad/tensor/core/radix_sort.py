"""The positions that sort long rows: a radix sort of keys by one digit after the other, the lowest first.

In each pass a key goes to the position `start of its digit + number of earlier keys with this digit`, so a
pass is stable (Knuth, The Art of Computer Programming, volume 3, 5.2.5). All is written as sums over
comparisons, which kernel passes for processors turn into loops that count (`scatter`, `keyed-scan`) and that
write at positions (`index-put`).
"""

from __future__ import annotations

from polygrad.dtype import dtypes
from polygrad.uop.axes import arange_axis
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.shapes import Sint

MAX_DIGIT_BITS = 11  # a count for each digit: with more, they and the ends of the parts leave the caches

_LOWER_HALF = (1 << 32) - 1


def argsort(order: UOp) -> UOp:
    """The positions (int32) that sort int32 numbers along the last axis, stably.

    A key is a uint64: the upper half is a number less the least number, without the digits of earlier passes,
    the lower half its position. So all passes have the same kernels.
    """
    bits = int(order.vmax - order.vmin).bit_length()
    passes = _pass_count(order.shape[-1], bits)
    digit_bits = -(-bits // passes)
    number = (order.cast(dtypes.int64) - order.vmin).cast(dtypes.uint64)
    keys = (number << 32) | arange_axis(order.shape, order.ndim - 1).cast(dtypes.uint64)
    keys = keys.contiguous()
    for i in range(passes):
        digits = ((keys >> 32) & ((1 << digit_bits) - 1)).cast(dtypes.int32)
        position = keys & _LOWER_HALF
        rest = (keys >> digit_bits) & (_LOWER_HALF << 32) | position
        keys = _moved(
            rest if i < passes - 1 else position.cast(dtypes.int32), _places(digits, 1 << digit_bits)
        )
    return keys


def _pass_count(n: Sint, bits: int) -> int:
    """The number of passes with the least work. A pass goes through n elements and all digits."""
    counts = range(-(-bits // MAX_DIGIT_BITS), bits + 1)
    return min(counts, key=lambda p: p * (n + (1 << -(-bits // p))))


def _places(digits: UOp, count: int) -> UOp:
    """The positions of elements that are sorted by digits less than `count`, stably."""
    *rows, n = digits.shape
    axis = len(rows)
    by_digit = (*rows, n, count)
    hit = digits.reshape((*rows, n, 1)).expand(by_digit).eq(arange_axis(by_digit, axis + 1))
    sizes = hit.cast(dtypes.int32).reduce_axis(Ops.ADD, (axis,)).contiguous()
    starts = (sizes.scan_axis(Ops.ADD, axis + 1) - sizes).contiguous()
    start = hit.where(starts.expand(by_digit), 0).reduce_axis(Ops.ADD, (axis + 1,))
    pairs = (*rows, n, n)
    own, other = digits.reshape((*rows, n, 1)).expand(pairs), digits.reshape((*rows, 1, n)).expand(pairs)
    is_earlier = arange_axis(pairs, axis + 1) < arange_axis(pairs, axis)
    rank = (is_earlier & own.eq(other)).cast(dtypes.int32).reduce_axis(Ops.ADD, (axis + 1,))
    return (start + rank).reshape(digits.shape)


def _moved(x: UOp, places: UOp) -> UOp:
    """`x` with each element at its place, as a write at positions."""
    *rows, n = x.shape
    axis = len(rows) + 1
    pairs = (*rows, n, n)  # of places and elements
    hit = places.reshape((*rows, 1, n)).expand(pairs).eq(arange_axis(pairs, axis - 1))
    number = arange_axis(pairs, axis) + 1
    last = hit.where(number, 0).reduce_axis(Ops.MAX, (axis,))
    wins = hit & last.expand(pairs).eq(number)
    moved = wins.where(x.reshape((*rows, 1, n)).expand(pairs), 0).reduce_axis(Ops.ADD, (axis,))
    return (last > 0).where(moved, 0).reshape(x.shape).contiguous()
