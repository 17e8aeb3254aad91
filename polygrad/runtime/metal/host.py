"""`MetalHost`: the interface of the METAL device to Metal. `metal/native.py` implements it on macOS; the
tests have an implementation that runs kernels on the processor.

A host owns one GPU's queue. Memory is shared with this process: the GPU and Python see each other's writes,
as long as no command buffer uses the memory during Python's access. Buffers, pipelines and command buffers
are numbers that are never reused.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from polygrad.runtime.grid_calls import Size3


@dataclass(frozen=True)
class MetalGPU:
    """The properties of a GPU. `buffer_bytes`: the most bytes of a buffer. `invocations`: the most threads of
    a threadgroup; `threadgroup`: the most along each dimension; `shared_bytes`: the memory of a threadgroup.
    `has_matrices`: whether it has simdgroup_matrix; `has_bfloat`: whether it has bfloat."""

    name: str
    buffer_bytes: int
    shared_bytes: int = 32 << 10
    invocations: int = 1024
    threadgroup: Size3 = (1024, 1024, 1024)
    simdgroup: int = 32
    has_matrices: bool = True
    has_bfloat: bool = True


class MetalDispatch(NamedTuple):
    """A pipeline on a grid of threadgroups, none of whose sizes is 0. `bindings`: a buffer and a byte offset
    for each pointer. `values`: 32-bit integers, bound after the pointers."""

    pipeline: int
    grid: Size3
    threadgroup: Size3
    bindings: tuple[tuple[int, int], ...]
    values: tuple[int, ...]


@dataclass
class MetalCounters:
    """Counts of a host's objects and operations since it was opened, for tests and measurements."""

    buffers: int = 0
    pipelines: int = 0
    command_buffers: int = 0
    dispatches: int = 0


class MetalHost(ABC):
    """One GPU's queue."""

    gpu: MetalGPU
    counters: MetalCounters

    @abstractmethod
    def create_buffer(self, nbytes: int) -> int:
        """A buffer. Raises OutOfMemoryError."""

    @abstractmethod
    def destroy_buffer(self, buffer: int) -> None:
        """Free a buffer after all committed work."""

    @abstractmethod
    def contents(self, buffer: int) -> memoryview:
        """The memory of a buffer, without a copy, format 'B'."""

    @abstractmethod
    def compile(self, name: str, text: str) -> int:
        """A pipeline of the kernel `name`. Raises CompileError with the compiler's message."""

    @abstractmethod
    def drop_pipeline(self, pipeline: int) -> None:
        """Release a pipeline."""

    @abstractmethod
    def commit(self, dispatches: Sequence[MetalDispatch]) -> int:
        """Commit dispatches, in sequence, as one command buffer after all earlier ones; returns its number.
        Does not wait. Raises DeviceError for a dispatch that Metal refuses."""

    @abstractmethod
    def wait(self, command_buffer: int) -> float:
        """Wait until a command buffer is done; returns the seconds that the GPU took. Raises DeviceError for
        errors in it."""

    @abstractmethod
    def forget(self, command_buffer: int) -> None:
        """Release a command buffer that nobody will wait for."""
