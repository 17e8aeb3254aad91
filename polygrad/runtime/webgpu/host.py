"""`WebGPUHost`: the interface of the WEBGPU device to an implementation of WebGPU. Each implementation has a
file beside this.

A host owns one GPUDevice. It knows no Programs and no allocation: buffers and pipelines are numbers that are
never reused, steps are plain data. Terms are those of the WebGPU specification. If the device is lost, every
call except `destroy_buffer` and `drop` raises DeviceError.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from polygrad.runtime.gpu import KernelSource

WORD = "I"  # the array code of a 32-bit number
ALIGNMENT = 256  # of the offset of a binding
numbers = itertools.count(1)  # shared by all hosts, so that a handle of one device is invalid in another
COPY_ALIGNMENT = 4  # of the offsets and sizes of reads and writes
FLOAT16, SUBGROUPS, TIMESTAMPS = "shader-f16", "subgroups", "timestamp-query"
FEATURES = (FLOAT16, SUBGROUPS, TIMESTAMPS)  # requested when a device is opened, if the adapter has them


@dataclass(frozen=True)
class Adapter:
    """The properties of a GPU. `software`: whether it is emulated on a processor.

    The limits are those of GPUSupportedLimits: the storage buffers of a kernel, bytes of a buffer and of a
    binding, workgroups along a dimension of the grid, invocations and bytes of a workgroup. `features`: the
    optional WebGPU features that the device was opened with. `subgroup`: the size of all subgroups, if
    kernels may exchange values in them; else 0.
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
    """A grid of workgroups of a pipeline. `uniform`: the binding of the uniform buffer.

    `grid`: the position of its three numbers among the grid words of a run.
    """

    pipeline: int
    bindings: tuple[Range, ...]
    uniform: Range
    grid: int


@dataclass(frozen=True)
class Copy:
    """A copy of bytes from one range to another of the same size."""

    source: Range
    target: Range


Step = Dispatch | Copy


@dataclass
class WebGPUCounters:
    """Counts of a host's objects and operations since it was opened, for tests and measurements."""

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
        """The counts so far."""

    @abstractmethod
    def create_buffer(self, nbytes: int) -> int:
        """A buffer of `nbytes`, a multiple of `COPY_ALIGNMENT`. Raises OutOfMemoryError."""

    @abstractmethod
    def destroy_buffer(self, buffer: int) -> None:
        """Free a buffer after all submitted work."""

    @abstractmethod
    def write(self, buffer: int, offset: int, data: memoryview) -> None:
        """Copy `data` (contiguous, format 'B') to byte `offset`; both are multiples of `COPY_ALIGNMENT`."""

    @abstractmethod
    def read(self, buffer: int, offset: int, nbytes: int) -> memoryview:
        """Wait for all submitted work, and return a writable copy of bytes, format 'B'. Raises DeviceError
        where waiting is impossible, and errors that occurred on the device since the last read."""

    @abstractmethod
    async def read_async(self, buffer: int, offset: int, nbytes: int) -> memoryview:
        """`read`, awaitable."""

    @abstractmethod
    def compile(self, sources: Sequence[KernelSource]) -> list[int]:
        """A pipeline for each source, with storage buffers at the bindings 0, 1, ... of group 0, all
        `read_write`, and a uniform buffer after them. They are compiled together. Raises CompileError, which
        has the line."""

    @abstractmethod
    def drop_pipeline(self, pipeline: int) -> None:
        """Release a pipeline."""

    @abstractmethod
    def prepare(self, steps: Sequence[Step]) -> int:
        """Prepare a list of steps to be submitted many times; returns its number."""

    @abstractmethod
    def drop(self, commands: int) -> None:
        """Release a list of steps."""

    @abstractmethod
    def submit(self, commands: int, table: array[int], grids: array[int]) -> None:
        """Submit the steps, in order and at once, with the buffers of `table`. Does not wait."""

    @abstractmethod
    def resubmit(self, commands: int) -> None:
        """`submit` with the table and the grids of the last `submit`."""

    @abstractmethod
    def measure(self, commands: int, table: array[int], grids: array[int]) -> float:
        """`submit`, and wait until the steps are done; returns their time in seconds. It is measured by the
        GPU's clock, if the adapter has timestamp queries, else until the answer arrived. Raises the errors of
        `read`."""

    @abstractmethod
    def close(self) -> None:
        """Destroy the device and everything that it owns."""
