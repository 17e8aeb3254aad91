"""A training step of a small network: 64 rows of 784 -> 128 -> ReLU -> 10, softmax cross-entropy, SGD."""

from __future__ import annotations

from collections.abc import Iterator

from bench.contest import Case, Contest
from bench.goals import at_most_times
from bench.hosts import CHROMIUM, CPYTHON
from bench.report import Result

NO_TRAINING = {"onnxruntime-web": "does not train"}
PAGE_GOALS = (at_most_times(1 / 5, "jax-js"), at_most_times(1 / 12, "tfjs-wasm"))
NATIVE_PEERS = ("torch", "torch-compile", "tinygrad")
CASES = [
    Case("mlp step", "mlp", {}, CHROMIUM, 1, ("jax-js", "tfjs-wasm"), (), cannot=NO_TRAINING),
    Case("mlp step", "mlp", {}, CHROMIUM, 2, ("jax-js", "tfjs-wasm"), PAGE_GOALS, cannot=NO_TRAINING),
    *(Case("mlp step", "mlp", {}, CPYTHON, t, NATIVE_PEERS, (at_most_times(1, "torch"),)) for t in (1, 2)),
]


def run(quick: bool) -> Iterator[Result]:
    with Contest("train", quick) as contest:
        yield from contest.run(CASES)
