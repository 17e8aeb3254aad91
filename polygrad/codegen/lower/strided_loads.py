"""Loads whose lanes are a known number of elements apart, as consecutive blocks that are permuted.

A stride of 2 is two vector loads and a shuffle; a stride of -1, one and a shuffle; pairs of lanes that read
the same element, one and a shuffle. Loads that differ by constants (the offsets of a pooling window, the
channels of an image) share blocks where that costs none of them a shuffle. LLVM calls such loads an
interleaved group.

A block reads consecutive elements, only some of which are needed. It stays between the first and the last
element that the tile reads, and so inside of the buffer, unless these span less than a block: a Builder that
has such blocks may read a little beyond buffers.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple


class Plan(NamedTuple):
    """`starts`: the first element of each block. `positions`: for each lane, its element among those of the
    blocks one after the other."""

    starts: tuple[int, ...]
    positions: tuple[int, ...]


def plan(elements: Sequence[int], block: int, low: int, high: int) -> Plan:
    """Blocks of `block` elements that hold the `elements` of the lanes. All blocks are between `low` and
    `high`, the range that may be read."""
    order = sorted(set(elements))
    stride = min((b - a for a, b in itertools.pairwise(order)), default=1)
    shared, own = (_starts(order, block, low, high, s) for s in (stride, 1))
    starts = shared if len(shared) <= len(own) else own
    positions = []
    for element in elements:
        number = max(i for i, start in enumerate(starts) if start <= element)
        positions.append(number * block + element - starts[number])
    return Plan(tuple(starts), tuple(positions))


def _starts(order: Sequence[int], block: int, low: int, high: int, stride: int) -> list[int]:
    """The starts of blocks that hold all of `order`: multiples of the stride from `low`, so that loads that
    differ by less than the stride share blocks."""
    starts: list[int] = []
    for element in order:
        if not starts or element >= starts[-1] + block:
            phase = (element - low) % stride
            start = element - phase if phase < block else element
            starts.append(max(min(start, high - block + 1), low))
    return starts


def pays(elements: Sequence[int], block: int) -> bool:
    """Whether loading blocks takes fewer instructions than a load and an insertion for each lane."""
    return 2 * len(plan(elements, block, min(elements), max(elements)).starts) <= len(elements)
