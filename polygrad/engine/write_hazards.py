"""Hazards of writes in place: readers of the old elements, which a write has to wait for."""

from __future__ import annotations

from collections.abc import Callable, Container

from polygrad.engine.normalize import is_uncomputed, stored_value, value_of
from polygrad.engine.pending import PendingGraph
from polygrad.helpers import dedup
from polygrad.runtime.buffer import Allocation
from polygrad.uop.args import Spent
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops

# Functions that list the live lazy values (of Tensors above a serial number). They are called before a write
# in place, which may overwrite elements that these values read.
live_roots: list[Callable[[int], list[UOp]]] = []

# Functions that list the values (of Tensors above a serial number) that may still be differentiated.
gradient_roots: list[Callable[[int], list[UOp]]] = []

_WRITING = frozenset({Ops.AFTER, Ops.ASSIGN})
_IN_PLACE = GroupOp.Memory | GroupOp.Movement | {Ops.DETACH, Ops.NOOP}  # the value may be in memory


def stored_node(node: UOp) -> UOp:
    while node.op in (Ops.RESHAPE, Ops.DETACH):
        node = node.src[0]
    return node


def first_writes(pending: PendingGraph) -> list[UOp]:
    """The writes that wait for no other."""
    writes, first = set(pending.writes), []
    waiting: set[UOp] = set()
    for node in pending.order:
        if not waiting.isdisjoint(node.src) and node.value is None:
            waiting.add(node)
        elif node in writes:
            waiting.add(node)
            first.append(node)
    return first


def values_to_store(writes: list[UOp], todo: list[UOp]) -> dict[UOp, UOp]:
    """The values to store before `writes` are made, for `todo` and for live values that read the old
    elements. Each with the node that is stored: the value itself, or a copy of a value in memory."""
    memory = {w.buffer.arg.allocation for w in writes}
    written_values = {w.src[1] for w in writes}
    live = [stored_node(uop) for hook in live_roots for uop in hook(0)]
    roots = dedup([*todo, *live])
    reading: set[UOp] = set()  # nodes that read the memory
    waiting: set[UOp] = set()  # nodes that wait for a write
    to_store: dict[UOp, None] = {}
    for node in UOp.sink(*roots).toposort(is_uncomputed):
        value = stored_value(node)
        if value is not None:
            if value.arg.allocation in memory:
                reading.add(node)
            continue
        src = node.src[1:] if node.op in _WRITING else node.src  # a write's target is not read
        if node.op in _WRITING or not waiting.isdisjoint(src):
            waiting.add(node)
            if node not in written_values and node.op is not Ops.SINK:
                to_store |= {s: None for s in src if s in reading}
        elif not reading.isdisjoint(src):
            reading.add(node)
    to_store |= {r: None for r in roots if r in reading and r.op not in GroupOp.Memory}
    in_memory = {n for n in to_store if value_of(n) is not None or n.op in _IN_PLACE}
    return {n: n.clone() if n in in_memory else n for n in to_store}


def stale_values(memory: set[Allocation], pending: PendingGraph | None = None, since: int = 0) -> list[UOp]:
    """The values that read old elements of `memory`, from before the writes (AFTERs) in `pending`, and that
    live lazy values (of Tensors above the serial number `since`) need. Each is a live value, or the value of
    a write. The newest version of the memory is not old."""
    live = dict.fromkeys(
        node
        for hook in live_roots
        for uop in hook(since)
        if uop.op is not Ops.BUFFER and (node := stored_node(uop)).op is not Ops.BUFFER
    )
    if not live:
        return []
    stale: set[UOp] = set()
    seen: Container[UOp] = ()
    if pending is not None and pending.writes:
        seen, writes = pending.order, set(pending.writes)
        stale.update(n for n in pending.leaves if (n.value or n).arg.allocation in memory)
        stale.update(writes.intersection(n.src[0] for n in writes))
        for node in pending.order:
            if not stale.isdisjoint(node.src) and node.value is None and node.op not in _WRITING:
                stale.add(node)
    needed: dict[UOp, None] = {}
    for node in UOp.sink(*live).toposort(lambda n: n not in seen and is_uncomputed(n)):
        if node in seen:
            continue
        value = stored_value(node)
        if value is not None:
            if value.arg.allocation in memory:
                stale.add(node)
        elif node.op is Ops.ASSIGN:  # of a write that is not made now
            needed |= {s: None for s in node.src[1:] if s in stale}
        elif node.op is not Ops.AFTER and not stale.isdisjoint(node.src):
            stale.add(node)
    needed |= {n: None for n in live if n in stale and n.op not in GroupOp.Memory}
    return [n for n in needed if n.op is not Ops.BUFFER]


def buffers_of_gradients(memory: set[Allocation], since: int = 0) -> list[UOp]:
    """The BUFFERs over `memory`, from before a write, in graphs that may still be differentiated (of Tensors
    above the serial number `since`). Graphs that `backward` has gone through are left out."""
    roots = dedup(uop for hook in gradient_roots for uop in hook(since))
    if not roots:
        return []
    order = UOp.sink(*roots).toposort(lambda n: n.op is not Ops.DETACH or not isinstance(n.arg, Spent))
    return [
        n
        for n in order
        if n.op is Ops.BUFFER and n.arg.allocation in memory and n.value is None and not n.arg.is_overwritten
    ]
