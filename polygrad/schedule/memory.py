"""The memory planner: scratch buffers by lifetime, at fixed offsets of one arena.

Greedy by size: the largest buffer first, each at the lowest offset where no buffer with an overlapping
lifetime lies.
"""

from __future__ import annotations

from dataclasses import dataclass

from polygrad.helpers import round_up

ALIGN, GUARD = 64, 64


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A scratch buffer of `nbytes`, written first by launch `first`, read last by launch `last`."""

    nbytes: int
    first: int
    last: int


def plan(lifetimes: list[Lifetime], alignment: int = ALIGN) -> tuple[list[int], int]:
    """An offset for each buffer, a multiple of `alignment`, and the arena's size in bytes. Buffers keep a
    guard gap between them."""
    offsets = [0] * len(lifetimes)
    alive = _Alive(1 + max((life.last for life in lifetimes), default=0))
    arena = 0
    for i in sorted(range(len(lifetimes)), key=lambda i: (-lifetimes[i].nbytes, i)):
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


def lower_bound(lifetimes: list[Lifetime]) -> int:
    """The most bytes alive at one launch: no plan can be smaller."""
    events: dict[int, int] = {}
    for life in lifetimes:
        events[life.first] = events.get(life.first, 0) + life.nbytes
        events[life.last + 1] = events.get(life.last + 1, 0) - life.nbytes
    alive = most = 0
    for _, change in sorted(events.items()):
        alive += change
        most = max(most, alive)
    return most
