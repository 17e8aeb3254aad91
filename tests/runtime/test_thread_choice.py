"""The number of threads of a Program: fewer where a processor is taken away, all of them otherwise."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from polygrad.runtime.cpu.thread_choice import BLOCK, LONG_RUN, LONGEST_PAUSE, ThreadChoice

RUN = 1e-3  # seconds of a run with one thread


def quiet(threads: int, clock: float) -> float:
    """The seconds of a run on a machine that has a processor for each thread."""
    return RUN / threads


def beside_a_busy_process(threads: int, clock: float) -> float:
    """With a processor for one thread, and for the others 3 of each 9 ms."""
    if threads == 1:
        return RUN
    into_turns = clock % 9e-3
    return RUN / threads if into_turns < 3e-3 else 9e-3 - into_turns + RUN / threads


def run(
    choice: ThreadChoice, limit: int, seconds: float, machine: Callable[[int, float], float]
) -> list[tuple[int, float]]:
    """The threads and the seconds of each run within so many seconds."""
    clock, runs = 0.0, []
    while clock < seconds:
        threads = choice.count(limit)
        taken = machine(threads, clock)
        choice.record(taken)
        runs.append((threads, taken))
        clock += taken
    return runs


@pytest.mark.parametrize("limit", [2, 3, 8])
def test_all_threads_run_nearly_always_where_they_are_faster(limit: int) -> None:
    runs = run(ThreadChoice(), limit, 2.0, quiet)
    assert {threads for threads, _ in runs} == {limit, limit // 2}
    assert sum(threads < limit for threads, _ in runs) <= len(runs) / 100


@pytest.mark.parametrize("limit", [2, 4])
def test_threads_whose_processors_are_shared_cost_two_percent_at_most(limit: int) -> None:
    choice = ThreadChoice()
    run(choice, limit, 1.0, beside_a_busy_process)
    runs = run(choice, limit, 5.0, beside_a_busy_process)
    assert sum(seconds for _, seconds in runs) / len(runs) < 1.02 * RUN
    assert sum(threads == 1 for threads, _ in runs) > len(runs) / 2


def test_all_threads_run_again_when_the_other_process_has_ended() -> None:
    choice = ThreadChoice()
    run(choice, 2, 5.0, beside_a_busy_process)
    run(choice, 2, LONGEST_PAUSE + 0.1, quiet)
    runs = run(choice, 2, 1.0, quiet)
    assert sum(threads == 2 for threads, _ in runs) > 0.95 * len(runs)


def test_a_process_that_starts_later_is_noticed() -> None:
    choice = ThreadChoice()
    run(choice, 2, 10.0, quiet)
    assert 1 in [threads for threads, _ in run(choice, 2, 0.1, beside_a_busy_process)]


def test_long_runs_have_all_threads() -> None:
    runs = run(ThreadChoice(), 2, 100 * BLOCK * LONG_RUN, lambda threads, clock: 2 * LONG_RUN)
    assert {threads for threads, _ in runs} == {2}


def test_one_thread_stays_one_thread() -> None:
    assert {threads for threads, _ in run(ThreadChoice(), 1, 1.0, quiet)} == {1}


def test_another_limit_begins_anew() -> None:
    choice = ThreadChoice()
    run(choice, 2, 1.0, beside_a_busy_process)
    assert choice.count(4) == 4
    run(choice, 4, 0.1, quiet)
    assert choice.count(1) == 1
