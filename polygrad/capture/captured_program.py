"""A captured Program, loaded to be run many times.

Where the captured call worked on several devices it is a list of Programs, one after the other, with copies
between devices where one reads what another has computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from polygrad.engine.barriers import place_barriers
from polygrad.engine.devices import Device
from polygrad.engine.programs import arena_for
from polygrad.engine.recording import watch
from polygrad.engine.running import Outcome, await_run, outcome, run_program
from polygrad.engine.stats import stats
from polygrad.errors import CaptureError
from polygrad.runtime.buffer import Buffer
from polygrad.runtime.interface import Executable, Handle
from polygrad.runtime.program import Program


@dataclass(frozen=True, slots=True)
class CopyStep:
    """Copy buffer number `source` to `target`, on another device."""

    source: int
    target: int


class ProgramStep:
    """A Program and what runs it. `unlinked` is what `program`, which has its driver, was made of; its
    buffers are those of the CapturedProgram with the numbers `positions`, or all of them (None)."""

    __slots__ = ("executable", "positions", "program", "unlinked")

    unlinked: Program
    program: Program
    executable: Executable

    def __init__(self, program: Program, positions: Sequence[int] | None = None) -> None:
        self.positions = positions
        self.load(program)

    def load(self, program: Program) -> None:
        """Let `program` be what is run."""
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

    def own(self, of_all: list[Any]) -> list[Any]:
        """Of something for each buffer, what is for those of this Program."""
        return of_all if self.positions is None else [of_all[i] for i in self.positions]


class CapturedProgram:
    """Captured Programs and their buffers: `buffers[i]` is the memory of buffer i, None for scratch, and
    `roles[i]` what it is for. Inputs come first.

    `written` are the positions of the buffers that a run writes, `arena_lower_bound` the most bytes of
    scratch alive at one time.
    """

    def __init__(
        self,
        steps: list[ProgramStep | CopyStep],
        buffers: list[Buffer | None],
        roles: list[str],
        variables: dict[str, int],
        arena_lower_bound: int,
    ) -> None:
        self.buffers, self.roles, self.variables = buffers, roles, variables
        self.arena_lower_bound = arena_lower_bound
        self._handles: list[Handle | None] = []
        self._reached = 0  # the step that the last run has come to
        self._damaged = False  # the last run was interrupted
        self._steps = steps
        targets = {i for s in self._steps for i in ([s.target] if isinstance(s, CopyStep) else s.targets())}
        self.written = tuple(i for i in sorted(targets) if buffers[i] is not None)

    @property
    def programs(self) -> list[Program]:
        """What is run, in order, but for the copies between devices."""
        return [s.program for s in self._steps if isinstance(s, ProgramStep)]

    @property
    def program(self) -> Program:
        """The only Program. Raises CaptureError where there are several."""
        programs = self.programs
        if len(self._steps) != 1:
            devices = " and ".join(sorted({p.device for p in programs}))
            raise CaptureError(
                f"captured function: expected one Program, got {len(programs)} on {devices}: use `programs`"
            )
        return programs[0]

    def bind(self, position: int, buffer: Buffer) -> None:
        """Let the Program's buffer `position` be `buffer`, of the same size and dtype."""
        self.buffers[position] = buffer
        if self._handles:
            self._handles[position] = buffer.handle

    def order_shared_memory(self) -> None:
        """Let launches that use the same memory run in order, where buffers share some since the capture."""
        memory = [i if b is None else b.allocation for i, b in enumerate(self.buffers)]
        for step in self._steps:
            if isinstance(step, ProgramStep):
                program = place_barriers(step.unlinked, step.own(memory))
                if program != step.unlinked:
                    step.load(program)

    def run(self, variables: Mapping[str, int] | None = None) -> None:
        """Run everything once. Raises CaptureError inside a captured function."""
        if watch.recording is not None:
            watch.forbid("a step that is captured already", "call the function it was made of")
        if not self._handles:  # memory is taken on the first run
            self._handles = [b.handle if b is not None else None for b in self.buffers]
        if variables is None:
            variables = self.variables
        try:
            self._run_steps(variables)
        except BaseException:
            self._after_exception()
            raise
        if self._damaged:
            self._repair()

    def _run_steps(self, variables: Mapping[str, int]) -> None:
        for number, step in enumerate(self._steps):
            self._reached = number
            await_run()
            if isinstance(step, CopyStep):
                self._copy(step)
                continue
            program, handles = step.program, step.own(self._handles)
            if watch.runner is None:
                run_program(step.executable, program, handles, arena_for(program), variables)
            else:
                watch.runner(program, handles, arena_for(program), variables)
            stats.count(program)

    def _after_exception(self) -> None:
        """Mark what a run that did not end well has written some of: results, and state unless all or nothing
        of it was written."""
        ended = outcome()
        if ended is Outcome.NONE and self._reached == 0:
            return
        if ended is Outcome.WHOLE and len(self._steps) == 1:
            self._repair()
            return
        all_or_nothing = ended is Outcome.STOPPED and self._reached == 0
        self._damaged = True
        for i in self.written:
            if self.roles[i] == "output" or not all_or_nothing:
                self._written_buffer(i).allocation.damage()

    def _repair(self) -> None:
        """A whole run has written all that one before it has left half-written."""
        self._damaged = False
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
