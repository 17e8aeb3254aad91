"""A training step of a small convolutional network on 64 images of 1x28x28, SGD."""

from __future__ import annotations

from collections.abc import Iterator

from bench.contest import Case, Contest
from bench.goals import at_most_times, times_best_peer
from bench.hosts import CHROMIUM, CPYTHON
from bench.report import Result

NO_TRAINING = {"onnxruntime-web": "does not train"}
PAGE_GOALS = (times_best_peer(3, "lower"),)
NATIVE_PEERS = ("torch", "torch-compile", "tinygrad")
CASES = [
    *(
        Case(
            "convnet step",
            "convnet",
            {},
            CHROMIUM,
            t,
            ("jax-js", "tfjs-wasm"),
            PAGE_GOALS,
            cannot=NO_TRAINING,
        )
        for t in (1, 2)
    ),
    *(
        Case("convnet step", "convnet", {}, CPYTHON, t, NATIVE_PEERS, (at_most_times(1.2, "torch"),))
        for t in (1, 2)
    ),
]


def run(quick: bool) -> Iterator[Result]:
    with Contest("conv", quick) as contest:
        yield from contest.run(CASES)
