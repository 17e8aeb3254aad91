"""The numbers that every native library computes with; `bench/page/inputs.mjs` has the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.libraries.shapes import Program, spread


def uniform(seed: int, *shape: int) -> np.ndarray:
    """float32 in [-1, 1), a hash of the seed and the position."""
    h = np.arange(int(np.prod(shape)), dtype=np.uint32) * np.uint32(0x9E3779B1)
    h += np.uint32(seed * 0x85EBCA6B & 0xFFFFFFFF)
    h ^= h >> np.uint32(15)
    h *= np.uint32(0x2C1B3C6D)
    h ^= h >> np.uint32(12)
    h *= np.uint32(0x297A2D39)
    h ^= h >> np.uint32(15)
    return ((h >> np.uint32(8)).astype(np.float32) / np.float32(2**23) - np.float32(1)).reshape(shape)


def operand(seed: int, spec: dict[str, Any]) -> np.ndarray:
    """`uniform` put into [low, high), whole numbers for an integer dtype; `spec` is a Row's operand."""
    low, high = spec["low"], spec["high"]
    x = uniform(seed, *spec["shape"])
    if (low, high) != (-1, 1):
        x = (x + np.float32(1)) * np.float32((high - low) / 2) + np.float32(low)
    return (np.floor(x) if "int" in spec["dtype"] else x).astype(spec["dtype"])


def moments(array: np.ndarray) -> list[float]:
    """Of random numbers: the mean and the mean square."""
    return [float(array.mean(dtype=np.float64)), float(np.square(array, dtype=np.float64).mean())]


def numbers(array: Any) -> list[float]:
    """About a thousand elements of an array, evenly spread."""
    flat = np.asarray(array).reshape(-1)
    return [float(x) for x in flat[spread(flat.size)]]


def into(step: Callable[[], None], out: Any) -> Program:
    """A program that writes its result into `out`."""

    def check() -> list[float]:
        step()
        return numbers(out)

    return Program(step, check)
