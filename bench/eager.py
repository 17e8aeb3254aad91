"""Where an eager loop's time goes: `python bench/eager.py`, `node node/bin/polygrad-node.mjs bench/eager.py`.

Microseconds of `y = (y * 1.0001 + x).realize()` on four elements, and of a training step of an MLP
64 x 784 -> 128 -> 10 with SGD, which `POLYGRAD_THREADS=1` keeps to one thread. Medians over many steps of the
parts of a step; the least of many rounds of a whole one (CPU time where the host has it).
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

from polygrad import Tensor, nn
from polygrad.engine import programs
from polygrad.nn.optim import SGD
from polygrad.runtime.buffer import Allocation
from polygrad.uop.intern import generations, node_count

ROUNDS, STEPS = 30, 20
cpu_clock = time.perf_counter if sys.platform == "emscripten" else time.process_time


def least(function: Callable[[], object]) -> float:
    """The least mean of `STEPS` calls in seconds."""
    means = []
    for _ in range(ROUNDS):
        start = cpu_clock()
        for _ in range(STEPS):
            function()
        means.append((cpu_clock() - start) / STEPS)
    return min(means)


def pair() -> None:
    x, y = Tensor([1.0, 2, 3, 4]).realize(), Tensor([1.0, 2, 3, 4]).realize()

    def step() -> None:
        nonlocal y
        y = (y * 1.0001 + x).realize()

    for _ in range(200):
        step()
    print(f"pair: {least(step) * 1e6:.1f} us")


class Training:
    """The MLP's training steps, each part timed."""

    def __init__(self) -> None:
        Tensor.manual_seed(0)
        self.hidden, self.out = nn.Linear(784, 128), nn.Linear(128, 10)
        layers = self.hidden, self.out
        self.optimizer = SGD([p for layer in layers for p in (layer.weight, layer.bias)], lr=0.01)
        self.x = Tensor.randn(64, 784).realize()
        self.y = Tensor([i % 10 for i in range(64)]).realize()
        self.seconds: dict[str, list[float]] = {}

    def timed(self, name: str, start: float) -> float:
        end = time.perf_counter()
        self.seconds.setdefault(name, []).append(end - start)
        return end

    def step(self) -> None:
        now = time.perf_counter()
        self.optimizer.zero_grad()
        loss = self.out(self.hidden(self.x).relu()).sparse_categorical_crossentropy(self.y)
        now = self.timed("forward", now)
        loss.backward()
        now = self.timed("backward", now)
        tensors = self.optimizer.schedule_step()
        now = self.timed("optimizer", now)
        tensors[0].realize(*tensors[1:])
        self.timed("realize", now)


def training() -> None:
    Tensor.training = True
    mlp = Training()
    for _ in range(60):
        mlp.step()
    print(f"MLP step: {1 / least(mlp.step):.0f} a second")
    perform = programs._perform

    def launch(*arguments: object) -> None:
        start = time.perf_counter()
        perform(*arguments)  # type: ignore[arg-type]
        mlp.timed("of which kernels", start)

    programs._perform = launch  # type: ignore[assignment]
    mlp.seconds.clear()
    longest = most_nodes = most_bytes = most_examined = 0.0
    for _ in range(1000):
        start, before = cpu_clock(), generations.examined
        mlp.step()
        longest = max(longest, cpu_clock() - start)
        most_nodes, most_bytes = max(most_nodes, node_count()), max(most_bytes, Allocation.allocated_bytes)
        most_examined = max(most_examined, generations.examined - before)
    programs._perform = perform
    for name, seconds in mlp.seconds.items():
        print(f"  {name}: {statistics.median(seconds) * 1e6:.0f} us")
    print(
        f"longest of 1,000 steps: {longest * 1e3:.1f} ms, a collection of at most {most_examined:.0f} nodes"
    )
    print(f"at most {most_nodes:.0f} nodes and {most_bytes / 1e6:.2f} MB of buffers")


if __name__ == "__main__":
    pair()
    training()
