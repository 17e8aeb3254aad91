"""The dense work that people run, in many shapes (`breadth_rows.py`, and `gpu_rows.py` for WEBGPU): is there
one where a peer is far ahead?

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
from bench.suites import busy, eager, gpu_rows
from bench.suites.breadth_rows import LACKS, NATIVE, PAGE, ROWS, Row, reason_against

SAMPLING = Sampling(8, 0.05, min, most=24, process_time=True, hopeless=8)
QUICK = Sampling(3, 0.03, min, process_time=True, hopeless=4)
ON_GPU = Sampling(3, 0.1, min, most=8, hopeless=4)  # of a software adapter, which takes long for much
CPU, WASM, WEBGPU = DEVICES[CPYTHON], DEVICES[CHROMIUM], "WEBGPU"
EACH = {CPU: 0.8, WASM: 1.0, WEBGPU: 1.0}  # ours against the best peer: of every row
MEAN = {CPU: 1.5, WASM: 2.5, WEBGPU: 2.5}  # and the geometric mean
PEERS = {CPU: NATIVE, WASM: PAGE, WEBGPU: gpu_rows.PEERS}
HOST_OF = {CPU: CPYTHON, WASM: CHROMIUM, WEBGPU: CHROMIUM}
HOSTS = (CPYTHON, CHROMIUM, NODE)
# Programs of several operations: name, kind, peers that have none.
STEPS = (
    ("convnet, 64 images of 28×28", "convnet", {"onnxruntime-web": "does not train"}),
    ("Adam, 40 small parameters", "adam", {"onnxruntime-web": "does not train"}),
)
STEP = "training step"  # their family
ALL, MEAN_OF = "all rows", "geometric mean: "
BUSY = 0.5  # processors: while one of two threads that wait by spinning is stopped, both stand

# (host, device, threads, family) -> ours against the best
Ratios = dict[tuple[str, str, int, str], list[float]]


def case(row: Row, device: str, threads: int = 1) -> Case:
    reasons = gpu_rows.LACKS if device == WEBGPU else LACKS
    against = {library: reason_against(library, row, reasons) for library in PEERS[device]}
    return Case(
        name=f"{row.family}: {row.name}",
        kind="operation",
        sizes=row.sizes,
        host=HOST_OF[device],
        threads=threads,
        peers=tuple(library for library, reason in against.items() if reason is None),
        goals=(times_best_peer(EACH[device], "lower"),),
        cannot={library: reason for library, reason in against.items() if reason is not None},
        tolerance=row.tolerance,
        on=device,
    )


def cases() -> list[Case]:
    """Those of the processor's devices."""
    return [
        case(row, device, threads)
        for device in (CPU, WASM)
        for threads in (1, 2)
        for row in ROWS
        if threads in row.threads and (device == CPU or row.page)
    ]


def gpu_cases() -> list[Case]:
    goals = (times_best_peer(EACH[WEBGPU], "lower"),)
    steps = [
        Case(
            name=f"{STEP}: {name}",
            kind=kind,
            sizes={},
            host=HOST_OF[WEBGPU],
            threads=1,
            peers=tuple(library for library in PEERS[WEBGPU] if library not in cannot),
            goals=goals,
            cannot=cannot,
            on=WEBGPU,
        )
        for name, kind, cannot in STEPS
    ]
    return [*(case(row, WEBGPU) for row in gpu_rows.ROWS), *steps]


def run(
    quick: bool,
    only: str = "",
    host: str | None = None,
    threads: int | None = None,
    device: str | None = None,
) -> Iterator[Result]:
    """All rows, or those whose names the pattern `only` is found in, of one host, of so many threads, of one
    device."""

    def wanted(name: str, at: str, using: int, on: str) -> bool:
        chosen = host in (None, at) and threads in (None, using) and device in (None, on)
        return chosen and bool(re.search(only, name))

    def measured(contest: Contest, cases: list[Case]) -> Iterator[Result]:
        for c in cases:
            if wanted(c.name, c.host, c.threads, c.device):
                found.append(contest.measure(c))
                yield found[-1]

    found: list[Result] = []
    if os.getloadavg()[0] > BUSY:
        print("breadth: the machine is busy, rows with two threads will mean little", file=sys.stderr)
    with Contest("breadth", quick, QUICK if quick else SAMPLING) as contest:
        yield from measured(contest, cases())
        yield from eager.run(contest, lambda name, at: wanted(name, at, 1, DEVICES[at]))
        yield from busy.run(contest, quick, lambda name: wanted(name, CPYTHON, 2, CPU))
    with Contest("breadth", quick, ON_GPU) as contest:
        yield from measured(contest, gpu_cases())
    yield from means(found)


def renewed(kept: list[Result], found: list[Result]) -> list[Result]:
    """The rows of an earlier run with those that were measured again in their places, and new means."""
    rows = {(r.case, r.host, r.device, r.threads): r for r in (*kept, *found) if MEAN_OF not in r.case}
    return [*rows.values(), *means(list(rows.values()))]


def means(results: list[Result]) -> Iterator[Result]:
    """The geometric mean of the ratios of each host, device and number of threads, and of families there."""
    families = {row.family for row in (*ROWS, *gpu_rows.ROWS)} | {STEP}
    ratios: Ratios = {}
    for r in results:
        own = r.case.partition(":")[0]
        for family in (ALL, own) if own in families and r.ratio is not None else ():
            ratios.setdefault((r.host, r.device, r.threads, family), []).append(r.ratio)
    for (host, device, threads, family), members in ratios.items():
        value = math.exp(sum(map(math.log, members)) / len(members))
        limit = MEAN[device] if family == ALL else None
        yield Result(
            suite="breadth",
            case=f"{MEAN_OF}{family} ({len(members)})",
            host=host,
            device=device,
            value=value,
            unit="×",
            better="higher",
            target="-" if limit is None else f"≥ {limit:g}×",
            met=limit is None or value >= limit,
            threads=threads,
        )
