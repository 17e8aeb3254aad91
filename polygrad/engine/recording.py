"""Recording: while a function is captured, `realize` records Programs instead of running them.

`watch.recording` is the active recording. While there is one, nothing touches the device's memory, so a
capture can be undone, or run, as a whole. `polygrad/capture` makes a captured function of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from polygrad.errors import CaptureError
from polygrad.runtime.buffer import Allocation, Buffer
from polygrad.runtime.interface import Handle
from polygrad.runtime.program import Program
from polygrad.uop.node import UOp

R = TypeVar("R")
# Runs a Program on these buffers, in this arena, with these variables, as an Executable does.
Runner = Callable[[Program, Sequence[Handle | None], Handle | None, Mapping[str, int]], None]


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A recorded run of a Program, with its buffers (None: scratch) and variables. `perform` runs it."""

    program: Program
    buffers: list[Buffer | None]
    variables: Mapping[str, int]
    perform: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Transfer:
    """A recorded copy between devices. `perform` makes it."""

    source: Buffer
    target: Buffer

    @property
    def buffers(self) -> tuple[Buffer, Buffer]:
        return self.source, self.target

    def perform(self) -> None:
        self.target.copy_from(self.source)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A recorded exchange with other processes. `start` begins it on `buffers`, which it may read and write,
    and returns what waits for its end. `perform` does both."""

    label: str
    buffers: tuple[Buffer, ...]
    start: Callable[[Sequence[Buffer]], Callable[[], None]]

    def perform(self) -> None:
        self.start(self.buffers)()


@dataclass(slots=True)
class Recording:
    """The runs of a capture, in order.

    Values that existed when it began are not part of it. `since`: the serial number of the youngest Tensor
    that is older than the recording. Of what the call has met, `lazy_values`: older values that are not
    computed; they are computed when they are needed. `storages`: the older owners of memory and values.
    `lazy_storages`: the storages without memory.
    `guards`: symbolic sizes, and whether each is negative, as it must be in every replay. `constants`: nodes
    over no memory that got a value in the recording; the value is removed at its end, because an equal
    expression elsewhere is the same node. `checks`: made after every run (`tensor/core/checks.py`).
    `gradients`: the older gradients of leaves, by the leaf's id; a backward adds to them in place. `preview`:
    the recording is undone at its end, so nothing may run before.
    """

    since: int = 0
    lazy_values: set[UOp] = field(default_factory=set)
    storages: set[Any] = field(default_factory=set)
    lazy_storages: set[Any] = field(default_factory=set)
    runs: list[RecordedRun | Transfer | Exchange] = field(default_factory=list)
    guards: dict[UOp, bool] = field(default_factory=dict)
    constants: list[UOp] = field(default_factory=list)
    checks: list[Any] = field(default_factory=list)
    gradients: dict[int, Any] = field(default_factory=dict)
    preview: bool = False

    def memory(self) -> set[Allocation]:
        """The memory that the runs read and write."""
        return {b.allocation for run in self.runs for b in run.buffers if b is not None}


@dataclass(slots=True)
class Watch:
    """`recording`: the active capture. `executed`: the number of Programs that ran outside of captures.
    `replays`: the number of runs of captured steps that wrote to memory that they do not own. `runner`: runs
    Programs instead of their executables while a profile or a trace is taken. `exchanges`: the label, the
    start and the end of each exchange while a trace is taken.
    """

    recording: Recording | None = None
    executed: int = 0
    replays: int = 0
    runner: Runner | None = None
    exchanges: list[tuple[str, float, float]] | None = None

    def forbid(self, what: str, remedy: str) -> None:
        """Raises CaptureError when a function is being captured: it cannot do `what`."""
        if self.recording is not None:
            raise CaptureError(f"captured function: {what}: expected only work on the device: {remedy}")

    def paused(self, call: Callable[[], R]) -> R:
        """`call()`, in which Programs run, also inside a capture."""
        recording, self.recording = self.recording, None
        try:  # no `with`: a signal's handler may raise where its block begins to end
            return call()
        finally:
            self.recording = recording


watch = Watch()


@contextlib.contextmanager
def record(recording: Recording, fill: Callable[[Recording], None]) -> Iterator[None]:
    """`with record(recording, fill):` the computations in the block are recorded.

    After an exception `fill` gives placeholders their values, and then all recorded runs are made, as if
    nothing had been captured; up to the first exchange, as other processes may have had no exception.
    """
    if watch.recording is not None:
        raise CaptureError("capture: another capture is active: expected no capture inside of another")
    watch.recording = recording
    try:
        yield
    except BaseException:
        watch.recording = None
        fill(recording)
        for run in recording.runs:
            if isinstance(run, Exchange):
                break
            run.perform()
        raise
    finally:
        watch.recording = None
        for node in recording.constants:
            node.value = None
