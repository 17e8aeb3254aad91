"""Twenty elementwise operations over 10 M floats: they should cost one read and one write, as a copy does."""

from __future__ import annotations

from collections.abc import Iterator

from bench.contest import Case, Contest, Limit
from bench.goals import within
from bench.hosts import CPYTHON
from bench.report import Result

SIZES = {"n": 10_000_000}
PEERS = ("numpy", "torch", "torch-compile", "tinygrad")


def case(threads: int) -> Case:
    copy = Limit("copy", "torch", threads, "copy", SIZES)
    return Case(
        "20 operations", "chain", SIZES, CPYTHON, threads, PEERS, (within("copy", 1.2),), limits=(copy,)
    )


def run(quick: bool) -> Iterator[Result]:
    with Contest("elementwise", quick) as contest:
        yield from contest.run([case(1), case(2)])
