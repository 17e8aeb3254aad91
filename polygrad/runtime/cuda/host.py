"""`CUDAHost`: all that the CUDA device asks of a driver. `cuda/native.py` is it on NVIDIA's; the tests have
one that runs kernels on the processor.

A host owns one GPU's context and two streams: COMPUTE runs kernels and reads, COPY brings data to the GPU
meanwhile. Work of one stream goes in order; events say where the other has to wait. Pointers are addresses on
the device; modules, functions, events and graphs are numbers that are never used again. It knows no Programs
and no allocation strategy. An error that leaves the context unusable makes every later call raise
DeviceError, but for those that give something back.
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
    """What a GPU says of itself.

    `capability`: the compute capability, major and minor. `invocations`: the most threads of a block,
    `block` and `grid`: the most along each dimension. `shared_bytes`: what a block may declare.
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
        """As compilers call it: sm_90."""
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
    """Memory of this process that the GPU copies from and to by itself."""

    address: int
    memory: memoryview  # format 'B'


@dataclass
class CUDACounters:
    """What a host has made and done since it was opened, for tests and measurements."""

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
        """Give back the context and all that is in it."""

    # --- memory

    @abstractmethod
    def allocate(self, nbytes: int) -> int:
        """Device memory, 256-byte aligned. Raises OutOfMemoryError."""

    @abstractmethod
    def free(self, pointer: int) -> None:
        """Give device memory back, when what was submitted is done with it."""

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
        """An event, which has happened as long as it was not recorded."""

    @abstractmethod
    def drop_event(self, event: int) -> None:
        """Forget an event."""

    @abstractmethod
    def record(self, event: int, stream: int) -> None:
        """The event happens when a stream has done what it was given so far."""

    @abstractmethod
    def wait(self, stream: int, event: int) -> None:
        """A stream does nothing that it is given from now on until the event has happened."""

    @abstractmethod
    def synchronize(self, event: int) -> None:
        """Wait until the event has happened. Raises DeviceError for what went wrong on the device."""

    @abstractmethod
    def seconds(self, start: int, stop: int) -> float:
        """The time between two events that have happened."""

    # --- kernels

    @abstractmethod
    def load(self, code: bytes, name: str) -> int:
        """The function `name` of compiled code (a cubin). Raises CompileError."""

    @abstractmethod
    def unload(self, function: int) -> None:
        """Forget a function and its code."""

    @abstractmethod
    def launch(self, call: KernelLaunch, stream: int) -> None:
        """Have a stream run a kernel. Raises DeviceError for a launch that the driver refuses."""

    @abstractmethod
    def create_graph(self, calls: Sequence[KernelLaunch]) -> int:
        """A graph of kernels, one after the other, ready to be launched many times."""

    @abstractmethod
    def update(self, graph: int, position: int, call: KernelLaunch) -> None:
        """Change a kernel's grid, pointers and values in a graph, for launches from now on."""

    @abstractmethod
    def launch_graph(self, graph: int, stream: int) -> None:
        """Have a stream run a graph, by one call."""

    @abstractmethod
    def drop_graph(self, graph: int) -> None:
        """Forget a graph."""
