"""Compile time: a 12-layer GPT from a cold start, import time, how many kernels small programs become,
and what is left of all that in a captured step.

Every figure is the median over fresh processes with empty caches; ours and the peer's alternate within one
run.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

from bench import contest
from bench.goals import microseconds
from bench.hosts import CHROMIUM, CPYTHON, NODE, Host, Unavailable, cpython, peer, pyodide_node
from bench.report import Result

Judge = Callable[[float, dict[str, float]], bool]  # (ours, peers) -> target met


def at_most(limit: float) -> Judge:
    return lambda value, peers: value <= limit


def beyond_numpy(limit: float) -> Judge:
    return lambda value, peers: "numpy" in peers and value <= peers["numpy"] + limit


def kernels_at_most(limit: int) -> Judge:
    return lambda value, peers: value <= min([limit, *peers.values()])


@dataclass(frozen=True)
class Case:
    """One measurement of ours, and of a peer where one can run the same."""

    name: str  # what child.py knows it by
    host: str
    device: str
    run: Host
    peer: tuple[str, Host | str]  # its name, and where it runs or why it cannot
    unit: str
    repeats: int
    target: str
    met: Judge


TINYGRAD, NUMPY = ("tinygrad", peer), ("numpy", peer)
NO_TINYGRAD = ("tinygrad", "compiles with clang and loads machine code, which Pyodide cannot")
COUNT = "kernels, no more than tinygrad"
CASES = [
    # name, host, device, ours, peer, unit, repeats, target, met
    Case("gpt-forward", CPYTHON, "CPU", cpython, TINYGRAD, "s", 3, "≤ 0.25 s", at_most(0.25)),
    Case("gpt-train", CPYTHON, "CPU", cpython, TINYGRAD, "s", 3, "≤ 1.2 s", at_most(1.2)),
    Case("gpt-forward", NODE, "WASM", pyodide_node, NO_TINYGRAD, "s", 3, "≤ 0.6 s", at_most(0.6)),
    Case("gpt-train", NODE, "WASM", pyodide_node, NO_TINYGRAD, "s", 3, "≤ 3 s", at_most(3)),
    Case("import", CPYTHON, "CPU", cpython, NUMPY, "s", 5, "≤ import numpy + 0.15 s", beyond_numpy(0.15)),
    Case("softmax", CPYTHON, "CPU", cpython, TINYGRAD, "kernels", 1, f"≤ 3 {COUNT}", kernels_at_most(3)),
    Case("layernorm", CPYTHON, "CPU", cpython, TINYGRAD, "kernels", 1, f"≤ 3 {COUNT}", kernels_at_most(3)),
    Case("attention", CPYTHON, "CPU", cpython, TINYGRAD, "kernels", 1, f"≤ 4 {COUNT}", kernels_at_most(4)),
]


# A captured step with next to nothing to compute: what is left is what a step costs by itself.
DISPATCH = [
    contest.Case("captured step", "tiny", {}, CPYTHON, 1, ("torch", "tinygrad"), (microseconds(20),)),
    contest.Case("captured step", "tiny", {}, CHROMIUM, 1, ("jax-js", "tfjs-wasm"), (microseconds(50),)),
]

Checks = dict[str, float]  # case -> the number every library and host must agree on


def run(quick: bool) -> Iterator[Result]:
    """Each case's result as it is known; `quick` measures every case once."""
    checks: Checks = {}
    for case in CASES:
        yield measure(case, 1 if quick else case.repeats, checks)
    with contest.Contest("compile", quick) as running:
        yield from running.run(DISPATCH)


def agree(case: str, measured: dict[str, float], checks: Checks) -> None:
    """Exits when a measurement computed something else than the others of its case."""
    if "check" in measured:
        expected = checks.setdefault(case, measured["check"])
        if not math.isclose(expected, measured["check"], rel_tol=1e-3):
            sys.exit(f"{case}: expected every run to compute {expected}, one computed {measured['check']}")


def measure(case: Case, repeats: int, checks: Checks) -> Result:
    runs: dict[str, list[float]] = {}
    contestants = {"polygrad": case.run, case.peer[0]: case.peer[1]}
    skipped = {name: host for name, host in contestants.items() if isinstance(host, str)}
    for i in range(repeats):
        for name, host in contestants.items():
            if name in skipped or isinstance(host, str):
                continue
            print(f"{case.name} {case.host} {name} {i + 1}/{repeats}", file=sys.stderr, flush=True)
            try:
                measured = host(name, case.name)
            except Unavailable as reason:
                skipped[name] = str(reason)
                continue
            agree(case.name, measured, checks)
            runs.setdefault(name, []).append(measured["value"])
    medians = {name: median(values) for name, values in runs.items() if values and name not in skipped}
    value = medians.pop("polygrad", None)
    return Result(
        suite="compile",
        case=case.name,
        host=case.host,
        device=case.device,
        value=value,
        unit=case.unit,
        better="lower",
        target=case.target,
        met=value is not None and case.met(value, medians),
        peers=medians,
        skipped=skipped,
    )
