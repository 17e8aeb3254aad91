"""`ShardedBuffer`: memory on several devices with one array, in equal parts or in copies.

It can be used like a `Buffer`. Only code that reads or writes whole Buffers needs to know about the parts.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from polygrad.dtype import DType
from polygrad.errors import DeviceError, InternalError
from polygrad.helpers import prod
from polygrad.runtime.buffer import Allocation, Buffer
from polygrad.runtime.interface import Handle


class ShardedAllocation(Allocation):
    """Several Allocations, the `parts`, as one. Its version counts the writes that all parts have made."""

    def __init__(self, parts: Sequence[Allocation]) -> None:
        self.parts = tuple(parts)
        super().__init__(parts[0].runtime, sum(p.nbytes for p in parts))
        for part in parts:
            part.whole = weakref.ref(self)

    @property
    def is_allocated(self) -> bool:
        return all(p.is_allocated for p in self.parts)

    @property
    def handle(self) -> Handle:
        raise InternalError("sharded memory: only its parts have handles")

    @property
    def is_damaged(self) -> bool:
        return any(part.is_damaged for part in self.parts)

    def damage(self, reason: str) -> None:
        for part in self.parts:
            part.damage(reason)

    def repair(self) -> None:
        for part in self.parts:
            part.repair()


class ShardedBuffer(Buffer):
    """An array of `shape` in `parts`, each on its own device: the parts along `axis`, in order, or with None
    a copy of all elements each."""

    __slots__ = ("_parts", "_shape", "axis")

    def __init__(
        self,
        parts: Sequence[Buffer],
        shape: tuple[int, ...],
        axis: int | None,
        allocation: Allocation | None = None,
    ) -> None:
        if allocation is None:
            allocation = ShardedAllocation([b.allocation for b in parts])
        shape = shape or (1,)
        super().__init__(parts[0].runtime, prod(shape), parts[0].dtype, allocation)
        self._parts, self._shape, self.axis = tuple(parts), shape, axis

    def __repr__(self) -> str:
        how = "copies" if self.axis is None else f"parts along axis {self.axis}"
        return f"ShardedBuffer({', '.join(self.device)}, {self._shape} x {self.dtype}, {how})"

    @staticmethod
    def empty(
        runtimes: Sequence[Any], shape: tuple[int, ...], axis: int | None, dtype: DType
    ) -> ShardedBuffer:
        """Memory for an array of `shape`, whose `axis` the number of devices divides."""
        size = prod(shape) // (1 if axis is None else len(runtimes))
        return ShardedBuffer([Buffer(runtime, size, dtype) for runtime in runtimes], shape, axis)

    @property
    def device(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple([part.device for part in self._parts])

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def parts(self) -> tuple[Buffer, ...]:
        return self._parts

    def alias(self) -> ShardedBuffer:
        return self._with([part.alias() for part in self._parts], self.allocation)

    def like(self) -> ShardedBuffer:
        return self._with([part.like() for part in self._parts])

    def borrow(self) -> ShardedBuffer:
        return self._with([part.borrow() for part in self._parts])

    def _with(self, parts: Sequence[Buffer], allocation: Allocation | None = None) -> ShardedBuffer:
        return ShardedBuffer(parts, self._shape, self.axis, allocation)

    def copy_from(self, source: Buffer) -> None:
        for part, other in zip(self._parts, source.parts, strict=True):
            part.copy_from(other)

    def write(self, data: memoryview) -> None:
        raise self._access_error("written")

    def read(self) -> memoryview:
        raise self._access_error("read")

    def view(self) -> memoryview:
        raise self._access_error("viewed")

    def _access_error(self, what: str) -> DeviceError:
        return DeviceError(
            f"memory on {', '.join(self.device)}: a sharded array cannot be {what}: copy it to one device "
            "with to()"
        )
