"""Twenty elementwise operations over 10 M floats, which should cost what a copy costs: one read, one write."""

from __future__ import annotations

from collections.abc import Iterator

from bench.contest import Case, Contest, Figures, Goal
from bench.report import Result

SIZES = {"n": 10_000_000}
PEERS = ("numpy", "torch", "torch-compile", "tinygrad")


def within_copy(threads: int) -> Goal:
    def met(f: Figures) -> bool:
        return f.value <= 1.2 * f.earlier["copy", threads]

    return Goal("≤ 1.2× the time of a copy", met)


def run(quick: bool) -> Iterator[Result]:
    with Contest("elementwise", quick) as contest:
        for threads in (1, 2):
            yield contest.limit(Case("copy", "copy", SIZES, "cpython", threads, (), ()), "torch")
            goals = (within_copy(threads),)
            yield contest.measure(Case("20 operations", "chain", SIZES, "cpython", threads, PEERS, goals))
