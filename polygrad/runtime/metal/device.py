"""`MetalRuntime`: Apple's GPUs. Kernels are text in the Metal Shading Language, which the driver compiles.

Memory is shared between the GPU and Python, so reads and writes are copies by the processor, which first
wait for the last command buffer that uses the memory. A run of a Program is one command buffer; nothing waits
for it here.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence

from polygrad.errors import DeviceError
from polygrad.runtime.gpu import GPURuntime, KernelSource
from polygrad.runtime.grid_calls import GridCalls
from polygrad.runtime.interface import Executable
from polygrad.runtime.memory_pool import MemoryPool
from polygrad.runtime.metal.host import MetalDispatch, MetalHost
from polygrad.runtime.program import Program

ALIGNMENT = 256  # of the offsets at which buffers are bound
_KEPT_BYTES = 256 << 20  # the most bytes of freed memory in the pool: the processor uses the same memory
_MAX_UNWAITED = 64  # command buffers in flight


def default_host() -> MetalHost:
    """Open the system's GPU. Raises DeviceError on other systems than macOS, ImportError without the
    package."""
    platform: str = sys.platform
    if platform != "darwin":
        raise DeviceError(f"device METAL: expected macOS, got {platform}: use CUDA, WEBGPU or CPU")
    host: MetalHost = importlib.import_module("polygrad.runtime.metal.native").open_host()
    return host


class MetalRuntime(GPURuntime):
    """A GPU as a device."""

    name = "METAL"

    def __init__(self, host: MetalHost) -> None:
        pool = MemoryPool(host.create_buffer, self._destroy, ALIGNMENT, _KEPT_BYTES)
        super().__init__(pool, host.drop_pipeline)
        self.host = host
        self._last_use: dict[int, int] = {}  # by buffer, the last command buffer that uses it
        self._unwaited: dict[int, None] = {}  # command buffers, oldest first

    @property
    def description(self) -> str:
        return f"GPU {self.host.gpu.name}"

    @property
    def buffer_bytes(self) -> int:
        return self.host.gpu.buffer_bytes

    # --- memory

    def _destroy(self, buffer: int) -> None:
        self._last_use.pop(buffer, None)
        self.host.destroy_buffer(buffer)

    def write(self, handle: int, offset: int, data: memoryview) -> None:
        self._wait_for(handle)
        self.host.contents(handle)[offset : offset + len(data)] = data

    def read(self, handle: int, offset: int, nbytes: int) -> memoryview:
        self._wait_for(handle)
        return memoryview(bytearray(self.host.contents(handle)[offset : offset + nbytes]))

    def _wait_for(self, handle: int) -> None:
        last_use = self._last_use.pop(handle, None)
        if last_use is not None:
            self.wait(last_use)

    def wait(self, command_buffer: int) -> float:
        """Wait for a command buffer and all earlier ones. Returns its time in seconds, 0 if it was waited for
        before. Raises DeviceError for an error in any of them."""
        seconds = 0.0
        while command_buffer in self._unwaited:
            oldest = next(iter(self._unwaited))
            del self._unwaited[oldest]
            try:
                seconds = self.host.wait(oldest)
            finally:
                self.host.forget(oldest)
        return seconds

    # --- Programs

    def load(self, program: Program) -> Executable:
        """Raises ProgramError for another device's Program, CompileError for a kernel that is wrong."""
        program.require(self.name, "msl")
        return MetalExecutable(self, program)

    def _compile(self, sources: Sequence[KernelSource]) -> Iterator[int]:
        return (self.host.compile(source.name, source.text) for source in sources)

    def commit(self, dispatches: Sequence[MetalDispatch], handles: Sequence[int]) -> int:
        """Commit dispatches that use these allocations, as one command buffer."""
        while len(self._unwaited) >= _MAX_UNWAITED:
            self.wait(next(iter(self._unwaited)))
        number = self.host.commit(dispatches)
        self._unwaited[number] = None
        self._last_use.update(dict.fromkeys(handles, number))
        return number


class MetalExecutable(Executable):
    """A Program as a list of dispatches."""

    def __init__(self, runtime: MetalRuntime, program: Program) -> None:
        self._runtime = runtime
        self._kernels = runtime.kernels(program)
        self._calls = GridCalls(program)
        self._dispatches: list[MetalDispatch] = []

    def run(self, buffers: Sequence[int | None], arena: int | None, variables: Mapping[str, int]) -> None:
        self._commit(buffers, arena, variables)

    def measure(
        self, buffers: Sequence[int | None], arena: int | None, variables: Mapping[str, int]
    ) -> float:
        """The time by the GPU's clock."""
        number = self._commit(buffers, arena, variables)
        return 0.0 if number is None else self._runtime.wait(number)

    def _commit(
        self, buffers: Sequence[int | None], arena: int | None, variables: Mapping[str, int]
    ) -> int | None:
        """Commit a run; returns the command buffer's number, or None if there is nothing to launch."""
        if self._calls.bind(buffers, arena, variables):
            self._dispatches = [
                MetalDispatch(self._kernels[c.kernel].number, c.grid, c.workgroup, c.places, c.values)
                for c in self._calls.calls
                if 0 not in c.grid
            ]
        if not self._dispatches:
            return None
        return self._runtime.commit(self._dispatches, [h for h in (*buffers, arena) if h])
