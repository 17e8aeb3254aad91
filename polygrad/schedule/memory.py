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


def plan(lifetimes: list[Lifetime]) -> tuple[list[int], int]:
    """An offset for each buffer, and the arena's size in bytes. Buffers keep a guard gap between them."""
    offsets = [0] * len(lifetimes)
    alive = _Alive(1 + max((life.last for life in lifetimes), default=0))
    arena = 0
    for i in sorted(range(len(lifetimes)), key=lambda i: (-lifetimes[i].nbytes, i)):
        life = lifetimes[i]
        room = round_up(life.nbytes + GUARD, ALIGN)
        at = 0
        for start, end in sorted(alive.during(life)):
            if at + room <= start:
                break
            at = max(at, end)
        offsets[i] = at
        alive.add(life, (at, at + room))
        arena = max(arena, at + room)
    return offsets, arena


class _Alive:
    """Which places of the arena are taken, by launch: a segment tree, for Programs of tens of thousands of
    launches."""

    def __init__(self, launches: int) -> None:
        self.leaves = 1 << (launches - 1).bit_length()
        self.whole: list[list[tuple[int, int]]] = [
            [] for _ in range(2 * self.leaves)
        ]  # taken all through a subtree
        self.begins: list[list[tuple[int, int]]] = [[] for _ in range(launches)]

    def add(self, life: Lifetime, place: tuple[int, int]) -> None:
        self.begins[life.first].append(place)
        low, high = life.first + self.leaves, life.last + self.leaves + 1
        while low < high:
            if low & 1:
                self.whole[low].append(place)
                low += 1
            if high & 1:
                high -= 1
                self.whole[high].append(place)
            low, high = low >> 1, high >> 1

    def during(self, life: Lifetime) -> list[tuple[int, int]]:
        """The places taken at some launch of `life`: those taken at its first, and those that begin later."""
        found: list[tuple[int, int]] = []
        node = life.first + self.leaves
        while node:
            found += self.whole[node]
            node >>= 1
        for places in self.begins[life.first + 1 : life.last + 1]:
            found += places
        return found


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
