"""Traces: when a call runs Programs, and when it exchanges memory with other processes.

    overlap = trace(lambda: step.run(x, y))
    print(overlap)                             a line for each Program and each exchange
    print(overlap.hidden)                      seconds of exchanges while a Program ran

A profile times each launch alone; a trace leaves the call as it is, so it shows what overlaps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from polygrad.engine.devices import Device
from polygrad.engine.recording import watch
from polygrad.engine.report import html_table_of, table_of, time_of
from polygrad.errors import CaptureError
from polygrad.monitor import exclusive
from polygrad.runtime.interface import Executable, Handle
from polygrad.runtime.program import Program

PROGRAM, EXCHANGE = "Program", "exchange"
_HEAD = ("kind", "what", "begins", "time")
_WARM_CALLS = 2  # a captured function is captured in the second


@dataclass(frozen=True, slots=True)
class Span:
    """One thing that took time. `kind`: `PROGRAM` or `EXCHANGE`. `start`, `end`: seconds of
    `time.perf_counter`, in a Trace since its begin."""

    kind: str
    label: str
    start: float
    end: float

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.end - self.start


@dataclass(frozen=True, slots=True, repr=False)
class Trace:
    """The Programs and exchanges of one call, by their starts. `seconds`: of the whole call."""

    spans: tuple[Span, ...]
    seconds: float

    def of_kind(self, kind: str) -> list[Span]:
        """The spans of one kind."""
        return [span for span in self.spans if span.kind == kind]

    @property
    def hidden(self) -> float:
        """The seconds of exchanges while a Program ran."""
        return sum(
            max(0.0, min(x.end, p.end) - max(x.start, p.start))
            for x in self.of_kind(EXCHANGE)
            for p in self.of_kind(PROGRAM)
        )

    @property
    def headline(self) -> str:
        """The totals in words."""
        totals = []
        for kind in (PROGRAM, EXCHANGE):
            spans = self.of_kind(kind)
            seconds = sum(span.seconds for span in spans)
            totals.append(f"{len(spans)} {kind}{'s' * (len(spans) != 1)} {time_of(seconds)}")
        return f"{', '.join(totals)}, {time_of(self.hidden)} of it meanwhile, {time_of(self.seconds)} in all"

    def __str__(self) -> str:
        return f"{self.headline}\n{table_of(_HEAD, self._rows(), left=2)}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<p>{self.headline}</p>{html_table_of(_HEAD, self._rows(), left=2)}"

    def _rows(self) -> list[list[str]]:
        return [[x.kind, x.label, time_of(x.start), time_of(x.seconds)] for x in self.spans]


@dataclass(slots=True)
class _TracingRunner:
    """Runs Programs while it is `watch.runner`, and notes when."""

    spans: list[Span] = field(default_factory=list)
    _loaded: dict[int, tuple[Program, Executable]] = field(default_factory=dict)  # by identity

    def run(
        self,
        program: Program,
        buffers: Sequence[Handle | None],
        arena: Handle | None,
        variables: Mapping[str, int],
    ) -> None:
        if id(program) not in self._loaded:
            self._loaded[id(program)] = program, Device[program.device].load(program)
        start = time.perf_counter()
        self._loaded[id(program)][1].measure(buffers, arena, variables)
        count = len(program.launches)
        label = f"{count} launch{'es' * (count != 1)} on {program.device}"
        self.spans.append(Span(PROGRAM, label, start, time.perf_counter()))


@exclusive
def trace(compute: Callable[[], object]) -> Trace:
    """Call `compute` three times, and note in the last call when each Program and each exchange begins and
    ends. Where ranks exchange memory, all of them call it.

    Raises CaptureError inside of a captured function, or of a profile or another trace.
    """
    watch.forbid("a trace", "trace calls of the captured function")
    if watch.runner is not None:
        raise CaptureError("trace: a profile or another trace is active: expected no trace inside of it")
    runner = _TracingRunner()
    watch.runner = runner.run
    try:
        for _ in range(_WARM_CALLS):
            compute()
        runner.spans, watch.exchanges = [], []
        start = time.perf_counter()
        compute()
        seconds = time.perf_counter() - start
        exchanges = [Span(EXCHANGE, *exchange) for exchange in watch.exchanges]
    finally:
        watch.runner = watch.exchanges = None
    spans = sorted([*runner.spans, *exchanges], key=lambda span: span.start)
    return Trace(tuple(Span(x.kind, x.label, x.start - start, x.end - start) for x in spans), seconds)
