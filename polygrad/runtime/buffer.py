"""`Buffer`: a typed allocation on a device, made on first use, freed when the last Buffer over it goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polygrad.dtype import DType
from polygrad.errors import OutOfMemoryError
from polygrad.runtime.interface import Handle, Runtime

# What to call before giving up on an allocation, and when much has been allocated: the owners of dead
# buffers let them go. The engine registers the collector of the IR here, which this layer cannot see.
reclaim: list[Callable[[], Any]] = []
_RECLAIM_BYTES = 256 << 20


class Allocation:
    """Memory on a device; frees itself."""

    allocated_bytes = 0  # alive, all devices together
    _next_reclaim = _RECLAIM_BYTES

    def __init__(self, runtime: Runtime, nbytes: int) -> None:
        self.handle: Handle = None
        self.runtime, self.nbytes = runtime, nbytes
        cls = Allocation
        if cls.allocated_bytes + nbytes > cls._next_reclaim:
            run_reclaim()
            cls._next_reclaim = _RECLAIM_BYTES + 2 * cls.allocated_bytes
        try:
            self.handle = runtime.allocate(max(nbytes, 1))
        except OutOfMemoryError:
            run_reclaim()
            self.handle = runtime.allocate(max(nbytes, 1))
        cls.allocated_bytes += nbytes

    def __del__(self) -> None:
        if self.handle is not None:
            type(self).allocated_bytes -= self.nbytes  # the module's names may be gone at exit
            self.runtime.free(self.handle)
            self.handle = None


def run_reclaim() -> None:
    for hook in reclaim:
        hook()


class Buffer:
    """`size` elements of `dtype` on `runtime`'s device. Told apart by identity: it is a BUFFER's argument."""

    __slots__ = ("_allocation", "dtype", "overwritten", "owner", "runtime", "size")

    def __init__(
        self, runtime: Runtime, size: int, dtype: DType, allocation: Allocation | None = None
    ) -> None:
        self.runtime, self.size, self.dtype, self._allocation = runtime, size, dtype, allocation
        self.overwritten = False  # written in place since: an alias holds the new value
        self.owner: Callable[[], Any] | None = (
            None  # a weak reference: who above this layer may write it in place
        )

    def __repr__(self) -> str:
        return f"Buffer({self.runtime.name}, {self.size} x {self.dtype})"

    @property
    def device(self) -> str:
        return self.runtime.name

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def is_allocated(self) -> bool:
        return self._allocation is not None

    @property
    def handle(self) -> Handle:
        """The device's name for the memory, which is allocated now if it was not. Raises OutOfMemoryError."""
        if self._allocation is None:
            self._allocation = Allocation(self.runtime, self.nbytes)
        return self._allocation.handle

    def alias(self) -> Buffer:
        """Another Buffer over the same memory: the same storage after it has been written to."""
        _ = self.handle
        return Buffer(self.runtime, self.size, self.dtype, self._allocation)

    def write(self, data: memoryview) -> None:
        """Fill the whole buffer from `data`, which is contiguous and of the same number of bytes."""
        if self.nbytes:
            self.runtime.write(
                self.handle, 0, data.cast("B") if data.format != "B" or data.ndim != 1 else data
            )

    def read(self) -> memoryview:
        """A copy of the whole buffer, format 'B'."""
        return self.runtime.read(self.handle, 0, self.nbytes) if self.nbytes else memoryview(bytearray())
