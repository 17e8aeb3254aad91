"""A captured call that can be run again: its Program, and the Tensors whose memory the Program uses.

Running binds the arguments' memory, follows Tensors that were written to in the meantime, computes lazy
values that read what is about to be overwritten, and makes one call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from polygrad.capture.arguments import Spec, unbound_shape
from polygrad.capture.captured_program import CapturedProgram
from polygrad.capture.placeholders import Passed, elements_of, memory_of, write_back
from polygrad.engine.realize import preserve
from polygrad.engine.recording import watch
from polygrad.errors import CaptureError, DeviceError, DTypeError, ShapeError
from polygrad.monitor import computing
from polygrad.runtime.buffer import Allocation, Buffer
from polygrad.tensor.aliasing import (
    has_symbolic_views,
    memory_under,
    owner_of,
    rebind,
    rename,
    storage_of,
    view_ops,
)
from polygrad.tensor.generator import CapturedDraws
from polygrad.tensor.registry import changes, newest
from polygrad.tensor.sizes import value_with
from polygrad.uop.node import UOp


@dataclass(slots=True)
class UsedTensor:
    """A Tensor, not an argument, over memory that the Program uses as its buffer number `position`; `node` is
    the Tensor's node when that was bound."""

    tensor: Any
    node: UOp
    position: int


class CapturedStep:
    """A captured call. `result` is what the function returned; its Tensors hold the results of the last
    run.
    """

    def __init__(
        self,
        captured: CapturedProgram,
        specs: list[Spec],
        passed: list[Passed],
        used_tensors: list[UsedTensor],
        draws: CapturedDraws,
        guards: dict[UOp, bool],
        result: Any,
    ) -> None:
        self.captured, self.result = captured, result
        self._specs, self._passed, self._used_tensors, self._draws = specs, passed, used_tensors, draws
        self._symbolic = [any(s.__class__ is not int for s in spec.shape) for spec in specs]
        self._last: list[UOp | None] = [None] * len(specs)
        self._copies: dict[int, Buffer] = {}
        self._inputs = max((p.slot for p in passed), default=-1) + 1
        self._written_inputs = frozenset(i for i in captured.written if i < self._inputs)
        # memory that is no argument's
        self._written: set[Allocation] = set()
        self._used: set[Allocation] = set()  # what is older than the capture
        self._state: set[Allocation] = set()  # both
        self._note_memory()
        self._seen = watch.executed
        self._youngest, self._changes = 0, -1  # up to where lazy values are known not to read what is written
        self._guards = guards
        self._values = captured.variables  # what the Variables of `_symbolic_results` are bound to
        self._symbolic_results = [
            s for a in self._written - self._state if (s := owner_of(a)) is not None and has_symbolic_views(s)
        ]

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
        captured.run(values)
        if self._symbolic_results and values != self._values:
            for storage in self._symbolic_results:
                rebind(storage, values)
            self._values = values
        if self._written_inputs:
            self._after_writing_arguments(tensors)
        return self.result

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
            copy.write(buffer.read())
            buffer = copy
        elif not self._symbolic[i]:
            self._last[i] = tensor.uop
        self.captured.bind(slot, buffer)
        return variables

    def _check_sharing(self, i: int, tensors: Sequence[Any], buffer: Buffer) -> None:
        """Raises CaptureError when an argument shares memory with others, or does not, as in the capture."""
        name, passed = self._specs[i].name, self._passed[i]
        first = next(j for j, p in enumerate(self._passed) if p.slot == passed.slot)
        if first != i and memory_of(tensors[first]).allocation is not buffer.allocation:
            raise CaptureError(
                f"{name}: expected the same Tensor as {self._specs[first].name}, as captured, or a view of "
                "it, got another: call reset() first"
            )
        bound = self.captured.buffers[passed.slot]
        assert bound is not None
        if passed.view is not None and (view_ops(tensors[i].uop) != passed.view or buffer.size != bound.size):
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
        self._draws.catch_up()

    @property
    def draws(self) -> CapturedDraws:
        """The state of its random numbers."""
        return self._draws

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
        bound = self.captured.buffers[slot]
        assert bound is not None
        copy = self._copy_for(slot, bound)
        copy.write(data)
        self.captured.bind(slot, copy)
        self._last[i] = None

    def _copy_for(self, slot: int, like: Buffer) -> Buffer:
        """The step's own buffer for an argument, of the size and dtype of `like`."""
        copy = self._copies.get(slot)
        if copy is None:
            copy = self._copies[slot] = Buffer(like.runtime, like.size, like.dtype)
        return copy

    def _follow(self, used: UsedTensor) -> None:
        """Bind the memory of a Tensor that has another node: it was written to, or replaced."""
        new, old = memory_of(used.tensor), self.captured.buffers[used.position]
        assert old is not None
        if (new.size, new.dtype, new.device) != (old.size, old.dtype, old.device):
            raise CaptureError(
                f"captured function: expected a Tensor that it uses to stay {old}, got {new}: call reset()"
            )
        self.captured.bind(used.position, new)
        used.node = used.tensor.uop
        self._note_memory()

    def _note_memory(self) -> None:
        buffers, used = self.captured.buffers, {u.position for u in self._used_tensors}
        written = [i for i in self.captured.written if i >= self._inputs]
        self._written = {b.allocation for i in written if (b := buffers[i])}
        self._state = {b.allocation for i in written if i in used and (b := buffers[i])}
        self._used = {b.allocation for i in used if (b := buffers[i])}
        count = Counter(b.allocation for b in buffers[self._inputs :] if b is not None)
        if any(count[a] > 1 for a in self._written):
            self.captured.order_shared_memory()

    def _rename(self) -> None:
        """Programs have run since: what they computed from the old contents must not pass for the new."""
        for allocation in self._written:
            storage = owner_of(allocation)
            if storage is not None:
                rename(storage, changed=True)
            else:
                allocation.version += 1
        for used in self._used_tensors:
            used.node = used.tensor.uop
        self._seen = watch.executed

    # --- arguments that the function writes to

    def _before_writing_arguments(self, tensors: Sequence[Any]) -> None:
        """Compute what reads them. Raises CaptureError when two share memory that did not in the capture."""
        buffers = self.captured.buffers
        memory: dict[int, Allocation] = {}
        for passed, tensor in zip(self._passed, tensors, strict=True):
            base = memory_under(tensor.uop) if tensor is not None else None
            bound = buffers[passed.slot]
            assert bound is not None
            memory[passed.slot] = bound.allocation if base is None else base.buffer.arg.allocation
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
            tensor, elements = tensors[i], self.captured.buffers[slot]
            assert elements is not None
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
