"""Memory of devices that run in this process: aligned blocks, by their addresses.

Freed blocks are kept and used again: the first access to fresh pages takes longer than most kernels.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import os
from typing import Any

from polygrad.errors import DeviceError, OutOfMemoryError
from polygrad.runtime.memory_pool import MemoryPool

_ALIGN = 64  # of every allocation; as many bytes before and after one are readable
MAP_BYTES = 1 << 20  # from this size on, memory comes from mmap, in huge pages where the system has them
_HUGE_PAGE = 2 << 20
_MAP_FIXED = 0x10  # of every Unix; Python does not name it
_KEPT_BYTES = 1 << 30  # of freed memory, at most; and at most a quarter of the machine's memory


@functools.cache
def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # no sysconf on this system
        return 1 << 62


class NativeHeap(MemoryPool):
    """Aligned blocks of memory, by their addresses. `device`: its name, for errors."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._owners: dict[int, Any] = {}  # the object that keeps each block alive
        limit = min(_KEPT_BYTES, _physical_memory() // 4)
        super().__init__(self._map, self._owners.pop, _ALIGN, limit, classes=8)

    def _map(self, nbytes: int) -> int:
        if nbytes <= _physical_memory():
            try:
                address, self._owners[address] = _map(nbytes)
                return address
            except (MemoryError, OSError, ValueError, OverflowError):
                pass
        raise OutOfMemoryError(
            f"device {self.device}: no room for an allocation of {nbytes} bytes "
            f"({len(self.live)} blocks are in use): free tensors, or use smaller ones"
        )


def _map(size: int) -> tuple[int, Any]:
    """Fresh memory: an aligned address with `size` bytes and a guard on both sides, and its owner."""
    large = size >= MAP_BYTES
    align = _HUGE_PAGE if size >= 2 * _HUGE_PAGE else _ALIGN
    total = size + 2 * _ALIGN + align
    memory = _pages(total) if large else bytearray(total)
    owner = (ctypes.c_char * total).from_buffer(memory)
    start = ctypes.addressof(owner) + _ALIGN
    return -(-start // align) * align, owner


def _pages(size: int) -> Any:
    """Anonymous pages, huge where the system has them (private: shared ones are seldom huge)."""
    if not hasattr(mmap, "MAP_PRIVATE"):  # Windows
        return mmap.mmap(-1, size)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel built without them
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def map_file(device: str, descriptor: int, nbytes: int) -> tuple[int, Any]:
    """A file mapped copy on write, between two readable pages; its address and owner. Raises DeviceError, as
    for a file that is larger than the system's memory, which the pages could need.

    A large file begins on a huge page, so that what the system caches of it in huge pages is mapped as such.
    """
    if not hasattr(mmap, "MAP_PRIVATE"):
        raise DeviceError(f"device {device}: expected a system that maps files at an address, got Windows")
    page = mmap.PAGESIZE
    align = _HUGE_PAGE if nbytes >= 2 * _HUGE_PAGE else page
    total = -(-nbytes // page) * page + 2 * page + align
    try:
        region = mmap.mmap(-1, total, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as e:
        raise _cannot_map(device, e.strerror or str(e)) from e
    owner = (ctypes.c_char * total).from_buffer(region)
    start = -(-(ctypes.addressof(owner) + page) // align) * align
    place = ctypes.CDLL(None, use_errno=True).mmap
    place.restype = ctypes.c_void_p
    place.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_ssize_t)
    flags = mmap.MAP_PRIVATE | _MAP_FIXED
    if place(start, nbytes, mmap.PROT_READ | mmap.PROT_WRITE, flags, descriptor, 0) != start:
        raise _cannot_map(device, os.strerror(ctypes.get_errno()))
    if align == _HUGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel built without them
            region.madvise(mmap.MADV_HUGEPAGE, start - ctypes.addressof(owner), nbytes)
    return start, owner


def _cannot_map(device: str, reason: str) -> DeviceError:
    return DeviceError(f"device {device}: expected a file that can be mapped, got: {reason}")
