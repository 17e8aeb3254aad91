"""Memory for native kernels in which an access beyond a buffer is seen. For tests: `POLYGRAD_TEST_GUARDS=1`.

Behind each buffer is a page that nobody may touch: an access there ends the process, and faulthandler says in
which test. Up to 64 bytes before and after a buffer may be read (`runtime/cpu/memory.py` promises that to
kernels), but not written: this is checked when the buffer is freed. Fresh memory is NaN, as integers -1.
Freed memory is unmapped: a kernel that still uses it ends the process, too.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from typing import Any

from polygrad.helpers import round_up
from polygrad.runtime import memory_pool
from polygrad.runtime.cpu import memory

ENABLED = os.environ.get("POLYGRAD_TEST_GUARDS") == "1"
_READABLE = 64  # bytes on each side of a buffer
_MARK = 0xA7
_violations: list[str] = []


def use() -> None:
    """From now on native buffers have guards, and buffers have the size that was asked for."""
    memory._map = _map
    memory._KEPT_BYTES = -1
    memory.NativeHeap.size_class = lambda _, nbytes: nbytes
    memory_pool.MemoryPool.size_class = lambda pool, nbytes: round_up(nbytes, pool._alignment)


def violations() -> list[str]:
    """What was written beside buffers that have been freed since the last call."""
    seen = list(_violations)
    _violations.clear()
    return seen


class _Block:
    """The pages of a buffer. Deleting it unmaps them."""

    def __init__(self, nbytes: int) -> None:
        page = mmap.PAGESIZE
        size = round_up(nbytes + 2 * _READABLE + _READABLE, page)
        self._region = mmap.mmap(-1, size + 2 * page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        first = ctypes.addressof(ctypes.c_char.from_buffer(self._region))
        self._begin, self._end = first + page, first + page + size
        self.start = (self._end - _READABLE - nbytes) // _READABLE * _READABLE
        self.nbytes = nbytes
        for closed in (first, self._end):
            if _protect(closed, page, 0):
                raise MemoryError("a page of a guard cannot be protected")
        self._before = min(self.start - self._begin, mmap.PAGESIZE)
        ctypes.memset(self.start - self._before, _MARK, self._before)
        ctypes.memset(self.start, 0xFF, nbytes)
        ctypes.memset(self.start + nbytes, _MARK, self._end - self.start - nbytes)

    def __del__(self) -> None:
        for name, place, size in (
            ("before", self.start - self._before, self._before),
            ("after", self.start + self.nbytes, self._end - self.start - self.nbytes),
        ):
            beside = ctypes.string_at(place, size)
            if beside.count(_MARK) < size:
                places = [i for i, x in enumerate(beside) if x != _MARK]
                where = f"{places[0]} to {places[-1]} of the {size} {name}"
                _violations.append(f"buffer of {self.nbytes} bytes: bytes {where} it are written")


def _map(size: int) -> tuple[int, Any]:
    block = _Block(size)
    return block.start, block


if sys.platform != "win32":
    _protect = ctypes.CDLL(None).mprotect
    _protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
