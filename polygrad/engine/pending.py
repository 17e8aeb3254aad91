"""`PendingGraph`: the nodes that a realization has to compute, and the key of the Program that computes them,
both from one walk.

In the key, nodes are numbers in the order of the walk, BUFFERs and the values of computed nodes are slots,
and constants are left out. So a graph that was seen before finds its Program without making a node.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from polygrad.dtype import DType
from polygrad.engine.normalize import Bindings, with_sizes
from polygrad.engine.sharding import is_sharded
from polygrad.errors import InternalError
from polygrad.runtime.buffer import Allocation
from polygrad.uop.for_loop import For
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

_WITHOUT_VARIABLES = frozenset({int, type(None), Ops, DType, str})  # the types of most parts of a key
_RECORDED = frozenset({Ops.CONST, Ops.BIND, Ops.BUFFER, Ops.COPY, Ops.AFTER, Ops.ASSIGN, Ops.NOOP})


class PendingGraph:
    """All nodes under some roots that are not computed, and the leaves below them.

    `order`: the nodes, numbered, sources before consumers. `leaves`: BUFFERs and computed nodes. `buffers`:
    the BUFFERs of the leaves, one for each memory. `constants`: the CONSTs, each once. `copies`, `writes`:
    the COPYs and AFTERs among the nodes. `devices`: of the buffers.
    """

    __slots__ = ("_slots", "buffers", "constants", "copies", "devices", "key", "leaves", "order", "writes")

    def __init__(self, roots: Iterable[UOp]) -> None:
        self.order: dict[UOp, int] = {}
        self.key: list[Any] = []
        self.leaves: list[UOp] = []
        self.buffers: list[UOp] = []
        self.constants: list[UOp] = []
        self.copies: list[UOp] = []
        self.writes: list[UOp] = []
        self.devices: set[Any] = set()  # names; tuples of names for values on several devices
        self._slots: dict[Allocation, int] = {}
        self.add(roots)

    def add(self, roots: Iterable[UOp]) -> None:
        """Continue the walk with more roots."""
        order, emit = self.order, self.key.append
        n = len(order)
        stack = list(roots)
        stack.reverse()
        while stack:  # every eager operation waits for this loop: common arities are special, without calls
            node = stack[-1]
            if node in order:
                stack.pop()
                continue
            value, op, src = node.value, node.op, node.src
            if value is not None:
                if not value.arg.is_overwritten:
                    emit((~self._slot(value), node.dtype, value.arg.size, node.shape))
                    self.leaves.append(node)
                    order[node] = n
                    n += 1
                    stack.pop()
                    continue
                node.value = None
            arity = 3 if op in _RECORDED else len(src)
            if arity == 2:
                a, b = src
                i, j = order.get(a), order.get(b)
                if i is None or j is None:
                    if j is None:
                        stack.append(b)
                    if i is None:
                        stack.append(a)
                    continue
                emit((op, node.dtype, node.arg, i, j))
            elif arity == 1:
                (a,) = src
                i = order.get(a)
                if i is None:
                    stack.append(a)
                    continue
                emit((op, node.dtype, None if op is Ops.DETACH else node.arg, i))
            else:
                missing = [s for s in src if s not in order] if op is not Ops.BIND else None
                if missing:
                    missing.reverse()
                    stack += missing
                    continue
                if op in _RECORDED:
                    emit(self._record(node))
                else:
                    emit((op, node.dtype, node.arg, *[order[s] for s in src]))
            order[node] = n
            n += 1
            stack.pop()

    @property
    def is_sharded(self) -> bool:
        """Whether a value is on several devices."""
        return any(is_sharded(d) for d in self.devices) or any(is_sharded(n.arg) for n in self.copies)

    def unbound_key(self) -> tuple[tuple[Any, ...], dict[str, int]]:
        """The key with its Variables unbound, and their values. Raises ArgumentError when a Variable is bound
        to two values."""
        bindings = Bindings()
        return tuple([_unbind(part, bindings) for part in self.key]), bindings.variables

    def _record(self, node: UOp) -> tuple[Any, ...]:
        """The key of a node that also goes into one of the lists."""
        op, src, order = node.op, node.src, self.order
        if op is Ops.BUFFER:
            if node.arg.is_overwritten:
                raise InternalError("pending: a graph reads an overwritten version of memory")
            self.leaves.append(node)
            return (~self._slot(node), node.dtype, node.arg.size)
        if op is Ops.CONST:
            self.constants.append(node)
            return (op, node.dtype)
        if op is Ops.BIND:
            return (node,)
        if op is Ops.NOOP:  # its argument belongs to its gradient
            return (op, node.dtype, *[order[s] for s in src])
        if op is Ops.ASSIGN:
            # The view is written as movement ops over the memory even if its value has been computed.
            memory, views = src[0].movements()
            view = tuple([(v.op, v.arg) for v in views])
            return (op, node.dtype, node.arg, view, order[memory], *[order[s] for s in src[1:]])
        (self.copies if op is Ops.COPY else self.writes).append(node)
        return (op, node.dtype, node.arg, *[order[s] for s in src])

    def _slot(self, node: UOp) -> int:
        """The slot of a BUFFER's memory."""
        allocation = node.arg.allocation
        slot = self._slots.get(allocation)
        if slot is None:
            slot = self._slots[allocation] = len(self.buffers)
            self.buffers.append(node)
            self.devices.add(node.arg.device)
        return slot


def _unbind(part: Any, bindings: Bindings) -> Any:
    """A part of a key with its Variables unbound."""
    if part.__class__ is UOp:
        return bindings.unbind(part)
    if part.__class__ is For:
        return with_sizes(Ops.FOR, part, bindings.unbind)
    if not isinstance(part, tuple) or _WITHOUT_VARIABLES.issuperset(map(type, part)):
        return part
    return tuple([_unbind(p, bindings) for p in part])
