"""Device EMULATED_METAL: the METAL device itself (runtime/metal/device.py), on a host that runs kernels on
the processor. A command buffer does nothing before somebody waits for it, or for one behind it: so a missing
wait shows in what is computed."""

from __future__ import annotations

import ctypes
import itertools
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from polygrad.engine.backends.metal_target import target_of
from polygrad.engine.devices import Backend
from polygrad.errors import DeviceError, OutOfMemoryError
from polygrad.renderer.cstyle.msl import MSLBuilder
from polygrad.renderer.emit import emit
from polygrad.runtime.metal.device import ALIGNMENT, MetalRuntime
from polygrad.runtime.metal.host import MetalCounters, MetalDispatch, MetalGPU, MetalHost
from polygrad.runtime.program import Kernel
from polygrad.uop.node import UOp
from tests.gpu_emulation.device import LoadedKernel, compile_kernel, machine


class EmulatedMetalHost(MetalHost):
    """`limit`: bytes of all buffers together. `failure`: what the next command buffer that runs fails
    with."""

    def __init__(self) -> None:
        self.gpu = MetalGPU("emulated GPU", 1 << 30)
        self.counters = MetalCounters()
        self.limit, self.failure = 1 << 40, ""
        self._numbers = itertools.count(1)
        self._buffers: dict[int, tuple[object, int, int]] = {}  # memory, address, bytes
        self._pipelines: dict[int, LoadedKernel] = {}
        self._committed: dict[int, list[MetalDispatch]] = {}
        self._results: dict[int, float | str] = {}

    def create_buffer(self, nbytes: int) -> int:
        if nbytes + sum(size for _, _, size in self._buffers.values()) > self.limit:
            raise OutOfMemoryError(f"device METAL: no room for {nbytes} bytes: free some")
        memory = (ctypes.c_char * (nbytes + ALIGNMENT))()
        address = -(-ctypes.addressof(memory) // ALIGNMENT) * ALIGNMENT
        ctypes.memset(address, 0xFF, nbytes)
        self._buffers[number := next(self._numbers)] = memory, address, nbytes
        self.counters.buffers += 1
        return number

    def destroy_buffer(self, buffer: int) -> None:
        self._run(max(self._committed, default=0))  # command buffers hold what they use
        del self._buffers[buffer]

    def contents(self, buffer: int) -> memoryview:
        _, address, nbytes = self._buffers[buffer]
        return memoryview((ctypes.c_char * nbytes).from_address(address)).cast("B")

    def compile(self, name: str, text: str) -> int:
        pointers = len(re.findall(r"device .*?\*data", text))
        kernel = Kernel(name, text.encode(), pointers, language="msl", writes=(), workgroup=(1, 1, 1))
        self._pipelines[number := next(self._numbers)] = LoadedKernel(kernel, compile_kernel(kernel, False))
        self.counters.pipelines += 1
        return number

    def drop_pipeline(self, pipeline: int) -> None:
        del self._pipelines[pipeline]

    def commit(self, dispatches: Sequence[MetalDispatch]) -> int:
        for call in dispatches:
            assert 0 not in call.grid and all(offset % 4 == 0 for _, offset in call.bindings)
            if call.threadgroup[0] * call.threadgroup[1] * call.threadgroup[2] > self.gpu.invocations:
                raise DeviceError(f"device METAL: expected a launch of fewer threads, got {call.threadgroup}")
        self._committed[number := next(self._numbers)] = list(dispatches)
        self.counters.command_buffers += 1
        self.counters.dispatches += len(dispatches)
        return number

    def wait(self, command_buffer: int) -> float:
        self._run(command_buffer)
        result = self._results[command_buffer]
        if isinstance(result, str):
            raise DeviceError(f"device METAL: expected kernels that run to their end, got {result}")
        return result

    def forget(self, command_buffer: int) -> None:
        self._results.pop(command_buffer)

    def _run(self, last: int) -> None:
        for number in [n for n in self._committed if n <= last]:
            started = time.perf_counter()
            for call in self._committed.pop(number):
                if self.failure:
                    break
                self._dispatch(call)
            self._results[number] = self.failure or time.perf_counter() - started
            self.failure = ""

    def _dispatch(self, call: MetalDispatch) -> None:
        loaded = self._pipelines[call.pipeline]
        addresses = [self._buffers[buffer][1] + offset for buffer, offset in call.bindings]
        machine().emulated_launch(
            loaded.entry,
            (ctypes.c_void_p * max(len(addresses), 1))(*addresses),
            (ctypes.c_int64 * max(len(call.values), 1))(*call.values),
            (ctypes.c_uint * 3)(*call.grid),
            (ctypes.c_uint * 3)(*call.threadgroup),
            int(loaded.barriers),
            0,
        )


class EmulatedMetalRuntime(MetalRuntime):
    """The METAL device under another name."""

    name = "EMULATED_METAL"


def _backend() -> Backend:
    runtime = EmulatedMetalRuntime(EmulatedMetalHost())
    target = replace(target_of(runtime.host.gpu), name=runtime.name)

    def compile_(name: str, linear: list[UOp]) -> Callable[[], bytes]:
        return str(emit(name, linear, MSLBuilder(target, aligned=True))).encode

    return Backend(target=target, compile=compile_, open=lambda: runtime, language="msl")


BACKEND = _backend()
