"""Traces: what a call runs and exchanges, and when."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from polygrad import Tensor, TinyJit
from polygrad.distributed import group as groups
from polygrad.distributed.engine import Single
from polygrad.distributed.memory import buffer_of, exchange
from polygrad.engine.recording import watch
from polygrad.engine.trace import EXCHANGE, PROGRAM, trace
from polygrad.errors import CaptureError
from polygrad.pictures import profile
from polygrad.runtime.interface import Executable

EXCHANGE_SECONDS = 0.2


class Two(Single):
    """Rank 0 of two, of which the other one is not there."""

    size = 2


@pytest.fixture
def two_ranks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    made = groups.Group(Two(), "a test", 60.0, check=False)
    monkeypatch.setattr(groups, "_group", made)
    yield
    made.close()


@pytest.mark.usefixtures("default_device")
def test_the_programs_of_a_captured_call_in_order() -> None:
    a, b = Tensor.rand(64, 64).realize(), Tensor.rand(64, 64).realize()
    calls = []

    @TinyJit
    def f(a: Tensor, b: Tensor) -> Tensor:
        calls.append(1)
        return ((a @ b).relu() @ b).realize()

    expected = ((a @ b).relu() @ b).numpy()
    found = trace(lambda: f(a, b))
    assert len(calls) == 2 and watch.runner is None and watch.exchanges is None
    assert {span.kind for span in found.spans} == {PROGRAM}
    starts = [span.start for span in found.spans]
    assert starts == sorted(starts) and 0 <= starts[0] and found.spans[-1].end <= found.seconds
    assert found.hidden == 0 and sum(span.seconds for span in found.spans) <= found.seconds
    assert (f(a, b).numpy() == expected).all()
    assert str(found).splitlines()[0] == found.headline and len(str(found).splitlines()) == 3 + len(
        found.spans
    )


@pytest.mark.usefixtures("two_ranks")
def test_an_exchange_overlaps_the_programs_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second Program of a call runs until the exchange has begun, in a thread of its own."""
    w, x = Tensor.rand(64, 64).realize(), Tensor.rand(64, 64).realize()
    began, measure, count = threading.Event(), Executable.measure, 0

    def measured(executable: Executable, *arguments: Any) -> float:
        nonlocal count
        count += 1
        if count == 2:
            assert began.wait(60)
        return measure(executable, *arguments)

    def wait(array: Any) -> None:
        began.set()
        time.sleep(EXCHANGE_SECONDS)

    def call() -> None:
        nonlocal count
        count = 0
        began.clear()
        f(x)

    monkeypatch.setattr(Executable, "measure", measured)

    @TinyJit
    def f(x: Tensor) -> tuple[Tensor, Tensor]:
        first = (x * 2).contiguous().realize()
        exchange("a sum", [buffer_of(first)], wait)
        return (w @ x @ x).realize(), (first + 1).realize()

    found = trace(call)
    (one,) = found.of_kind(EXCHANGE)
    assert one.label == "a sum" and one.seconds >= EXCHANGE_SECONDS
    programs = found.of_kind(PROGRAM)
    assert programs[-1].start >= one.end, "what uses the memory waits"
    assert 0 < found.hidden <= one.seconds <= found.seconds


def test_a_trace_is_not_taken_inside_of_another() -> None:
    with pytest.raises(CaptureError, match="trace: a profile or another trace is active"):
        trace(lambda: trace(lambda: None))
    with pytest.raises(CaptureError, match="trace: a profile or another trace is active"):
        profile(lambda: trace(lambda: None))
    assert watch.runner is None
    inside = TinyJit(lambda x: (trace(x.realize), x)[1])
    inside(Tensor.ones(3))
    with pytest.raises(CaptureError, match="a trace"):
        inside(Tensor.ones(3))
