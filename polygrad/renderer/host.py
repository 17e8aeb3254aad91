"""What devices that make code for this machine need to know of it, whatever their compiler."""

from __future__ import annotations

import os

from polygrad.codegen.target import Target

_FEWEST_THREADS = 4  # that code is made for: it does not depend on how many a small machine has


def code_threads() -> int:
    """How many threads code for this machine is made for."""
    return max(_FEWEST_THREADS, os.cpu_count() or 1)


def cache_sizes() -> tuple[int, int]:
    """Bytes of the nearest data cache and of the second, as the C library knows them; else the usual."""
    usual = Target.cache
    names = ("SC_LEVEL1_DCACHE_SIZE", "SC_LEVEL2_CACHE_SIZE")
    known = getattr(os, "sysconf_names", {})
    sizes = [os.sysconf(name) if name in known else 0 for name in names]
    return sizes[0] if sizes[0] > 0 else usual[0], sizes[1] if sizes[1] > 0 else usual[1]
