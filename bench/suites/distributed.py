"""Data-parallel steps of 1, 2 and 4 ranks on cores of their own, beside torch's DistributedDataParallel, and
beside what `bench/cluster.py` says of them; a sum of 100 MB beside the engine's own; what communication a
step hides, as a timeline. Over memory, and over a link of limited bandwidth (`bench/namespaces.py`).

Each figure is the best of some rounds, in which all take their turn. It takes less than ten minutes on two
cores.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.cluster import Layer, Link, Workload, simulate
from bench.distributed_rank import LARGE, SMALL, Sizes
from bench.hosts import CPYTHON, ROOT, TIMEOUT, Unavailable
from bench.namespaces import Side, linked
from bench.report import Result

PROGRAM = ["-m", "bench.distributed_rank"]  # its folder must not be searched, which has a profile.py
PICTURE = ROOT / "bench" / "pictures" / "distributed-overlap.svg"
ROUNDS, SECONDS = 2, 1.5
QUICK_SECONDS, SMALL_SECONDS = 0.5, 0.02  # and one round
STEPS = {"mlp": "MLP, 10.5 M parameters, 256 rows", "block": "GPT block, 4 texts of 128"}
STEP_KINDS = tuple(f"{kind}{how}" for kind in STEPS for how in ("", "-alone"))
SUM_KINDS = ("all-reduce", "all-reduce-engine")
# Open MPI refuses root, and more ranks than cores; cores are chosen by the ranks.
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
}
WITHIN = 0.25  # of a measured step, what the model may be off
SCALING, HIDDEN = 90, 50  # percent


@dataclass(frozen=True)
class Way:
    """How ranks communicate. `engine`: "MPI", "gloo", or "" of one process. `bits`: a second, of a link that
    is limited."""

    engine: str
    bits: float | None = None

    @property
    def name(self) -> str:
        return self.engine if self.bits is None else f"{self.engine}, {self.bits / 1e9:g} Gbit/s"


ALONE, MPI, GLOO = Way(""), Way("MPI"), Way("gloo")
FAST, SLOW = Way("gloo", 10e9), Way("gloo", 1e9)


@dataclass(frozen=True)
class Run:
    """Processes that measure some kinds (`bench/distributed_rank.py`)."""

    way: Way
    library: str
    ranks: int
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Options:
    """`seconds`: of each kind. `picture`: where the timeline is drawn, if at all."""

    seconds: float
    small: bool = False
    picture: Path | None = None


Times = dict[tuple[Way, str, int, str], float]  # by way, library, ranks and kind


# --- runs


def runs(ways: Sequence[Way]) -> list[Run]:
    """All that is measured, in turn."""
    out = [Run(ALONE, "polygrad", 1, STEP_KINDS), Run(ALONE, "torch", 1, tuple(STEPS))]
    for way in ways:
        out.append(
            Run(way, "polygrad", 2, (*STEP_KINDS, *SUM_KINDS, *(["hidden"] if way == ways[-1] else [])))
        )
        if way.engine == "gloo":
            out.append(Run(way, "torch", 2, tuple(STEPS)))
    return out + [Run(way, "polygrad", 4, (*STEP_KINDS, SUM_KINDS[1])) for way in ways if way.bits is None]


def possible_ways() -> tuple[list[Way], str]:
    """The ways that this machine has, and why there is no link, if there is none."""
    ways = [MPI, GLOO] if _mpirun() is not None and importlib.util.find_spec("mpi4py") else [GLOO]
    try:
        with linked(1e9):
            return [*ways, FAST, SLOW], ""
    except Unavailable as reason:
        return ways, str(reason)


def _mpirun() -> str | None:
    """The launcher beside Python, whose library mpi4py loads then, or the machine's."""
    beside = Path(sys.prefix) / "bin" / "mpirun"
    return str(beside) if beside.exists() else shutil.which("mpirun")


def measure(run: Run, options: Options) -> dict[str, float]:
    """Start the ranks; what they have measured. Raises RuntimeError with the last words of one that fails."""
    print(f"{run.library}, {run.ranks} ranks, {run.way.name}", file=sys.stderr, flush=True)
    program = [
        sys.executable,
        *PROGRAM,
        run.library,
        ",".join(run.kinds),
        str(run.ranks),
        str(options.seconds),
    ]
    program += ["--small"] if options.small else []
    program += ["--picture", str(options.picture)] if options.picture is not None else []
    one_thread = {"POLYGRAD_THREADS": "1", "OMP_NUM_THREADS": "1"}
    environment = {**os.environ, **OPEN_MPI, **one_thread, "PYTHONPATH": str(ROOT)}
    if run.way.engine == "MPI":
        return _answer([([_mpirun() or "", "-n", str(run.ranks), *program], environment)])
    if run.way == ALONE and run.library == "polygrad":
        return _answer([(program, environment)])
    with contextlib.ExitStack() as stack:
        sides: list[Side | None] = [None] * run.ranks
        if run.way.bits is not None:
            sides = [*stack.enter_context(linked(run.way.bits))]
        return _answer(
            [
                ([*(side.command if side else []), *program], {**environment, **variables})
                for side, variables in zip(sides, _torch_variables(sides), strict=True)
            ]
        )


def _torch_variables(sides: Sequence[Side | None]) -> list[dict[str, str]]:
    """What torchrun would set for each rank."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    out = []
    for rank, side in enumerate(sides):
        numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": len(sides), "MASTER_PORT": port}
        variables = {name: str(value) for name, value in numbers.items()}
        first = sides[0]
        variables["MASTER_ADDR"] = first.address if first else "127.0.0.1"
        variables["GLOO_SOCKET_IFNAME"] = side.interface if side else "lo"
        out.append(variables)
    return out


def _answer(processes: Sequence[tuple[list[str], dict[str, str]]]) -> dict[str, float]:
    """What the first process prints. All are ended when one fails, or takes too long."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        started = [
            subprocess.Popen(
                command,
                env=environment,
                stdout=errors if i else output,
                stderr=errors,
                start_new_session=True,
            )
            for i, (command, environment) in enumerate(processes)
        ]
        try:
            deadline = time.monotonic() + TIMEOUT
            while any(p.poll() is None for p in started):
                if any(p.poll() for p in started) or time.monotonic() > deadline:
                    break
                time.sleep(0.05)
        finally:
            for p in started:
                if p.poll() is None:
                    p.kill()
                p.wait()
        output.seek(0)
        errors.seek(0)
        if any(p.returncode for p in started):
            raise RuntimeError(errors.read().strip()[-1000:] or "it took too long")
        answer: dict[str, float] = json.loads(output.read().strip().splitlines()[-1])
        return answer


# --- rows


def run(quick: bool, small: bool = False, picture: Path | None = None) -> Iterator[Result]:
    """Percent of weak scaling, milliseconds of a step, GB/s of a sum, and milliseconds that are predicted."""
    ways, reason = possible_ways()
    options = Options(SMALL_SECONDS if small else QUICK_SECONDS if quick else SECONDS, small, picture)
    best: Times = {}
    for turn in range(1 if quick or small else ROUNDS):
        for one in runs(ways):
            if turn and one.ranks > 2:
                continue  # they take long where cores are few, and are compared within one run
            for kind, found in measure(one, options).items():
                key = one.way, one.library, one.ranks, kind
                better = max if kind == "hidden" else min
                best[key] = better(found, best.get(key, found))
    sizes = SMALL if small else LARGE
    for way in ways:
        yield from _scaling(way, best)
    if reason:
        yield _result(
            "2 ranks over a link of 10 Gbit/s", None, "%", "higher", "≥ 90 %", False, {}, {"link": reason}
        )
    for way in ways:
        ours, engine = (4e-9 * sizes.reduced / best[way, "polygrad", 2, kind] for kind in SUM_KINDS)
        yield _result(f"sum of 100 MB over 2 ranks, {way.name}", ours, "GB/s", "higher",
                      "≥ 0.9 of the engine's own", ours >= 0.9 * engine, {"engine": engine})  # fmt: skip
    share = 100 * best[ways[-1], "polygrad", 2, "hidden"]
    case = f"MLP in buckets of 4 MB: communication that a Program hides, {ways[-1].name}"
    yield _result(case, share, "%", "higher", f"≥ {HIDDEN} %", share >= HIDDEN, {})
    yield from _predictions([ALONE], (1,), best, sizes)
    yield from _predictions([way for way in ways if way.bits is None], (2, 4), best, sizes)
    yield from _predictions([way for way in ways if way.bits is not None], (2,), best, sizes)


def _scaling(way: Way, best: Times) -> Iterator[Result]:
    """Weak scaling, and a step of two ranks. DDP communicates by gloo."""
    theirs = way if way.engine == "gloo" else GLOO
    for kind, words in STEPS.items():
        own, ddp = (best[of, library, 2, kind] for of, library in ((way, "polygrad"), (theirs, "torch")))
        percent, ddp_percent = (
            100 * best[ALONE, library, 1, kind] / seconds
            for library, seconds in (("polygrad", own), ("torch", ddp))
        )
        is_slow = way == SLOW  # a step cannot hide what takes longer than it
        target = "not behind torch DDP" if is_slow else f"≥ {SCALING} %"
        met = percent >= (ddp_percent if is_slow else SCALING)
        yield _result(f"{words}: weak scaling, {way.name}", percent, "%", "higher", target, met,
                      {"torch DDP": ddp_percent})  # fmt: skip
        yield _result(f"{words}: step of 2 ranks, {way.name}", 1e3 * own, "ms", "lower",
                      "not behind torch DDP", own <= ddp, {"torch DDP": 1e3 * ddp})  # fmt: skip


def _predictions(ways: Sequence[Way], ranks: Sequence[int], best: Times, sizes: Sizes) -> Iterator[Result]:
    """The model of a step, from its time without communication and from that of a sum, on the same number of
    ranks."""
    for way, (kind, words), n in itertools.product(ways, STEPS.items(), ranks):
        layers = layers_of(kind, sizes)
        compute, measured = (best[way, "polygrad", n, name] for name in (f"{kind}-alone", kind))
        rate = 3 * sum(layer.flops for layer in layers) / compute
        predicted = simulate(Workload(kind, layers, 1, rate, 1e30), link_of(way, n, best, sizes), n).seconds
        error = abs(predicted - measured) / measured
        where = f"{n} ranks, {way.name}" if n > 1 else "1 rank"
        yield _result(f"{words}: predicted step of {where}", 1e3 * predicted, "ms", "lower",
                      f"within {100 * WITHIN:.0f} % of the measured", error <= WITHIN,
                      {"measured": 1e3 * measured})  # fmt: skip


def link_of(way: Way, ranks: int, best: Times, sizes: Sizes) -> Link:
    """The link of the model, from the time of a sum. Ranks of one machine communicate by their own cores:
    over memory they do nothing else meanwhile, and over a link they spend as long as over memory."""
    if ranks == 1:
        return Link("none", 1.0, 0.0)

    def bandwidth(of: Way) -> float:
        return 2 * (ranks - 1) / ranks * 4 * sizes.reduced / best[of, "polygrad", ranks, SUM_KINDS[1]]

    found = bandwidth(way)
    takes = 1.0 if way.bits is None else found / bandwidth(GLOO)
    return Link(way.name, found, 0.0, min(takes, 0.999))


def layers_of(kind: str, sizes: Sizes) -> list[Layer]:
    """Parameters, and operations of a rank's whole batch."""
    if kind == "mlp":
        return [
            Layer(f"{a}", a * b + b, 2.0 * sizes.rows * a * b) for a, b in itertools.pairwise(sizes.widths)
        ]
    width = sizes.width
    sides = [
        ("qkv", width, 3 * width),
        ("out", width, width),
        ("up", width, 4 * width),
        ("down", 4 * width, width),
    ]
    return [Layer(name, a * b + b, 2.0 * sizes.texts * sizes.length * a * b) for name, a, b in sides]


def _result(
    case: str,
    value: float | None,
    unit: str,
    better: str,
    target: str,
    met: bool,
    peers: dict[str, float],
    skipped: dict[str, str] | None = None,
) -> Result:
    return Result(
        "distributed", case, CPYTHON, "CPU", value, unit, better, target, met, 1, peers, skipped or {}
    )
