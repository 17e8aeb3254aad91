"""Data-parallel steps of 1, 2 and 4 ranks on cores of their own, beside torch's DistributedDataParallel, and
beside what `bench/cluster.py` says of them; a sum of 100 MB beside the engine's own.

Each figure is the best of some rounds, in which all take their turn.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

from bench.cluster import Layer, Link, Workload, simulate
from bench.distributed_rank import LENGTH, REDUCED, ROWS, TEXTS, WIDTH, WIDTHS
from bench.hosts import CPYTHON, ROOT, TIMEOUT
from bench.report import Result

PROGRAM = ["-m", "bench.distributed_rank"]  # its folder must not be searched, which has a profile.py
ROUNDS, QUICK_ROUNDS = 5, 1
SECONDS, QUICK_SECONDS = 2.0, 0.5
STEPS = {"mlp": "MLP, 10.5 M parameters, 256 rows", "block": "GPT block, 4 texts of 128"}
# Open MPI refuses root, and more ranks than cores; cores are chosen by the ranks.
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
}
WITHIN = 0.25  # of a measured step, what the model may be off
Run = tuple[str, str, str, int]  # launcher, library, kind, ranks


def seconds_of(run: Run, seconds: float) -> float:
    """Run it once."""
    launcher, library, kind, ranks = run
    agent = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    start = ["mpirun", "-n", str(ranks), sys.executable] if launcher == "mpirun" else [sys.executable, *agent]
    threads = {"POLYGRAD_THREADS": "1", "OMP_NUM_THREADS": "1"}
    print(f"{' '.join(map(str, run))}", file=sys.stderr, flush=True)
    done = subprocess.run(
        [*start, *PROGRAM, library, kind, str(seconds)],
        env={**os.environ, **OPEN_MPI, **threads, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-500:])
    return float(json.loads(done.stdout.strip().splitlines()[-1])["seconds"])


def runs() -> list[Run]:
    """All that is measured, in turn."""
    out: list[Run] = []
    for launcher in launchers():
        for kind in STEPS:
            out += [(launcher, "polygrad", kind, n) for n in (1, 2, 4)]
            out += [(launcher, "polygrad", f"{kind}-alone", n) for n in (1, 2, 4)]
        out += [
            (launcher, "polygrad", kind, n) for kind in ("all-reduce", "all-reduce-engine") for n in (2, 4)
        ]
    return out + [("torchrun", "torch", kind, n) for kind in STEPS for n in (1, 2)]


def launchers() -> list[str]:
    return [*(["mpirun"] if shutil.which("mpirun") else []), "torchrun"]


def run(quick: bool) -> Iterator[Result]:
    """Percent of weak scaling, milliseconds of a step, GB/s of a sum, and milliseconds that are predicted."""
    best: dict[Run, float] = {}
    for _ in range(QUICK_ROUNDS if quick else ROUNDS):
        for one in runs():
            found = seconds_of(one, QUICK_SECONDS if quick else SECONDS)
            best[one] = min(found, best.get(one, found))
    for launcher in launchers():
        for kind, words in STEPS.items():
            own, ddp = ({n: best[of, lib, kind, n] for n in (1, 2)} for of, lib in
                        ((launcher, "polygrad"), ("torchrun", "torch")))  # fmt: skip
            percent = 100 * own[1] / own[2]
            yield _result(f"{words}: weak scaling, {launcher}", percent, "%", "higher", "≥ 90 %",
                          percent >= 90, {"torch DDP": 100 * ddp[1] / ddp[2]})  # fmt: skip
            yield _result(f"{words}: step of 2 ranks, {launcher}", 1e3 * own[2], "ms", "lower",
                          "not behind torch DDP", own[2] <= ddp[2], {"torch DDP": 1e3 * ddp[2]})  # fmt: skip
        yield from _predictions(launcher, best)
        ours, engine = (
            REDUCED * 4e-9 / best[launcher, "polygrad", kind, 2]
            for kind in ("all-reduce", "all-reduce-engine")
        )
        yield _result(f"sum of 100 MB over 2 ranks, {launcher}", ours, "GB/s", "higher",
                      "≥ 0.9 of the engine's own", ours >= 0.9 * engine, {"engine": engine})  # fmt: skip


def _predictions(launcher: str, best: dict[Run, float]) -> Iterator[Result]:
    """The model of a step, from its time without communication and from that of a sum, on the same number of
    ranks. Ranks of one machine communicate by their own cores, so nothing is hidden."""
    for kind, words in STEPS.items():
        for n in (1, 2, 4):
            compute = best[launcher, "polygrad", f"{kind}-alone", n]
            layers = layers_of(kind)
            rate = 3 * sum(layer.flops for layer in layers) / compute
            reduced = best[launcher, "polygrad", "all-reduce-engine", max(n, 2)]
            bandwidth = 2 * (n - 1) / n * 4 * REDUCED / reduced if n > 1 else 1.0
            work = Workload(kind, layers, 1, rate, 1e30)
            predicted = simulate(work, Link("memory", bandwidth, 0.0, takes=0.999), n).seconds
            measured = best[launcher, "polygrad", kind, n]
            error = abs(predicted - measured) / measured
            yield _result(f"{words}: predicted step of {n} ranks, {launcher}", 1e3 * predicted, "ms", "lower",
                          f"within {100 * WITHIN:.0f} % of the measured", error <= WITHIN,
                          {"measured": 1e3 * measured})  # fmt: skip


def layers_of(kind: str) -> list[Layer]:
    """Parameters, and operations of a rank's whole batch."""
    if kind == "mlp":
        return [Layer(f"{a}", a * b + b, 2.0 * ROWS * a * b) for a, b in itertools.pairwise(WIDTHS)]
    sides = [
        ("qkv", WIDTH, 3 * WIDTH),
        ("out", WIDTH, WIDTH),
        ("up", WIDTH, 4 * WIDTH),
        ("down", 4 * WIDTH, WIDTH),
    ]
    return [Layer(name, a * b + b, 2.0 * TEXTS * LENGTH * a * b) for name, a, b in sides]


def _result(
    case: str, value: float, unit: str, better: str, target: str, met: bool, peers: dict[str, float]
) -> Result:
    return Result("distributed", case, CPYTHON, "CPU", value, unit, better, target, met, 1, peers)
