"""`Buffer`: a typed allocation on a device. It is allocated on first use, and freed with the last Buffer over
it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from polygrad.dtype import DType
from polygrad.errors import DeviceError, InterruptedWriteError, OutOfMemoryError
from polygrad.monitor import HAS_THREADS, defer, run_deferred, synchronized, wait_until_idle
from polygrad.runtime.interface import Handle, Runtime

# Functions that free dead buffers, called before an allocation fails and after much has been allocated. The
# engine registers the collector of the IR here, as this layer cannot import it.
reclaim: list[Callable[[], Any]] = []
_RECLAIM_BYTES = 256 << 20

NEW_MEMORY = "give the Tensor new memory with replace()"  # what helps when contents are lost


def half_written(error: BaseException) -> str:
    """How contents were lost, for `Allocation.damage`."""
    return f"a run that ended with {type(error).__name__} has left it half-written"


class Allocation:
    """Memory on a device. It is allocated on first use, and frees itself. Compared by identity."""

    allocated_bytes = 0  # in use, on all devices
    taken_bytes = 0  # since the start, with freed memory
    _next_reclaim = _RECLAIM_BYTES
    any_damaged = False  # whether contents of any memory were ever lost
    _handle: Handle = None
    _damaged: Handle = None  # the handle, while the contents are lost
    _damage = ""  # how they were lost

    def __init__(self, runtime: Runtime, nbytes: int) -> None:
        self.runtime, self.nbytes = runtime, nbytes
        self.version = 0  # the number of writes since it was first filled
        self.written_at: tuple[str, int] | None = None  # the file and line of the last write
        self.owner: Callable[[], Any] | None = None  # a weak reference to the Storage that may write to it
        self.whole: Callable[[], Allocation | None] | None = (
            None  # a weak reference, for a part of sharded memory
        )

    @property
    def family(self) -> tuple[Allocation, ...]:
        """This Allocation, and the sharded one that it is a part of, if any."""
        sharded = self.whole() if self.whole is not None else None
        return (self,) if sharded is None else (self, sharded)

    @property
    def is_allocated(self) -> bool:
        return self._handle is not None or self._damaged is not None

    @property
    def handle(self) -> Handle:
        """The device's name for the memory, which is allocated if necessary. Raises OutOfMemoryError."""
        if self._handle is None:
            self._allocate()
        return self._handle

    @property
    def is_damaged(self) -> bool:
        """Whether the contents are lost."""
        return self._damaged is not None

    def damage(self, reason: str) -> None:
        """Mark the contents as lost: using the memory raises InterruptedWriteError. `reason`: what happened,
        and what to do."""
        if self._damaged is None and self._handle is not None:
            self._damaged, self._handle, self._damage = self._handle, None, reason
            Allocation.any_damaged = True

    def repair(self) -> None:
        """Undo `damage`: all of the memory was written again."""
        if self._damaged is not None:
            self._handle, self._damaged = self._damaged, None

    @synchronized
    def _allocate(self) -> None:
        if self._damaged is not None:
            place = next((a.written_at for a in self.family if a.written_at is not None), None)
            written = "" if place is None else f", last written at {place[0]}:{place[1]}"
            raise InterruptedWriteError(
                f"memory of {self.nbytes} bytes on {self.runtime.name}{written}: {self._damage}"
            )
        cls, nbytes = Allocation, self.nbytes
        _enter(self.runtime)
        run_deferred()
        if cls.allocated_bytes + nbytes > cls._next_reclaim:
            run_reclaim()
            cls._next_reclaim = _RECLAIM_BYTES + 2 * cls.allocated_bytes
        try:
            self._handle = self.runtime.allocate(max(nbytes, 1))
        except OutOfMemoryError:
            run_reclaim()
            self._handle = self.runtime.allocate(max(nbytes, 1))
        cls.allocated_bytes += nbytes
        cls.taken_bytes += nbytes

    def __del__(self, exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        if exiting():
            return
        handle = self._handle if self._damaged is None else self._damaged
        if handle is not None:
            defer(functools.partial(_free, self.runtime, handle, self.nbytes))
            self._handle = self._damaged = None


def _free(runtime: Runtime, handle: Handle, nbytes: int) -> None:
    Allocation.allocated_bytes -= nbytes
    runtime.free(handle)


def _enter(runtime: Runtime) -> None:
    """Wait until the device's memory may be touched."""
    if not runtime.concurrent:
        wait_until_idle()


class Borrowed(Allocation):
    """The memory of another Allocation, with an identity of its own."""

    def __init__(self, lender: Allocation) -> None:
        super().__init__(lender.runtime, lender.nbytes)
        self.lender = lender

    @property
    def is_damaged(self) -> bool:
        return self.lender.is_damaged

    def damage(self, reason: str) -> None:
        self.lender.damage(reason)

    def repair(self) -> None:
        self.lender.repair()

    @property
    def handle(self) -> Handle:
        return self.lender.handle


class Foreign(Allocation):
    """Memory that the device has neither allocated nor frees. It lives as long as `keep`."""

    def __init__(self, runtime: Runtime, nbytes: int, handle: Handle, keep: object) -> None:
        super().__init__(runtime, nbytes)
        self._handle, self._keep = handle, keep

    def __del__(self, exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        """Nothing is freed."""


def run_reclaim() -> None:
    for hook in reclaim:
        hook()


class Buffer:
    """`size` elements of `dtype` on `runtime`'s device. Compared by identity: it is a BUFFER's argument."""

    __slots__ = ("allocation", "data_bounds", "dtype", "runtime", "size", "version")

    def __init__(
        self, runtime: Runtime, size: int, dtype: DType, allocation: Allocation | None = None
    ) -> None:
        self.runtime, self.size, self.dtype = runtime, size, dtype
        self.allocation = Allocation(runtime, size * dtype.itemsize) if allocation is None else allocation
        self.version = self.allocation.version
        self.data_bounds: tuple[int, int] | None = (
            None  # the least and greatest integer from the host, if known
        )

    def __repr__(self) -> str:
        return f"Buffer({self.runtime.name}, {self.size} x {self.dtype})"

    @property
    def device(self) -> str:
        return self.runtime.name

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of its contents: one axis."""
        return (self.size,)

    @property
    def parts(self) -> tuple[Buffer, ...]:
        """The Buffers that it consists of, here only itself."""
        return (self,)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def handle(self) -> Handle:
        """The device's name for the memory, which is allocated if necessary. Raises OutOfMemoryError."""
        return self.allocation.handle

    @property
    def is_overwritten(self) -> bool:
        """Whether the memory was written since this Buffer was made. A new `alias` has the present
        contents."""
        return self.version != self.allocation.version

    @property
    def is_lost(self) -> bool:
        """Whether the memory was that of a device which is lost."""
        return any(part.runtime.lost for part in self.parts)

    def alias(self) -> Buffer:
        """Another Buffer over the same memory, for its present contents."""
        return Buffer(self.runtime, self.size, self.dtype, self.allocation)

    def like(self) -> Buffer:
        """A Buffer like this one, over memory of its own."""
        return Buffer(self.runtime, self.size, self.dtype)

    def borrow(self) -> Buffer:
        """A Buffer over the same memory under another identity."""
        return Buffer(self.runtime, self.size, self.dtype, Borrowed(self.allocation))

    @synchronized
    def copy_from(self, source: Buffer) -> None:
        """Fill this buffer from `source`, of the same size and dtype, on any device."""
        if not self.nbytes:
            return
        _enter(source.runtime)
        try:
            data = source.view()
        except DeviceError:  # a device with memory of its own
            data = source.read()
        self.write(data)

    @synchronized
    def write(self, data: memoryview) -> None:
        """Fill the whole buffer from `data`, which is contiguous and of the same number of bytes."""
        if self.nbytes:
            _enter(self.runtime)
            self.runtime.write(
                self.handle, 0, data.cast("B") if data.format != "B" or data.ndim != 1 else data
            )

    @synchronized
    def write_at(self, offset: int, data: memoryview) -> None:
        """Write the bytes from `offset` on, of a buffer that no Tensor reads yet. `data`: format 'B'."""
        if len(data):
            _enter(self.runtime)
            self.runtime.write(self.handle, offset, data)

    @synchronized
    def read(self) -> memoryview:
        """A copy of the whole buffer, format 'B'."""
        _enter(self.runtime)
        return self.runtime.read(self.handle, 0, self.nbytes) if self.nbytes else memoryview(bytearray())

    async def read_async(self) -> memoryview:
        """`read`, awaitable. With threads it is `read`, as another thread can run meanwhile."""
        if HAS_THREADS or not self.nbytes:
            return self.read()
        return await self.runtime.read_async(self.handle, 0, self.nbytes)

    def view(self) -> memoryview:
        """The whole buffer without a copy, writable, format 'B'; it keeps the memory alive.

        Raises DeviceError where Python cannot access the memory.
        """
        return self.runtime.view(self.handle, 0, self.nbytes, self.allocation)
