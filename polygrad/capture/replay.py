"""Captured steps: a captured call that can be run again, with the Tensors whose memory its Program uses.

A run binds the arguments' memory, binds Tensors again that were written to in the meantime, computes lazy
values that read memory which is about to be overwritten, and makes one call.
"""

from __future__ import annotations

import itertools
import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from polygrad.capture.arguments import Spec, restore_arguments, unbind_shape
from polygrad.capture.captured_program import CapturedProgram
from polygrad.capture.merge import Merged
from polygrad.capture.placeholders import ArgumentMemory, elements_of, memory_of, write_back
from polygrad.engine.realize import preserve
from polygrad.engine.recording import watch
from polygrad.errors import CaptureError, DeviceError, DTypeError, ShapeError
from polygrad.monitor import computing
from polygrad.runtime.buffer import Allocation, Buffer
from polygrad.tensor.core.aliasing import (
    has_symbolic_views,
    memory_under,
    owner_of,
    rebind,
    rename,
    storage_of,
    view_ops,
)
from polygrad.tensor.core.checks import Check
from polygrad.tensor.core.generator import CapturedDraws
from polygrad.tensor.core.registry import changes, newest
from polygrad.tensor.core.sizes import value_with
from polygrad.uop.node import UOp

_node_of = operator.attrgetter("uop")


class BufferReference(NamedTuple):
    """Buffer number `position` of a captured Program."""

    program: CapturedProgram
    position: int

    @property
    def buffer(self) -> Buffer:
        buffer = self.program.buffers[self.position]
        assert buffer is not None
        return buffer


@dataclass(slots=True)
class UsedTensor:
    """A Tensor, no argument, over memory that the Programs use. `places`: a list for each Buffer of its
    memory. `node`: the Tensor's node when these places were bound."""

    tensor: Any
    node: UOp
    places: list[list[BufferReference]]


class CapturedStep:
    """A captured call. `result`: the function's result, whose Tensors hold the results of the last run.
    `returns_arguments`: it has `Returned` in the place of arguments.

    `once`: the constant work, which runs before the first replay. `draws`: the state of its random numbers.
    `guards`: symbolic sizes whose sign the capture has relied on; it must be the same in every run.
    `youngest`: Tensors up to this serial number do not read memory that the capture has made.
    """

    def __init__(
        self,
        captured: Merged,
        specs: list[Spec],
        argument_memory: list[ArgumentMemory],
        inputs: list[Buffer],
        used_tensors: list[UsedTensor],
        draws: CapturedDraws,
        guards: dict[UOp, bool],
        youngest: int,
        result: Any,
        checks: Sequence[Check] = (),
        returns_arguments: bool = False,
    ) -> None:
        self.captured, self.once, self.result = captured.program, captured.once, result
        self._checks, self.returns_arguments = checks, returns_arguments
        self._once_saw: Any = None  # the state of the memory that constant work depends on, when it was done
        self._specs, self._argument_memory, self._used_tensors, self.draws = (
            specs,
            argument_memory,
            used_tensors,
            draws,
        )
        self._symbolic = [any(s.__class__ is not int for s in spec.shape) for spec in specs]
        self._last: list[UOp | None] = [None] * len(specs)
        self._copies: dict[int, Buffer] = {}
        self._bound = list(inputs)  # the buffer of each slot's argument
        ends = [0, *itertools.accumulate(len(b.parts) for b in inputs)]
        self._positions = [range(a, b) for a, b in itertools.pairwise(ends)]  # the buffers of each slot
        self._inputs = ends[-1]
        written_positions = self.captured.written
        self._written_inputs = frozenset(
            slot
            for slot, positions in enumerate(self._positions)
            if any(i in positions for i in written_positions)
        )
        # whether a run is no more than to call Programs, and what it returns is always the same
        has_more = checks or returns_arguments or guards or self._written_inputs
        self._is_plain = self.once is None and not has_more
        # memory that belongs to no argument
        self._written: set[Allocation] = set()
        self._used: set[Allocation] = set()  # older than the capture
        self._state: set[Allocation] = set()  # older than the capture, and written
        self._note_memory()
        self._seen = watch.executed
        # Older lazy values do not read memory that a run writes. -1: before the first run, they do not read
        # what the capture has made.
        self._youngest, self._changes = youngest, -1
        self.guards = guards
        self._values = self.captured.variables  # the values of Variables in `_symbolic_results`
        self._symbolic_results = [
            s for a in self._written - self._state if (s := owner_of(a)) is not None and has_symbolic_views(s)
        ]

    @property
    def has_checks(self) -> bool:
        """Whether it was captured with CHECK=1 or ANOMALY=1, and has checks."""
        return bool(self._checks)

    def is_steady(self, values: Sequence[Any]) -> bool:
        """Whether a run with the arguments `values` has nothing to bind, to preserve or to rename: they are
        the Tensors of the last run, and nothing else was computed or written since. Then `rerun` is `run`."""
        if self._changes != changes.count or watch.executed != self._seen or newest() > self._youngest:
            return False
        try:
            same = map(operator.is_, map(_node_of, values), self._last)
            if not self._is_plain or len(values) != len(self._last) or not all(same):
                return False
        except AttributeError:  # no Tensor
            return False
        for used_tensor in self._used_tensors:
            if used_tensor.tensor.uop is not used_tensor.node:
                return False
        return True

    def rerun(self) -> Any:
        """`run` with the arguments of the last run, if it `is_steady`. The caller is `computing`."""
        self.draws.begin_run()
        captured = self.captured
        try:
            captured.rerun()
        finally:
            if self._state and captured.is_whole:
                watch.replays += 1
        return self.result

    def run(self, tensors: Sequence[Any], variables: dict[str, int] | None = None) -> Any:
        """Run once with these arguments (None: the argument of the last run); `result`. The caller is
        `computing`.

        Raises ShapeError, DTypeError, DeviceError when a Tensor differs from that of the capture in one of
        these.
        """
        last = self._last
        for i, tensor in enumerate(tensors):
            if tensor is not None and tensor.uop is not last[i]:
                variables = self._bind(i, tensors, variables)
        for used_tensor in self._used_tensors:
            if used_tensor.tensor.uop is not used_tensor.node:
                self._follow(used_tensor)
        if self._written_inputs:
            self._before_writing_arguments(tensors)
        is_first = self._changes < 0
        if is_first:  # memory that the capture has made has no contents yet
            if self._state:
                preserve(self._state)
        elif changes.count != self._changes or newest() > self._youngest:
            self._preserve(self._youngest if changes.count == self._changes else 0)
        if watch.executed != self._seen:
            self._rename(self._state if is_first else self._written)
        self.draws.begin_run()
        captured = self.captured
        values = {**captured.variables, **variables} if variables else captured.variables
        if variables and self.guards:
            check_guards(self.guards, values)
        if self.once is not None:
            self._run_once(self.once)
        try:
            captured.run(values)
            self._after_run(tensors, values, is_first)
        except BaseException:
            if captured.is_whole:
                self._after_run(tensors, values, is_first)
            raise
        for check in self._checks:
            check.raise_if_violated()
        return restore_arguments(self.result, tensors) if self.returns_arguments else self.result

    def _after_run(self, tensors: Sequence[Any], values: dict[str, int], is_first: bool) -> None:
        """Make the new contents of memory visible."""
        if is_first:
            self._preserve(self._youngest)
        if self._state or self._written_inputs:
            watch.replays += 1
        if self.once is not None:
            self._once_saw = self._seen_by(self.once)
        if self._symbolic_results and values != self._values:
            for storage in self._symbolic_results:
                rebind(storage, values)
            self._values = values
        if self._written_inputs:
            self._after_writing_arguments(tensors)

    def _preserve(self, since: int) -> None:
        """Compute the lazy values of Tensors above this serial number that read memory that a run writes."""
        preserve(self._written, since)
        self._youngest, self._changes = newest(), changes.count

    def _bind(
        self, i: int, tensors: Sequence[Any], variables: dict[str, int] | None
    ) -> dict[str, int] | None:
        tensor, spec, memory = tensors[i], self._specs[i], self._argument_memory[i]
        slot = memory.slot
        buffer = elements_of(tensor) if memory.view is None else memory_of(tensor)
        shape: Any = tensor.shape
        if self._symbolic[i]:
            variables = {} if variables is None else variables
            shape = unbind_shape(shape, variables)
        check(spec, shape, tensor.dtype, buffer.device)
        self._check_sharing(i, tensors, buffer)
        allocations = {buffer.allocation}
        if (base := memory_under(tensor.uop)) is not None:
            allocations.add(base.buffer.arg.allocation)
        if allocations & (self._state | self._used if slot in self._written_inputs else self._state):
            raise CaptureError(
                f"{spec.name}: the function writes to it, and uses its memory in another place, too: pass a "
                "clone()"
            )
        if buffer.allocation in self._written:  # for example a result of the last run
            copy = self._copy_for(slot, buffer)
            copy.copy_from(buffer)
            buffer = copy
        elif not self._symbolic[i]:
            self._last[i] = tensor.uop
        self._bind_slot(slot, buffer)
        return variables

    def _bind_slot(self, slot: int, buffer: Buffer) -> None:
        """Bind `buffer` as the argument of `slot`."""
        self._bound[slot] = buffer
        for position, part in zip(self._positions[slot], buffer.parts, strict=True):
            self.captured.bind(position, part)

    def _run_once(self, once: CapturedProgram) -> None:
        """Do the constant work, unless its memory has not changed since the last time."""
        if self._once_saw != self._seen_by(once):
            once.run()

    def _seen_by(self, once: CapturedProgram) -> Any:
        return watch.replays, [(b.allocation, b.allocation.version) for b in once.buffers if b is not None]

    def _check_sharing(self, i: int, tensors: Sequence[Any], buffer: Buffer) -> None:
        """Raises CaptureError when an argument does not share memory with others exactly as in the
        capture."""
        name, memory = self._specs[i].name, self._argument_memory[i]
        first = next(j for j, p in enumerate(self._argument_memory) if p.slot == memory.slot)
        if first != i and memory_of(tensors[first]).allocation is not buffer.allocation:
            raise CaptureError(
                f"{name}: another Tensor than {self._specs[first].name}: expected the same one, as captured, "
                "or a view of it: call reset() first"
            )
        size = self._bound[memory.slot].size
        if memory.view is not None and (view_ops(tensors[i].uop) != memory.view or buffer.size != size):
            raise CaptureError(
                f"{name}: another view of memory: expected that of the capture, as the function writes to "
                "it: pass a clone(), or call reset() first"
            )

    @computing
    def catch_up(self) -> None:
        """Between runs, bring its buffers to the state that the next run starts from.

        Raises CaptureError as `run` does.
        """
        for used_tensor in self._used_tensors:
            if used_tensor.tensor.uop is not used_tensor.node:
                self._follow(used_tensor)
        if self.once is not None:
            self._run_once(self.once)
            self._once_saw = self._seen_by(self.once)
        self.draws.catch_up()

    @property
    def arguments(self) -> list[tuple[Spec, ArgumentMemory]]:
        """For each Tensor argument, its Spec and how it is passed."""
        return list(zip(self._specs, self._argument_memory, strict=True))

    def bind_data(self, i: int, data: memoryview) -> None:
        """Copy `data`, bytes of the size of the captured argument, and bind the copy as argument `i`."""
        slot = self._argument_memory[i].slot
        copy = self._copy_for(slot, self._bound[slot])
        copy.write(data)
        self._bind_slot(slot, copy)
        self._last[i] = None

    def _copy_for(self, slot: int, like: Buffer) -> Buffer:
        """The step's own buffer for an argument, of the size and dtype of `like`."""
        copy = self._copies.get(slot)
        if copy is None:
            copy = self._copies[slot] = like.like()
        return copy

    def _follow(self, used_tensor: UsedTensor) -> None:
        """Bind the memory of a Tensor again, which has a new node: it was written to, or replaced."""
        parts = memory_of(used_tensor.tensor).parts
        olds = [places[0].buffer if places else None for places in used_tensor.places]
        kinds = [old and (old.size, old.dtype, old.device) for old in olds]
        if len(parts) != len(kinds) or any(
            kind is not None and (new.size, new.dtype, new.device) != kind
            for new, kind in zip(parts, kinds, strict=True)
        ):
            raise CaptureError(
                f"captured function: a Tensor that it uses was {olds[0]} and is {parts[0]}: call reset()"
            )
        for new, places in zip(parts, used_tensor.places, strict=True):
            for place in places:
                place.program.bind(place.position, new)
        used_tensor.node = used_tensor.tensor.uop
        self._note_memory()

    def _note_memory(self) -> None:
        places = [p for u in self._used_tensors for part in u.places for p in part]
        used_allocations = {a for p in places for a in p.buffer.allocation.family}
        written_allocations: set[Allocation] = set()
        for program, first in ((self.captured, self._inputs), (self.once, 0)):
            if program is not None:
                buffers = [b for i in program.written if i >= first and (b := program.buffers[i])]
                written_allocations.update(a for b in buffers for a in b.allocation.family)
        self._written, self._state, self._used = (
            written_allocations,
            written_allocations & used_allocations,
            used_allocations,
        )
        count = Counter(b.allocation for b in self.captured.buffers[self._inputs :] if b is not None)
        if any(count[a] > 1 for a in self._written):
            self.captured.order_shared_memory()

    def _rename(self, written: set[Allocation]) -> None:
        """Give written memory new nodes, because other Programs have run: values that they computed from its
        old contents must not count as values of the new contents."""
        for allocation in written:
            storage = owner_of(allocation)
            if storage is not None:
                rename(storage, contents_change=True)
            elif len(allocation.family) == 1:  # else the whole of which it is a part is written, too
                allocation.version += 1
        for used_tensor in self._used_tensors:
            used_tensor.node = used_tensor.tensor.uop
        self._seen = watch.executed

    # --- arguments that the function writes to

    def _before_writing_arguments(self, tensors: Sequence[Any]) -> None:
        """Compute the lazy values that read them. Raises CaptureError when two arguments share memory that
        did not in the capture."""
        memory: dict[int, Allocation] = {}
        for argument, tensor in zip(self._argument_memory, tensors, strict=True):
            base = memory_under(tensor.uop) if tensor is not None else None
            bound = self._bound[argument.slot].allocation
            memory[argument.slot] = bound if base is None else base.buffer.arg.allocation
        if len(set(memory.values())) < len(memory):
            raise CaptureError(
                "captured function: two arguments share memory, and it writes to one: expected that they do "
                "not, as captured: pass a clone(), or call reset() first"
            )
        preserve({memory[slot] for slot in self._written_inputs})

    def _after_writing_arguments(self, tensors: Sequence[Any]) -> None:
        """Make the new contents visible. They are in the arguments' memory, or in copies of views."""
        for slot in self._written_inputs:
            i = next(j for j, p in enumerate(self._argument_memory) if p.slot == slot)
            tensor, elements = tensors[i], self._bound[slot]
            if tensor is None:
                continue
            memory = memory_under(tensor.uop)
            if memory is not None and memory.buffer.arg.allocation is elements.allocation:
                rename(storage_of(tensor), contents_change=True)
            else:
                elements.allocation.version += 1
                write_back(tensor, elements)
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


def check_guards(guards: dict[UOp, bool], values: dict[str, int]) -> None:
    """Raises CaptureError when the sign of a size is not that of the captured call."""
    for size, negative in guards.items():
        if (value_with(size, values) < 0) is not negative:
            sign = "below 0" if negative else "at least 0"
            raise CaptureError(
                f"captured function: {values}: expected {size} to be {sign}, as when it was captured, since "
                "a slice, an index or a size depends on it: call reset()"
            )
