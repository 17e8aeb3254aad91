"""Recording: while a function is being captured, `realize` writes Programs down instead of running them.

`watch.recording` is what `realize` asks. Nothing touches the device's memory while a recording is active, so
that a capture can be undone, or carried out, as a whole. What becomes of it: `polygrad/capture`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from polygrad.errors import CaptureError
from polygrad.runtime.buffer import Allocation, Buffer
from polygrad.runtime.interface import Handle
from polygrad.runtime.program import Program
from polygrad.uop.node import UOp

# Runs a Program on these buffers, in this arena, with these variables, as an Executable does.
Runner = Callable[[Program, Sequence[Handle | None], Handle | None, Mapping[str, int]], None]


@dataclass(frozen=True, slots=True)
class Run:
    """A Program that would have run, with its buffers (None: scratch) and variables. `perform` runs it."""

    program: Program
    buffers: list[Buffer | None]
    variables: Mapping[str, int]
    perform: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Transfer:
    """A copy between devices that would have been made. `perform` makes it."""

    source: Buffer
    target: Buffer

    @property
    def buffers(self) -> tuple[Buffer, Buffer]:
        return self.source, self.target

    def perform(self) -> None:
        self.target.copy_from(self.source)


@dataclass(slots=True)
class Recording:
    """The runs of a capture, in order.

    What existed when it began is not part of it: `lazy_values` are computed when they are needed; `storages`
    own memory and values, `lazy_storages` are those of them without memory. `guards` are symbolic sizes and
    whether each is negative, as it must be in every replay. `constants` are the nodes over no memory that
    have a value in the recording: the same expression elsewhere is the same node, and has none. `since`: the
    serial number of the youngest Tensor that is older. `checks`
    are made after every run (`tensor/core/checks.py`). `gradients`: those that leaves had, by the leaf's id;
    a backward adds to them in place.
    `preview`: it is undone at its end, so nothing may run in the middle.
    """

    lazy_values: frozenset[UOp]
    storages: frozenset[object]
    lazy_storages: frozenset[object]
    since: int = 0
    runs: list[Run | Transfer] = field(default_factory=list)
    guards: dict[UOp, bool] = field(default_factory=dict)
    constants: list[UOp] = field(default_factory=list)
    checks: list[Any] = field(default_factory=list)
    gradients: dict[int, Any] = field(default_factory=dict)
    preview: bool = False

    def memory(self) -> set[Allocation]:
        """What the runs read and write."""
        return {b.allocation for run in self.runs for b in run.buffers if b is not None}


@dataclass(slots=True)
class Watch:
    """`recording`: the capture that is going on.

    `executed`: how many Programs have run outside of captures; `replays`: how many runs of captured steps
    have written to memory that they do not own. `runner`: what runs Programs in place of their executables,
    while a profile is taken.
    """

    recording: Recording | None = None
    executed: int = 0
    replays: int = 0
    runner: Runner | None = None

    def forbid(self, what: str, remedy: str) -> None:
        """Raises CaptureError when a function is being captured: it cannot do `what`."""
        if self.recording is not None:
            raise CaptureError(f"captured function: expected only work on the device, got {what}: {remedy}")

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """`with watch.paused():` Programs run, also inside a capture."""
        recording, self.recording = self.recording, None
        try:
            yield
        finally:
            self.recording = recording


watch = Watch()


@contextlib.contextmanager
def recorded(recording: Recording, fill: Callable[[Recording], None]) -> Iterator[None]:
    """`with recorded(recording, fill):` what is computed inside is recorded.

    After an exception everything recorded is run, as if nothing had been captured, once `fill` has given
    placeholders their values.
    """
    if watch.recording is not None:
        raise CaptureError("capture: expected no other capture to be going on, got one inside another")
    watch.recording = recording
    try:
        yield
    except BaseException:
        watch.recording = None
        fill(recording)
        for run in recording.runs:
            run.perform()
        raise
    finally:
        watch.recording = None
        for node in recording.constants:
            node.value = None
