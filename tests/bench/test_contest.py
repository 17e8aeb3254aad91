"""How contestants are sampled: turns, which of them are enough, whose clock."""

from __future__ import annotations

from typing import Any

import bench_package  # noqa: F401
import pytest

from bench import contest


class Library:
    """Answers with these samples, the last of them again and again, and keeps what it was asked."""

    def __init__(self, *samples: float) -> None:
        self.samples, self.requests = samples, []

    def __call__(self, request: dict[str, Any]) -> dict[str, float]:
        self.requests.append(request)
        return {"value": self.samples[min(len(self.requests), len(self.samples)) - 1]}


def run(libraries: dict[str, Library], host: str = "cpython", threads: int = 1, **sampling: Any):
    settings = {"rounds": 3, "seconds": 0.05, "figure": min} | sampling
    running = contest.Contest("test", False, contest.Sampling(**settings))
    running._contestant = lambda case, name: (libraries[name], None)
    peers = tuple(name for name in libraries if name != "polygrad")
    return running.measure(contest.Case("case", "kind", {}, host, threads, peers, ()))


def turns(libraries: dict[str, Library]) -> dict[str, int]:
    return {name: len(library.requests) for name, library in libraries.items()}


def test_the_figure_is_what_the_sampling_says() -> None:
    libraries = {"polygrad": Library(2.0, 1.0, 3.0), "torch": Library(4.0, 5.0, 9.0)}
    result = run(libraries)
    assert (result.value, result.peers, result.ratio) == (1e3, {"torch": 4e3}, 4.0)


def test_a_hopeless_peer_has_no_more_turns_but_its_figure() -> None:
    libraries = {"polygrad": Library(1.0), "numpy": Library(9.0), "torch": Library(7.0)}
    result = run(libraries, hopeless=8)
    assert turns(libraries) == {"polygrad": 3, "numpy": 1, "torch": 3}
    assert result.peers["numpy"] == 9e3


def test_ours_has_all_its_turns_however_slow() -> None:
    libraries = {"polygrad": Library(9.0), "torch": Library(1.0)}
    run(libraries, hopeless=8)
    assert turns(libraries) == {"polygrad": 3, "torch": 3}


def test_rounds_go_on_until_the_two_fastest_samples_agree() -> None:
    libraries = {"polygrad": Library(1.0, 2.0, 2.0, 2.0, 1.01, 3.0), "torch": Library(5.0)}
    run(libraries, most=10)
    assert turns(libraries) == {"polygrad": 5, "torch": 5}
    restless = {"polygrad": Library(*(2.0**-i for i in range(20))), "torch": Library(5.0)}
    run(restless, most=10)
    assert turns(restless) == {"polygrad": 10, "torch": 10}


@pytest.mark.parametrize(
    ("host", "threads", "clock"),
    [("cpython", 1, "process"), ("cpython", 2, "wall"), ("chromium", 1, "wall")],
)
def test_one_thread_natively_has_the_clock_of_its_process(host: str, threads: int, clock: str) -> None:
    libraries = {"polygrad": Library(1.0), "torch": Library(1.0)}
    run(libraries, host, threads, rounds=1, process_time=True)
    assert {r["clock"] for library in libraries.values() for r in library.requests} == {clock}


def test_one_without_an_answer_is_skipped_with_the_reason() -> None:
    def fails(request: dict[str, Any]) -> dict[str, float]:
        raise contest.Unavailable("no memory")

    libraries = {"polygrad": Library(1.0), "torch": fails}
    result = run(libraries)
    assert result.skipped == {"torch": "no memory"} and not result.peers


def test_those_whose_pages_a_peer_has_ended_are_prepared_anew() -> None:
    class Pages:
        closed = False

    running = contest.Contest("test", False, contest.Sampling(1, 0.05, min))
    prepared: list[str] = []

    def contestant(case: contest.Case, name: str) -> Any:
        if running._pages is None or running._pages.closed:
            running._pages = Pages()  # type: ignore[assignment]
        prepared.append(name)
        if name == "slow":
            running._pages.closed = True  # type: ignore[union-attr]
            raise contest.Unavailable("no answer")
        return Library(1.0), None

    running._contestant = contestant  # type: ignore[method-assign]
    result = running.measure(contest.Case("case", "kind", {}, "chromium", 1, ("jax-js", "slow"), ()))
    assert prepared == ["polygrad", "jax-js", "slow", "polygrad", "jax-js"]
    assert (result.value, result.peers, result.skipped) == (1e3, {"jax-js": 1e3}, {"slow": "no answer"})
