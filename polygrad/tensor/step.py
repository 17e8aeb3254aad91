"""A captured call that can be run again: its Program, and the Tensors whose memory the Program uses.

Capturing swaps the arguments' nodes for placeholders, so that what is computed from them is told apart from
everything else, and gives what is stored a new identity, so that no value computed before is mistaken for
part of the call. Running binds memory, follows Tensors that were assigned to in the meantime, and makes one
call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polygrad.engine.capture import Captured, merge
from polygrad.engine.normalize import uncomputed, value_of, with_sizes
from polygrad.engine.realize import realize
from polygrad.engine.recording import recorded, watch
from polygrad.errors import CaptureError, DeviceError, DTypeError, ShapeError
from polygrad.runtime.buffer import Allocation, Borrowed, Buffer
from polygrad.tensor.arguments import Spec, tensors_in, unbound_shape
from polygrad.tensor.generator import CapturedDraws, generator
from polygrad.tensor.registry import live_tensors
from polygrad.tensor.sizes import value_with
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops


class Step:
    """A captured call. `result` is what the function returned; its Tensors hold the results of the last
    run.
    """

    def __init__(
        self,
        captured: Captured,
        specs: list[Spec],
        slots: list[int],
        draws: CapturedDraws,
        guards: dict[UOp, bool],
        result: Any,
    ) -> None:
        self.captured, self.result = captured, result
        self._specs, self._slots, self._draws = specs, slots, draws
        self._symbolic = [any(s.__class__ is not int for s in spec.shape) for spec in specs]
        self._last: list[UOp | None] = [None] * len(specs)
        self._copies: dict[int, Buffer] = {}
        self._inputs = max(slots, default=-1) + 1
        self._written_inputs = [i for i in captured.written if i < self._inputs]
        self._written: set[Allocation] = set()
        self._held = _holders(captured, self._inputs)
        self._note_written()
        self._seen = watch.executed
        self._guards = guards
        self._values = captured.variables  # what the Variables of `_symbolic_results` are bound to
        self._symbolic_results = symbolic_memory(self._written)

    def run(self, tensors: Sequence[Any], variables: dict[str, int] | None = None) -> Any:
        """Run once on these arguments (None: the one of the last run); `result`.

        Raises ShapeError, DTypeError, DeviceError when a Tensor is not like the one of the capture.
        """
        last = self._last
        for i, tensor in enumerate(tensors):
            if tensor is not None and tensor.uop is not last[i]:
                variables = self._bind(i, tensors, variables)
        for held in self._held:
            if held[0].uop is not held[1]:
                self._follow(held)
        if watch.executed != self._seen:
            self._renew()
        self._draws.continue_()
        captured = self.captured
        values = {**captured.variables, **variables} if variables else captured.variables
        if variables and self._guards:
            check_guards(self._guards, values)
        captured.run(values)
        if self._symbolic_results and values != self._values:
            self._rebind(values)
        if self._written_inputs:
            self._renew_inputs()
        return self.result

    def _bind(
        self, i: int, tensors: Sequence[Any], variables: dict[str, int] | None
    ) -> dict[str, int] | None:
        tensor, spec, slot = tensors[i], self._specs[i], self._slots[i]
        found = buffer_of(tensor)
        shape: Any = tensor.shape
        if self._symbolic[i]:
            variables = {} if variables is None else variables
            shape = unbound_shape(shape, variables)
        check(spec, shape, tensor.dtype, found.device)
        first = self._slots.index(slot)
        if first != i:
            if tensors[first].uop is not tensor.uop:
                raise CaptureError(
                    f"{spec.name}: expected the same Tensor as {self._specs[first].name}, as captured, got "
                    "another: call reset() first"
                )
            return variables
        if found.allocation in self._written:
            if slot in self._written_inputs:
                raise CaptureError(
                    f"{spec.name}: expected memory of its own, as the function writes to it, got memory that "
                    "it writes to otherwise too: pass a clone()"
                )
            found = self._copy(slot, found)
        elif not self._symbolic[i]:
            self._last[i] = tensor.uop
        self.captured.bind(slot, found)
        return variables

    def bind_data(self, i: int, data: memoryview) -> None:
        """Let argument `i` be `data`, bytes that are like the one of the capture, copied."""
        slot = self._slots[i]
        like = self.captured.buffers[slot]
        assert like is not None
        mine = self._copies.get(slot)
        if mine is None:
            mine = self._copies[slot] = Buffer(like.runtime, like.size, like.dtype)
        mine.write(data)
        self.captured.bind(slot, mine)
        self._last[i] = None

    def _copy(self, slot: int, buffer: Buffer) -> Buffer:
        """A copy of an argument that lies where the step writes: of a result of the last run, say."""
        mine = self._copies.get(slot)
        if mine is None:
            mine = self._copies[slot] = Buffer(buffer.runtime, buffer.size, buffer.dtype)
        mine.write(buffer.read())
        return mine

    def _follow(self, held: list[Any]) -> None:
        """A Tensor that the step uses has another node: it was assigned to, or replaced."""
        tensor, _, position = held
        found, old = buffer_of(tensor), self.captured.buffers[position]
        assert old is not None
        if (found.size, found.dtype, found.device) != (old.size, old.dtype, old.device):
            raise CaptureError(
                f"captured function: expected a Tensor that it uses to stay {old}, got {found}: call reset()"
            )
        self.captured.bind(position, found)
        held[1] = tensor.uop
        self._note_written()

    def _note_written(self) -> None:
        buffers = self.captured.buffers
        self._written = {
            b.allocation for i in self.captured.written if (b := buffers[i]) and i >= self._inputs
        }

    def _renew(self) -> None:
        """Programs have run since: what they computed from the old contents must not pass for the new."""
        renew(self._written)
        for held in self._held:
            held[1] = held[0].uop
        self._seen = watch.executed

    def _rebind(self, values: dict[str, int]) -> None:
        """Let Tensors over results of symbolic shape have the shape of this run: that is how memory is laid
        out now.
        """
        rebind(self._symbolic_results, values)
        for held in self._held:
            held[1] = held[0].uop
        self._values = values

    def _renew_inputs(self) -> None:
        buffers = [self.captured.buffers[i] for i in self._written_inputs]
        renew({b.allocation for b in buffers if b is not None})
        self._last = [None] * len(self._last)


def check(spec: Spec, shape: tuple[Any, ...], dtype: Any, device: str) -> None:
    """Raises ShapeError, DTypeError or DeviceError when an argument is not like the captured one."""
    if shape != spec.shape:
        raise ShapeError(
            f"{spec.name}: expected shape {spec.shape}, as captured, got {shape}: reset() or pad it"
        )
    if dtype is not spec.dtype:
        raise DTypeError(f"{spec.name}: expected dtype {spec.dtype}, as captured, got {dtype}: use .cast()")
    if device != spec.device:
        raise DeviceError(f"{spec.name}: expected device {spec.device}, as captured, got {device}: use .to()")


def capture(
    call: Callable[[], Any],
    arguments: Sequence[Any],
    names: Sequence[str],
    forget: Callable[[], None] | None = None,
) -> Step:
    """Capture `call`, which uses the Tensors `arguments`, without running anything.

    `forget` drops Tensors that `call` leaves behind, once what is wanted is computed: gradients, so that they
    are stored as in an eager call (whose kernels these then are, and so whose rounding) but need not stay.
    Raises CaptureError, and what `call` raises; then what it had computed has been computed after all.
    """
    unique = list({id(t): t for t in arguments}.values())
    _compute([t for t in live_tensors() if _is_assigned(t)])
    real = [buffer_of(t) for t in unique]
    renew(None)
    live = [t.uop.base for t in live_tensors()]
    before = frozenset(node for node in live if node.op is not Ops.BUFFER and uncomputed(node))
    nodes = [t.uop for t in unique]
    standing = [Buffer(b.runtime, b.size, b.dtype, Borrowed(b.allocation)) for b in real]
    specs = []
    for name, t in zip(names, arguments, strict=True):
        specs.append(Spec(name, unbound_shape(t.shape, {}), t.dtype, buffer_of(t).device))
    try:
        for t, buffer in zip(unique, standing, strict=True):
            t.uop = UOp(Ops.BUFFER, t.dtype, (), buffer).reshape(t.shape)
        with generator.captured() as draws, recorded(before) as recording:
            result = call()
            outputs = tensors_in(result)
            _give_own_memory(outputs, unique, {b.allocation for b in standing})
            _compute([*outputs, *(t for t in live_tensors() if _is_assigned(t) and t.uop.base not in before)])
            realize(draws.advances())
            buffers = [_computed(t) for t in outputs]
            if forget is not None:
                forget()
            captured = merge(recording, standing, buffers)
    finally:
        for t, node in zip(unique, nodes, strict=True):
            t.uop = node
    for t, buffer in zip(outputs, buffers, strict=True):
        if t._derived:
            t.uop = UOp(Ops.BUFFER, t.dtype, (), buffer).reshape(t.shape)
            t.requires_grad, t._derived = False, False
    slots = {id(t): i for i, t in enumerate(unique)}
    return Step(captured, specs, [slots[id(t)] for t in arguments], draws, recording.guards, result)


def buffer_of(tensor: Any) -> Buffer:
    """The memory of a Tensor's value, computed if need be."""
    base = tensor.uop.base
    if base.op is not Ops.BUFFER:
        tensor.realize()
    return _computed(tensor)


def _computed(tensor: Any) -> Buffer:
    node = tensor.uop
    while node.op is Ops.RESHAPE or node.op is Ops.DETACH:
        node = node.src[0]
    value = node if node.op is Ops.BUFFER else value_of(node)
    assert value is not None
    found: Buffer = value.arg
    return found


def _compute(tensors: list[Any]) -> None:
    if tensors:
        tensors[0].realize(*tensors[1:])


def _is_assigned(tensor: Any) -> bool:
    """Whether an in-place write to this Tensor has not been carried out."""
    base = tensor.uop.base
    return base.op is Ops.ASSIGN and uncomputed(base)


def _give_own_memory(outputs: list[Any], inputs: list[Any], standing: set[Allocation]) -> None:
    """Results that are an argument's memory get some of their own.

    Raises CaptureError for an argument itself.
    """
    for t in outputs:
        node = t.uop
        while node.op is Ops.RESHAPE or node.op is Ops.DETACH:
            node = node.src[0]
        while node.op is Ops.ASSIGN:
            node = node.src[0].base
        if node.op is Ops.BUFFER and node.arg.allocation in standing:
            if any(t is x for x in inputs):
                raise CaptureError(
                    "captured function: expected new Tensors as results, got one of its arguments: return a "
                    "clone() of it, or nothing"
                )
            t.uop = UOp(Ops.CONTIGUOUS, t.dtype, (t.uop,))


def _holders(captured: Captured, n_inputs: int) -> list[list[Any]]:
    """For the memory that was there before: [a Tensor over it, the Tensor's node, the position]."""
    program = captured.program
    positions = {
        b.allocation: i
        for i, b in enumerate(captured.buffers)
        if b is not None and program.buffers[i].role in ("param", "state") and i >= n_inputs
    }
    found: dict[int, list[Any]] = {}
    for t in live_tensors():
        base = t.uop.base
        if base.op is Ops.ASSIGN and value_of(base) is not None:
            t.uop = base.value.reshape(t.shape)
            base = base.value
        if base.op is not Ops.BUFFER:
            continue
        position = positions.get(base.arg.allocation)
        if position is None:
            continue
        owner = base.arg.owner
        if position not in found or (owner is not None and owner() is t):
            found[position] = [t, t.uop, position]
    return list(found.values())


def renew(memory: set[Allocation] | None) -> None:
    """Give what is stored in `memory` (None: anywhere) a new identity, in all live Tensors.

    With `memory` lazy Tensors follow; without, only views do, and the others go on reading what they read.
    """
    live = live_tensors()
    fresh: dict[UOp, UOp] = {}
    for node in UOp.sink(*(t.uop for t in live if memory is not None or _is_view(t.uop))).toposort(
        uncomputed
    ):
        if node.op is Ops.BUFFER:
            if memory is None or node.arg.allocation in memory:
                fresh[node] = UOp(Ops.BUFFER, node.dtype, (), _renamed(node.arg))
        elif not fresh.keys().isdisjoint(node.src) and uncomputed(node):
            fresh[node] = UOp(node.op, node.dtype, tuple([fresh.get(s, s) for s in node.src]), node.arg)
    for t in live:
        t.uop = fresh.get(t.uop, t.uop)


def check_guards(guards: dict[UOp, bool], values: dict[str, int]) -> None:
    """Raises CaptureError when a size is negative that was not so in the captured call, or the reverse."""
    for size, negative in guards.items():
        if (value_with(size, values) < 0) is not negative:
            wanted = "below 0" if negative else "at least 0"
            raise CaptureError(
                f"captured function: expected {size} to be {wanted}, as when it was captured, since a slice, "
                f"an index or a size depends on it, got {values}: call reset()"
            )


def symbolic_memory(written: set[Allocation]) -> set[Allocation]:
    """What live Tensors read of this memory, not there before, with a symbolic shape."""
    roots = [t.uop for t in live_tensors()]
    return {
        node.base.arg.allocation
        for node in UOp.sink(*roots).toposort(uncomputed)
        if node.op is Ops.RESHAPE
        and node.base.op is Ops.BUFFER
        and node.base.arg.allocation in written
        and not node.base.arg.allocation.is_allocated
        and any(s.__class__ is not int for s in node.shape)
    }


def rebind(memory: set[Allocation], values: dict[str, int]) -> None:
    """Bind the Variables of all live Tensors that read `memory` to other values, lazy ones included."""
    live = live_tensors()
    order = UOp.sink(*(t.uop for t in live)).toposort(uncomputed)
    reading: set[UOp] = set()
    for node in order:
        if node.op is Ops.BUFFER:
            if node.arg.allocation in memory:
                reading.add(node)
        elif not reading.isdisjoint(node.src) and uncomputed(node):
            reading.add(node)
    fresh: dict[UOp, UOp] = {}

    def bound(size: UOp) -> UOp:
        binds = [n for n in size.toposort() if n.op is Ops.BIND and n.src[0].arg.name in values]
        return size.substitute({n: n.src[0].bind(values[n.src[0].arg.name]) for n in binds})

    for node in UOp.sink(*(t.uop for t in live if t.uop in reading)).toposort(uncomputed):
        if node.op is Ops.BIND:
            fresh[node] = bound(node)
        elif node.op is not Ops.SINK and uncomputed(node):
            src = tuple([fresh.get(s, s) for s in node.src])
            fresh[node] = UOp(node.op, node.dtype, src, with_sizes(node.op, node.arg, bound))
    for t in live:
        if t.uop in reading:
            t.uop = fresh[t.uop]


def _is_view(node: UOp) -> bool:
    """Whether the node is a BUFFER, moved about."""
    while node.op in GroupOp.Movement or node.op is Ops.DETACH:
        node = node.src[0]
    return node.op is Ops.BUFFER


def _renamed(buffer: Buffer) -> Buffer:
    alias = buffer.alias()
    alias.owner = buffer.owner
    return alias
