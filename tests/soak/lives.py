"""Long lives: the same work many times over, and a process's memory, open files and threads meanwhile.

    PYTHONPATH=tests python -m soak.lives --scale 1 --picture docs/images/lives.svg

Each kind of work has a process of its own. The slope of its memory is given with a 95 % interval, in bytes
for one round: what leaks, leaks a part of a node, a buffer or a file in each.
"""

from __future__ import annotations

import argparse
import gc
import math
import multiprocessing
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from polygrad import Device, Tensor, TinyJit, compile_step, export, nn
from polygrad.pictures import chart
from polygrad.runtime.buffer import Allocation

_POINTS = 40  # at which a life is looked at; the first half is not counted, as caches fill in it
_DEVICE = "CPU"


@dataclass(frozen=True)
class Sample:
    """What a process has: bytes of memory in RAM, bytes of Tensors, open files, threads."""

    memory: int
    tensors: int
    files: int
    threads: int


@dataclass(frozen=True)
class Slope:
    """Bytes of memory a round: the estimate, and half the width of its 95 % interval."""

    mean: float
    margin: float

    def is_flat(self, rounds: float) -> bool:
        """Whether it may be 0, or less than a node of the IR, or all of it in so many rounds is no more than
        what comes and goes: a JIT compiler with 256 libraries of 9 KB."""
        return self.mean - self.margin <= 100 or self.mean * rounds < 4 << 20


def sample() -> Sample:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Sample(
        pages * os.sysconf("SC_PAGE_SIZE"),
        Allocation.allocated_bytes,
        len(os.listdir("/proc/self/fd")),
        threading.active_count(),
    )


def slope(xs: list[float], ys: list[float]) -> Slope:
    """Of the least squares' line. The residuals of neighbours are alike, so its margin is of their means in
    pairs, as of half as many points."""
    n = len(xs)
    mean_x, mean_y = sum(xs) / n, sum(ys) / n
    spread = sum((x - mean_x) ** 2 for x in xs)
    b = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread
    rest = sum((y - mean_y - b * (x - mean_x)) ** 2 for x, y in zip(xs, ys, strict=True))
    return Slope(b, 2.1 * math.sqrt(2 * rest / max(n - 2, 1) / spread))


# --- work: functions that make a round, of its number


def captured_steps() -> Callable[[int], object]:
    model = nn.Linear(16, 16)
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=1e-4)
    x, y = Tensor.rand(8, 16).realize(), Tensor.rand(8, 16).realize()
    step = compile_step(lambda m, a, b: (m(a).dropout(0.1) - b).square().mean(), model, optimizer, x, y)
    return lambda i: step.run(x, y)


def eager_steps() -> Callable[[int], object]:
    model = nn.Linear(16, 16)
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=1e-4)

    def step(i: int) -> None:
        x = Tensor([[float(i % 7)] * 16] * 8)
        with Tensor.train():
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()

    return step


def different_graphs() -> Callable[[int], object]:
    """Shapes and operations that were not there before."""

    def step(i: int) -> float:
        x = Tensor.full((1 + i % 97, 1 + i // 97 % 89), 0.5)
        for k in range(3):
            x = (x.sin(), x * (1.5 + i), x - x.mean(), x.exp2() + i % 5)[(i >> 2 * k) % 4]
        return x.sum().item()

    return step


def devices() -> Callable[[int], object]:
    """Devices that are opened, used and dropped."""

    def step(i: int) -> None:
        name = ("CPU", "WASM", "INTERP")[i % 3]
        runtime = Device.backend(name).open()
        handle = runtime.allocate(1 << 16)
        runtime.write(handle, 0, memoryview(bytes(1 << 16)))
        runtime.free(handle)

    return step


def captures() -> Callable[[int], object]:
    """Functions that are captured, run and dropped."""

    def step(i: int) -> None:
        state = Tensor.zeros(8).contiguous().realize()

        @TinyJit
        def run(x: Tensor) -> Tensor:
            state.assign(state + x)
            return (state * (1.0 + i % 11)).realize(state)

        for _ in range(3):
            run(Tensor.ones(8).contiguous().realize())

    return step


def models() -> Callable[[int], object]:
    """Weights that are saved, loaded and dropped; an exported model that is loaded and run."""
    folder = tempfile.TemporaryDirectory()
    model = [nn.Linear(64, 256), Tensor.relu, nn.Linear(256, 8)]
    step = TinyJit(lambda x: x.sequential(model))
    for _ in range(2):
        step(Tensor.rand(2, 64).realize())

    def load(i: int) -> None:
        weights, exported = os.path.join(folder.name, "w.safetensors"), os.path.join(folder.name, "m.pgrd")
        nn.state.safe_save(nn.state.get_state_dict(model), weights)
        other = [nn.Linear(64, 256), Tensor.relu, nn.Linear(256, 8)]
        nn.state.load_state_dict(other, nn.state.safe_load(weights), verbose=False)
        Tensor.rand(2, 64).sequential(other).realize()
        if i % 4 == 0:
            step.save(exported)
            export.load(exported, native=True).run(x=Tensor.rand(2, 64))

    return load


def threads() -> Callable[[int], object]:
    """Threads that compute and end."""

    def step(i: int) -> None:
        team = [threading.Thread(target=lambda: (Tensor([1.0, 2.0]) + i).tolist()) for _ in range(4)]
        for t in team:
            t.start()
        for t in team:
            t.join()

    return step


def errors() -> Callable[[int], object]:
    """Calls that raise, also while a function is captured."""
    x = Tensor.rand(4).realize()

    def step(i: int) -> None:
        run = TinyJit(lambda x: x * x.sum().item())
        for call in (lambda: run(x), lambda: run(x), lambda: x + Tensor.rand(3), lambda: x.reshape(5)):
            try:
                call()
            except Exception as e:
                assert "expected" in str(e)

    return step


# How many rounds a life of scale 1 has.
WORK: dict[Callable[[], Callable[[int], object]], int] = {
    captured_steps: 100_000, eager_steps: 10_000, different_graphs: 10_000, devices: 1_000, captures: 2_000,
    models: 400, threads: 2_000, errors: 2_000,
}  # fmt: skip


def live(make: Callable[[], Callable[[int], object]], rounds: int) -> list[Sample]:
    """What the process has, at equal distances."""
    step, samples = make(), []
    for i in range(rounds):
        step(i)
        if (i + 1) % max(rounds // _POINTS, 1) == 0:
            samples.append(sample())
    return samples


def judge(samples: list[Sample], rounds: int) -> tuple[Slope, str]:
    """The slope of the second half of a life, and what grows in it: empty if nothing does."""
    half = samples[len(samples) // 2 :]
    distance = rounds / len(samples)
    of_memory = slope([i * distance for i in range(len(half))], [float(s.memory) for s in half])
    grown = [] if of_memory.is_flat(rounds / 2) else [f"memory by {of_memory.mean:.0f} bytes a round"]
    for name in ("tensors", "files", "threads"):
        values = [getattr(s, name) for s in half]
        if min(values[-3:]) > max(values[:3]):
            grown.append(f"{name} from {values[0]} to {values[-1]}")
    return of_memory, ", ".join(grown)


def _live_apart(name: str, rounds: int) -> list[Sample]:
    make = next(w for w in WORK if w.__name__ == name)
    Device.DEFAULT = _DEVICE
    return live(make, rounds)


def main() -> int:
    options = argparse.ArgumentParser(prog="soak.lives", description=__doc__)
    options.add_argument("--scale", type=float, default=1.0, help="of the numbers of rounds")
    options.add_argument("--work", action="append", choices=[w.__name__ for w in WORK])
    options.add_argument("--picture", type=Path, help="an SVG file of the memory")
    given = options.parse_args()
    curves, failed = {}, 0
    for make, most in WORK.items():
        if given.work and make.__name__ not in given.work:
            continue
        rounds = max(_POINTS, int(given.scale * most))
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            samples = pool.apply(_live_apart, (make.__name__, rounds))
        found, grown = judge(samples, rounds)
        failed += bool(grown)
        last = samples[-1]
        curves[make.__name__.replace("_", " ")] = [s.memory / 2**20 for s in samples]
        sys.stdout.write(
            f"{make.__name__}: {rounds} rounds, {found.mean:.1f} ± {found.margin:.1f} bytes a round, "
            f"{last.memory >> 20} MB, {last.files} files, {last.threads} threads: {grown or 'flat'}\n"
        )
        sys.stdout.flush()
    if given.picture:
        given.picture.write_text(
            chart(curves, "Memory of a process over a life", "% of its rounds", x_range=(0, 100))
        )
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
