"""Which leaves lead to a result, which nodes stand for them, and what a backward leaves behind.

A leaf that requires a gradient is a DETACH with a Leaf as its argument, put on the Tensor's node: each
version of the Tensor's value that was used has one, so a graph says by itself what it is differentiated with
respect to, whatever has been read, written or frozen since.
"""

from __future__ import annotations

from typing import Any

from polygrad.engine.normalize import uncomputed, value_of
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

    A leaf that requires a gradient is the DETACHs that say so, one for each version of its value that was
    used. Any other target is its node or, where that is not in the graph, an older one over the same memory.
    """
    nodes: dict[UOp, list[int]] = {}
    leaves: dict[Any, list[int]] = {}
    by_memory: dict[Allocation, int] = {}
    for i, t in enumerate(targets):
        if t._is_marked():
            leaves.setdefault(t._role, []).append(i)
            continue
        nodes.setdefault(t.uop, []).append(i)
        stored = t.uop
        while stored.op is Ops.RESHAPE or stored.op is Ops.AFTER:
            stored = stored.src[0]
        if stored.op is Ops.BUFFER:
            by_memory[stored.arg.allocation] = i
    present: dict[UOp, list[int]] = {}
    older: list[tuple[UOp, int]] = []
    for n in order:
        found = nodes.get(n)
        if found is None and n.op is Ops.DETACH and n.arg in leaves:
            found = leaves[n.arg]
        if found is not None:
            present[n] = found
            continue
        value = n if n.op is Ops.BUFFER else value_of(n)
        if value is not None and value.arg.allocation in by_memory:
            older.append((n, by_memory[value.arg.allocation]))
    newest = {i for positions in present.values() for i in positions}
    present.update({n: [i] for n, i in older if i not in newest})
    return present


def leaves_of(order: list[UOp], live: list[Any]) -> tuple[list[Any], dict[UOp, list[int]]]:
    """The live Tensors whose `.grad` a backward fills (see there), and where their nodes are.

    `order`: the nodes under its root that carry a gradient; `live`: all Tensors.
    """
    marked = {n.arg: t for n in order if is_leaf(n) and (t := n.arg.tensor()) is not None}
    required = [t for t in marked.values() if t.requires_grad]
    read = _read_by(order)
    candidates = [t for t in live if t._requires_grad is None and _origin(t.uop) in read]
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
    wanted = [i for i in range(len(tensors)) if i < len(required) or i in leaves - computed]
    place = {i: n for n, i in enumerate(wanted)}
    found = {n: [place[i] for i in positions if i in place] for n, positions in present.items()}
    return [tensors[i] for i in wanted], {n: positions for n, positions in found.items() if positions}


def _read_by(order: list[UOp]) -> set[Any]:
    """The nodes of a graph, and the memory that it reads or has values in."""
    found: set[Any] = set(order)
    for n in order:
        value = n if n.op is Ops.BUFFER else value_of(n)
        if value is not None:
            found.add(value.arg.allocation)
    return found


def _origin(uop: UOp) -> Any:
    """A key that tells quickly whether a graph contains a Tensor: the memory of which it is a version, or its
    node."""
    stored = uop
    while stored.op is Ops.RESHAPE or stored.op is Ops.AFTER:
        stored = stored.src[0]
    return stored.arg.allocation if stored.op is Ops.BUFFER else uop


def live_derived(since: int = 0) -> list[UOp]:
    """The values of live Tensors (with serial numbers above `since`) on which `backward` may be called."""
    return [t.uop for t in live_tensors(since) if t._derived]


def spend(root: Any, order: list[UOp], live: list[Any]) -> None:
    """Mark what a backward has gone through from `root`, along the nodes `order`, as spent: those `live` that
    it came by, and `root` in results that are computed from it. What was spent before, and cannot be
    differentiated any more, is freed."""
    node, passed = root.uop, set(order)
    others = []
    for t in live:
        if not t._derived or t.uop.arg is Spent.FREED:
            continue
        if _is_spent(t.uop):
            if (freed := _freed(t.uop)) is not None and len(storage_of(t).tensors()) == 1:
                t.uop, t._storage = freed, None
        elif t.uop in passed:
            t.uop = t.uop.detach(Spent.SPENT)
        else:
            others.append(t)
    if not others:
        return
    new = {node: node.detach(Spent.SPENT)}
    for n in UOp.sink(*[t.uop for t in others]).toposort(lambda n: n not in passed and not _is_spent(n)):
        if _is_spent(n):
            if (freed := _freed(n)) is not None:
                new[n] = freed
        elif n not in new and n.op is not Ops.SINK and not new.keys().isdisjoint(n.src):
            changed = new[n] = n.replace(src=tuple([new.get(s, s) for s in n.src]))
            changed.value = n.value
    for storage in {storage_of(t) for t in others}:
        if storage.node in new:
            storage.update(new[storage.node])


def _is_spent(node: UOp) -> bool:
    return node.op is Ops.DETACH and node.arg is Spent.SPENT


def _freed(spent: UOp) -> UOp | None:
    """The computed value of a spent node without its graph, which reads memory that was overwritten; None
    while it is not computed, or reads none."""
    value = value_of(lazy_root(spent))
    if value is None:
        return None
    order = spent.toposort(lambda n: not is_leaf(n))
    of_leaves = UOp.sink(*[n.src[0] for n in order if is_leaf(n)]).toposort(uncomputed)
    if not any(map(_is_lost, order)) and not any(map(_is_lost, of_leaves)):
        return None
    return value.reshape(spent.shape).detach(Spent.FREED)


def above_leaves(uops: list[UOp]) -> set[UOp]:
    """The nodes under `uops` on the paths of gradients to leaves that require one."""
    found: set[UOp] = set()
    for n in UOp.sink(*uops).toposort(lambda n: n.op is Ops.SINK or carries_gradient(n)):
        if is_leaf(n) or (carries_gradient(n) and not found.isdisjoint(n.src)):
            found.add(n)
    return found


def is_stored(uop: UOp) -> bool:
    """Whether a node is memory, so that its graph is not known."""
    while uop.op in GroupOp.Movement or uop.op in (Ops.DETACH, Ops.NOOP):
        uop = uop.src[0]
    return uop.op is Ops.BUFFER


def _is_lost(node: UOp) -> bool:
    """Whether a node is a version of memory that was overwritten and not preserved."""
    return node.op is Ops.BUFFER and node.arg.overwritten and node.value is None


def check_versions(order: list[UOp], grads: list[UOp]) -> None:
    """Raises GradientError when gradients read memory that was overwritten. `order`: the nodes on their
    way."""
    passed = set(order)
    others = [s for n in order for s in n.src if s not in passed]
    below = UOp.sink(*others).toposort(lambda n: n not in passed)
    if not any(map(_is_lost, below)) and not any(map(_is_lost, order)):
        return
    for n in UOp.sink(*grads).toposort(uncomputed):
        if _is_lost(n):
            where = n.arg.allocation.written_at
            raise GradientError(
                f"gradient: it needs a value of {n.arg.size} elements ({n.dtype}) as it was before "
                f"{'a write' if where is None else f'the write at {where[0]}:{where[1]}'}: differentiate "
                "before writing, let the result require a gradient (requires_grad=True on what it is "
                "made of), or pass retain_graph=True to the backward() that came first"
            )
