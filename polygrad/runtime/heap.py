"""`Heap`: an allocator over a linear address space, such as a WebAssembly memory. Bookkeeping only.

Every address is a multiple of 64. The first and the last 64 bytes of the space are never handed out, so a
kernel may read 64 bytes before and after any allocation. Knows no memory and no device: it asks for more
space through a callback.

Free blocks are binned by size, four bins to a power of two, with a bit for each non-empty bin. They are also
indexed by both ends, to be merged with adjacent free blocks (Masmano and others, "TLSF: a new dynamic memory
allocator for real-time systems", 2004). Unlike TLSF, the request's own bin is searched for the best fit
first, so an allocation fails only when no free block is large enough.
"""

from __future__ import annotations

from collections.abc import Callable

from polygrad.errors import InternalError, OutOfMemoryError

ALIGN = 64
_GROW_STEP = 1 << 20


def _bin(size: int) -> int:
    """The bin of blocks of `size` bytes: the power of two and the two bits below it."""
    n = size.bit_length()
    return n * 4 + (size >> (n - 3) & 3)


class Heap:
    """Allocations in the addresses 0 to `end`, which grows.

    `grow(end)` extends the space to at least `end` bytes and returns its new end, or 0 on failure. `limit`:
    the largest end to ask for. The first allocation is at `start` or later.
    """

    def __init__(self, grow: Callable[[int], int], limit: int, end: int = 0, start: int = ALIGN) -> None:
        self._grow, self.limit = grow, limit // ALIGN * ALIGN
        self.allocated = 0  # bytes in use, with rounding
        self._start = self._end = start  # the end of the managed space; the guard after it is not managed
        self._used: dict[int, int] = {}  # address -> size
        self._free: dict[int, int] = {}  # address -> size
        self._free_by_end: dict[int, int] = {}  # end -> address
        self._bins: dict[int, dict[int, None]] = {}  # bin -> addresses, oldest first
        self._nonempty = 0  # a bit per bin
        self._pending_free: list[int] = []  # released by `free`, not yet merged into the bins
        self._busy = False
        self._extend(end)

    @property
    def end(self) -> int:
        """The size of the space in bytes."""
        return self._end + ALIGN

    def allocate(self, nbytes: int) -> int:
        """The address of `nbytes` bytes. Raises OutOfMemoryError, and then nothing has changed."""
        size, address = max(-(-nbytes // ALIGN), 1) * ALIGN, None
        self._busy = True
        try:
            address = self._find(size)
            if address is None:
                self._extend_for(size)
                address = self._find(size)
                if address is None:
                    raise InternalError(f"heap: no block of {size} bytes after growing to {self.end}")
            remaining = self._take(address) - size
            if remaining:
                self._add_free(address + size, remaining)
            self._used[address] = size
            self.allocated += size
        except OutOfMemoryError:
            raise
        except BaseException:  # of a signal's handler
            if address is not None:
                self._used.pop(address, None)
            self._rebuild()
            raise
        finally:
            self._busy = False
            if self._pending_free:
                self._give_back()
        return address

    def reserve(self, nbytes: int) -> None:
        """Grow until `nbytes` are free. Raises OutOfMemoryError, and then nothing has changed."""
        missing = nbytes - sum(self._free.values())
        needed_end = self.end + missing
        if missing > 0:
            if needed_end > self.limit or (reached := self._grow(needed_end)) < needed_end:
                raise OutOfMemoryError(
                    f"reserve {nbytes} bytes: {self.allocated} of {self.end} bytes are in use, and the "
                    f"memory cannot grow to {needed_end} (limit of {self.limit} bytes): free tensors, or use "
                    "smaller ones"
                )
            self._extend(min(reached, self.limit))

    def free(self, address: int) -> None:
        """Free an allocation. Raises InternalError when `address` is not one.

        Safe to call from a finaliser, which may run in the middle of another method: the block is then freed
        after that method.
        """
        self._pending_free.append(address)
        if not self._busy:
            self._give_back()

    def _give_back(self) -> None:
        """Free every block in `_pending_free`."""
        self._busy = True
        try:
            while self._pending_free:
                address = self._pending_free[-1]
                del self._pending_free[-1]
                size = self._used.pop(address, 0)
                if not size:
                    raise InternalError(f"heap: free of {address}, expected the address of a live allocation")
                self.allocated -= size
                self._add_free(address, size)
        except InternalError:
            raise
        except BaseException:
            self._used.pop(address, None)
            self._rebuild()
            raise
        finally:
            self._busy = False

    def _rebuild(self) -> None:
        """Make the free lists anew, of what is not in use: an exception came while they changed."""
        self._free, self._free_by_end, self._bins, self._nonempty = {}, {}, {}, 0
        end = self._start
        for address in sorted(self._used):
            if address > end:
                self._add_free(end, address - end)
            end = address + self._used[address]
        if end < self._end:
            self._add_free(end, self._end - end)
        self.allocated = sum(self._used.values())

    def _find(self, size: int) -> int | None:
        """The free block to take `size` bytes from: the best fit in its own bin, else the oldest of the next
        non-empty bin."""
        own_bin = _bin(size)
        free, best, best_size = self._free, None, 0
        for address in self._bins.get(own_bin, ()):
            block = free[address]
            if block == size:
                return address
            if block > size and (best is None or block < best_size):
                best, best_size = address, block
        if best is not None:
            return best
        larger = self._nonempty >> (own_bin + 1)
        if not larger:
            return None
        return next(iter(self._bins[own_bin + (larger & -larger).bit_length()]))

    def _take(self, address: int) -> int:
        """Remove a block from the free lists; returns its size."""
        size = self._free.pop(address)
        del self._free_by_end[address + size]
        b = _bin(size)
        members = self._bins[b]
        del members[address]
        if not members:
            self._nonempty &= ~(1 << b)
        return size

    def _add_free(self, address: int, size: int) -> None:
        """Add a free block, merged with adjacent free blocks."""
        before = self._free_by_end.get(address)
        if before is not None:
            size += self._take(before)
            address = before
        if address + size in self._free:
            size += self._take(address + size)
        self._free[address] = size
        self._free_by_end[address + size] = address
        b = _bin(size)
        self._bins.setdefault(b, {})[address] = None
        self._nonempty |= 1 << b

    def _extend_for(self, size: int) -> None:
        """Grow until a block of `size` bytes is free at the end: generously or, if that fails, minimally."""
        tail = self._free_by_end.get(self._end, self._end)
        needed_end = tail + size + ALIGN
        for end in (max(needed_end, self.end + max(self.end >> 2, _GROW_STEP)), needed_end):
            end = min(end, self.limit)
            if end >= needed_end and (reached := self._grow(end)) >= needed_end:
                self._extend(min(reached, self.limit))
                return
        raise OutOfMemoryError(
            f"allocate {size} bytes: {self.allocated} of {self.end} bytes are in use, and the memory cannot "
            f"grow to {needed_end} (limit of {self.limit} bytes): "
            "free tensors, or use smaller ones"
        )

    def _extend(self, end: int) -> None:
        """Manage the space up to `end`."""
        end = end // ALIGN * ALIGN - ALIGN
        if end > self._end:
            start, self._end = self._end, end
            self._add_free(start, end - start)
