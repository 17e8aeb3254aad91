"""numpy: OpenBLAS for the products, its own loops for the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.libraries import ops_numpy
from bench.libraries.inputs import into, numbers, uniform
from bench.libraries.shapes import CHAIN, Program


def make(kind: str, sizes: dict[str, Any]) -> Program:
    return KINDS[kind](**sizes)


def matmul(m: int, k: int, n: int) -> Program:
    a, b, out = uniform(1, m, k), uniform(2, k, n), np.empty((m, n), np.float32)

    def step() -> None:
        np.matmul(a, b, out=out)

    return into(step, out)


def softmax(rows: int, columns: int) -> Program:
    x = uniform(1, rows, columns)

    def step() -> np.ndarray:
        e = np.exp(x - x.max(-1, keepdims=True))
        e /= e.sum(-1, keepdims=True)
        return e

    return Program(step, lambda: numbers(step()))


def gelu(rows: int, columns: int) -> Program:
    x = uniform(1, rows, columns)
    root = np.float32((2 / np.pi) ** 0.5)

    def step() -> np.ndarray:
        return np.float32(0.5) * x * (1 + np.tanh(root * (x + np.float32(0.044715) * x * x * x)))

    return Program(step, lambda: numbers(step()))


def layernorm(rows: int, columns: int) -> Program:
    x, weight, bias = uniform(1, rows, columns), uniform(2, columns), uniform(3, columns)

    def step() -> np.ndarray:
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * weight + bias

    return Program(step, lambda: numbers(step()))


def chain(n: int) -> Program:
    x, y = uniform(1, n), np.empty(n, np.float32)

    def step() -> None:
        y[:] = x
        for a, b, c, d in CHAIN:
            np.multiply(y, np.float32(a), out=y)
            np.add(y, np.float32(b), out=y)
            np.maximum(y, np.float32(c), out=y)
            np.multiply(y, y, out=y)
            np.minimum(y, np.float32(d), out=y)

    return into(step, y)


def copy(n: int) -> Program:
    x, y = uniform(1, n), np.empty(n, np.float32)

    def step() -> None:
        np.copyto(y, x)

    return into(step, y)


def eager_selection(op: str, size: int) -> Program:
    function, x, steps = ops_numpy.SELECTIONS[op], uniform(1, size), np.sort(uniform(2, size))

    def step() -> np.ndarray:
        nonlocal x
        x = -x
        return function(x, steps)

    return Program(step, lambda: numbers(step()))


KINDS = {
    "matmul": matmul,
    "softmax": softmax,
    "gelu": gelu,
    "layernorm": layernorm,
    "chain": chain,
    "copy": copy,
    "eager-selection": eager_selection,
    "operation": ops_numpy.make,
}
