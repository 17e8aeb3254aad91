"""Exchanges with other processes in a captured call: when each begins, and when its end is waited for.

An exchange begins as soon as what it sends is computed: all that it depends on comes first, in the order of
the call, and the rest of the call later. Its end is waited for before the first launch that uses its memory.
So all processes begin the same exchanges in the same order, and compute meanwhile.

Overlapping an all-reduce with the rest of the backward pass is torch's idea (DistributedDataParallel: Li et
al., 2020).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from polygrad.runtime.buffer import Buffer


class Item(Protocol):
    """What uses memory. `written` are some of the keys `used`."""

    @property
    def used(self) -> list[Hashable]: ...

    @property
    def written(self) -> list[Hashable]: ...


@dataclass(frozen=True, slots=True, eq=False)
class Begin:
    """An exchange begins, on the memory `keys`. `start` returns what waits for its end."""

    label: str
    keys: tuple[Hashable, ...]
    start: Callable[[Sequence[Buffer]], Callable[[], None]]

    @property
    def varies(self) -> bool:
        return True

    @property
    def used(self) -> list[Hashable]:
        return [*self.keys]

    @property
    def written(self) -> list[Hashable]:
        return [*self.keys]


@dataclass(frozen=True, slots=True, eq=False)
class End:
    """The end of an exchange is waited for."""

    begin: Begin

    @property
    def used(self) -> list[Hashable]:
        return self.begin.used

    @property
    def written(self) -> list[Hashable]:
        return self.begin.used


def overlap(items: Sequence[Any]) -> list[Any]:
    """The Items, some of them a Begin, in an order in which exchanges begin early, with their ends."""
    if not any(isinstance(x, Begin) for x in items):
        return [*items]
    return _with_ends(_early(items))


def _early(items: Sequence[Any]) -> list[Any]:
    """The items with each exchange as early as possible. Of the others, those that need fewer exchanges come
    first."""
    before = _dependencies(items)
    done = [False] * len(items)
    out: list[int] = []
    exchanges = [i for i, x in enumerate(items) if isinstance(x, Begin)]
    for exchange in exchanges:
        for i in _closure(exchange, before, done):
            done[i] = True
            out.append(i)
    needed = _needed_exchanges(exchanges, before)
    out += sorted((i for i in range(len(items)) if not done[i]), key=lambda i: (needed[i], i))
    return [items[i] for i in out]


def _needed_exchanges(exchanges: Sequence[int], before: list[list[int]]) -> list[int]:
    """For each item, the number of the last exchange that it depends on, from 1 on; 0 for none."""
    number = {item: n for n, item in enumerate(exchanges, 1)}
    needed: list[int] = []
    for i, dependencies in enumerate(before):
        needed.append(max([number.get(i, 0), *(needed[d] for d in dependencies)]))
    return needed


def _dependencies(items: Sequence[Item]) -> list[list[int]]:
    """For each item, those that have to come before it: that have written what it uses, or used what it
    writes."""
    before: list[list[int]] = []
    writer: dict[Hashable, int] = {}
    readers: dict[Hashable, list[int]] = {}
    for i, x in enumerate(items):
        written = set(x.written)
        needed = {writer[key] for key in x.used if key in writer}
        for key in written:
            needed.update(readers.pop(key, ()))
            writer[key] = i
        for key in x.used:
            if key not in written:
                readers.setdefault(key, []).append(i)
        before.append(sorted(needed))
    return before


def _closure(last: int, before: list[list[int]], done: list[bool]) -> list[int]:
    """An item and all that it depends on and that is not done, in order."""
    todo, reached = [last], {last}
    while todo:
        for i in before[todo.pop()]:
            if i not in reached and not done[i]:
                reached.add(i)
                todo.append(i)
    return sorted(reached)


def _with_ends(items: Sequence[Any]) -> list[Any]:
    """The items, with an END before the first one that uses the memory of an exchange, or at the end."""
    out: list[Any] = []
    open_exchanges: list[Begin] = []
    for x in items:
        used = set(x.used)
        for begin in [b for b in open_exchanges if not used.isdisjoint(b.keys)]:
            open_exchanges.remove(begin)
            out.append(End(begin))
        if isinstance(x, Begin):
            open_exchanges.append(x)
        out.append(x)
    return [*out, *(End(begin) for begin in open_exchanges)]
