"""A tensor graph without what differs from run to run: the key of the schedule cache.

BUFFERs become numbered slots, bound Variables unbound ones, nodes that have been computed the slots of their
values. Graphs are hash-consed, so two steps of a training loop normalise to the same object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from polygrad.errors import ArgumentError, InternalError
from polygrad.runtime.buffer import Allocation
from polygrad.uop.args import Shear
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops


class Slot(NamedTuple):
    """A BUFFER of a normalised graph: number `slot`, `size` elements."""

    slot: int
    size: int


@dataclass(slots=True)
class Normalized:
    """`sink` over slots; `buffers[i]` is slot i's BUFFER, `variables` what the Variables are bound to."""

    sink: UOp
    buffers: list[UOp]
    variables: dict[str, int]


class Bindings:
    """What Variables are bound to: `variables`, by name, filled as nodes are unbound."""

    __slots__ = ("variables",)

    def __init__(self) -> None:
        self.variables: dict[str, int] = {}

    def unbound(self, node: UOp) -> UOp:
        """The Variable of a BIND. Raises ArgumentError when it was bound to another value before."""
        variable, value = node.unbind()
        if self.variables.setdefault(variable.arg.name, value) != value:
            raise ArgumentError(
                f"Variable {variable.arg.name}: expected one value in one computation, "
                f"got {self.variables[variable.arg.name]} and {value}"
            )
        return variable

    def unbind(self, size: UOp) -> UOp:
        """A size over Variables that are not bound."""
        return size.substitute({n: self.unbound(n) for n in size.toposort() if n.op is Ops.BIND})


def value_of(node: UOp) -> UOp | None:
    """The BUFFER that holds a node's value, if it was computed and not overwritten since."""
    value = node.value
    if value is not None and value.arg.overwritten:
        node.value = value = None
    return value


def stored_value(node: UOp) -> UOp | None:
    """The BUFFER that holds a node's value: a BUFFER itself, unless a write had its elements copied."""
    return value_of(node) or (node if node.op is Ops.BUFFER else None)


def uncomputed(node: UOp) -> bool:
    """Whether a node has no computed value: a walk continues to its sources."""
    return value_of(node) is None


def _is_written_by_hand(node: UOp) -> bool:
    """Whether a node is memory that nothing but a custom kernel's result is in."""
    return node.op is Ops.AFTER and node.src[1].arg is not None


_SIZES_IN_ARG = frozenset({
    Ops.RESHAPE, Ops.EXPAND, Ops.PAD, Ops.SHRINK, Ops.SHEAR, Ops.ARANGE, Ops.FOR
})  # fmt: skip


def with_sizes(op: Ops, arg: Any, change: Callable[[UOp], UOp]) -> Any:
    """A node's argument, with its symbolic sizes changed."""
    if op not in _SIZES_IN_ARG:
        return arg
    if op is Ops.FOR:
        return arg._replace(body=_body_with_sizes(arg.body, change))
    parts = arg if isinstance(arg, tuple) else (arg,)
    if all(part.__class__ is int for part in parts):
        return arg

    def changed(size: Any) -> Any:
        if isinstance(size, tuple):
            return tuple([changed(s) for s in size])
        return change(size) if isinstance(size, UOp) else size

    return Shear(*changed(tuple(arg))) if op is Ops.SHEAR else changed(arg)


def _body_with_sizes(body: UOp, change: Callable[[UOp], UOp]) -> UOp:
    """The body of a FOR, with its symbolic sizes changed."""
    new: dict[UOp, UOp] = {}
    for node in body.toposort(lambda n: n.op is not Ops.BIND):
        if node.op is Ops.BIND:
            new[node] = change(node)
        else:
            src = tuple([new[s] for s in node.src])
            new[node] = UOp(node.op, node.dtype, src, with_sizes(node.op, node.arg, change))
    return new[body]


def normalize(sink: UOp, first: Sequence[UOp] = (), arguments: Mapping[UOp, UOp] | None = None) -> Normalized:
    """Normalise a graph. `first`: BUFFERs that are to be its first slots.

    `arguments`: for constants, operands of elementwise ops alone, the BUFFERs of one element to load.
    Raises ArgumentError when a Variable is bound to two values or not bound.
    """
    new: dict[UOp, UOp] = {}
    slots: dict[Allocation, UOp] = {}  # two Buffers over the same memory are one slot
    buffers: list[UOp] = []
    bindings = Bindings()
    unbind = bindings.unbind

    def slot_of(node: UOp) -> UOp:
        slot = slots.get(node.arg.allocation)
        if slot is None:
            slot = slots[node.arg.allocation] = UOp(
                Ops.BUFFER, node.dtype, (), Slot(len(buffers), node.arg.size)
            )
            buffers.append(node)
        return slot

    def rebuilt(node: UOp, src: tuple[UOp, ...]) -> UOp:
        return UOp(node.op, node.dtype, src, with_sizes(node.op, node.arg, unbind))

    def normalized_target(target: UOp) -> UOp:
        """The view that an ASSIGN writes to: of its memory, also where the value in it has been computed."""
        views = []
        while target.op in GroupOp.Movement:
            views.append(target)
            target = target.src[0]
        out = new[target]
        for view in reversed(views):
            out = rebuilt(view, (out,))
        return out

    for node in first:
        slot_of(node)
    given = {constant: slot_of(node) for constant, node in (arguments or {}).items()}

    def operand(s: UOp, consumer: UOp) -> UOp:
        if s not in given:
            return new[s]
        shape = with_sizes(Ops.RESHAPE, consumer.shape, unbind)
        return given[s].reshape((1,) * len(shape)).expand(shape)

    roots = set(sink.src)
    for node in sink.toposort(uncomputed):
        if node.value is not None:
            new[node] = slot_of(node.value).reshape(with_sizes(Ops.RESHAPE, node.shape, unbind))
        elif node.op is Ops.BUFFER:
            new[node] = slot_of(node)
        elif node.op is Ops.BIND:
            new[node] = bindings.unbound(node)
        elif node.op is Ops.DETACH:
            new[node] = new[node.src[0]]
        elif node.op is Ops.NOOP:  # a value does not share the memory of its source
            inner = new[node.src[0]]
            apart = node in roots and not _is_written_by_hand(node.src[0].base)
            new[node] = inner.clone() if apart else inner
        elif node.op is Ops.COPY:
            if any(n.op is Ops.BUFFER for n in new[node.src[0]].toposort()):
                raise InternalError("a COPY of stored values reached the scheduler")
            new[node] = new[node.src[0]]
        elif node.op is Ops.ASSIGN:
            target, *others = node.src
            new[node] = UOp(
                node.op, node.dtype, (normalized_target(target), *[new[s] for s in others]), node.arg
            )
        elif given:
            new[node] = rebuilt(node, tuple([operand(s, node) for s in node.src]))
        else:
            new[node] = rebuilt(node, tuple([new[s] for s in node.src]))
    return Normalized(new[sink], buffers, bindings.variables)
