"""What the programs are made of, without arrays: it is also read inside Pyodide, which has no numpy."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Program:
    """What is timed. `step` starts one execution, `finish` waits for all that were started; `check` gives the
    numbers to compare, and is called once, first; `threads` is how many it uses, where it knows."""

    step: Callable[[], Any]
    check: Callable[[], list[float]]
    finish: Callable[[], Any] = lambda: None
    threads: int | None = None


def sample(program: Program, seconds: float, clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds per step, of as many steps as take about `seconds`."""
    steps = 1
    while True:
        start = clock()
        for _ in range(steps):
            program.step()
        program.finish()
        taken = clock() - start
        if taken >= 0.5 * seconds:
            return taken / steps
        steps = max(steps + 1, int(steps * min(20.0, seconds / max(taken, 1e-9))))


LABELS = [7 * i % 10 for i in range(64)]
MLP_LR, CONVNET_LR, BLOCK_LR = 0.1, 0.05, 1e-4
HUNDRED, HUNDRED_SCALE = 100, 0.6  # products one after the other
GRADIENT_SEED = 99  # of the gradient that comes in at an output
STEPS_CHECKED = 3  # losses of a training program that are compared

# name, seed, shape, scale
MLP = [("w1", 2, (784, 128), 0.04), ("b1", 3, (128,), 0.1), ("w2", 4, (128, 10), 0.1), ("b2", 5, (10,), 0.1)]
# The same with next to nothing to compute.
TINY = [("w1", 2, (4, 4), 0.5), ("b1", 3, (4,), 0.1), ("w2", 4, (4, 10), 0.5), ("b2", 5, (10,), 0.1)]
CONVNET = [
    ("w1", 2, (16, 1, 3, 3), 0.3),
    ("b1", 3, (16,), 0.1),
    ("w2", 4, (32, 16, 3, 3), 0.1),
    ("b2", 5, (32,), 0.1),
    ("w3", 6, (4608, 10), 0.02),
    ("b3", 7, (10,), 0.1),
]

WIDTH, HEADS, LENGTH = 768, 12, 128
BLOCK = [
    ("ln1_w", 2, (WIDTH,), 1.0),
    ("ln1_b", 3, (WIDTH,), 0.1),
    ("qkv_w", 4, (WIDTH, 3 * WIDTH), 0.05),
    ("qkv_b", 5, (3 * WIDTH,), 0.1),
    ("out_w", 6, (WIDTH, WIDTH), 0.05),
    ("out_b", 7, (WIDTH,), 0.1),
    ("ln2_w", 8, (WIDTH,), 1.0),
    ("ln2_b", 9, (WIDTH,), 0.1),
    ("up_w", 10, (WIDTH, 4 * WIDTH), 0.05),
    ("up_b", 11, (4 * WIDTH,), 0.1),
    ("down_w", 12, (4 * WIDTH, WIDTH), 0.05),
    ("down_b", 13, (WIDTH,), 0.1),
]

# Forty small parameters, as the biases, scales and filters of a network.
SMALL_SHAPES = [(64,), (64, 64), (32, 3, 3, 3), (128,)]
SMALL = [(f"p{i}", i + 1, SMALL_SHAPES[i % len(SMALL_SHAPES)], 0.1) for i in range(40)]
SMALL_LR = 1e-2

GPT2_LR = 1e-3
GPT2_BLOCK = tuple(name for name, _, _, _ in BLOCK)  # the names of a block's parameters


@dataclass(frozen=True)
class GPT2:
    """The sizes of a GPT-2 and of what it is trained on: `batch` rows of `length` tokens."""

    batch: int
    length: int
    layers: int
    width: int
    heads: int
    vocabulary: int


def gpt2_parameters(sizes: GPT2) -> list[tuple[str, int, tuple[int, ...], float]]:
    """Name, seed, shape and scale of each. The head's weights are those of the tokens."""
    found = [
        ("tokens", 1, (sizes.vocabulary, sizes.width), 0.02),
        ("positions", 2, (sizes.length, sizes.width), 0.02),
        ("ln_w", 3, (sizes.width,), 1.0),
        ("ln_b", 4, (sizes.width,), 0.1),
    ]
    for i in range(sizes.layers):
        for name, seed, shape, scale in BLOCK:
            own = tuple(n * sizes.width // WIDTH for n in shape)
            found.append((f"{name}{i}", seed + 20 * (i + 1), own, scale))
    return found


def tokens(sizes: GPT2, seed: int) -> list[list[int]]:
    """Token ids `(batch, length)`."""
    count = sizes.batch * sizes.length
    flat = [int((uniform(seed, i) + 1) / 2 * sizes.vocabulary) for i in range(count)]
    return [flat[i : i + sizes.length] for i in range(0, count, sizes.length)]


# y = min(max(y * a + b, c) ** 2, d), four times: twenty operations that no algebra makes fewer.
CHAIN = [(1.1, 0.2, -0.5, 1.5), (0.9, -0.3, -0.4, 1.2), (1.2, 0.1, -0.6, 1.4), (0.8, -0.2, -0.3, 1.1)]


def uniform(seed: int, i: int) -> float:
    """Element i of `inputs.uniform`, where there is no numpy."""
    mask = 0xFFFFFFFF
    h = (i * 0x9E3779B1 + seed * 0x85EBCA6B) & mask
    h ^= h >> 15
    h = h * 0x2C1B3C6D & mask
    h ^= h >> 12
    h = h * 0x297A2D39 & mask
    h ^= h >> 15
    return (h >> 8) / 2**23 - 1


def spread(n: int) -> slice:
    """About a thousand positions below n; the step is odd, so that columns differ."""
    return slice(0, n, n // 1000 | 1)
