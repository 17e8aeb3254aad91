"""The memory planner: scratch buffers by lifetime, at fixed offsets of one arena.

Greedy: one buffer after the other, each at the lowest offset where no buffer with an overlapping lifetime
lies. Buffers are placed by size, the largest first. Where that leaves gaps, they are also placed by breadth
(buffers that are alive when the most bytes are come first) and by duration, and the smallest arena is taken
(the terms are TensorFlow Lite's: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
Inference", 2020).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from polygrad.helpers import round_up

ALIGN, GUARD = 64, 64
_SLACK = 1.02  # times the lower bound: no other order is tried after a plan within it,
_MAX_TRIED = 2000  # nor for more buffers than these


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A scratch buffer of `nbytes`, written first by launch `first`, read last by launch `last`."""

    nbytes: int
    first: int
    last: int


def plan(lifetimes: list[Lifetime], alignment: int = ALIGN) -> tuple[list[int], int]:
    """An offset for each buffer, a multiple of `alignment`, and the arena's size in bytes. Buffers keep a
    guard gap between them."""
    enough = _SLACK * lower_bound(lifetimes)
    best: tuple[list[int], int] | None = None
    for order in _orders(lifetimes):
        placement = _place(lifetimes, order, alignment)
        if best is None or placement[1] < best[1]:
            best = placement
        if best[1] <= enough or len(lifetimes) > _MAX_TRIED:
            break
    return best or ([], 0)


def _orders(lifetimes: Sequence[Lifetime]) -> Iterator[list[int]]:
    """The buffers by size, by breadth and by duration."""
    size = [-life.nbytes for life in lifetimes]
    numbers = range(len(lifetimes))
    yield sorted(numbers, key=lambda i: (size[i], i))
    alive = _alive(lifetimes)
    breadth = [-max(alive[life.first : life.last + 1]) for life in lifetimes]
    yield sorted(numbers, key=lambda i: (breadth[i], size[i], i))
    yield sorted(numbers, key=lambda i: (lifetimes[i].first - lifetimes[i].last, size[i], i))


def _place(lifetimes: list[Lifetime], order: Iterable[int], alignment: int) -> tuple[list[int], int]:
    offsets = [0] * len(lifetimes)
    alive = _Alive(1 + max((life.last for life in lifetimes), default=0))
    arena = 0
    for i in order:
        life = lifetimes[i]
        room = round_up(life.nbytes + GUARD, alignment)
        offset = 0
        for start, end in sorted(alive.during(life)):
            if offset + room <= start:
                break
            offset = max(offset, end)
        offsets[i] = offset
        alive.add(life, (offset, offset + room))
        arena = max(arena, offset + room)
    return offsets, arena


class _Alive:
    """The intervals of the arena in use, by launch: a segment tree, for Programs of tens of thousands of
    launches."""

    def __init__(self, launches: int) -> None:
        self.leaves = 1 << (launches - 1).bit_length()
        # those in use at every launch of a subtree
        self.whole: list[list[tuple[int, int]]] = [[] for _ in range(2 * self.leaves)]
        self.begins: list[list[tuple[int, int]]] = [[] for _ in range(launches)]

    def add(self, life: Lifetime, interval: tuple[int, int]) -> None:
        self.begins[life.first].append(interval)
        low, high = life.first + self.leaves, life.last + self.leaves + 1
        while low < high:
            if low & 1:
                self.whole[low].append(interval)
                low += 1
            if high & 1:
                high -= 1
                self.whole[high].append(interval)
            low, high = low >> 1, high >> 1

    def during(self, life: Lifetime) -> list[tuple[int, int]]:
        """The intervals in use at some launch of `life`: those at its first, and those that begin later."""
        intervals: list[tuple[int, int]] = []
        node = life.first + self.leaves
        while node:
            intervals += self.whole[node]
            node >>= 1
        for begun in self.begins[life.first + 1 : life.last + 1]:
            intervals += begun
        return intervals


def lower_bound(lifetimes: Sequence[Lifetime]) -> int:
    """The most bytes alive at one launch: no plan can be smaller."""
    return max(_alive(lifetimes), default=0)


def _alive(lifetimes: Sequence[Lifetime]) -> list[int]:
    """The bytes alive at each launch."""
    changes = [0] * (2 + max((life.last for life in lifetimes), default=-1))
    for life in lifetimes:
        changes[life.first] += life.nbytes
        changes[life.last + 1] -= life.nbytes
    return list(accumulate(changes))
