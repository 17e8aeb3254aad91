"""A captured Program, loaded to be run many times.

Where the captured call worked on several devices it is a list of Programs, one after the other, with copies
between devices where one reads what another has computed, and exchanges with other processes between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from polygrad.engine import stopping
from polygrad.engine.barriers import place_barriers
from polygrad.engine.devices import Device
from polygrad.engine.programs import run_loaded
from polygrad.engine.recording import watch
from polygrad.engine.running import Outcome, await_run, outcome
from polygrad.errors import CaptureError
from polygrad.runtime.buffer import NEW_MEMORY, Allocation, Buffer, half_written
from polygrad.runtime.interface import Executable, Handle
from polygrad.runtime.program import Program


@dataclass(frozen=True, slots=True)
class CopyStep:
    """Copy buffer number `source` to `target`, on another device."""

    source: int
    target: int


@dataclass(frozen=True, slots=True, eq=False)
class BeginStep:
    """Begin an exchange on the buffers with the numbers `positions`. `start` returns what waits for its
    end."""

    label: str
    positions: tuple[int, ...]
    start: Callable[[Sequence[Buffer]], Callable[[], None]]


@dataclass(frozen=True, slots=True, eq=False)
class EndStep:
    """Wait for the end of an exchange."""

    begin: BeginStep


class ProgramStep:
    """A Program and its Executable. `unlinked`: the Program without its driver. Its buffers are the
    CapturedProgram's buffers with the numbers `positions`, or all of them (None)."""

    __slots__ = ("executable", "positions", "program", "unlinked")

    unlinked: Program
    program: Program
    executable: Executable

    def __init__(self, program: Program, positions: Sequence[int] | None = None) -> None:
        self.positions = positions
        self.load(program)

    def load(self, program: Program) -> None:
        """Link and load `program` as the Program of this step."""
        link = Device.backend(program.device).link
        self.unlinked = program
        self.program = program if link is None else link(program)
        self.executable = Device[program.device].load(self.program)

    def targets(self) -> Iterator[int]:
        """The numbers of the buffers that launches write."""
        for launch in self.unlinked.launches:
            for i in self.unlinked.kernels[launch.kernel].writes:
                number = launch.bindings[i].buffer
                yield number if self.positions is None else self.positions[number]

    def select(self, of_all: list[Any]) -> list[Any]:
        """The elements for this Program's buffers, of a list with one element for each buffer."""
        return of_all if self.positions is None else [of_all[i] for i in self.positions]


Step = ProgramStep | CopyStep | BeginStep | EndStep


class CapturedProgram:
    """Captured Programs and their buffers, inputs first. `buffers[i]`: the memory of buffer i, None for
    scratch of one Program. `roles[i]`: its role.

    `written`: the positions of the buffers that a run writes. `arena_lower_bound`: the greatest number of
    bytes of scratch that are live at one time. `is_whole`: the last run has made all steps, also if an
    exception came.
    """

    def __init__(
        self,
        steps: list[Step],
        buffers: list[Buffer | None],
        roles: list[str],
        variables: dict[str, int],
        arena_lower_bound: int,
    ) -> None:
        self.buffers, self.roles, self.variables = buffers, roles, variables
        self.arena_lower_bound = arena_lower_bound
        self._handles: list[Handle | None] = []
        self._reached = 0  # the last step that the last run began
        self.is_whole = False
        self.steps = steps
        targets = {i for s in steps for i in _targets(s)}
        self.written = tuple(i for i in sorted(targets) if buffers[i] is not None)

    @property
    def programs(self) -> list[Program]:
        """The Programs, in order, without the copies between them."""
        return [s.program for s in self.steps if isinstance(s, ProgramStep)]

    @property
    def program(self) -> Program:
        """The Program. Raises CaptureError if there are several."""
        programs = self.programs
        if len(self.steps) != 1:
            devices = " and ".join(sorted({p.device for p in programs}))
            between = ", with exchanges between them" if self.has_exchanges else ""
            raise CaptureError(
                f"captured function: it has {len(programs)} Programs on {devices}{between}: use `programs`"
            )
        return programs[0]

    @property
    def has_exchanges(self) -> bool:
        """Whether it exchanges memory with other processes."""
        return any(isinstance(s, BeginStep) for s in self.steps)

    def bind(self, position: int, buffer: Buffer) -> None:
        """Bind `buffer`, of the same size and dtype, as buffer number `position`."""
        self.buffers[position] = buffer
        if self._handles:
            self._handles[position] = buffer.handle

    def order_shared_memory(self) -> None:
        """Place barriers again, because buffers share memory that did not in the capture."""
        memory = [i if b is None else b.allocation for i, b in enumerate(self.buffers)]
        for step in self.steps:
            if isinstance(step, ProgramStep):
                program = place_barriers(step.unlinked, step.select(memory))
                if program != step.unlinked:
                    step.load(program)

    def run(self, variables: Mapping[str, int] | None = None) -> None:
        """Run everything once. Raises CaptureError inside a captured function."""
        if watch.recording is not None:
            watch.forbid("a step that is captured already", "call the function it was made of")
        if not self._handles:  # memory is allocated on the first run
            self._handles = [b.handle if b is not None else None for b in self.buffers]
        elif Allocation.any_damaged:
            self._refuse_lost_contents()
        self._run_all(self.variables if variables is None else variables)
        if Allocation.any_damaged:
            self._repair()

    def rerun(self) -> None:
        """`run` with the buffers and Variables of the last run."""
        if Allocation.any_damaged:
            self.run()
        else:
            self._run_all(self.variables)

    def _run_all(self, variables: Mapping[str, int]) -> None:
        self.is_whole, self._reached = False, 0
        await_run()
        try:
            self._run_steps(variables)
            self.is_whole = True
        except BaseException as error:
            self._after_exception(variables, error)
            raise

    def _refuse_lost_contents(self) -> None:
        """Raises InterruptedWriteError when contents are lost that a run may read."""
        for role, buffer in zip(self.roles, self.buffers, strict=True):
            if role not in ("output", "scratch") and buffer is not None:
                buffer.handle  # noqa: B018  raises

    def _run_steps(self, variables: Mapping[str, int], first: int = 0) -> None:
        """Run the steps from number `first` on."""
        waits: dict[BeginStep, Callable[[], None]] = {}
        for number in range(first, len(self.steps)):
            step, self._reached = self.steps[number], number
            if number:
                await_run()
                stopping.close()
            if isinstance(step, ProgramStep):  # nearly all
                run_loaded(step.executable, step.program, step.select(self._handles), variables)
            elif isinstance(step, CopyStep):
                self._copy(step)
            elif isinstance(step, BeginStep):
                waits[step] = step.start([self._written_buffer(i) for i in step.positions])
            else:
                waits.pop(step.begin)()

    def _after_exception(self, variables: Mapping[str, int], error: BaseException) -> None:
        """After an exception, run the rest if earlier steps were run. If that fails, or other processes wait
        for exchanges, mark memory as half-written: results, and state unless none of it was written."""
        step = self.steps[self._reached]
        ended = outcome(step.executable) if isinstance(step, ProgramStep) else Outcome.NONE
        first = self._reached + (ended is Outcome.WHOLE)
        if ended is Outcome.NONE and not first:
            return
        resumable = first and ended is not Outcome.HALF and not self.has_exchanges and watch.runner is None
        try:
            if first == len(self.steps) or resumable:
                self._run_steps(variables, first)
                self.is_whole = True
        finally:
            if self.is_whole:
                self._repair()
            else:
                self._damage(half_written(error), also_state=first > 0 or ended is Outcome.HALF)

    def _damage(self, reason: str, also_state: bool) -> None:
        for i in self.written:
            if self.roles[i] == "output":
                self._written_buffer(i).allocation.damage(f"{reason}: run it again")
            elif also_state and self.roles[i] != "scratch":
                self._written_buffer(i).allocation.damage(f"{reason}: {NEW_MEMORY}")

    def _repair(self) -> None:
        """After a whole run, take back the marks of an earlier run that was interrupted."""
        for i in self.written:
            self._written_buffer(i).allocation.repair()

    def _written_buffer(self, position: int) -> Buffer:
        buffer = self.buffers[position]
        assert buffer is not None
        return buffer

    def _copy(self, step: CopyStep) -> None:
        source, target = self.buffers[step.source], self.buffers[step.target]
        assert source is not None and target is not None
        target.copy_from(source)


def _targets(step: Step) -> Iterator[int]:
    """The numbers of the buffers that a step writes."""
    if isinstance(step, ProgramStep):
        yield from step.targets()
    elif isinstance(step, CopyStep):
        yield step.target
    elif isinstance(step, BeginStep):
        yield from step.positions
