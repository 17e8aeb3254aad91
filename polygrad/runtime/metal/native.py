"""Metal as a `MetalHost`: the package `pyobjc-framework-Metal`, on macOS. Importing this module without it
raises ImportError.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence
from typing import Any

import Metal

from polygrad.errors import CompileError, DeviceError, OutOfMemoryError
from polygrad.runtime.metal.host import MetalCounters, MetalDispatch, MetalGPU, MetalHost

_COMMAND_BUFFERS = 256  # of a queue
_FAMILY_APPLE_6, _FAMILY_APPLE_7 = 1006, 1007  # the first MTLGPUFamily with bfloat, with simdgroup_matrix


def open_host() -> MetalHost:
    """The system's default GPU. Raises DeviceError where there is none."""
    device = Metal.MTLCreateSystemDefaultDevice()
    if device is None:
        raise DeviceError("device METAL: no GPU with Metal was found: use CPU or WEBGPU")
    return _NativeMetalHost(device)


def _message_of(error: Any) -> str:
    return str(error.localizedDescription()) if error is not None else "no reason"


class _NativeMetalHost(MetalHost):
    _numbers = itertools.count(1)  # shared by all hosts, so that a handle of one host is invalid in another

    def __init__(self, device: Any) -> None:
        self._device = device
        self._queue = device.newCommandQueueWithMaxCommandBufferCount_(_COMMAND_BUFFERS)
        max_threads = device.maxThreadsPerThreadgroup()
        self.gpu = MetalGPU(
            name=str(device.name()),
            buffer_bytes=int(device.maxBufferLength()),
            shared_bytes=int(device.maxThreadgroupMemoryLength()),
            threadgroup=(int(max_threads.width), int(max_threads.height), int(max_threads.depth)),
            has_matrices=bool(device.supportsFamily_(_FAMILY_APPLE_7)),
            has_bfloat=bool(device.supportsFamily_(_FAMILY_APPLE_6)),
        )
        self.counters = MetalCounters()
        self._buffers: dict[int, Any] = {}
        self._pipelines: dict[int, Any] = {}
        self._committed: dict[int, Any] = {}

    def _add(self, table: dict[int, Any], value: Any) -> int:
        number = next(self._numbers)
        table[number] = value
        return number

    def create_buffer(self, nbytes: int) -> int:
        buffer = self._device.newBufferWithLength_options_(nbytes, Metal.MTLResourceStorageModeShared)
        if buffer is None:
            raise OutOfMemoryError(f"device METAL: no room for {nbytes} bytes: free some")
        self.counters.buffers += 1
        return self._add(self._buffers, buffer)

    def destroy_buffer(self, buffer: int) -> None:
        del self._buffers[buffer]  # command buffers keep the buffers that they use alive

    def contents(self, buffer: int) -> memoryview:
        metal_buffer = self._buffers[buffer]
        return memoryview(metal_buffer.contents().as_buffer(metal_buffer.length())).cast("B")

    def compile(self, name: str, text: str) -> int:
        options = Metal.MTLCompileOptions.new()
        if hasattr(options, "setMathMode_"):
            options.setMathMode_(Metal.MTLMathModeSafe)
        else:  # before macOS 15
            options.setFastMathEnabled_(False)
        library, error = self._device.newLibraryWithSource_options_error_(text, options, None)
        if library is None:
            raise CompileError(f"kernel {name}: MSL does not compile:\n{_message_of(error)}\n{text}")
        function = library.newFunctionWithName_(name)
        pipeline, error = self._device.newComputePipelineStateWithFunction_error_(function, None)
        if pipeline is None:
            raise CompileError(f"kernel {name}: its pipeline cannot be made:\n{_message_of(error)}\n{text}")
        self.counters.pipelines += 1
        return self._add(self._pipelines, pipeline)

    def drop_pipeline(self, pipeline: int) -> None:
        del self._pipelines[pipeline]

    def commit(self, dispatches: Sequence[MetalDispatch]) -> int:
        for call in dispatches:
            threads = call.threadgroup[0] * call.threadgroup[1] * call.threadgroup[2]
            max_threads = self._pipelines[call.pipeline].maxTotalThreadsPerThreadgroup()
            if threads > max_threads:
                raise DeviceError(
                    f"device METAL: expected a launch of at most {max_threads} threads in a threadgroup, as "
                    f"this kernel needs registers, got {call.threadgroup}"
                )
        command_buffer = self._queue.commandBuffer()
        encoder = command_buffer.computeCommandEncoder()
        for call in dispatches:
            encoder.setComputePipelineState_(self._pipelines[call.pipeline])
            for i, (buffer, offset) in enumerate(call.bindings):
                encoder.setBuffer_offset_atIndex_(self._buffers[buffer], offset, i)
            for i, value in enumerate(call.values, len(call.bindings)):
                encoder.setBytes_length_atIndex_(struct.pack("<i", value), 4, i)
            encoder.dispatchThreadgroups_threadsPerThreadgroup_(
                Metal.MTLSizeMake(*call.grid), Metal.MTLSizeMake(*call.threadgroup)
            )
        encoder.endEncoding()
        command_buffer.commit()
        self.counters.command_buffers += 1
        self.counters.dispatches += len(dispatches)
        return self._add(self._committed, command_buffer)

    def wait(self, command_buffer: int) -> float:
        submitted = self._committed[command_buffer]
        submitted.waitUntilCompleted()
        error = submitted.error()
        if error is not None:
            raise DeviceError(f"device METAL: a kernel failed: {_message_of(error)}")
        return float(submitted.GPUEndTime() - submitted.GPUStartTime())

    def forget(self, command_buffer: int) -> None:
        del self._committed[command_buffer]
