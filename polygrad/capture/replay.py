"""A captured call that can be run again: its Program, and the Tensors whose memory the Program uses.

Running binds the arguments' memory, follows Tensors that were written to in the meantime, computes lazy
values that read what is about to be overwritten, and makes one call.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from polygrad.capture.arguments import Spec, unbound_shape, with_arguments
from polygrad.capture.captured_program import CapturedProgram
from polygrad.capture.merge import Merged
from polygrad.capture.placeholders import Passed, elements_of, memory_of, write_back
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


class Place(NamedTuple):
    """Buffer number `position` of a captured Program."""

    program: CapturedProgram
    position: int

    @property
    def buffer(self) -> Buffer:
        found = self.program.buffers[self.position]
        assert found is not None
        return found


@dataclass(slots=True)
class UsedTensor:
    """A Tensor, not an argument, over memory that the Programs use: `places` has a list for each of the
    Buffers that its memory is made of. `node` is the Tensor's node when these were bound."""

    tensor: Any
    node: UOp
    places: list[list[Place]]


class CapturedStep:
    """A captured call. `result` is what the function returned; its Tensors hold the results of the last
    run. Where it `returns_arguments`, `Returned` stands for them.
    """

    def __init__(
        self,
        captured: Merged,
        specs: list[Spec],
        passed: list[Passed],
        inputs: list[Buffer],
        used_tensors: list[UsedTensor],
        draws: CapturedDraws,
        guards: dict[UOp, bool],
        result: Any,
        checks: Sequence[Check] = (),
        returns_arguments: bool = False,
    ) -> None:
        self.captured, self._once, self.result = captured.program, captured.once, result
        self._checks, self.returns_arguments = checks, returns_arguments
        self._once_saw: Any = None  # what constant work depends on, when it was done
        self._specs, self._passed, self._used_tensors, self._draws = specs, passed, used_tensors, draws
        self._symbolic = [any(s.__class__ is not int for s in spec.shape) for spec in specs]
        self._last: list[UOp | None] = [None] * len(specs)
        self._copies: dict[int, Buffer] = {}
        self._bound = list(inputs)  # what the argument of each slot is in
        ends = [0, *itertools.accumulate(len(b.parts) for b in inputs)]
        self._positions = [range(a, b) for a, b in itertools.pairwise(ends)]  # the buffers of each slot
        self._inputs = ends[-1]
        written = self.captured.written
        self._written_inputs = frozenset(
            slot for slot, positions in enumerate(self._positions) if any(i in positions for i in written)
        )
        # memory that is no argument's
        self._written: set[Allocation] = set()
        self._used: set[Allocation] = set()  # what is older than the capture
        self._state: set[Allocation] = set()  # both
        self._note_memory()
        self._seen = watch.executed
        self._youngest, self._changes = 0, -1  # up to where lazy values are known not to read what is written
        self._guards = guards
        self._values = self.captured.variables  # what the Variables of `_symbolic_results` are bound to
        self._symbolic_results = [
            s for a in self._written - self._state if (s := owner_of(a)) is not None and has_symbolic_views(s)
        ]

    @property
    def has_checks(self) -> bool:
        """Whether it was captured with CHECK=1 or ANOMALY=1, and there is something to check."""
        return bool(self._checks)

    @computing
    def run(self, tensors: Sequence[Any], variables: dict[str, int] | None = None) -> Any:
        """Run once on these arguments (None: the one of the last run); `result`.

        Raises ShapeError, DTypeError, DeviceError when a Tensor is not like the one of the capture.
        """
        last = self._last
        for i, tensor in enumerate(tensors):
            if tensor is not None and tensor.uop is not last[i]:
                variables = self._bind(i, tensors, variables)
        for used in self._used_tensors:
            if used.tensor.uop is not used.node:
                self._follow(used)
        if self._written_inputs:
            self._before_writing_arguments(tensors)
        if changes.count != self._changes or newest() > self._youngest:
            preserve(self._written, self._youngest if changes.count == self._changes else 0)
            self._youngest, self._changes = newest(), changes.count
        if watch.executed != self._seen:
            self._rename()
        self._draws.begin_run()
        captured = self.captured
        values = {**captured.variables, **variables} if variables else captured.variables
        if variables and self._guards:
            check_guards(self._guards, values)
        if self._once is not None:
            self._run_once(self._once)
        captured.run(values)
        if self._state or self._written_inputs:
            watch.replays += 1
        if self._once is not None:
            self._once_saw = self._seen_by(self._once)
        if self._symbolic_results and values != self._values:
            for storage in self._symbolic_results:
                rebind(storage, values)
            self._values = values
        if self._written_inputs:
            self._after_writing_arguments(tensors)
        for check in self._checks:
            check.raise_if_violated()
        return with_arguments(self.result, tensors) if self.returns_arguments else self.result

    def _bind(
        self, i: int, tensors: Sequence[Any], variables: dict[str, int] | None
    ) -> dict[str, int] | None:
        tensor, spec, passed = tensors[i], self._specs[i], self._passed[i]
        slot = passed.slot
        buffer = elements_of(tensor) if passed.view is None else memory_of(tensor)
        shape: Any = tensor.shape
        if self._symbolic[i]:
            variables = {} if variables is None else variables
            shape = unbound_shape(shape, variables)
        check(spec, shape, tensor.dtype, buffer.device)
        self._check_sharing(i, tensors, buffer)
        allocations = {buffer.allocation}
        if (memory := memory_under(tensor.uop)) is not None:
            allocations.add(memory.buffer.arg.allocation)
        if allocations & (self._state | self._used if slot in self._written_inputs else self._state):
            raise CaptureError(
                f"{spec.name}: expected memory of its own, as the function writes to it, got memory that it "
                "uses otherwise too: pass a clone()"
            )
        if buffer.allocation in self._written:  # a result of the last run, say
            copy = self._copy_for(slot, buffer)
            copy.copy_from(buffer)
            buffer = copy
        elif not self._symbolic[i]:
            self._last[i] = tensor.uop
        self._bind_slot(slot, buffer)
        return variables

    def _bind_slot(self, slot: int, buffer: Buffer) -> None:
        """Let the argument of `slot` be in `buffer`."""
        self._bound[slot] = buffer
        for position, part in zip(self._positions[slot], buffer.parts, strict=True):
            self.captured.bind(position, part)

    def _run_once(self, once: CapturedProgram) -> None:
        """Do the constant work, unless what it has read and written is as it was then."""
        if self._once_saw != self._seen_by(once):
            once.run()

    def _seen_by(self, once: CapturedProgram) -> Any:
        return watch.replays, [(b.allocation, b.allocation.version) for b in once.buffers if b is not None]

    def _check_sharing(self, i: int, tensors: Sequence[Any], buffer: Buffer) -> None:
        """Raises CaptureError when an argument shares memory with others, or does not, as in the capture."""
        name, passed = self._specs[i].name, self._passed[i]
        first = next(j for j, p in enumerate(self._passed) if p.slot == passed.slot)
        if first != i and memory_of(tensors[first]).allocation is not buffer.allocation:
            raise CaptureError(
                f"{name}: expected the same Tensor as {self._specs[first].name}, as captured, or a view of "
                "it, got another: call reset() first"
            )
        size = self._bound[passed.slot].size
        if passed.view is not None and (view_ops(tensors[i].uop) != passed.view or buffer.size != size):
            raise CaptureError(
                f"{name}: expected the same view of memory as captured, as the function writes to it, got "
                "another: pass a clone(), or call reset() first"
            )

    @computing
    def catch_up(self) -> None:
        """Between runs, let its buffers hold what the next run starts from.

        Raises CaptureError as `run` does.
        """
        for used in self._used_tensors:
            if used.tensor.uop is not used.node:
                self._follow(used)
        if self._once is not None:
            self._run_once(self._once)
            self._once_saw = self._seen_by(self._once)
        self._draws.catch_up()

    @property
    def draws(self) -> CapturedDraws:
        """The state of its random numbers."""
        return self._draws

    @property
    def once(self) -> CapturedProgram | None:
        """What runs before the first replay alone."""
        return self._once

    @property
    def guards(self) -> Collection[UOp]:
        """Symbolic sizes whose sign was decided when it was captured: every run's values must leave it."""
        return self._guards

    @property
    def arguments(self) -> list[tuple[Spec, Passed]]:
        """What each Tensor argument must be like, and how it is passed."""
        return list(zip(self._specs, self._passed, strict=True))

    def bind_data(self, i: int, data: memoryview) -> None:
        """Let argument `i` be `data`, bytes that are like the one of the capture, copied."""
        slot = self._passed[i].slot
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

    def _follow(self, used: UsedTensor) -> None:
        """Bind the memory of a Tensor that has another node: it was written to, or replaced."""
        parts = memory_of(used.tensor).parts
        olds = [places[0].buffer if places else None for places in used.places]
        kinds = [old and (old.size, old.dtype, old.device) for old in olds]
        if len(parts) != len(kinds) or any(
            kind is not None and (new.size, new.dtype, new.device) != kind
            for new, kind in zip(parts, kinds, strict=True)
        ):
            raise CaptureError(
                f"captured function: expected a Tensor that it uses to stay {olds[0]}, got {parts[0]}: call "
                "reset()"
            )
        for new, places in zip(parts, used.places, strict=True):
            for place in places:
                place.program.bind(place.position, new)
        used.node = used.tensor.uop
        self._note_memory()

    def _note_memory(self) -> None:
        places = [p for u in self._used_tensors for part in u.places for p in part]
        used = {a for p in places for a in p.buffer.allocation.family}
        written: set[Allocation] = set()
        for program, first in ((self.captured, self._inputs), (self._once, 0)):
            if program is not None:
                buffers = [b for i in program.written if i >= first and (b := program.buffers[i])]
                written.update(a for b in buffers for a in b.allocation.family)
        self._written, self._state, self._used = written, written & used, used
        count = Counter(b.allocation for b in self.captured.buffers[self._inputs :] if b is not None)
        if any(count[a] > 1 for a in self._written):
            self.captured.order_shared_memory()

    def _rename(self) -> None:
        """Programs have run since: what they computed from the old contents must not pass for the new."""
        for allocation in self._written:
            storage = owner_of(allocation)
            if storage is not None:
                rename(storage, changed=True)
            elif len(allocation.family) == 1:  # else what it is a part of is among them
                allocation.version += 1
        for used in self._used_tensors:
            used.node = used.tensor.uop
        self._seen = watch.executed

    # --- arguments that the function writes to

    def _before_writing_arguments(self, tensors: Sequence[Any]) -> None:
        """Compute what reads them. Raises CaptureError when two share memory that did not in the capture."""
        memory: dict[int, Allocation] = {}
        for passed, tensor in zip(self._passed, tensors, strict=True):
            base = memory_under(tensor.uop) if tensor is not None else None
            bound = self._bound[passed.slot].allocation
            memory[passed.slot] = bound if base is None else base.buffer.arg.allocation
        if len(set(memory.values())) < len(memory):
            raise CaptureError(
                "captured function: expected arguments that share no memory, as it writes to one and as "
                "captured, got two that do: pass a clone(), or call reset() first"
            )
        preserve({memory[slot] for slot in self._written_inputs})

    def _after_writing_arguments(self, tensors: Sequence[Any]) -> None:
        """Make the new contents seen: they are in the arguments' memory, or in copies of views."""
        for slot in self._written_inputs:
            i = next(j for j, p in enumerate(self._passed) if p.slot == slot)
            tensor, elements = tensors[i], self._bound[slot]
            if tensor is None:
                continue
            memory = memory_under(tensor.uop)
            if memory is not None and memory.buffer.arg.allocation is elements.allocation:
                rename(storage_of(tensor), changed=True)
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
    """Raises CaptureError when a size is negative that was not so in the captured call, or the reverse."""
    for size, negative in guards.items():
        if (value_with(size, values) < 0) is not negative:
            wanted = "below 0" if negative else "at least 0"
            raise CaptureError(
                f"captured function: expected {size} to be {wanted}, as when it was captured, since a slice, "
                f"an index or a size depends on it, got {values}: call reset()"
            )
