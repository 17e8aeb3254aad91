"""Normalised graphs: tensor graphs in which everything that differs from run to run is replaced.

BUFFERs become numbered slots. Bound Variables become unbound ones. Computed nodes become the slots of their
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
from polygrad.uop.ops import Ops
from polygrad.uop.origins import watch


class Slot(NamedTuple):
    """A BUFFER of a normalised graph: number `slot`, `size` elements."""

    slot: int
    size: int


@dataclass(slots=True)
class Normalized:
    """`sink`: the graph over slots. `buffers[i]`: the BUFFER of slot i. `variables`: the values of the
    Variables."""

    sink: UOp
    buffers: list[UOp]
    variables: dict[str, int]


class Bindings:
    """`variables`: the values that Variables are bound to, by name, of all nodes that were unbound so far."""

    __slots__ = ("variables",)

    def __init__(self) -> None:
        self.variables: dict[str, int] = {}

    def variable_of(self, node: UOp) -> UOp:
        """The Variable of a BIND. Raises ArgumentError when it was bound to another value before."""
        variable, value = node.unbind()
        if self.variables.setdefault(variable.arg.name, value) != value:
            raise ArgumentError(
                f"Variable {variable.arg.name}: bound to {self.variables[variable.arg.name]} and {value} in "
                "one computation: expected one value"
            )
        return variable

    def unbind(self, size: UOp) -> UOp:
        """A size with its BINDs replaced by their Variables."""
        return size.substitute({n: self.variable_of(n) for n in size.toposort() if n.op is Ops.BIND})


def value_of(node: UOp) -> UOp | None:
    """The BUFFER that holds a node's value, if it was computed and not overwritten since."""
    value = node.value
    if value is not None and value.arg.is_overwritten:
        node.value = value = None
    return value


def stored_value(node: UOp) -> UOp | None:
    """The BUFFER that holds a node's value. Of a BUFFER it is itself, unless a write moved its elements."""
    return value_of(node) or (node if node.op is Ops.BUFFER else None)


def is_uncomputed(node: UOp) -> bool:
    """Whether a node has no computed value, so that a walk continues to its sources."""
    return value_of(node) is None


def _is_written_by_hand(node: UOp) -> bool:
    """Whether a node is memory that a custom kernel has written."""
    return node.op is Ops.AFTER and node.src[1].arg is not None


_SIZES_IN_ARG = frozenset({
    Ops.RESHAPE, Ops.EXPAND, Ops.PAD, Ops.SHRINK, Ops.SHEAR, Ops.ARANGE, Ops.FOR
})  # fmt: skip


def with_sizes(op: Ops, arg: Any, change: Callable[[UOp], UOp]) -> Any:
    """A node's argument, with `change` applied to its symbolic sizes."""
    if op not in _SIZES_IN_ARG:
        return arg
    if op is Ops.FOR:
        return arg._replace(body=_body_with_sizes(arg.body, change))
    parts = arg if isinstance(arg, tuple) else (arg,)
    if all(part.__class__ is int for part in parts):
        return arg
    return Shear(*_change_each(tuple(arg), change)) if op is Ops.SHEAR else _change_each(arg, change)


def _change_each(sizes: Any, change: Callable[[UOp], UOp]) -> Any:
    """A size, or a tuple of sizes and of such tuples, with `change` applied to each that is symbolic."""
    if isinstance(sizes, tuple):
        return tuple([_change_each(s, change) for s in sizes])
    return change(sizes) if isinstance(sizes, UOp) else sizes


def _body_with_sizes(body: UOp, change: Callable[[UOp], UOp]) -> UOp:
    """The body of a FOR, with `change` applied to its symbolic sizes."""
    new: dict[UOp, UOp] = {}
    for node in body.toposort(lambda n: n.op is not Ops.BIND):
        if node.op is Ops.BIND:
            new[node] = change(node)
        else:
            src = tuple([new[s] for s in node.src])
            new[node] = UOp(node.op, node.dtype, src, with_sizes(node.op, node.arg, change))
    return new[body]


def normalize(sink: UOp, first: Sequence[UOp] = (), arguments: Mapping[UOp, UOp] | None = None) -> Normalized:
    """Normalise a graph. `first`: the BUFFERs of its first slots. `arguments`: BUFFERs of one element that
    are loaded instead of constants, which are operands of elementwise ops only.

        SINK(MUL(RESHAPE(BUFFER<b>), CONST 2.0))  ->  SINK(MUL(RESHAPE(BUFFER<slot 0>), CONST 2.0))

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

    def rebuild(node: UOp, src: tuple[UOp, ...]) -> UOp:
        return UOp(node.op, node.dtype, src, with_sizes(node.op, node.arg, unbind))

    def normalize_target(target: UOp) -> UOp:
        """The view that an ASSIGN writes to. Its movement ops are applied to the memory even if the view's
        value has been computed."""
        memory, views = target.movements()
        out = new[memory]
        for view in views:
            out = rebuild(view, (out,))
        return out

    for node in first:
        slot_of(node)
    argument_slots = {constant: slot_of(node) for constant, node in (arguments or {}).items()}

    def operand(s: UOp, consumer: UOp) -> UOp:
        if s not in argument_slots:
            return new[s]
        shape = with_sizes(Ops.RESHAPE, consumer.shape, unbind)
        return argument_slots[s].reshape((1,) * len(shape)).expand(shape)

    roots = set(sink.src)
    for node in sink.toposort(is_uncomputed):
        if node.value is not None:
            new[node] = slot_of(node.value).reshape(with_sizes(Ops.RESHAPE, node.shape, unbind))
        elif node.op is Ops.BUFFER:
            new[node] = slot_of(node)
        elif node.op is Ops.BIND:
            new[node] = bindings.variable_of(node)
        elif node.op is Ops.DETACH:
            new[node] = new[node.src[0]]
        elif node.op is Ops.NOOP:  # its value does not share the memory of its source
            inner = new[node.src[0]]
            apart = node in roots and not _is_written_by_hand(node.src[0].base)
            new[node] = inner.clone() if apart else inner
        elif node.op is Ops.COPY:
            if any(n.op is Ops.BUFFER for n in new[node.src[0]].toposort()):
                raise InternalError("normalize: a COPY of stored values")
            new[node] = new[node.src[0]]
        elif node.op is Ops.ASSIGN:
            target, *others = node.src
            new[node] = UOp(
                node.op, node.dtype, (normalize_target(target), *[new[s] for s in others]), node.arg
            )
        elif argument_slots:
            new[node] = rebuild(node, tuple([operand(s, node) for s in node.src]))
        else:
            new[node] = rebuild(node, tuple([new[s] for s in node.src]))
        if watch.origins is not None and new[node].op is not Ops.BUFFER:
            watch.origins.pass_on(node, new[node])
    return Normalized(new[sink], buffers, bindings.variables)
