"""Libraries against each other: every case is run by all in one go, in turn, several times; medians count
(or what a suite's `Sampling` says).

A library answers first with the numbers it computes, which must be those of the reference (torch), and is
timed only then. Knows no suite.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from bench.channel import Channel
from bench.hosts import (
    CHROMIUM,
    CPYTHON,
    DEVICES,
    ROOT,
    Unavailable,
    build_javascript,
    llama_python,
    peer_packages,
    peer_python,
)
from bench.report import Result, number

TOLERANCE = 1e-3  # of the largest number
PAGES = {
    "polygrad": "polygrad",
    "jax-js": "jax",
    "transformers.js": "transformers",
    "wllama": "wllama",
    "onnxruntime-web": "ort",
    "tfjs-wasm": "tfjs",
    "tfjs-webgpu": "tfjs",
    "peak": "peak",
    "by hand": "by_hand",
}
TORCH_DEVICES = {"CUDA": "cuda"}  # where torch computes for another device, it is on the CPU
SETTLING = 0.1  # seconds in which idle threads, which wait by spinning at first, go to sleep
AGREEMENT = 1.03  # of the two fastest samples
MODELS = ROOT / "bench" / ".cache"
Ask = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Figures:
    """What a goal is judged by: ours, the peers', and those of the limits that could be measured."""

    value: float
    peers: dict[str, float]
    limits: dict[str, float]

    def best(self, better: str) -> float | None:
        if not self.peers:
            return None
        return max(self.peers.values()) if better == "higher" else min(self.peers.values())


@dataclass(frozen=True)
class Goal:
    """A figure that is asked for, in words and as a test."""

    words: str
    met: Callable[[Figures], bool]


@dataclass(frozen=True)
class Sampling:
    """How often each contestant has its turn, for how long, and which of its samples is its figure.

    `most`: up to so many rounds, until ours and the fastest peer each have two fastest samples that agree.
    `process_time`: that of the process is measured instead of the wall's, where one thread runs natively.
    `hopeless`: a peer that many times slower than the fastest after one round, or two, has no more turns.
    """

    rounds: int
    seconds: float
    figure: Callable[[list[float]], float]
    most: int = 0
    process_time: bool = False
    hopeless: float = math.inf


MEDIANS, QUICK_MEDIANS = Sampling(7, 0.3, median), Sampling(3, 0.1, median)


@dataclass(frozen=True)
class Limit:
    """What ours is measured against that is no peer: something a library does, in the same rounds.

    `on`: the device, where it is not the case's.
    """

    name: str
    library: str
    threads: int
    kind: str
    sizes: dict[str, Any]
    flops: float = 0.0
    on: str = ""


@dataclass(frozen=True)
class Case:
    """One program on one host. With `flops` the unit is GFLOP/s, else milliseconds."""

    name: str
    kind: str  # what the libraries know it by
    sizes: dict[str, Any]
    host: str  # CPYTHON or CHROMIUM
    threads: int
    peers: tuple[str, ...]
    goals: tuple[Goal, ...]
    flops: float = 0.0
    limits: tuple[Limit, ...] = ()
    cannot: dict[str, str] = field(default_factory=dict)  # peers that have no such program, and why
    tolerance: float = TOLERANCE
    on: str = ""  # the device, where it is not the host's usual one
    judge: str = "torch"  # who computes the numbers that are right
    peer_tolerance: float = 0.0  # of peers, where they may be further off than ours

    @property
    def device(self) -> str:
        return self.on or DEVICES[self.host]

    @property
    def unit(self) -> str:
        return "GFLOP/s" if self.flops else "ms"

    def tolerance_of(self, library: str) -> float:
        return self.tolerance if library == "polygrad" else max(self.tolerance, self.peer_tolerance)


def figure(flops: float, seconds: float) -> float:
    return flops / seconds / 1e9 if flops else seconds * 1e3


class Contest:
    """The processes of one run, started when first needed."""

    def __init__(self, suite: str, quick: bool, sampling: Sampling | None = None) -> None:
        self.suite = suite
        self.sampling = sampling or (QUICK_MEDIANS if quick else MEDIANS)
        self._natives: dict[tuple[str, int, str], Channel] = {}
        self._references: dict[str, list[float]] = {}
        self._pages: Channel | None = None

    def __enter__(self) -> Contest:
        return self

    def __exit__(self, *_: object) -> None:
        for channel in self._natives.values():
            channel.close()
        if self._pages is not None:
            self._pages.close()

    def run(self, cases: list[Case]) -> Iterator[Result]:
        for case in cases:
            yield self.measure(case)

    def measure(self, case: Case) -> Result:
        skipped = dict(case.cannot)
        running: dict[str, Ask] = {}
        limits = {limit.name: limit for limit in case.limits}
        threads = case.threads
        pages: dict[str, Channel | None] = {}
        for name in ("polygrad", *case.peers, *limits):
            _progress(f"{case.name} {case.host} {case.threads} threads, {name}")
            try:
                if name in limits:
                    running[name] = self._limit(case, limits[name])
                    continue
                running[name], used = self._contestant(case, name)
                threads = used or threads if name == "polygrad" else threads
                pages[name] = self._pages
            except Unavailable as reason:
                skipped[name] = str(reason)
        for name, opened in pages.items():  # one that gave no answer has ended the others' pages, too
            if opened is not self._pages or (opened is not None and opened.closed):
                try:
                    running[name], _ = self._contestant(case, name)
                except Unavailable as reason:
                    skipped[name] = str(reason)
                    del running[name]
        samples = self._samples(case, running, skipped)
        self._drop("case", "limit")
        found = {
            name: figure(limits[name].flops if name in limits else case.flops, self.sampling.figure(values))
            for name, values in samples.items()
            if values and name not in skipped
        }
        return self._result(case, found, skipped, threads)

    def _samples(
        self, case: Case, running: dict[str, Ask], skipped: dict[str, str]
    ) -> dict[str, list[float]]:
        """Seconds per step, in turn; who fails is skipped."""
        samples: dict[str, list[float]] = {name: [] for name in running}
        sampling, hopeless = self.sampling, set[str]()
        process = sampling.process_time and case.host == CPYTHON and case.threads == 1
        request = {"op": "sample", "seconds": sampling.seconds, "clock": "process" if process else "wall"}
        for i in range(max(sampling.rounds, sampling.most)):
            if i >= sampling.rounds and _agree(samples, case.peers):
                break
            _progress(f"{case.name} {case.host} {case.threads} threads, round {i + 1}")
            for name, ask in running.items():
                if name in skipped or name in hopeless:
                    continue
                if case.threads > 1:
                    time.sleep(SETTLING)
                try:
                    samples[name].append(ask(request)["value"])
                except Unavailable as reason:
                    skipped[name] = str(reason)
            if i < 2:
                fastest = {name: min(values) for name, values in samples.items() if values}
                slow = sampling.hopeless * min(fastest.values(), default=0.0)
                hopeless |= {name for name in case.peers if fastest.get(name, 0.0) > slow}
        return samples

    def _result(self, case: Case, found: dict[str, float], skipped: dict[str, str], threads: int) -> Result:
        words = [goal.words for goal in case.goals]
        limits = {limit.name: found.pop(limit.name) for limit in case.limits if limit.name in found}
        words += [f"{name} {number(value, case.unit)}" for name, value in limits.items()]
        if threads != case.threads:
            words.append(f"peers {case.threads} threads")
        value = found.pop("polygrad", None)
        figures = Figures(value or 0.0, found, limits)
        return Result(
            suite=self.suite,
            case=case.name,
            host=case.host,
            device=case.device,
            value=value,
            unit=case.unit,
            better="higher" if case.flops else "lower",
            target="; ".join(words) or "-",
            met=value is not None and all(goal.met(figures) for goal in case.goals),
            threads=threads,
            peers=found,
            skipped=skipped,
        )

    def _contestant(self, case: Case, library: str) -> tuple[Ask, int | None]:
        """A library that has shown that it computes what the reference does; the threads it says it uses."""
        ask = self._asker(library, case, "case")
        answer = ask({"op": "prepare", "kind": case.kind, "sizes": case.sizes})
        expected = self.reference(case.kind, case.sizes, case.device, case.judge)
        check_numbers(answer["check"], expected, case.tolerance_of(library))
        return ask, answer.get("threads")

    def prepared(self, library: str, case: Case) -> Ask:
        """What answers for a library that has shown that it computes what the reference does, as case's."""
        return self._contestant(case, library)[0]

    def _limit(self, case: Case, limit: Limit) -> Ask:
        on = limit.on or case.on
        of = replace(case, threads=limit.threads, kind=limit.kind, sizes=limit.sizes, on=on)
        ask = self._asker(limit.library, of, "limit")
        ask({"op": "prepare", "kind": limit.kind, "sizes": limit.sizes})
        return ask

    def reference(
        self, kind: str, sizes: dict[str, Any], device: str = "CPU", judge: str = "torch"
    ) -> list[float]:
        """What the judge computes: torch on the device, where it has that, else on the CPU."""
        key = _key(kind, sizes)
        if key not in self._references:
            request = {"op": "prepare", "slot": "reference", "kind": kind, "sizes": sizes}
            try:
                answer = self._native(judge, 1, device if device in TORCH_DEVICES else "CPU").ask(request)
            except Unavailable:
                if device not in TORCH_DEVICES:
                    raise
                answer = self._native("torch", 1, "CPU").ask(request)
            self._references[key] = answer["check"]
            self._drop("reference")
        return self._references[key]

    def in_fresh_page(self, library: str, threads: int, kind: str, sizes: dict[str, Any]) -> list[float]:
        """What a program checks, in a page that is opened for it and closed."""
        _progress(f"{kind} chromium {threads} threads, {library}")
        where = {"library": PAGES[library], "threads": threads, "page": "fresh", "slot": "case"}
        where |= {"device": DEVICES[CHROMIUM]}
        try:
            check: list[float] = self._browser.ask({"op": "prepare", "kind": kind, "sizes": sizes} | where)[
                "check"
            ]
        finally:
            self._browser.ask({"op": "close"} | where)
        return check

    # --- processes

    def _drop(self, *slots: str) -> None:
        """Have the native processes forget these programs: large models do not fit side by side."""
        for channel in self._natives.values():
            for slot in slots:
                with contextlib.suppress(Unavailable):  # a process that has ended keeps nothing
                    channel.ask({"op": "drop", "slot": slot})

    def _asker(self, library: str, case: Case, slot: str) -> Ask:
        """What answers for a library: its process, or its page, where the case runs."""
        if case.host == CPYTHON:
            native = self._native(library, case.threads, case.device)
            return lambda request: native.ask(request | {"slot": slot})
        name = _key(case.kind, case.sizes)
        if library == "onnxruntime-web" and "path" not in case.sizes:
            self._model(case.kind, case.sizes)
        where = {"library": PAGES[library], "threads": case.threads, "device": case.device}
        where |= {"name": name, "slot": slot}
        return lambda request: self._browser.ask(request | where)

    def _native(self, library: str, threads: int, device: str) -> Channel:
        if (library, threads, device) not in self._natives:
            ours = library in ("polygrad", "peak")
            python = sys.executable if ours else str(_python_of(library))
            environment = {
                "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(
                    os.pathsep
                ),
                "DEVICE": device,
                "DEV": device,
                "TORCH_DEVICE": TORCH_DEVICES.get(device, "cpu"),
                "TRAINING": "1",
                "POLYGRAD_THREADS": str(threads),
                "OMP_NUM_THREADS": str(threads),
                "OPENBLAS_NUM_THREADS": str(threads),
                "THREADS": "1" if threads > 1 else "0",  # tinygrad: all processors or one
            }
            command = [python, "-m", "bench.worker", library]
            self._natives[library, threads, device] = Channel(command, environment)
        return self._natives[library, threads, device]

    @property
    def _browser(self) -> Channel:
        """All pages. A library that gives no answer in time ends them; who comes later has new ones."""
        if self._pages is None or self._pages.closed:
            self._pages = self._open_browser()
        return self._pages

    def _open_browser(self) -> Channel:
        from bench.peak import peak_module

        build_javascript()
        peer_packages()
        MODELS.mkdir(exist_ok=True)
        (MODELS / "peak.wasm").write_bytes(peak_module())
        return Channel(["node", str(ROOT / "bench" / "page" / "run.mjs"), str(MODELS)], {})

    def _model(self, kind: str, sizes: dict[str, Any]) -> None:
        path = MODELS / f"{_key(kind, sizes)}.onnx"
        MODELS.mkdir(exist_ok=True)
        made_by = max(source.stat().st_mtime for source in (ROOT / "bench").glob("onnx_*.py"))
        if not path.exists() or path.stat().st_mtime < made_by:
            command = [str(peer_python()), "-m", "bench.onnx_models", str(path), kind]
            done = subprocess.run([*command, json.dumps(sizes)], cwd=ROOT, capture_output=True, text=True)
            if done.returncode:
                raise Unavailable(done.stderr.strip().splitlines()[-1])


def _python_of(library: str) -> Path:
    return llama_python() if library == "llama.cpp" else peer_python()


def check_numbers(got: list[float], expected: list[float], tolerance: float) -> None:
    """Raises Unavailable for numbers that are further off than `tolerance` of the largest one."""
    if len(got) != len(expected):
        raise Unavailable(f"wrong result: expected {len(expected)} numbers, got {len(got)}")
    scale = max(abs(x) for x in expected) or 1.0
    worst = max(abs(x - y) for x, y in zip(got, expected, strict=True)) / scale
    if not worst <= tolerance:
        raise Unavailable(f"wrong result: off by {worst:.1e} of the largest number")


def agrees(got: float, expected: float, tolerance: float = TOLERANCE) -> bool:
    return abs(got - expected) <= tolerance * abs(expected)


def _agree(samples: dict[str, list[float]], peers: Sequence[str]) -> bool:
    """Whether the two fastest samples of ours are close, and those of the fastest peer: no lucky moments."""
    best = min((samples[name] for name in peers if samples.get(name)), key=min, default=[])
    pairs = [sorted(values)[:2] for values in (samples.get("polygrad", []), best) if len(values) > 1]
    return all(second <= AGREEMENT * first for first, second in pairs)


def _key(kind: str, sizes: dict[str, Any]) -> str:
    """A name for a program, and for the file of its model."""
    if all(isinstance(size, int) for size in sizes.values()):
        return "-".join([kind, *map(str, sizes.values())])
    return f"{kind}-{hashlib.sha256(json.dumps(sizes).encode()).hexdigest()[:16]}"


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
