"""Which leaves lead to a result, which nodes represent them, and how `backward` marks what it used.

A leaf that requires a gradient is a DETACH with a Leaf as its argument, on top of the Tensor's node. Each
version of the Tensor's value that was used has one. So a graph itself says which leaves it depends on,
whatever was read, written or frozen later.
"""

from __future__ import annotations

from typing import Any

from polygrad.engine.normalize import is_uncomputed, value_of
from polygrad.errors import GradientError
from polygrad.gradient import carries_gradient, is_leaf
from polygrad.runtime.buffer import Allocation
from polygrad.tensor.core.aliasing import is_constant, lazy_root, storage_of
from polygrad.tensor.core.registry import live_tensors
from polygrad.uop.args import Spent
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops


def positions(order: list[UOp], targets: list[Any]) -> dict[UOp, list[int]]:
    """The positions of targets in a graph.

    A leaf that requires a gradient has one DETACH for each version of its value that was used. Any other
    target has its node or, if that is not in the graph, an older node over the same memory.
    """
    nodes: dict[UOp, list[int]] = {}
    leaves: dict[Any, list[int]] = {}
    by_memory: dict[Allocation, int] = {}
    for i, t in enumerate(targets):
        if t._is_marked():
            leaves.setdefault(t._role, []).append(i)
            continue
        nodes.setdefault(t.uop, []).append(i)
        memory = t.uop
        while memory.op is Ops.RESHAPE or memory.op is Ops.AFTER:
            memory = memory.src[0]
        if memory.op is Ops.BUFFER:
            by_memory[memory.arg.allocation] = i
    present: dict[UOp, list[int]] = {}
    for n in order:
        indices = nodes.get(n)
        if indices is None and n.op is Ops.DETACH:
            indices = leaves.get(n.arg)
        if indices is not None:
            present[n] = indices
    older = [(n, by_memory[m]) for n, m in _in_memory(order) if m in by_memory and n not in present]
    newest = {i for positions in present.values() for i in positions}
    present.update({n: [i] for n, i in older if i not in newest})
    return present


def _in_memory(order: list[UOp]) -> list[tuple[UOp, Allocation]]:
    """The nodes that are memory, or have a computed value, each with that memory."""
    out = []
    for n in order:
        if n.op is Ops.BUFFER:
            out.append((n, n.arg.allocation))
        elif n.value is not None and (value := value_of(n)) is not None:
            out.append((n, value.arg.allocation))
    return out


def leaves_of(order: list[UOp], live: list[Any]) -> tuple[list[Any], dict[UOp, list[int]]]:
    """The live Tensors whose `.grad` `backward` fills, and by node the indices of those that it represents.

    `order`: the nodes under its root that carry a gradient; `live`: all Tensors.
    """
    marks = [n for n in order if n.op is Ops.DETACH]
    marked = {n.arg: t for n in marks if is_leaf(n) and (t := n.arg.tensor()) is not None}
    required = [t for t in marked.values() if t.requires_grad]
    sources_read = _read_by(order)
    candidates = [t for t in live if t._requires_grad is None and _origin(t.uop) in sources_read]
    undeclared = [t for t in candidates if t.uop.dtype.is_float and not is_constant(t.uop)]
    tensors = [*required, *undeclared]
    present = positions(order, tensors)
    sources = set(present)  # and what is computed from one of them
    leaves: set[int] = set()
    computed: set[int] = set()
    for node in order:
        is_computed = not sources.isdisjoint(node.src) and carries_gradient(node)
        if is_computed:
            sources.add(node)
        if node in present:
            (computed if is_computed else leaves).update(present[node])
    leaf_indices = [i for i in range(len(tensors)) if i < len(required) or i in leaves - computed]
    place = {i: n for n, i in enumerate(leaf_indices)}
    leaf_positions = {n: [place[i] for i in positions if i in place] for n, positions in present.items()}
    return [tensors[i] for i in leaf_indices], {
        n: positions for n, positions in leaf_positions.items() if positions
    }


def _read_by(order: list[UOp]) -> set[Any]:
    """The nodes of a graph, and the memory that it reads or that holds its computed values."""
    return {*order, *[memory for _, memory in _in_memory(order)]}


def _origin(uop: UOp) -> Any:
    """The key under which a graph that contains this Tensor has it: the memory it is a version of, or its
    node."""
    memory = uop
    while memory.op is Ops.RESHAPE or memory.op is Ops.AFTER:
        memory = memory.src[0]
    return memory.arg.allocation if memory.op is Ops.BUFFER else uop


def live_derived(since: int = 0) -> list[UOp]:
    """The values of live Tensors (with serial numbers above `since`) on which `backward` may be called."""
    return [t.uop for t in live_tensors(since) if t._derived]


def spend(root: Any, order: list[UOp], live: list[Any]) -> None:
    """Mark as SPENT the values that `backward` visited.

    These are the `live` Tensors among the nodes `order`, and `root` inside of results computed from it.
    Values that were spent before and can no longer be differentiated become FREED.
    """
    node, visited = root.uop, set(order)
    other_tensors = []
    for t in live:
        if not t._derived or t.uop.arg is Spent.FREED:
            continue
        if _is_spent(t.uop):
            if (freed := _freed_value(t.uop)) is not None and len(storage_of(t).tensors()) == 1:
                t.uop, t._storage = freed, None
        elif t.uop in visited:
            t.uop = t.uop.detach(Spent.SPENT)
        else:
            other_tensors.append(t)
    if not other_tensors:
        return
    new = {node: node.detach(Spent.SPENT)}
    for n in UOp.sink(*[t.uop for t in other_tensors]).toposort(
        lambda n: n not in visited and not _is_spent(n)
    ):
        if _is_spent(n):
            if (freed := _freed_value(n)) is not None:
                new[n] = freed
        elif n not in new and n.op is not Ops.SINK and not new.keys().isdisjoint(n.src):
            replacement = new[n] = n.replace(src=tuple([new.get(s, s) for s in n.src]))
            replacement.value = n.value
    for storage in {storage_of(t) for t in other_tensors}:
        if storage.node in new:
            storage.update(new[storage.node])


def _is_spent(node: UOp) -> bool:
    return node.op is Ops.DETACH and node.arg is Spent.SPENT


def _freed_value(spent: UOp) -> UOp | None:
    """The computed value of a spent node, without its graph, if that reads memory that was overwritten. None
    if the value is not computed, or the graph reads no such memory."""
    value = value_of(lazy_root(spent))
    if value is None:
        return None
    order = spent.toposort(lambda n: not is_leaf(n))
    of_leaves = UOp.sink(*[n.src[0] for n in order if is_leaf(n)]).toposort(is_uncomputed)
    if not any(map(_is_lost, order)) and not any(map(_is_lost, of_leaves)):
        return None
    return value.reshape(spent.shape).detach(Spent.FREED)


def above_leaves(uops: list[UOp]) -> set[UOp]:
    """The nodes under `uops` on the paths of gradients to leaves that require one."""
    nodes: set[UOp] = set()
    for n in UOp.sink(*uops).toposort(lambda n: n.op is Ops.SINK or carries_gradient(n)):
        if is_leaf(n) or (carries_gradient(n) and not nodes.isdisjoint(n.src)):
            nodes.add(n)
    return nodes


def is_stored(uop: UOp) -> bool:
    """Whether a node is memory, so that its graph is not known."""
    while uop.op in GroupOp.Movement or uop.op in (Ops.DETACH, Ops.NOOP):
        uop = uop.src[0]
    return uop.op is Ops.BUFFER


def _is_lost(node: UOp) -> bool:
    """Whether a node is a version of memory that was overwritten and not preserved."""
    return node.op is Ops.BUFFER and node.arg.is_overwritten and node.value is None


def check_versions(order: list[UOp], grads: list[UOp]) -> None:
    """Raises GradientError when gradients read memory that was overwritten. `order`: the nodes that they pass
    through."""
    visited = set(order)
    other_sources = [s for n in order for s in n.src if s not in visited]
    below = UOp.sink(*other_sources).toposort(lambda n: n not in visited)
    if not any(_is_lost(n) for nodes in (below, order) for n in nodes if n.op is Ops.BUFFER):
        return
    for n in UOp.sink(*grads).toposort(is_uncomputed):
        if _is_lost(n):
            write_location = n.arg.allocation.written_at
            write = "a write" if write_location is None else "the write at {}:{}".format(*write_location)
            raise GradientError(
                f"gradient: a value that it needs ({n.arg.size} elements, {n.dtype}) was overwritten by "
                f"{write}: differentiate "
                "before writing, let the result require a gradient (requires_grad=True on what it is "
                "made of), or pass retain_graph=True to the backward() that came first"
            )
