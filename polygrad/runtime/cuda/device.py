"""`CUDARuntime`: NVIDIA's GPUs. Kernels are CUDA C++; the caller passes a compiler for them.

There are two streams. Written data goes through pinned memory on COPY, so that a batch arrives while the
previous step is computed. Kernels and reads are on COMPUTE. COPY waits for the last run that used the memory;
COMPUTE waits for the copies. Only a read makes the processor wait for the GPU.

The first run of a Program launches kernel by kernel. The second makes a graph of them, which one call
launches. Where a buffer or a Variable has changed, the nodes of its kernels are updated.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from polygrad.background import compilers
from polygrad.errors import PolygradError
from polygrad.runtime.cuda.host import COMPUTE, COPY, CUDAHost, KernelLaunch, Pinned
from polygrad.runtime.gpu import GPURuntime, KernelSource, call_when_dropped
from polygrad.runtime.grid_calls import GridCall, GridCalls
from polygrad.runtime.interface import Executable
from polygrad.runtime.memory_pool import MemoryPool
from polygrad.runtime.program import Program

ALIGNMENT = 256  # of a driver's allocations
_KEPT_BYTES = 1 << 30  # the most bytes of freed memory in the pool
_STAGING_BYTES, _STAGINGS = 4 << 20, 4  # pinned memory that copies go through, in turn
_SHARED_MEMORY = re.compile(
    r"extern __shared__ .*\[\];  // (\d+) bytes"
)  # as renderer/cstyle/cuda.py writes it
_FENCES = 16  # the number of recent runs that copies can wait for individually


class _Staging(NamedTuple):
    """Pinned memory, and the event of the last copy through it."""

    pinned: Pinned
    event: int


class CUDARuntime(GPURuntime):
    """A GPU as a device. `compile`: a kernel's CUDA C++ to code for this GPU; raises CompileError."""

    name = "CUDA"

    def __init__(self, host: CUDAHost, compile: Callable[[str], bytes]) -> None:
        super().__init__(MemoryPool(host.allocate, self._destroy, ALIGNMENT, _KEPT_BYTES), host.unload)
        self.host, self._to_code = host, compile
        self._stagings: deque[_Staging] = deque()  # in the order of their last copies
        self._fences = [host.create_event() for _ in range(_FENCES)]  # run n uses event n % _FENCES
        self._runs = 0
        self._last_run: dict[int, int] = {}  # by allocation, the last run that used it
        self._copied = host.create_event()
        self._copying = False  # whether there were copies since COMPUTE last waited for COPY

    @property
    def lost(self) -> bool:
        return bool(self.host.lost)

    @property
    def description(self) -> str:
        gpu = self.host.gpu
        return f"GPU {gpu.name} ({gpu.architecture}, {gpu.multiprocessors} multiprocessors)"

    def _destroy(self, pointer: int) -> None:
        self._last_run.pop(pointer, None)
        self.host.free(pointer)

    def write(self, handle: int, offset: int, data: memoryview) -> None:
        host = self.host
        run = self._last_run.get(handle)
        if run is not None:
            host.wait(COPY, self._fence(run))
        for start in range(0, len(data), _STAGING_BYTES):
            part = data[start : start + _STAGING_BYTES]
            staging = self._staging()
            staging.pinned.memory[: len(part)] = part
            host.copy_in(handle + offset + start, staging.pinned.address, len(part), COPY)
            host.record(staging.event, COPY)
        host.record(self._copied, COPY)
        self._copying = True

    def read(self, handle: int, offset: int, nbytes: int) -> memoryview:
        host = self.host
        self._wait_for_copies()
        out = memoryview(bytearray(nbytes))
        copies_in_flight: deque[tuple[int, int, _Staging]] = deque()

        def finish() -> None:
            start, size, staging = copies_in_flight.popleft()
            host.synchronize(staging.event)
            out[start : start + size] = staging.pinned.memory[:size]

        for start in range(0, nbytes, _STAGING_BYTES):
            size = min(_STAGING_BYTES, nbytes - start)
            staging = self._staging()
            host.copy_out(staging.pinned.address, handle + offset + start, size, COMPUTE)
            host.record(staging.event, COMPUTE)
            copies_in_flight.append((start, size, staging))
            if len(copies_in_flight) == _STAGINGS // 2:
                finish()
        while copies_in_flight:
            finish()
        return out

    def _staging(self) -> _Staging:
        """Pinned memory that no copy uses; waits for one if necessary."""
        if len(self._stagings) < _STAGINGS:
            staging = _Staging(self.host.pin(_STAGING_BYTES), self.host.create_event())
        else:
            staging = self._stagings.popleft()
            self.host.synchronize(staging.event)
        self._stagings.append(staging)
        return staging

    # --- the order of runs and copies

    def _fence(self, run: int) -> int:
        """An event that happens at the end of a run or later."""
        return self._fences[max(run, self._runs - _FENCES + 1) % _FENCES]

    def _wait_for_copies(self) -> None:
        if self._copying:
            self.host.wait(COMPUTE, self._copied)
            self._copying = False

    def submit(self, launch: Callable[[], None], handles: Sequence[int]) -> None:
        """Call `launch`, which enqueues work that uses these allocations on COMPUTE, after all copies so
        far."""
        self._wait_for_copies()
        # Recorded before the launch, because a launch that fails half-way has used them, too.
        self._runs += 1
        self._last_run.update(dict.fromkeys(handles, self._runs))
        try:
            launch()
        finally:
            if not self.host.lost:
                self._record_fence(handles)

    def _record_fence(self, handles: Sequence[int]) -> None:
        try:
            self.host.record(self._fences[self._runs % _FENCES], COMPUTE)
        except PolygradError:
            if handles and not self.host.lost:
                self.read(handles[0], 0, 1)  # waits for the run, as no event says when it has ended
            raise

    # --- Programs

    def load(self, program: Program) -> Executable:
        """Raises ProgramError for another device's Program, CompileError for a kernel that is wrong."""
        program.require(self.name, "cuda")
        return CUDAExecutable(self, program)

    def _compile(self, sources: Sequence[KernelSource]) -> Iterator[int]:
        texts = [source.text for source in sources]
        codes = compilers().map(self._to_code, texts) if len(texts) > 1 else map(self._to_code, texts)
        for source, code in zip(sources, list(codes), strict=True):
            yield self.host.load(code, source.name, _shared_bytes(source.text))


def _shared_bytes(text: str) -> int:
    """The bytes of shared memory that a kernel's launch has to ask for, as its declaration says."""
    match = _SHARED_MEMORY.search(text)
    return int(match[1]) if match else 0


class CUDAExecutable(Executable):
    """A Program as a list of calls, and, once it has run, as a graph."""

    def __init__(self, runtime: CUDARuntime, program: Program) -> None:
        self._runtime, self._host = runtime, runtime.host
        self._kernels = runtime.kernels(program)
        self._calls = GridCalls(program)
        self._made: list[KernelLaunch] = []  # of the last run
        self._graph = 0

    def run(self, buffers: Sequence[int | None], arena: int | None, variables: Mapping[str, int]) -> None:
        changed_calls = self._calls.bind(buffers, arena, variables)
        handles = [handle for handle in (*buffers, arena) if handle]
        try:
            self._runtime.submit(lambda: self._launch(changed_calls), handles)
        except BaseException:  # some nodes of the graph may have been updated
            self._calls.forget()
            self._made, self._graph = [], 0
            raise

    def measure(
        self, buffers: Sequence[int | None], arena: int | None, variables: Mapping[str, int]
    ) -> float:
        """The GPU's time between two events, excluding the time of the call."""
        host = self._host
        start, stop = host.create_event(), host.create_event()
        try:
            host.record(start, COMPUTE)
            self.run(buffers, arena, variables)
            host.record(stop, COMPUTE)
            host.synchronize(stop)
            return host.seconds(start, stop)
        finally:
            host.drop_event(start)
            host.drop_event(stop)

    def _launch(self, changed_calls: Sequence[int]) -> None:
        host, is_first = self._host, not self._made
        for i in changed_calls:
            kernel_call = self._kernel_call(self._calls.calls[i])
            self._made[i : i + 1] = [kernel_call]
            if self._graph:
                host.update(self._graph, i, kernel_call)
        if not self._graph and not is_first and len(self._made) > 1:
            self._graph = host.create_graph(self._made)
            call_when_dropped(self, functools.partial(host.drop_graph, self._graph))
        calls_made: list[None] = []
        self.calls_made = calls_made
        if self._graph:
            self.calls = 1
            calls_made.append(host.launch_graph(self._graph, COMPUTE))
        else:
            calls = [call for call in self._made if 0 not in call.grid]
            self.calls = len(calls)
            calls_made.extend(map(host.launch, calls, itertools.repeat(COMPUTE)))

    def _kernel_call(self, call: GridCall) -> KernelLaunch:
        pointers = tuple([handle + offset for handle, offset in call.places])
        function = self._kernels[call.kernel].number
        return KernelLaunch(function, call.grid, call.workgroup, pointers, call.values)
