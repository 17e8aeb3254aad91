"""Where a captured step's time goes: `profile.py KIND [SIZE=N ...]`, a line for each kernel, slowest first.

Runs under CPython (`DEVICE=CPU python bench/profile.py mlp`) and in a page (`node web/run-in-chromium.mjs
--files bench/libraries/shapes.py,bench/libraries/with_tensor.py --env DEVICE=WASM bench/profile.py mlp`).
Each kernel is timed by itself, as a Program of one launch on the step's own buffers, in turn with the others;
the fastest of several rounds counts.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "libraries"))

import with_tensor

import polygrad
import polygrad.nn
from polygrad.engine.realize import arena_for
from polygrad.runtime.program import Program

ROUNDS, SECONDS = 5, 0.03


class Recorder(with_tensor.Maker):
    """Makes programs of random numbers, and keeps what was captured."""

    def __init__(self) -> None:
        super().__init__(polygrad, lambda seed, count: polygrad.Tensor.rand(count) * 2 - 1)
        self.jits: list[polygrad.TinyJit] = []
        self.lib = self

    def __getattr__(self, name: str) -> Any:
        return getattr(polygrad, name)

    def TinyJit(self, function: Any) -> polygrad.TinyJit:
        self.jits.append(polygrad.TinyJit(function))
        return self.jits[-1]

    def tensor(self, seed: int, *shape: int, scale: float = 1.0) -> Any:
        return polygrad.Tensor.uniform(*shape, low=-scale, high=scale).realize()


def seconds_of(executable: Any, handles: list[Any], arena: Any, variables: dict[str, int]) -> float:
    times = 1
    while True:
        start = time.perf_counter()
        for _ in range(times):
            executable.run(handles, arena, variables)
        taken = time.perf_counter() - start
        if taken > SECONDS / 2:
            return taken / times
        times = max(times + 1, int(times * min(20, SECONDS / max(taken, 1e-6))))


def profile(kind: str, sizes: dict[str, int]) -> None:
    device = polygrad.Device[polygrad.Device.DEFAULT]
    unlinked: list[Program] = []
    backend = polygrad.Device.backend(polygrad.Device.DEFAULT)
    link = backend.link or (lambda program: program)
    object.__setattr__(backend, "link", lambda program: [unlinked.append(program), link(program)][1])
    recorder = Recorder()
    program = recorder.make(kind, sizes)
    for _ in range(3):
        program.step()
    captured, whole = recorder.jits[-1]._step.captured, unlinked[-1]
    parts = [link(dataclasses.replace(whole, launches=(launch,))) for launch in whole.launches]
    executables = [device.load(part) for part in [captured.program, *parts]]
    context = captured._handles, arena_for(captured.program), captured.variables
    samples: list[list[float]] = [[] for _ in executables]
    for _ in range(ROUNDS):
        for sample, executable in zip(samples, executables, strict=True):
            sample.append(seconds_of(executable, *context))
    total, *each = [min(s) for s in samples]
    print(f"{kind} {sizes or ''}: {total * 1e3:.3f} ms; {len(each)} launches, alone {sum(each) * 1e3:.3f} ms")
    spent: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for launch, seconds in zip(whole.launches, each, strict=True):
        name = whole.kernels[launch.kernel].name
        spent[name] += seconds
        count[name] += 1
    for name, seconds in spent.most_common(20):
        print(f"  {seconds * 1e3:9.3f} ms {seconds / sum(each):6.1%}  {count[name]:3d}×  {name}")


if __name__ == "__main__":
    profile(sys.argv[1], {k: int(v) for k, v in (a.split("=") for a in sys.argv[2:])})
