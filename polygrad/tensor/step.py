"""A captured call that can be run again: its Program, and the Tensors whose memory the Program uses.

Running binds the arguments' memory, follows Tensors that were written to in the meantime, computes lazy
values that read what is about to be overwritten, and makes one call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from polygrad.engine.capture import Captured
from polygrad.engine.realize import preserve
from polygrad.engine.recording import watch
from polygrad.errors import CaptureError, DeviceError, DTypeError, ShapeError
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
from polygrad.tensor.arguments import Spec, unbound_shape
from polygrad.tensor.generator import CapturedDraws
from polygrad.tensor.placeholders import Passed, elements_of, memory_of, write_back
from polygrad.tensor.registry import changes, newest
from polygrad.tensor.sizes import value_with
from polygrad.uop.node import UOp


class Step:
    """A captured call. `result` is what the function returned; its Tensors hold the results of the last
    run.

    `held`: for the memory that was there before, a Tensor over it, the Tensor's node, and the number of the
    Program's buffer.
    """

    def __init__(
        self,
        captured: Captured,
        specs: list[Spec],
        passed: list[Passed],
        held: list[list[Any]],
        draws: CapturedDraws,
        guards: dict[UOp, bool],
        result: Any,
    ) -> None:
        self.captured, self.result = captured, result
        self._specs, self._passed, self._held, self._draws = specs, passed, held, draws
        self._symbolic = [any(s.__class__ is not int for s in spec.shape) for spec in specs]
        self._last: list[UOp | None] = [None] * len(specs)
        self._copies: dict[int, Buffer] = {}
        self._inputs = max((p.slot for p in passed), default=-1) + 1
        self._written_inputs = frozenset(i for i in captured.written if i < self._inputs)
        self._written: set[Allocation] = set()  # by the Program, but for arguments
        self._state: set[Allocation] = set()  # of it, what was there before
        self._used: set[Allocation] = set()  # all that was there before, but for arguments
        self._note_memory()
        self._seen = watch.executed
        self._youngest, self._changes = 0, -1  # up to where lazy values are known not to read what is written
        self._guards = guards
        self._values = captured.variables  # what the Variables of `_symbolic_results` are bound to
        self._symbolic_results = [
            s for a in self._written - self._state if (s := owner_of(a)) is not None and has_symbolic_views(s)
        ]

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
        if self._written_inputs:
            self._before_writing_arguments(tensors)
        if changes.count != self._changes or newest() > self._youngest:
            preserve(self._written, self._youngest if changes.count == self._changes else 0)
            self._youngest, self._changes = newest(), changes.count
        if watch.executed != self._seen:
            self._rename()
        self._draws.continue_()
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
        found = elements_of(tensor) if passed.view is None else memory_of(tensor)
        shape: Any = tensor.shape
        if self._symbolic[i]:
            variables = {} if variables is None else variables
            shape = unbound_shape(shape, variables)
        check(spec, shape, tensor.dtype, found.device)
        self._check_sharing(i, tensors, found)
        memory = memory_under(tensor.uop)
        for used in (
            {found.allocation} if memory is None else {found.allocation, memory.buffer.arg.allocation}
        ):
            if used in self._state or (slot in self._written_inputs and used in self._used):
                raise CaptureError(
                    f"{spec.name}: expected memory of its own, as the function writes to it, got memory that "
                    "it uses otherwise too: pass a clone()"
                )
        if found.allocation in self._written:  # a result of the last run, say
            mine = self._copy_for(slot, found)
            mine.write(found.read())
            found = mine
        elif not self._symbolic[i]:
            self._last[i] = tensor.uop
        self.captured.bind(slot, found)
        return variables

    def _check_sharing(self, i: int, tensors: Sequence[Any], found: Buffer) -> None:
        """Raises CaptureError when an argument shares memory with others, or does not, as in the capture."""
        name, passed = self._specs[i].name, self._passed[i]
        first = next(j for j, p in enumerate(self._passed) if p.slot == passed.slot)
        if first != i and memory_of(tensors[first]).allocation is not found.allocation:
            raise CaptureError(
                f"{name}: expected the same Tensor as {self._specs[first].name}, as captured, or a view of "
                "it, got another: call reset() first"
            )
        like = self.captured.buffers[passed.slot]
        assert like is not None
        if passed.view is not None and (view_ops(tensors[i].uop) != passed.view or found.size != like.size):
            raise CaptureError(
                f"{name}: expected the same view of memory as captured, as the function writes to it, got "
                "another: pass a clone(), or call reset() first"
            )

    def catch_up(self) -> None:
        """Between runs, let its buffers hold what the next run starts from.

        Raises CaptureError as `run` does.
        """
        for held in self._held:
            if held[0].uop is not held[1]:
                self._follow(held)
        self._draws.catch_up()

    @property
    def draws(self) -> CapturedDraws:
        """Where its random numbers stand."""
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
        like = self.captured.buffers[slot]
        assert like is not None
        mine = self._copy_for(slot, like)
        mine.write(data)
        self.captured.bind(slot, mine)
        self._last[i] = None

    def _copy_for(self, slot: int, like: Buffer) -> Buffer:
        """The step's own buffer for an argument."""
        mine = self._copies.get(slot)
        if mine is None:
            mine = self._copies[slot] = Buffer(like.runtime, like.size, like.dtype)
        return mine

    def _follow(self, held: list[Any]) -> None:
        """A Tensor that the step uses has another node: it was written to, or replaced."""
        tensor, _, position = held
        found, old = memory_of(tensor), self.captured.buffers[position]
        assert old is not None
        if (found.size, found.dtype, found.device) != (old.size, old.dtype, old.device):
            raise CaptureError(
                f"captured function: expected a Tensor that it uses to stay {old}, got {found}: call reset()"
            )
        self.captured.bind(position, found)
        held[1] = tensor.uop
        self._note_memory()

    def _note_memory(self) -> None:
        buffers, held = self.captured.buffers, {position for _, _, position in self._held}
        written = [i for i in self.captured.written if i >= self._inputs]
        self._written = {b.allocation for i in written if (b := buffers[i])}
        self._state = {b.allocation for i in written if i in held and (b := buffers[i])}
        self._used = {b.allocation for i in held if (b := buffers[i])}
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
        for held in self._held:
            held[1] = held[0].uop
        self._seen = watch.executed

    # --- arguments that the function writes to

    def _before_writing_arguments(self, tensors: Sequence[Any]) -> None:
        """Compute what reads them. Raises CaptureError when one shares memory with another unforeseen."""
        buffers = self.captured.buffers
        memory: dict[int, Allocation] = {}
        for passed, tensor in zip(self._passed, tensors, strict=True):
            under = memory_under(tensor.uop) if tensor is not None else None
            own = buffers[passed.slot]
            assert own is not None
            memory[passed.slot] = own.allocation if under is None else under.buffer.arg.allocation
        if len(set(memory.values())) < len(memory):
            raise CaptureError(
                "captured function: expected arguments apart from each other in memory, as it writes to one "
                "and as captured, got two that share some: pass a clone(), or call reset() first"
            )
        preserve({memory[slot] for slot in self._written_inputs})

    def _after_writing_arguments(self, tensors: Sequence[Any]) -> None:
        """What was written is in the arguments' memory, or in copies of views."""
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
