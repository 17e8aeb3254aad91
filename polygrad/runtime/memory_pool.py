"""Freed device memory, kept to be used again: taking memory from a driver takes longer than most launches.

Sizes come in four classes to a power of two. Knows no device: memory is what `create` gives, a number or an
object that `destroy` takes back.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from polygrad.errors import OutOfMemoryError
from polygrad.helpers import round_up


class MemoryPool:
    """`create(nbytes)` raises OutOfMemoryError; `kept_bytes`: of freed memory kept, at most."""

    def __init__(
        self, create: Callable[[int], Any], destroy: Callable[[Any], None], alignment: int, kept_bytes: int
    ) -> None:
        self._create, self._destroy = create, destroy
        self._alignment, self._limit = alignment, kept_bytes
        self._sizes: dict[Any, int] = {}  # of live memory
        self._kept: OrderedDict[int, list[Any]] = OrderedDict()  # freed memory by size, least used size first
        self.kept_bytes = 0

    def size_class(self, nbytes: int) -> int:
        """How much is taken for `nbytes`."""
        return round_up(nbytes, max(self._alignment, 1 << max((nbytes - 1).bit_length() - 3, 0)))

    def allocate(self, nbytes: int) -> Any:
        """Memory of at least `nbytes`. Raises OutOfMemoryError when there is none, also without what is
        kept."""
        size = self.size_class(nbytes)
        kept = self._kept.get(size)
        if kept:
            memory = kept.pop()
            self.kept_bytes -= size
            self._kept.move_to_end(size)
        else:
            try:
                memory = self._create(size)
            except OutOfMemoryError:
                if not self.kept_bytes:
                    raise
                self.trim(0)
                memory = self._create(size)
        self._sizes[memory] = size
        return memory

    def free(self, memory: Any) -> None:
        size = self._sizes.pop(memory)
        self._kept.setdefault(size, []).append(memory)
        self.kept_bytes += size
        if self.kept_bytes > self._limit:
            self.trim(self._limit // 2)

    def trim(self, limit: int) -> None:
        """Give kept memory back until no more than `limit` bytes are kept."""
        while self.kept_bytes > limit:
            size, kept = next(iter(self._kept.items()))
            while kept and self.kept_bytes > limit:
                self._destroy(kept.pop())
                self.kept_bytes -= size
            if not kept:
                del self._kept[size]
