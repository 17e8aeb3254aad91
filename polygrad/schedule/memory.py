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
    placed: list[tuple[int, int, Lifetime]] = []  # (start, end, lifetime), by start
    for i in sorted(range(len(lifetimes)), key=lambda i: (-lifetimes[i].nbytes, i)):
        life = lifetimes[i]
        room = round_up(life.nbytes + GUARD, ALIGN)
        at = 0
        for start, end, other in placed:
            if other.last < life.first or life.last < other.first:
                continue
            if at + room <= start:
                break
            at = max(at, end)
        offsets[i] = at
        placed.append((at, at + room, life))
        placed.sort(key=lambda p: p[0])
    return offsets, max((end for _, end, _ in placed), default=0)


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
