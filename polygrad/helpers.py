"""Small things that every layer uses. Knows nothing of the rest of polygrad."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, TypeVar

T = TypeVar("T")

# The variables of a parallel kernel, which whoever runs it gives: the number of the thread and how many there
# are; the number of the part of its work that a call does, and how many parts there are.
THREAD, THREADS, PART, PARTS = "thread", "threads", "part", "parts"
THREAD_VARIABLES = frozenset((THREAD, THREADS, PART, PARTS))
PARTS_PER_THREAD = 4


def prod(xs: Iterable[Any]) -> Any:
    """The product of `xs`; 1 when empty. Symbolic factors are allowed."""
    out: Any = 1
    for x in xs:
        out = out * x
    return out


def argsort(xs: Iterable[Any]) -> tuple[int, ...]:
    """The permutation that sorts `xs`; for a permutation, its inverse."""
    seq = list(xs)
    return tuple(sorted(range(len(seq)), key=seq.__getitem__))


def dedup(xs: Iterable[T]) -> list[T]:
    """`xs` without repeats, first occurrence kept."""
    return list(dict.fromkeys(xs))


def ceildiv(a: int, b: int) -> int:
    return -(-a // b)


def round_up(a: int, b: int) -> int:
    return -(-a // b) * b


def is_pow2(x: int) -> bool:
    return x > 0 and x & (x - 1) == 0


def env_int(name: str, default: int) -> int:
    """The environment variable `name` as an integer; `default` when unset or empty."""
    text = os.environ.get(name, "")
    return int(text) if text else default


def debug_level() -> int:
    """`DEBUG=n`, each with those before: 1 kernels as they are made, 2 Programs as they run, 3 the code of
    kernels, 4 their graphs after every pass."""
    return env_int("DEBUG", 0)
