"""Facts of this machine for the devices that make code for it, whatever their compiler."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import sys

from polygrad.codegen.target import Target

_MIN_THREADS = 4  # so that code does not depend on how few threads a small machine has


def code_threads() -> int:
    """The number of threads that code for this machine is made for."""
    return max(_MIN_THREADS, os.cpu_count() or 1)


@functools.cache
def may_use_tiles() -> bool:
    """Whether threads of this process may use AMX's tile registers. Linux saves them for a process that has
    asked, which this function does."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    arch_prctl, request, tile_data = 158, 0x1023, 18  # ARCH_REQ_XCOMP_PERM of XFEATURE_XTILEDATA
    return int(ctypes.CDLL(None).syscall(arch_prctl, request, tile_data)) == 0


def cache_sizes() -> tuple[int, int]:
    """Bytes of the first and the second level of data cache: from the C library, else usual sizes."""
    defaults = Target.cache
    names = ("SC_LEVEL1_DCACHE_SIZE", "SC_LEVEL2_CACHE_SIZE")
    sizes = [os.sysconf(name) if name in getattr(os, "sysconf_names", {}) else 0 for name in names]
    return sizes[0] if sizes[0] > 0 else defaults[0], sizes[1] if sizes[1] > 0 else defaults[1]
