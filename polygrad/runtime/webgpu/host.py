"""`WebGPUHost`: all that the WEBGPU device asks of an implementation of WebGPU. One file per implementation
beside this.

A host owns one GPUDevice. It knows no Programs and no allocation: buffers and pipelines are numbers that are
never used again, steps are plain data. Words are those of the WebGPU specification. A lost device makes
every call raise DeviceError, but for `destroy_buffer` and `drop`.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from polygrad.runtime.gpu import KernelSource

WORD = "I"  # the array code of a 32-bit number
ALIGNMENT = 256  # of what a binding starts at
numbers = itertools.count(1)  # of all hosts together: what another device had is no buffer of this one's
COPY_ALIGNMENT = 4  # of the offsets and sizes of reads and writes
FLOAT16, SUBGROUPS, TIMESTAMPS = "shader-f16", "subgroups", "timestamp-query"
FEATURES = (FLOAT16, SUBGROUPS, TIMESTAMPS)  # those that a device is opened with, where the adapter has them


@dataclass(frozen=True)
class Adapter:
    """What a GPU says of itself. `software`: it is a processor that does a GPU's work.

    The limits are those of GPUSupportedLimits: the storage buffers of a kernel, bytes of a buffer and of a
    binding, workgroups along a dimension of the grid, invocations and bytes of a workgroup. `features`: those
    of WebGPU's optional features that the device was opened with. `subgroup`: how many invocations all
    subgroups have, where kernels may exchange values in them; else 0.
    """

    name: str
    software: bool
    features: frozenset[str]
    storage_buffers: int
    buffer_bytes: int
    binding_bytes: int
    workgroups: int
    invocations: int
    shared_bytes: int
    subgroup: int = 0


@dataclass(frozen=True)
class Range:
    """`nbytes` from byte `offset` of the buffer in entry `entry` of a run's table."""

    entry: int
    offset: int
    nbytes: int


@dataclass(frozen=True)
class Dispatch:
    """A grid of workgroups of a pipeline. `uniform`: what the uniform buffer's binding is.

    `grid`: the place of its three numbers among the grid words of a run.
    """

    pipeline: int
    bindings: tuple[Range, ...]
    uniform: Range
    grid: int


@dataclass(frozen=True)
class Copy:
    """Bytes of one buffer copied to another, of the same size."""

    source: Range
    target: Range


Step = Dispatch | Copy


@dataclass
class WebGPUCounters:
    """What a host has made and done since it was opened, for tests and measurements."""

    buffers: int = 0
    pipelines: int = 0
    bind_groups: int = 0
    submits: int = 0
    dispatches: int = 0
    reads: int = 0


class WebGPUHost(ABC):
    """One GPUDevice."""

    adapter: Adapter

    @property
    @abstractmethod
    def lost(self) -> str:
        """Why the device is lost; empty while it is not."""

    @property
    @abstractmethod
    def counters(self) -> WebGPUCounters:
        """What was made and done so far."""

    @abstractmethod
    def create_buffer(self, nbytes: int) -> int:
        """A buffer of `nbytes`, a multiple of `COPY_ALIGNMENT`. Raises OutOfMemoryError."""

    @abstractmethod
    def destroy_buffer(self, buffer: int) -> None:
        """Give its memory back, once what was submitted is done with it."""

    @abstractmethod
    def write(self, buffer: int, offset: int, data: memoryview) -> None:
        """Copy `data` (contiguous, format 'B') to byte `offset`; both are multiples of `COPY_ALIGNMENT`."""

    @abstractmethod
    def read(self, buffer: int, offset: int, nbytes: int) -> memoryview:
        """A writable copy of bytes, format 'B', when all that was submitted is done. Raises DeviceError where
        this cannot be waited for, and what went wrong on the device since the last read."""

    @abstractmethod
    async def read_async(self, buffer: int, offset: int, nbytes: int) -> memoryview:
        """The same, awaited."""

    @abstractmethod
    def compile(self, sources: Sequence[KernelSource]) -> list[int]:
        """A pipeline for each, with storage buffers at the bindings 0, 1, ... of group 0, all `read_write`,
        and a uniform buffer after them. They are compiled together. Raises CompileError with the line."""

    @abstractmethod
    def drop_pipeline(self, pipeline: int) -> None:
        """Forget a pipeline."""

    @abstractmethod
    def prepare(self, steps: Sequence[Step]) -> int:
        """A list of steps made ready to be submitted many times; its number."""

    @abstractmethod
    def drop(self, commands: int) -> None:
        """Forget a list of steps."""

    @abstractmethod
    def submit(self, commands: int, table: array[int], grids: array[int]) -> None:
        """Carry out the steps in order, in one submit, with the buffers of `table`. Does not wait."""

    @abstractmethod
    def submit_again(self, commands: int) -> None:
        """The same with the table and the grids of its last `submit`."""

    @abstractmethod
    def measure(self, commands: int, table: array[int], grids: array[int]) -> float:
        """`submit`, and wait until the steps are done: the seconds that they took. By the GPU's clock where
        the adapter has timestamp queries, else until the answer was here. Raises as `read` does."""

    @abstractmethod
    def close(self) -> None:
        """Destroy the device and all that it holds."""
