"""A pool of freed memory. Fresh memory, from a driver or from the system, costs more than most launches.

Sizes are rounded up to size classes, a few for each power of two. Knows no device: `create` allocates memory,
a number or an object, and `destroy` frees it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from polygrad.errors import OutOfMemoryError
from polygrad.helpers import round_up


class MemoryPool:
    """`create(nbytes)` raises OutOfMemoryError. `limit`: the most bytes of freed memory in the pool.
    `classes`: the number of size classes for each power of two, itself a power of two.

    `live`: the size of each piece of memory in use. `kept`: freed memory by size, the least used size first.
    """

    def __init__(
        self,
        create: Callable[[int], Any],
        destroy: Callable[[Any], object],
        alignment: int,
        limit: int,
        classes: int = 4,
    ) -> None:
        self._create, self._destroy = create, destroy
        self._alignment, self._class_bits, self.limit = alignment, classes.bit_length(), limit
        self.live: dict[Any, int] = {}
        self.kept: OrderedDict[int, list[Any]] = OrderedDict()
        self.kept_bytes = 0

    def size_class(self, nbytes: int) -> int:
        """The size of the memory for `nbytes`."""
        return round_up(
            nbytes, max(self._alignment, 1 << max((nbytes - 1).bit_length() - self._class_bits, 0))
        )

    def allocate(self, nbytes: int) -> Any:
        """Memory of at least `nbytes`. Raises OutOfMemoryError if there is none, even after all pooled memory
        was freed."""
        size = self.size_class(nbytes)
        free_list = self.kept.get(size)
        if free_list:
            self.kept.move_to_end(size)
            memory = free_list[-1]  # no calls from here: a signal's handler comes before or after
            del free_list[-1]
            self.kept_bytes -= size
        else:
            try:
                memory = self._create(size)
            except OutOfMemoryError:
                if not self.kept_bytes:
                    raise
                self.trim(0)
                memory = self._create(size)
        self.live[memory] = size
        return memory

    def free(self, memory: Any) -> None:
        """Return memory to the pool, or free it if it is larger than the limit."""
        size = self.live[memory]
        if size > self.limit:
            del self.live[memory]
            self._destroy(memory)
            return
        free_list = self.kept.setdefault(size, [])
        free_list += [memory]
        del self.live[memory]
        self.kept_bytes += size
        if self.kept_bytes > self.limit:
            self.trim(self.limit // 2)

    def trim(self, limit: int) -> None:
        """Free pooled memory until no more than `limit` bytes remain."""
        while self.kept_bytes > limit:
            size, free_list = next(iter(self.kept.items()))
            while free_list and self.kept_bytes > limit:
                memory = free_list[-1]
                del free_list[-1]
                self.kept_bytes -= size
                self._destroy(memory)
            if not free_list:
                del self.kept[size]
