"""From a kernel's graph to a list in the order of execution, with loops properly nested.

A topological sort by priority, built from the end: work stays as far out of the loops as its sources allow,
loads come early, stores late. The idea and the priorities are tinygrad's.
"""

from __future__ import annotations

import heapq
from typing import Any

from polygrad.codegen.opts.tile import is_tile
from polygrad.dtype import dtypes
from polygrad.errors import InternalError
from polygrad.helpers import prod
from polygrad.uop.args import AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.shapes import sint_max

_PRIORITY = {
    Ops.PARAM: -20,
    Ops.DEFINE_VAR: -19,
    Ops.SPECIAL: -18,
    Ops.DEFINE_REG: -17,
    Ops.LOAD: -1,
    Ops.STORE: 1,
    Ops.RANGE: 5,
    Ops.END: -5,
}
_COMPARABLE_ARG = frozenset({Ops.CONST, Ops.RANGE, Ops.PARAM, Ops.DEFINE_REG, Ops.DEFINE_VAR, Ops.SPECIAL})
_TIE_DEPTH = 4  # levels of sources
_NUMBERED = frozenset({Ops.PARAM, Ops.DEFINE_VAR})


def linearize(sink: UOp) -> list[UOp]:
    """The nodes of a kernel in execution order; its ENDs are split and its loops ordered."""
    order = sink.toposort()
    # Tile ranges open no loop. Each loop counts as two rounds at least, so that code in it runs more often
    # than code outside: a value is never made inside a loop that it does not depend on.
    times: dict[frozenset[UOp], int] = {}  # how often code inside of these loops runs
    keys = []
    alike = _structures(order)
    uses: dict[UOp, int] = dict.fromkeys(order, 0)
    for position, node in enumerate(order):
        for s in node.src:
            uses[s] += 1
        loops = node.ranges
        runs = times.get(loops)
        if runs is None:
            runs = times[loops] = prod(max(sint_max(r.src[0]), 2) for r in loops if not is_tile(r))
        slot = node.arg if node.op in _NUMBERED else ()
        keys.append((runs, _PRIORITY.get(node.op, 0), slot, alike[node], position))
    ideal = {order[k[4]]: i for i, k in enumerate(sorted(keys))}
    names = {ideal[n]: n for n in order}
    out: list[UOp] = []
    todo = [-ideal[sink]]
    while todo:
        node = names[-heapq.heappop(todo)]
        out.append(node)
        for s in node.src:
            uses[s] -= 1
            if uses[s] == 0:
                heapq.heappush(todo, -ideal[s])
    out.reverse()
    return out


def _structures(order: list[UOp]) -> dict[UOp, tuple[Any, ...]]:
    """The structure of each node as nested tuples of op, argument and sources: it breaks ties between equal
    priorities."""
    out: dict[UOp, tuple[Any, ...]] = {}
    for _ in range(_TIE_DEPTH):
        deeper = {}
        for node in order:
            arg = node.arg if node.op in _COMPARABLE_ARG else ()
            deeper[node] = (int(node.op), arg, node.dtype.priority, *[out.get(s, ()) for s in node.src])
        out = deeper
    return out


def order_loads(sink: UOp) -> UOp:
    """Put each LOAD of the memory that a nest stores to inside of all the nest's loops that go in order: its
    value depends on them, even if its position does not.

    END(STORE(p[i], LOAD(p[i]) + x), k in order)  ->  ... LOAD(INDEX(AFTER(p, k), i)) ...
    """
    return sink.replace(src=tuple([_with_loads_inside(nest) for nest in sink.src]))


def _with_loads_inside(nest: UOp) -> UOp:
    scans = [r for r in nest.src[1:] if r.arg.kind is AxisKind.SCAN] if nest.op is Ops.END else []
    if not scans or nest.src[0].op is not Ops.STORE:
        return nest
    memory = nest.src[0].src[0].src[0]
    new_loads: dict[UOp, UOp] = {}
    for load in nest.toposort():
        if load.op is Ops.LOAD and load.src[0].src[0] is memory:
            place = load.src[0]
            if missing := [r for r in scans if r not in place.ranges]:
                pointer = UOp(Ops.AFTER, memory.dtype, (memory, *missing))
                place = place.replace(src=(pointer, *place.src[1:]))
                new_loads[load] = load.replace(src=(place, *load.src[1:]))
    return nest.substitute(new_loads)


def split_ends(sink: UOp) -> UOp:
    """END(x, outer, inner) = END(END(x, inner), outer)."""
    new: dict[UOp, UOp] = {}
    for node in sink.toposort():
        src = tuple([new[s] for s in node.src])
        if node.op is Ops.END and len(src) > 2:
            out = src[0]
            for r in reversed(src[1:]):
                out = UOp(Ops.END, dtypes.void, (out, r))
            new[node] = out
        else:
            new[node] = node.over(src)
    return new[sink]


def order_loops(sink: UOp) -> UOp:
    """Add control edges: each RANGE gets an edge from the RANGE that it is nested in, or from the END of the
    loop that runs before it there.

    RANGE(n), after END e in the same loop  ->  RANGE(n, e)
    """
    order = sink.toposort()
    ends = [n for n in order if n.op is Ops.END]
    if len(ends) < 2:
        return sink
    number = {e: i for i, e in enumerate(ends)}
    needs: dict[UOp, int] = {}  # the ENDs that come before, as bits
    opens: dict[UOp, int] = {}  # the RANGEs
    bit_of_range = {e.src[1]: 1 << i for i, e in enumerate(ends)}
    for node in order:
        m = r = 0
        for s in node.src:
            m |= needs[s]
            r |= opens[s]
        if node.op is Ops.END:
            m |= 1 << number[node]
        elif node.op is Ops.RANGE:
            r |= bit_of_range.get(node, 0)
        needs[node], opens[node] = m, r
    parent: dict[UOp, UOp] = {}
    for outer in [*ends, sink]:
        for i, inner in enumerate(ends):
            if inner is outer or inner in parent or not needs[outer] >> i & 1:
                continue
            if outer is sink or opens[inner] & bit_of_range[outer.src[1]]:
                parent[inner] = outer
    edges: dict[UOp, UOp] = {}
    for outer in {id(p): p for p in parent.values()}.values():
        inner_ends = [e for e in ends if parent.get(e) is outer]
        mask = sum(1 << number[e] for e in inner_ends)
        inner_ends.sort(key=lambda e: (needs[e] & mask).bit_count())
        before = inner_ends if outer is sink else [outer.src[1], *inner_ends]
        for a, b in zip(before, inner_ends[1:] if outer is sink else inner_ends, strict=False):
            edges[b.src[1]] = a
    if not edges:
        return sink
    new: dict[UOp, UOp] = {}
    entered: set[UOp] = set()
    stack = [(sink, False)]
    while stack:  # a toposort that follows the new edges too
        node, ready = stack.pop()
        if node in new:
            continue
        extra = (edges[node],) if node in edges else ()
        if not ready:
            if node in entered:
                raise InternalError(f"linearize: expected loops in an order, got {node.op} before itself")
            entered.add(node)
            stack.append((node, True))
            stack.extend((s, False) for s in (*extra, *node.src) if s not in new)
            continue
        new[node] = node.over(tuple([new[s] for s in (*node.src, *extra)]))
    return new[sink]
