"""`Pending`: what a realization has to compute, found in one walk, and the key of the Program that does it.

The key is the graph without what differs from run to run: nodes are numbers in the order of the walk, BUFFERs
and the values of computed nodes are slots, and constants stand apart. So to find a Program that was made
already no node is made.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from polygrad.engine.normalize import Bindings, with_sizes
from polygrad.engine.sharding import is_sharded
from polygrad.errors import InternalError
from polygrad.runtime.buffer import Allocation
from polygrad.uop.for_loop import For
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops

_NOTED = frozenset({Ops.CONST, Ops.BIND, Ops.BUFFER, Ops.COPY, Ops.AFTER, Ops.ASSIGN, Ops.NOOP})


class Pending:
    """Everything under some roots that is not computed.

    `order` numbers the nodes, sources before consumers; `leaves` are computed ones and BUFFERs, `buffers` the
    BUFFERs of these, one for each memory, `constants` the CONSTs, each once; `copies` and `writes` the COPYs
    and AFTERs to carry out. `devices`: where the buffers are.
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
        self.devices: set[Any] = set()  # a tuple of names for what is on several
        self._slots: dict[Allocation, int] = {}
        self.add(roots)

    def add(self, roots: Iterable[UOp]) -> None:
        """Go on with more roots."""
        order, emit = self.order, self.key.append
        n = len(order)
        stack = list(roots)
        stack.reverse()
        while stack:  # a loop that every eager operation waits for: the common arities apart, no calls
            node = stack[-1]
            if node in order:
                stack.pop()
                continue
            value, op, src = node.value, node.op, node.src
            if value is not None:
                if not value.arg.overwritten:
                    emit((~self._slot(value), node.dtype, value.arg.size, node.shape))
                    self.leaves.append(node)
                    order[node] = n
                    n += 1
                    stack.pop()
                    continue
                node.value = None
            arity = 3 if op in _NOTED else len(src)
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
                if op in _NOTED:
                    emit(self._noted(node))
                else:
                    emit((op, node.dtype, node.arg, *[order[s] for s in src]))
            order[node] = n
            n += 1
            stack.pop()

    @property
    def is_sharded(self) -> bool:
        """Whether anything is on several devices."""
        return any(is_sharded(d) for d in self.devices) or any(is_sharded(n.arg) for n in self.copies)

    def unbound_key(self) -> tuple[tuple[Any, ...], dict[str, int]]:
        """The key with Variables in the place of what they are bound to, and that. Raises ArgumentError when
        one is bound to two values."""
        bindings = Bindings()

        def unbound(part: Any) -> Any:
            if part.__class__ is UOp:
                return bindings.unbind(part)
            if part.__class__ is For:
                return with_sizes(Ops.FOR, part, bindings.unbind)
            return tuple([unbound(p) for p in part]) if isinstance(part, tuple) else part

        return tuple([unbound(part) for part in self.key]), bindings.variables

    def _noted(self, node: UOp) -> tuple[Any, ...]:
        """The key of a node of which more is to be known."""
        op, src, order = node.op, node.src, self.order
        if op is Ops.BUFFER:
            if node.arg.overwritten:
                raise InternalError("a read of an overwritten version of memory")
            self.leaves.append(node)
            return (~self._slot(node), node.dtype, node.arg.size)
        if op is Ops.CONST:
            self.constants.append(node)
            return (op, node.dtype)
        if op is Ops.BIND:
            return (node,)
        if op is Ops.NOOP:  # its argument is of its gradient
            return (op, node.dtype, *[order[s] for s in src])
        if op is Ops.ASSIGN:
            # the view that is written to is one of its memory, also where the value in it has been computed
            target, view = src[0], []
            while target.op in GroupOp.Movement:
                view.append((target.op, target.arg))
                target = target.src[0]
            return (op, node.dtype, node.arg, tuple(view), order[target], *[order[s] for s in src[1:]])
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
