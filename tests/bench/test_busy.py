"""Rows of two threads beside a busy process: what is measured, and how it is reported."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import bench_package  # noqa: F401
import pytest

from bench.contest import Ask, Case
from bench.hosts import Unavailable
from bench.suites import busy
from bench.suites.breadth_rows import ROWS


class FakeContest:
    """Samples by the number of threads."""

    def __init__(self, samples: dict[int, list[float]]) -> None:
        self.samples = {threads: iter(values) for threads, values in samples.items()}
        self.requests: list[tuple[int, dict[str, Any]]] = []

    def prepared(self, library: str, case: Case) -> Ask:
        assert library == "polygrad"

        def ask(request: dict[str, Any]) -> dict[str, Any]:
            self.requests.append((case.threads, request))
            try:
                return {"value": next(self.samples[case.threads])}
            except StopIteration:
                raise Unavailable("no more") from None

        return ask


def measured(samples: dict[int, list[float]], rounds: int = 3) -> tuple[busy.Result, FakeContest]:
    contest = FakeContest(samples)
    return busy.measure(contest, f"{busy.FAMILY}: some row", ROWS[0], rounds), contest  # type: ignore[arg-type]


def test_every_row_is_one_of_the_suite() -> None:
    assert set(busy.NAMES) <= {f"{row.family}: {row.name}" for row in ROWS}


def test_two_threads_and_one_take_turns_on_the_wall_clock() -> None:
    result, contest = measured({2: [1e-3, 9e-3, 2e-3], 1: [4e-3, 3e-3, 5e-3]})
    assert [threads for threads, _ in contest.requests] == [2, 1] * 3
    assert {request["clock"] for _, request in contest.requests} == {"wall"}
    assert (result.value, result.peers, result.threads) == (2.0, {busy.ONE: 4.0}, 2)
    assert result.met and result.ratio == 2.0


@pytest.mark.parametrize(("milliseconds", "met"), [(1.04, True), (1.06, False)])
def test_two_threads_may_take_five_percent_more(milliseconds: float, met: bool) -> None:
    assert measured({2: [milliseconds / 1e3], 1: [1e-3]}, 1)[0].met is met


def test_a_row_that_cannot_run_says_why() -> None:
    result, _ = measured({2: [1e-3], 1: []}, 1)
    assert result.value is None and not result.met
    assert result.skipped == {"polygrad": "no more"}


def test_the_busy_process_ends_with_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def start(*arguments: Any) -> subprocess.Popen[bytes]:
        started.append(real(*arguments))
        return started[-1]

    monkeypatch.setattr(busy.subprocess, "Popen", start)
    with pytest.raises(KeyError), busy.busy_process():
        assert started[0].poll() is None
        os.kill(started[0].pid, 0)
        raise KeyError
    assert started[0].poll() is not None
