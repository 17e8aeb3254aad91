"""softmax, gelu (tanh form) and layernorm over (4096, 1024)."""

from __future__ import annotations

from collections.abc import Iterator

from bench.contest import Case, Contest
from bench.goals import at_most_times
from bench.hosts import CHROMIUM, CPYTHON
from bench.report import Result

KINDS = ("softmax", "gelu", "layernorm")
SIZES = {"rows": 4096, "columns": 1024}
PAGE_GOALS = (at_most_times(1 / 3, "jax-js"), at_most_times(1 / 1.5, "onnxruntime-web"))
PAGE_PEERS = ("jax-js", "onnxruntime-web", "tfjs-wasm")
NATIVE_PEERS = ("numpy", "torch", "torch-compile", "tinygrad")
CASES = [
    *(Case(kind, kind, SIZES, CHROMIUM, t, PAGE_PEERS, PAGE_GOALS) for t in (1, 2) for kind in KINDS),
    *(
        Case(kind, kind, SIZES, CPYTHON, t, NATIVE_PEERS, (at_most_times(1, "torch"),))
        for t in (1, 2)
        for kind in KINDS
    ),
]


def run(quick: bool) -> Iterator[Result]:
    with Contest("norms", quick) as contest:
        yield from contest.run(CASES)
