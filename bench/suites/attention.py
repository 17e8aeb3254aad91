"""A GPT-2 block: width 768, 12 heads, 128 tokens, causal; forward, and forward with all gradients."""

from __future__ import annotations

from collections.abc import Iterator

from bench.contest import Case, Contest
from bench.goals import at_most_times, times_best_peer
from bench.hosts import CHROMIUM
from bench.report import Result

PEERS = ("jax-js", "onnxruntime-web", "tfjs-wasm")
TRAINERS = ("jax-js", "tfjs-wasm")
NO_GRADIENTS = {"onnxruntime-web": "has no gradients"}
FORWARD = (at_most_times(1, "onnxruntime-web"),)
BACKWARD = (times_best_peer(1, "lower"),)
CASES = [
    *(Case("block forward", "block-forward", {}, CHROMIUM, t, PEERS, FORWARD) for t in (1, 2)),
    *(
        Case("block backward", "block-backward", {}, CHROMIUM, t, TRAINERS, BACKWARD, cannot=NO_GRADIENTS)
        for t in (1, 2)
    ),
]


def run(quick: bool) -> Iterator[Result]:
    with Contest("attention", quick) as contest:
        yield from contest.run(CASES)
