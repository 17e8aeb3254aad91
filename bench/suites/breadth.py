"""The dense work that people run, in many shapes (`breadth_rows.py`): is there one where a peer is far ahead?

A figure is the *fastest* of many short samples, for all libraries alike: whatever else the machine does only
adds time, to one sample more than to another, and the rows are too many to take long samples of each. For the
same reason one thread is timed natively by its process's own clock, which stands while others run.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Iterator

from bench.contest import Case, Contest, Sampling
from bench.goals import times_best_peer
from bench.hosts import CHROMIUM, CPYTHON, DEVICES, NODE
from bench.report import Result
from bench.suites import eager
from bench.suites.breadth_rows import NATIVE, PAGE, ROWS, Row, reason_against

SAMPLING = Sampling(8, 0.05, min, most=24, process_time=True, hopeless=8)
QUICK = Sampling(3, 0.03, min, process_time=True, hopeless=4)
EACH = {CPYTHON: 0.8, CHROMIUM: 1.0}  # ours against the best peer: of every row
MEAN = {CPYTHON: 1.5, CHROMIUM: 2.5}  # and the geometric mean
PEERS = {CPYTHON: NATIVE, CHROMIUM: PAGE}
HOSTS = (CPYTHON, CHROMIUM, NODE)
ALL, MEAN_OF = "all rows", "geometric mean: "
BUSY = 0.5  # processors: while one of two threads that wait by spinning is stopped, both stand

Ratios = dict[tuple[str, int, str], list[float]]  # (host, threads, family) -> ours against the best peer


def case(row: Row, host: str, threads: int) -> Case:
    against = {library: reason_against(library, row) for library in PEERS[host]}
    return Case(
        name=f"{row.family}: {row.name}",
        kind="operation",
        sizes=row.sizes,
        host=host,
        threads=threads,
        peers=tuple(library for library, reason in against.items() if reason is None),
        goals=(times_best_peer(EACH[host], "lower"),),
        cannot={library: reason for library, reason in against.items() if reason is not None},
        tolerance=row.tolerance,
    )


def cases() -> list[Case]:
    return [
        case(row, host, threads)
        for host in PEERS
        for threads in (1, 2)
        for row in ROWS
        if threads in row.threads and (host == CPYTHON or row.page)
    ]


def run(quick: bool, only: str = "", host: str | None = None, threads: int | None = None) -> Iterator[Result]:
    """All rows, or those whose names the pattern `only` is found in, of one host, of so many threads."""

    def wanted(name: str, on: str, using: int) -> bool:
        return bool(re.search(only, name)) and host in (None, on) and threads in (None, using)

    measured: list[Result] = []
    if os.getloadavg()[0] > BUSY:
        print("breadth: the machine is busy, rows with two threads will mean little", file=sys.stderr)
    with Contest("breadth", quick, QUICK if quick else SAMPLING) as contest:
        for c in cases():
            if wanted(c.name, c.host, c.threads):
                measured.append(contest.measure(c))
                yield measured[-1]
        yield from eager.run(contest, lambda name, on: wanted(name, on, 1))
    yield from means(measured)


def renewed(kept: list[Result], found: list[Result]) -> list[Result]:
    """The rows of an earlier run with those that were measured again in their places, and new means."""
    rows = {(r.case, r.host, r.threads): r for r in (*kept, *found) if not r.case.startswith(MEAN_OF)}
    return [*rows.values(), *means(list(rows.values()))]


def means(results: list[Result]) -> Iterator[Result]:
    """The geometric mean of the ratios, of each host and number of threads, and of each family there."""
    families = {row.family for row in ROWS}
    ratios: Ratios = {}
    for r in results:
        own = r.case.partition(":")[0]
        for family in (ALL, own) if own in families and r.ratio is not None else ():
            ratios.setdefault((r.host, r.threads, family), []).append(r.ratio)
    for (host, threads, family), members in ratios.items():
        value = math.exp(sum(map(math.log, members)) / len(members))
        limit = MEAN[host] if family == ALL else None
        yield Result(
            suite="breadth",
            case=f"{MEAN_OF}{family} ({len(members)})",
            host=host,
            device=DEVICES[host],
            value=value,
            unit="×",
            better="higher",
            target="-" if limit is None else f"≥ {limit:g}×",
            met=limit is None or value >= limit,
            threads=threads,
        )
