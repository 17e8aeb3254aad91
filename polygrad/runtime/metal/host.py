"""`MetalHost`: all that the METAL device asks of Metal. `metal/native.py` is it on macOS; the tests have one
that runs kernels on the processor.

A host owns one GPU's queue. Memory is shared with this process: what Python writes while no command buffer
uses it the GPU sees, and the other way round. Buffers, pipelines and command buffers are numbers that are
never used again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from polygrad.runtime.grid_calls import Size3


@dataclass(frozen=True)
class MetalGPU:
    """What a GPU says of itself. `buffer_bytes`: the most of a buffer; `invocations`: the most threads of a
    threadgroup, `threadgroup` along each dimension; `shared_bytes`: its memory. `has_matrices`: it has
    simdgroup_matrix; `has_bfloat`: and bfloat."""

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
    for each pointer; behind them come `values`, a 32-bit integer each."""

    pipeline: int
    grid: Size3
    threadgroup: Size3
    bindings: tuple[tuple[int, int], ...]
    values: tuple[int, ...]


@dataclass
class MetalCounters:
    """What a host has made and done since it was opened, for tests and measurements."""

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
        """Give its memory back, once what was committed is done with it."""

    @abstractmethod
    def contents(self, buffer: int) -> memoryview:
        """A buffer's bytes themselves, format 'B'."""

    @abstractmethod
    def compile(self, name: str, text: str) -> int:
        """A pipeline of the kernel `name`. Raises CompileError with what the compiler says."""

    @abstractmethod
    def drop_pipeline(self, pipeline: int) -> None:
        """Forget a pipeline."""

    @abstractmethod
    def commit(self, dispatches: Sequence[MetalDispatch]) -> int:
        """Have the GPU carry out dispatches, one after the other, as one command buffer behind those before;
        its number. Does not wait. Raises DeviceError for a dispatch that Metal refuses."""

    @abstractmethod
    def wait(self, command_buffer: int) -> float:
        """Wait until a command buffer is done; the seconds that the GPU took for it. Raises DeviceError for
        what went wrong in it."""

    @abstractmethod
    def forget(self, command_buffer: int) -> None:
        """Nobody will wait for a command buffer any more."""
