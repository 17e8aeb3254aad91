"""The intern table of nodes, which owns them, and its garbage collection.

A node that only the table holds is garbage. It is dropped while the table still holds its sources, so freeing
a chain of any depth never recurses.

There are three generations. The table is in order of age: the old nodes, those that survived one collection,
the new ones. Most nodes die soon, so a collection takes the young off the table's end, newest first, and puts
back what lives: a consumer is newer than its sources and goes first, so one round finds all garbage. What has
survived twice is old. A list of the old is swept a slice at each collection, again and again, newest first.
So the work of a collection is in proportion to what was made since the last one, and none is long.

Knows of a node only what its key is made of. The generational hypothesis is Lieberman's and Hewitt's ("A
real-time garbage collector based on the lifetimes of objects", 1983).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from polygrad.monitor import synchronized
from polygrad.uop.ops import Ops

table: dict[Any, Any] = {}
_old: list[Any] = []
_YOUNG_LIMIT = 1 << 13  # while a graph is made (or compiled), after as many new nodes
_SWEEP_STEP = 64  # old nodes looked at in each collection, at least
_SWEEP_RATE = 4  # and for each node that becomes old
_SWEEP_SHARE = 8  # and one in so many of the old, where memory is wanted,
_SWEEP_MOST = 1 << 14  # but not more: a millisecond or two


@dataclass(slots=True)
class Generations:
    """`limit`: the size of the table at which to collect. `aged`: how many nodes survived one collection.

    `sweep`: the old nodes below this place are looked at next. `examined`: nodes looked at, all told.
    """

    limit: int = _YOUNG_LIMIT
    aged: int = 0
    sweep: int = 0
    examined: int = 0


generations = Generations()


def _only_held_here() -> int:
    """What sys.getrefcount says of an object that one local variable holds."""
    node = object()
    return sys.getrefcount(node)


def node_count() -> int:
    """How many nodes the intern table holds."""
    return len(table)


@synchronized
def collect() -> int:
    """Free every node that nothing but the intern table (and freed nodes) holds; how many went."""
    before = len(table)
    _collect_young(promote_all=True)
    generations.sweep = len(_old)
    _sweep_old(len(_old))
    return before - len(table)


@synchronized
def collect_young(count: int = 0) -> int:
    """Free garbage among the young nodes, if `count` of them are new, and some of the old; how many went.

    Without a count more of the old are looked at: their memory is wanted.
    """
    before = len(table)
    if before - len(_old) - generations.aged < count:
        return 0
    promoted = _collect_young()
    extra = 0 if count else min(len(_old) // _SWEEP_SHARE, _SWEEP_MOST)
    _sweep_old(_SWEEP_STEP + _SWEEP_RATE * promoted + extra)
    return before - len(table)


def _collect_young(promote_all: bool = False) -> int:
    """Drop the young nodes that only the table holds; how many of the others became old."""
    alone, pop, refcount = _only_held_here(), table.popitem, sys.getrefcount
    aged = generations.aged
    new = len(table) - len(_old) - aged
    new_kept: list[tuple[Any, Any]] = []
    aged_kept: list[tuple[Any, Any]] = []
    key: Any = None
    node: Any = None
    generations.aged = 0
    try:
        for size, kept in ((new, new_kept), (aged, aged_kept)):
            for _ in range(size):
                key, node = pop()
                if refcount(node) != alone:
                    kept.append((key, node))
    except BaseException:  # an interrupted collection loses no node that is held
        table[key] = node
        raise
    finally:
        key = node = None
        table.update(reversed(aged_kept))
        table.update(reversed(new_kept))
    promoted = new_kept + aged_kept if promote_all else aged_kept
    _old.extend([node for _, node in reversed(promoted)])
    generations.aged = 0 if promote_all else len(new_kept)
    generations.limit = len(table) + _YOUNG_LIMIT
    generations.examined += new + aged
    return len(promoted)


def _sweep_old(count: int) -> None:
    """Drop, of the next `count` old nodes, those that only the table and the list of the old hold."""
    alone, refcount = _only_held_here() + 2, sys.getrefcount
    end = generations.sweep or len(_old)
    start = generations.sweep = max(end - count, 0)
    dropped = False
    for i in range(end - 1, start - 1, -1):
        node = _old[i]
        if refcount(node) == alone:
            arg = node.arg
            key: Any = (
                (node.op, node.dtype, node.src, arg)
                if node.op is not Ops.CONST
                else (node.op, node.dtype, arg.__class__, arg)
            )
            del table[key]
            if refcount(node) != alone - 1:  # another thread found it between the two
                table[key] = node
            key = None
            _old[i] = None
            dropped = True
    node = arg = None
    if dropped:
        _old[start:end] = [node for node in _old[start:end] if node is not None]
    generations.examined += end - start
