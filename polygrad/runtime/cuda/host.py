"""`CUDAHost`: the driver interface of the CUDA device. `cuda/native.py` implements it with NVIDIA's driver;
the tests have an implementation that runs kernels on the processor.

A host owns one GPU's context and two streams: COMPUTE runs kernels and reads, COPY brings data to the GPU
meanwhile. Work of one stream goes in order; events say where the other has to wait. Pointers are addresses on
the device; modules, functions, events and graphs are numbers that are never used again. It knows no Programs
and no allocation strategy. After an error that makes the context unusable, every call raises DeviceError,
except calls that release something.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

COMPUTE, COPY = 0, 1  # streams

Size3 = tuple[int, int, int]


@dataclass(frozen=True)
class GPU:
    """The properties of a GPU.

    `capability`: the compute capability, major and minor. `invocations`: the most threads of a block.
    `block`, `grid`: the most along each dimension. `shared_bytes`: the most shared memory of a block.
    """

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    memory_bytes: int
    shared_bytes: int = 48 << 10
    invocations: int = 1024
    block: Size3 = (1024, 1024, 64)
    grid: Size3 = ((1 << 31) - 1, 65_535, 65_535)
    warp: int = 32

    @property
    def architecture(self) -> str:
        """The compilers' name of the architecture, as sm_90."""
        major, minor = self.capability
        return f"sm_{major}{minor}"


class KernelLaunch(NamedTuple):
    """A function on a grid: pointers, then 32-bit integers. A grid with a 0 does nothing."""

    function: int
    grid: Size3
    block: Size3
    pointers: tuple[int, ...]
    values: tuple[int, ...]


class Pinned(NamedTuple):
    """Page-locked memory of this process, which the GPU accesses directly."""

    address: int
    memory: memoryview  # format 'B'


@dataclass
class CUDACounters:
    """Counts of a host's objects and operations since it was opened, for tests and measurements."""

    allocations: int = 0
    modules: int = 0
    launches: int = 0
    graphs: int = 0
    graph_launches: int = 0
    updates: int = 0
    copies: int = 0


class CUDAHost(ABC):
    """One GPU's context."""

    gpu: GPU
    counters: CUDACounters

    @property
    @abstractmethod
    def lost(self) -> str:
        """Why the context cannot be used any more; empty while it can."""

    @abstractmethod
    def close(self) -> None:
        """Release the context and everything in it."""

    # --- memory

    @abstractmethod
    def allocate(self, nbytes: int) -> int:
        """Device memory, 256-byte aligned. Raises OutOfMemoryError."""

    @abstractmethod
    def free(self, pointer: int) -> None:
        """Free device memory after all submitted work."""

    @abstractmethod
    def pin(self, nbytes: int) -> Pinned:
        """Pinned memory, which lives as long as the host. Raises OutOfMemoryError."""

    @abstractmethod
    def copy_in(self, pointer: int, address: int, nbytes: int, stream: int) -> None:
        """Have a stream copy pinned memory to the device."""

    @abstractmethod
    def copy_out(self, address: int, pointer: int, nbytes: int, stream: int) -> None:
        """Have a stream copy device memory to pinned memory."""

    # --- events

    @abstractmethod
    def create_event(self) -> int:
        """An event. Until it is recorded, it counts as completed."""

    @abstractmethod
    def drop_event(self, event: int) -> None:
        """Destroy an event."""

    @abstractmethod
    def record(self, event: int, stream: int) -> None:
        """Record an event, which completes when all work enqueued on the stream so far is done."""

    @abstractmethod
    def wait(self, stream: int, event: int) -> None:
        """Make all work enqueued on a stream from now on wait for an event."""

    @abstractmethod
    def synchronize(self, event: int) -> None:
        """Block until the event has completed. Raises DeviceError for errors on the device."""

    @abstractmethod
    def seconds(self, start: int, stop: int) -> float:
        """The time between two completed events."""

    # --- kernels

    @abstractmethod
    def load(self, code: bytes, name: str, shared_bytes: int = 0) -> int:
        """The function `name` of compiled code (a cubin). `shared_bytes`: of the shared memory that a block
        has when it is launched, beside what the code declares. Raises CompileError."""

    @abstractmethod
    def unload(self, function: int) -> None:
        """Unload a function and its code."""

    @abstractmethod
    def launch(self, call: KernelLaunch, stream: int) -> None:
        """Have a stream run a kernel. Raises DeviceError for a launch that the driver refuses."""

    @abstractmethod
    def create_graph(self, calls: Sequence[KernelLaunch]) -> int:
        """A graph of kernels in sequence, which can be launched many times."""

    @abstractmethod
    def update(self, graph: int, position: int, call: KernelLaunch) -> None:
        """Change the grid, pointers and values of a kernel in a graph, for later launches."""

    @abstractmethod
    def launch_graph(self, graph: int, stream: int) -> None:
        """Have a stream run a graph, by one call."""

    @abstractmethod
    def drop_graph(self, graph: int) -> None:
        """Destroy a graph."""
