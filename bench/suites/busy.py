"""Two threads beside another process that computes all the time: rows of suite breadth.

A machine of two processors then has one and a half for two threads. They should be no slower than one, which
has a processor of its own: its time, in turn with theirs, is what the rows are compared with.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from statistics import median

from bench.contest import Case, Contest, Figures
from bench.goals import times_best_peer
from bench.hosts import CPYTHON, DEVICES, Unavailable
from bench.report import Result
from bench.suites.breadth_rows import ROWS, Row

SUITE, FAMILY = "breadth", "beside a busy process"
NAMES = (
    "product: NN 512",
    "linear: 128×784→512 relu",
    "convolution: 3×3",
    "attention: 1×12×1024×64",
    "reduction: sum axis 1",
    "softmax: softmax",
    "normalisation: layer, gradients",
    "elementwise: add",
    "indexing: rows 8192 of 4096×256",
)
ROUNDS, QUICK_ROUNDS, SECONDS = 9, 3, 0.4  # a sample is long enough for many turns of the two processes
ONE = "polygrad, one thread"
LEAST = 0.95  # of its speed
COMPUTE = "while True: pass"


@contextlib.contextmanager
def busy_process() -> Iterator[None]:
    """Another process computes until the end of the block."""
    process = subprocess.Popen([sys.executable, "-c", COMPUTE])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def run(contest: Contest, quick: bool, wanted: Callable[[str], bool]) -> Iterator[Result]:
    """The rows whose names are wanted."""
    rows = {f"{row.family}: {row.name}": row for row in ROWS}
    for name in NAMES:
        if wanted(f"{FAMILY}: {name}"):
            yield measure(contest, f"{FAMILY}: {name}", rows[name], QUICK_ROUNDS if quick else ROUNDS)


def measure(contest: Contest, name: str, row: Row, rounds: int) -> Result:
    """Medians of the seconds that a step takes with two threads and with one."""
    goal = times_best_peer(LEAST, "lower")
    samples: dict[int, list[float]] = {2: [], 1: []}
    skipped = {}
    try:
        asks = {threads: contest.prepared("polygrad", case(name, row, threads)) for threads in samples}
        with busy_process():
            for _ in range(rounds):
                for threads, ask in asks.items():
                    answer = ask({"op": "sample", "seconds": SECONDS, "clock": "wall"})
                    samples[threads].append(answer["value"])
    except Unavailable as reason:
        skipped["polygrad"] = str(reason)
    found = {threads: median(values) * 1e3 for threads, values in samples.items() if values}
    complete = not skipped
    peers = {ONE: found[1]} if complete else {}
    return Result(
        suite=SUITE,
        case=name,
        host=CPYTHON,
        device=DEVICES[CPYTHON],
        value=found[2] if complete else None,
        unit="ms",
        better="lower",
        target=goal.words,
        met=complete and goal.met(Figures(found[2], peers, {})),
        threads=2,
        peers=peers,
        skipped=skipped,
    )


def case(name: str, row: Row, threads: int) -> Case:
    return Case(name, "operation", row.sizes, CPYTHON, threads, (), (), tolerance=row.tolerance)
