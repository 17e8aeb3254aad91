"""Libraries against each other: every case is run by all in one go, in turn, several times; medians count.

A library answers first with the numbers it computes, which must be those of the reference (numpy or torch), and
is timed only then. Knows no suite.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import Any

from bench.channel import Channel
from bench.hosts import ROOT, Unavailable, build_javascript, peer_packages, peer_python
from bench.report import Result

TOLERANCE = 1e-3  # of the largest number
PAGES = {"polygrad": "polygrad", "jax-js": "jax", "onnxruntime-web": "ort", "tfjs-wasm": "tfjs"}
MODELS = ROOT / "bench" / ".cache"
Ask = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Figures:
    """What a goal is judged by: ours, the peers', and ours of earlier cases of the run by (name, threads)."""

    value: float
    peers: dict[str, float]
    earlier: dict[tuple[str, int], float]

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
class Case:
    """One program on one host. With `flops` the unit is GFLOP/s, else milliseconds."""

    name: str
    kind: str  # what the libraries know it by
    sizes: dict[str, int]
    host: str  # "cpython" or "chromium"
    threads: int
    peers: tuple[str, ...]
    goals: tuple[Goal, ...]
    flops: float = 0.0
    cannot: dict[str, str] = field(default_factory=dict)  # peers that have no such program, and why

    @property
    def unit(self) -> str:
        return "GFLOP/s" if self.flops else "ms"

    def figure(self, seconds: float) -> float:
        return self.flops / seconds / 1e9 if self.flops else seconds * 1e3


class Contest:
    """The processes of one run, started when first needed."""

    def __init__(self, suite: str, quick: bool) -> None:
        self.suite = suite
        self.rounds, self.seconds = (3, 0.1) if quick else (7, 0.3)
        self._natives: dict[tuple[str, int], Channel] = {}
        self._references: dict[str, list[float]] = {}
        self.earlier: dict[tuple[str, int], float] = {}

    def __enter__(self) -> Contest:
        return self

    def __exit__(self, *_: object) -> None:
        for channel in self._natives.values():
            channel.close()
        if "_browser" in self.__dict__:
            self._browser.close()

    def run(self, cases: list[Case]) -> Iterator[Result]:
        for case in cases:
            yield self.measure(case)

    def measure(self, case: Case) -> Result:
        skipped = dict(case.cannot)
        ready: dict[str, Ask] = {}
        threads = case.threads
        for name in ("polygrad", *case.peers):
            try:
                ask = self._asker(name, case)
                answer = self._prepare(ask, case, name)
                ready[name] = ask
                if name == "polygrad":
                    threads = answer.get("threads") or threads
            except Unavailable as reason:
                skipped[name] = str(reason)
        samples: dict[str, list[float]] = {name: [] for name in ready}
        for i in range(self.rounds):
            _progress(f"{case.name} {case.host} {case.threads} threads, round {i + 1} of {self.rounds}")
            for name, ask in ready.items():
                if name in skipped:
                    continue
                try:
                    samples[name].append(ask({"op": "sample", "seconds": self.seconds})["value"])
                except Unavailable as reason:
                    skipped[name] = str(reason)
        found = {n: case.figure(median(s)) for n, s in samples.items() if s and n not in skipped}
        return self._result(case, found, skipped, threads)

    def _result(
        self, case: Case, found: dict[str, float], skipped: dict[str, str], threads: int
    ) -> Result:
        words = [goal.words for goal in case.goals]
        if threads != case.threads:
            words.append(f"(peers: {case.threads} threads)")
        value = found.pop("polygrad", None)
        met = False
        if value is not None:
            self.earlier[case.name, case.threads] = value
            figures = Figures(value, found, self.earlier)
            met = all(goal.met(figures) for goal in case.goals)
        return Result(
            suite=self.suite,
            case=case.name,
            host=case.host,
            device="CPU" if case.host == "cpython" else "WASM",
            value=value,
            unit=case.unit,
            better="higher" if case.flops else "lower",
            target="; ".join(words) or "-",
            met=met,
            threads=threads,
            peers=found,
            skipped=skipped,
        )

    def limit(self, case: Case, library: str) -> Result:
        """A limit of the machine that later goals refer to by the case's name, measured by one library."""
        ask = self._asker(library, case)
        ask({"op": "prepare", "kind": case.kind, "sizes": case.sizes})
        samples = [ask({"op": "sample", "seconds": self.seconds})["value"] for _ in range(self.rounds)]
        return self._result(case, {"polygrad": case.figure(median(samples))}, {}, case.threads)

    # --- correctness

    def _prepare(self, ask: Ask, case: Case, name: str) -> dict[str, Any]:
        """The library's answer. Raises Unavailable when it computes something else than the reference."""
        _progress(f"{case.name} {case.host} {case.threads} threads, {name}")
        answer = ask({"op": "prepare", "kind": case.kind, "sizes": case.sizes})
        got, expected = answer["check"], self._reference(case)
        if len(got) != len(expected):
            raise Unavailable(f"wrong result: expected {len(expected)} numbers, got {len(got)}")
        scale = max(abs(x) for x in expected)
        worst = max(abs(x - y) for x, y in zip(got, expected, strict=True)) / scale
        if not worst <= TOLERANCE:
            raise Unavailable(f"wrong result: off by {worst:.1e} of the largest number")
        return answer

    def _reference(self, case: Case) -> list[float]:
        key = _key(case)
        if key not in self._references:
            request = {"op": "prepare", "kind": case.kind, "sizes": case.sizes}
            self._references[key] = self._native("torch", 1).ask(request)["check"]
        return self._references[key]

    # --- processes

    def _asker(self, library: str, case: Case) -> Ask:
        if case.host == "cpython":
            return self._native(library, case.threads).ask
        if library not in PAGES:
            raise Unavailable("not a library for pages")
        if library == "onnxruntime-web":
            self._model(case)
        where = {"library": PAGES[library], "threads": case.threads, "name": _key(case)}
        return lambda request: self._browser.ask(request | where)

    def _native(self, library: str, threads: int) -> Channel:
        if (library, threads) not in self._natives:
            ours = library == "polygrad"
            python = sys.executable if ours else str(peer_python())
            environment = {
                "PYTHONPATH": str(ROOT),
                "DEVICE": "CPU",
                "DEV": "CPU",
                "TRAINING": "1",
                "POLYGRAD_THREADS": str(threads),
                "OMP_NUM_THREADS": str(threads),
                "OPENBLAS_NUM_THREADS": str(threads),
                "THREADS": "1" if threads > 1 else "0",  # tinygrad: all processors or one
            }
            self._natives[library, threads] = Channel([python, "-m", "bench.worker", library], environment)
        return self._natives[library, threads]

    @cached_property
    def _browser(self) -> Channel:
        from bench.peak import peak_module

        build_javascript()
        peer_packages()
        MODELS.mkdir(exist_ok=True)
        (MODELS / "peak.wasm").write_bytes(peak_module())
        return Channel(["node", str(ROOT / "bench" / "page" / "run.mjs"), str(MODELS)], {})

    def _model(self, case: Case) -> None:
        path = MODELS / f"{_key(case)}.onnx"
        MODELS.mkdir(exist_ok=True)
        if not path.exists():
            command = [str(peer_python()), "-m", "bench.onnx_models", str(path), case.kind]
            done = subprocess.run([*command, json.dumps(case.sizes)], cwd=ROOT, capture_output=True, text=True)
            if done.returncode:
                raise Unavailable(done.stderr.strip().splitlines()[-1])


def _key(case: Case) -> str:
    return "-".join([case.kind, *map(str, case.sizes.values())])


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
