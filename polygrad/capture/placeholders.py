"""Placeholders: buffers that replace a call's Tensor arguments, and live lazy values, during its capture.

If an argument is all of its memory, or if the call is known to write to the memory, then the memory is
replaced together with all its views. Any other view is passed as a copy, so that each call can pass any view;
the copy is written back if the call writes to it.

A live lazy value is not computed by the call. It gets memory if the call uses it, and the call may write to
it.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

from polygrad.engine.devices import Device
from polygrad.engine.normalize import is_uncomputed, value_of
from polygrad.engine.realize import devices_of, realize
from polygrad.engine.recording import Recording
from polygrad.engine.sharding import axis_of
from polygrad.engine.write_hazards import live_roots, stored_node
from polygrad.helpers import prod
from polygrad.runtime.buffer import Buffer
from polygrad.runtime.sharded import ShardedBuffer
from polygrad.tensor.core.aliasing import (
    Storage,
    device_of,
    is_constant,
    is_derived,
    is_whole,
    lazy_root,
    memory_under,
    realize_tensors,
    rebase,
    rename,
    set_owner,
    settle,
    storage_of,
    view_ops,
    write,
)
from polygrad.tensor.core.registry import SetAside
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.shapes import sint_max

ViewOps = tuple[tuple[Ops, Any], ...]


@dataclass(frozen=True, slots=True)
class ArgumentMemory:
    """The memory that passes a Tensor argument, bound as buffer number `slot`: a copy of its elements
    (`copied`), all of its memory (`view` is None), or memory of which the Tensor is a `view`."""

    slot: int
    copied: bool
    view: ViewOps | None = None


@dataclass(slots=True)
class _SavedTensor:
    """A Tensor with a placeholder of its own, and its state before the capture."""

    tensor: Any
    uop: UOp
    storage: Storage | None
    node: UOp | None


class Placeholders:
    """Placeholders for the memory of `tensors`, which are distinct: `buffers`, and the `argument_memory` of
    each.

    `written`: Storages that the call is known to write to; their views are not copied. None: nothing is
    known, and Tensors over the same memory are passed separately.
    """

    def __init__(self, tensors: Sequence[Any], written: Container[Storage] | None) -> None:
        self.buffers: list[Buffer] = []
        self.argument_memory: list[ArgumentMemory] = []
        self._shared: dict[Storage, tuple[UOp, int]] = {}  # each with its own node, and its slot
        self._copied: list[_SavedTensor] = []
        self._is_closed = False
        storages = [storage_of(t) if memory_under(t.uop) is not None else None for t in tensors]
        for t, storage in zip(tensors, storages, strict=True):
            is_written = storage is not None and written is not None and storage in written
            is_repeated = written is None and storage in self._shared
            if storage is None or not (is_written or (is_whole(t) and not is_repeated)):
                self.argument_memory.append(ArgumentMemory(self._add(elements_of(t)), True))
                self._copied.append(_SavedTensor(t, t.uop, t._storage, t._storage and t._storage.node))
                continue
            if storage not in self._shared:
                self._shared[storage] = storage.node, self._add(storage.node.arg)
            view = view_ops(t.uop) if is_written else None
            self.argument_memory.append(ArgumentMemory(self._shared[storage][1], False, view))

    def _add(self, buffer: Buffer) -> int:
        self.buffers.append(buffer.borrow())
        return len(self.buffers) - 1

    def __enter__(self) -> Placeholders:
        for storage, (node, slot) in self._shared.items():
            set_owner(self.buffers[slot].allocation, storage)
            storage.update(UOp.buffer_of(self.buffers[slot], node.dtype))
        slots = [p.slot for p in self.argument_memory if p.copied]
        for c, slot in zip(self._copied, slots, strict=True):
            c.tensor._storage = None
            c.tensor._set_uop(UOp.buffer_of(self.buffers[slot], c.uop.dtype).reshape(c.tensor.shape))
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close(failed=kind is not None)

    def close(self, failed: bool) -> None:
        """Restore the Tensors. `failed`: after an exception; then the recorded runs have been made. May be
        called again, as after an exception at its beginning."""
        if self._is_closed:
            return
        for storage, (node, _) in self._shared.items():
            storage.update(node)
            rename(storage, contents_change=failed)
        slots = [p.slot for p in self.argument_memory if p.copied]
        for c, slot in zip(self._copied, slots, strict=True):
            c.tensor.uop, c.tensor._storage = c.uop, c.storage
            if c.storage is not None and c.node is not None:
                c.tensor.uop = rebase(c.uop, c.node, c.storage.node.reshape(c.node.shape))
            if failed and self.buffers[slot].is_overwritten:
                write_back(c.tensor, self.buffers[slot])
        self._is_closed = True


def elements_of(tensor: Any) -> Buffer:
    """A buffer with a Tensor's elements, in order: its memory if the Tensor is all of it, else a copy."""
    base = stored_node(tensor.uop)
    if base.op is not Ops.BUFFER:
        realize_tensors([tensor])
        (result,) = realize([tensor.uop], tensor._device)
        base = result.base
    buffer: Buffer = base.arg
    return buffer


def write_back(tensor: Any, elements: Buffer) -> None:
    """Write the copy `elements` back to a Tensor."""
    copy = elements.like()
    copy.copy_from(elements)
    write(tensor, UOp.buffer_of(copy, tensor.dtype).reshape(tensor.shape), tensor)
    realize_tensors([tensor])


def memory_of(tensor: Any) -> Buffer:
    """The memory that a Tensor is a view of. For a lazy value that may be differentiated, a copy."""
    memory = memory_under(tensor.uop)
    if memory is None or memory.op is Ops.AFTER:
        realize_tensors([tensor])
        memory = memory_under(tensor.uop)
    if memory is None:
        return elements_of(tensor)
    value = memory if memory.op is Ops.BUFFER else value_of(memory)
    assert value is not None
    buffer: Buffer = value.arg
    return buffer


def _memory_for(storage: Storage) -> Buffer:
    """Memory for a lazy value."""
    node = storage.node
    shape = tuple([sint_max(n) for n in node.shape])
    device: Any = device_of(storage) or devices_of(node.toposort(is_uncomputed))[node] or Device.DEFAULT
    if isinstance(device, tuple):
        return ShardedBuffer.empty([Device[d] for d in device], shape, axis_of(node), node.dtype)
    return Buffer(Device[device], int(prod(shape)), node.dtype)


class OlderTensors:
    """The Tensors that are older than a captured call. Those that it meets, by reading their nodes, become
    part of it; the others cost nothing.

    Stored values get new nodes, so that no value computed from them earlier is mistaken for part of the call.
    Lazy values get placeholders: values that the call uses then get memory, the others stay lazy. Lazy values
    that may be differentiated keep their nodes, and so do aranges that the call does not write to, which
    kernels compute more cheaply than they would load them.

    `arguments` are part of the call from the beginning. `written`: as of `Placeholders`.
    """

    def __init__(
        self, arguments: Sequence[Any], recording: Recording, written: Container[Storage] | None
    ) -> None:
        self._recording, self._written = recording, written
        self._values: dict[Storage, tuple[UOp, Buffer]] = {}  # of lazy values: the node, the placeholder
        self._meets_all = False
        self._arguments = arguments
        self._aside = SetAside(self._meet)

    def add_arguments(self) -> None:
        """Make the arguments part of the call. `close` undoes it."""
        for t in self._arguments:
            self._add(storage_of(t))

    def _add(self, storage: Storage) -> None:
        """Make a Storage part of the call."""
        if storage in self._recording.storages:
            return
        self._recording.storages.add(storage)
        settle(storage)
        if storage.node.op is Ops.BUFFER:
            rename(storage)
        elif storage.node.op is not Ops.AFTER and 0 not in storage.node.shape:
            self._add_lazy(storage, storage.node)

    def _add_lazy(self, storage: Storage, node: UOp) -> None:
        written = self._written
        self._note([node])
        if is_derived(storage) or (written is not None and storage not in written and _is_arange(node)):
            self._recording.lazy_storages.add(storage)
            return
        buffer = _memory_for(storage)
        set_owner(buffer.allocation, storage)
        self._values[storage] = node, buffer
        storage.update(UOp.buffer_of(buffer, node.dtype))

    def _note(self, nodes: list[UOp]) -> None:
        """Note that these nodes are older than the call."""
        # a write to a view of a lazy value, as gradients are, computes the value under the view
        nodes = [n for n in nodes if n.op not in GroupOp.Memory and not is_constant(n)]
        self._recording.lazy_values.update(nodes, map(stored_node, nodes))

    def _meet(self, tensor: Any) -> None:
        storage = storage_of(tensor)
        self._add(storage)
        if is_derived(storage) and not self._meets_all:  # its graph, and so a gradient, may lead to any other
            self._meets_all = True
            for t in self._aside.tensors():
                if t in self._aside:  # meeting a Tensor meets others
                    self._aside.meet(t)

    def __enter__(self) -> OlderTensors:
        self._aside.begin([t for s in self._recording.storages for t in s.tensors()])
        live_roots.append(self._nodes)
        return self

    def _nodes(self, since: int) -> list[UOp]:
        """The lazy values whose nodes no listed Tensor has."""
        aside = self._aside
        unmet = [
            t._storage.node if t._storage is not None else aside.node_of(t)
            for t in (aside.tensors() if since < aside.newest else ())
        ]
        self._note(unmet)
        return [*unmet, *[node for node, _ in self._values.values()]]

    def fill(self, recording: Recording) -> None:
        """Compute the values that the recorded runs use, into the memory that they use for them."""
        used_memory = recording.memory()
        for storage, (node, buffer) in list(self._values.items()):
            if any(part.allocation in used_memory for part in buffer.parts):
                (result,) = realize([node.clone()], device_of(storage) or buffer.device)
                buffer.copy_from(result.base.arg)
                del self._values[storage]

    def have_new_values(self) -> bool:
        """Whether the call has left an older Tensor lazy, with another value."""
        values = self._recording.lazy_values
        return any(
            memory_under(t.uop) is None and lazy_root(t.uop) not in values
            for r in self._aside.met
            if (t := r()) is not None
        )

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Restore the Tensors. May be called again, as after an exception at its beginning."""
        if self._nodes in live_roots:
            live_roots.remove(self._nodes)
        self._aside.end()
        for storage, (node, _) in self._values.items():
            storage.update(node)
        self._values.clear()


def _is_arange(uop: UOp) -> bool:
    """Whether a node is a view of an ARANGE."""
    while uop.op in GroupOp.Movement or uop.op is Ops.CAST:
        uop = uop.src[0]
    return uop.op is Ops.ARANGE
