"""`GPURuntime`: the bookkeeping that GPUs share: a pool of freed memory, and a cache of compiled kernels.

A subclass orders runs and copies, and launches Programs. Knows no driver.
"""

from __future__ import annotations

import functools
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from polygrad.errors import OutOfMemoryError
from polygrad.helpers import LRU
from polygrad.monitor import defer
from polygrad.runtime.interface import Runtime
from polygrad.runtime.memory_pool import MemoryPool
from polygrad.runtime.program import Program

_TEXT_BYTES = 16 << 20  # the most bytes of kernel texts in the cache


def call_when_dropped(owner: object, action: Callable[[], object]) -> None:
    """Call `action` soon after `owner` was destroyed, but not at process exit."""
    weakref.finalize(owner, defer, action).atexit = False


class KernelSource(NamedTuple):
    """A kernel's text in the language of the device; `name` is its entry point, `n_buffers` its pointers."""

    name: str
    text: str
    n_buffers: int


class CompiledKernel:
    """A kernel that the host knows by `number`. Dropping it lets the host forget the kernel."""

    def __init__(self, number: int, forget: Callable[[int], object]) -> None:
        self.number = number
        call_when_dropped(self, functools.partial(forget, number))


class GPURuntime(Runtime):
    """A GPU as a device. `pool` allocates; `forget_kernel` takes the number of a kernel that is not used any
    more."""

    def __init__(self, pool: MemoryPool, forget_kernel: Callable[[int], object]) -> None:
        self._pool, self._forget_kernel = pool, forget_kernel
        self._kernels: LRU[KernelSource, CompiledKernel] = LRU(_TEXT_BYTES)

    @property
    def accelerates(self) -> bool:
        return True

    @property
    def buffer_bytes(self) -> int | None:
        """The greatest size of an allocation, if there is a limit besides the memory's size."""
        return None

    def allocate(self, nbytes: int) -> int:
        self.reserve([nbytes])
        return int(self._pool.allocate(nbytes))

    def reserve(self, sizes: Sequence[int]) -> None:
        nbytes, limit = max(sizes, default=0), self.buffer_bytes
        if limit is not None and self._pool.size_class(max(nbytes, 1)) > limit:
            raise OutOfMemoryError(
                f"device {self.name}: an allocation of {nbytes} bytes: a buffer of the {self.description} has"
                f" at most {limit} bytes: use smaller tensors"
            )

    def free(self, handle: int) -> None:
        self._pool.free(handle)

    def kernels(self, program: Program) -> list[CompiledKernel]:
        """The compiled kernels of a Program. New ones are compiled together. Raises CompileError."""
        sources = [KernelSource(k.name, k.code.decode(), k.n_buffers) for k in program.kernels]
        compiled = {source: self._kernels.get(source) for source in sources}
        missing = [source for source, kernel in compiled.items() if kernel is None]
        for source, number in zip(missing, self._compile(missing) if missing else (), strict=True):
            new_kernel = compiled[source] = CompiledKernel(number, self._forget_kernel)
            self._kernels.put(source, new_kernel, len(source.text))
        return [kernel for source in sources if (kernel := compiled[source]) is not None]

    @abstractmethod
    def _compile(self, sources: Sequence[KernelSource]) -> Iterable[int]:
        """The host's number of each kernel, in order. Raises CompileError."""
