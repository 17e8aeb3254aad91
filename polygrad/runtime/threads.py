"""How many threads a large kernel is split between: as many as the processors this process may use.

`POLYGRAD_THREADS=n` asks for another number, `set_num_threads(n)` does from then on. Results do not depend
on it.
"""

from __future__ import annotations

import os

from polygrad.errors import ArgumentError

MOST_THREADS = 1024

_count: int | None = None


def get_num_threads() -> int:
    """How many threads a large kernel is split between, at most; 1: none are used but the caller's.

    Raises ArgumentError when the environment's POLYGRAD_THREADS is no such number.
    """
    global _count
    if _count is None:
        text = os.environ.get("POLYGRAD_THREADS", "").strip()
        if text and not (text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_THREADS):
            raise ArgumentError(
                f"POLYGRAD_THREADS: expected an integer from 1 to {MOST_THREADS}, got {text!r}: "
                "unset it for all processors"
            )
        _count = int(text) if text else _processors()
    return _count


def set_num_threads(n: int) -> None:
    """Split large kernels between `n` threads from now on, Programs that are compiled already included. 1: do
    not.

    A device may use fewer: the CPU no more than the machine's processors (but up to four). WASM uses no more
    than the loader's option `threads` says (the processors, up to eight) in Node and in pages that are
    cross-origin isolated, and one thread in other pages and under CPython.
    Raises ArgumentError when `n` is no integer from 1 to 1024.
    """
    global _count
    if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= MOST_THREADS:
        raise ArgumentError(f"set_num_threads: expected an integer from 1 to {MOST_THREADS}, got {n!r}")
    _count = n


def _processors() -> int:
    try:
        return min(len(os.sched_getaffinity(0)), MOST_THREADS)
    except AttributeError:  # not on this system
        return min(os.cpu_count() or 1, MOST_THREADS)
