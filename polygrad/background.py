"""The threads that compile while Python goes on: one pool for all devices of this process."""

from __future__ import annotations

import concurrent.futures
import functools
import os


@functools.cache
def compilers() -> concurrent.futures.ThreadPoolExecutor:
    """As many threads as there are processors. What they run must not wait for other jobs of the pool."""
    return concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1, "polygrad-compiler")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=compilers.cache_clear)  # threads do not live through a fork
