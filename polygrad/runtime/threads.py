"""The number of threads that run a large kernel: by default the number of processors of this process.

`POLYGRAD_THREADS=n` and `set_num_threads(n)` set another number. Results do not depend on it.
"""

from __future__ import annotations

import os

from polygrad.errors import ArgumentError

MAX_THREADS = 1024

_count: int | None = None


def get_num_threads() -> int:
    """The most threads that run a large kernel; 1: only the caller's thread.

    Raises ArgumentError when the environment variable POLYGRAD_THREADS is not a valid number.
    """
    global _count
    if _count is None:
        text = os.environ.get("POLYGRAD_THREADS", "").strip()
        if text and not (text.isascii() and text.isdigit() and 1 <= int(text) <= MAX_THREADS):
            raise ArgumentError(
                f"POLYGRAD_THREADS: expected an integer from 1 to {MAX_THREADS}, got {text!r}: "
                "unset it for all processors"
            )
        _count = int(text) if text else _processors()
    return _count


def set_num_threads(n: int) -> None:
    """Run large kernels on `n` threads from now on, also in Programs that are already compiled. 1: use no
    threads.

    A device may use fewer. The CPU uses no more than the machine's processors (but up to four). WASM uses no
    more than the loader's option `threads` (by default the processors, up to eight) in Node and in pages that
    are cross-origin isolated, and one thread in other pages and under CPython.
    Raises ArgumentError when `n` is not an integer from 1 to 1024.
    """
    global _count
    if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= MAX_THREADS:
        raise ArgumentError(f"set_num_threads: expected an integer from 1 to {MAX_THREADS}, got {n!r}")
    _count = n


def _processors() -> int:
    try:
        return min(len(os.sched_getaffinity(0)), MAX_THREADS)
    except AttributeError:  # not on this system
        return min(os.cpu_count() or 1, MAX_THREADS)
