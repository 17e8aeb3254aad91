"""The intern table, which owns all nodes, and its garbage collection.

A node that only the table holds is garbage. It is dropped while the table still holds its sources, so freeing
a chain of any depth never recurses.

There are three generations. The table is in order of age: old nodes, nodes that survived one collection, new
nodes. Most nodes die young. So a collection takes the young nodes off the table's end, newest first, and puts
the live ones back. A consumer is newer than its sources and is dropped first, so one round finds all garbage.
Nodes that survive twice are old. Each collection sweeps a slice of the list of old nodes, newest first, again
and again. So the work of a collection is proportional to the number of nodes made since the last one, and no
collection is long.

Knows only the key of a node. The generational hypothesis is Lieberman's and Hewitt's ("A
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
_YOUNG_LIMIT = 1 << 13  # new nodes after which a collection runs, while a graph is made or compiled
# Old nodes that a collection examines: _SWEEP_STEP, _SWEEP_RATE for each node that becomes old and, if memory
# is needed, one in _SWEEP_SHARE of the old nodes, up to _MAX_SWEEP, which takes a millisecond or two.
_SWEEP_STEP = 64
_SWEEP_RATE = 4
_SWEEP_SHARE = 8
_MAX_SWEEP = 1 << 14


@dataclass(slots=True)
class Generations:
    """`limit`: the size of the table at which a collection runs. `aged`: the number of nodes that survived
    one collection. `sweep`: the next sweep examines old nodes below this position. `examined`: the number of
    nodes examined so far.
    """

    limit: int = _YOUNG_LIMIT
    aged: int = 0
    sweep: int = 0
    examined: int = 0


generations = Generations()


def _only_held_here() -> int:
    """The value of sys.getrefcount for an object that one local variable holds."""
    node = object()
    return sys.getrefcount(node)


def node_count() -> int:
    """The number of nodes in the intern table."""
    return len(table)


@synchronized
def collect() -> int:
    """Free every node that only the intern table and freed nodes hold; the number of freed nodes."""
    before = len(table)
    _collect_young(promote_all=True)
    generations.sweep = len(_old)
    _sweep_old(len(_old))
    return before - len(table)


@synchronized
def collect_young(count: int = 0) -> int:
    """If there are `count` new nodes, free garbage among the young nodes and some of the old ones; the number
    of freed nodes. Without a count, more old nodes are examined, as their memory is needed.
    """
    before = len(table)
    if before - len(_old) - generations.aged < count:
        return 0
    promoted = _collect_young()
    extra = 0 if count else min(len(_old) // _SWEEP_SHARE, _MAX_SWEEP)
    _sweep_old(_SWEEP_STEP + _SWEEP_RATE * promoted + extra)
    return before - len(table)


def _collect_young(promote_all: bool = False) -> int:
    """Drop the young nodes that only the table holds; the number of nodes that became old."""
    alone, pop, refcount = _only_held_here(), table.popitem, sys.getrefcount
    aged = generations.aged
    new = len(table) - len(_old) - aged
    new_live: list[tuple[Any, Any]] = []
    aged_live: list[tuple[Any, Any]] = []
    key: Any = None
    node: Any = None
    generations.aged = 0
    try:
        for size, live in ((new, new_live), (aged, aged_live)):
            for _ in range(size):
                key, node = pop()
                if refcount(node) != alone:
                    live.append((key, node))
    except BaseException:  # an interrupted collection must not lose a live node
        table[key] = node
        raise
    finally:
        key = node = None
        table.update(reversed(aged_live))
        table.update(reversed(new_live))
    promoted = new_live + aged_live if promote_all else aged_live
    _old.extend([node for _, node in reversed(promoted)])
    generations.aged = 0 if promote_all else len(new_live)
    generations.limit = len(table) + _YOUNG_LIMIT
    generations.examined += new + aged
    return len(promoted)


def _sweep_old(count: int) -> None:
    """Examine the next `count` old nodes, and drop those that only the table and the list of old nodes
    hold."""
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
            if refcount(node) != alone - 1:  # another thread took it out of the table in the meantime
                table[key] = node
            key = None
            _old[i] = None
            dropped = True
    node = arg = None
    if dropped:
        _old[start:end] = [node for node in _old[start:end] if node is not None]
    generations.examined += end - start
