"""NVIDIA's driver as a `CUDAHost`: the package `cuda-bindings`. Importing this module without it raises
ImportError.

The GPU's primary context, which other libraries of the process share, is made current in every calling
thread. An error of an earlier kernel, as an illegal address, makes the context unusable; it is reset when the
device is opened again.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from cuda.bindings import driver

from polygrad.errors import CompileError, DeviceError, OutOfMemoryError
from polygrad.runtime.cuda.host import GPU, CUDACounters, CUDAHost, KernelLaunch, Pinned

_OK = driver.CUresult.CUDA_SUCCESS
_ATTRIBUTE = driver.CUdevice_attribute
# Errors that make the context unusable.
_FATAL = frozenset(
    getattr(driver.CUresult, f"CUDA_ERROR_{name}")
    for name in (
        "ILLEGAL_ADDRESS", "LAUNCH_TIMEOUT", "LAUNCH_FAILED", "MISALIGNED_ADDRESS", "ILLEGAL_INSTRUCTION",
        "INVALID_ADDRESS_SPACE", "INVALID_PC", "HARDWARE_STACK_ERROR", "ASSERT", "ECC_UNCORRECTABLE",
        "CONTEXT_IS_DESTROYED", "DEINITIALIZED", "UNKNOWN",
    )
)  # fmt: skip
_NO_GPU = (driver.CUresult.CUDA_ERROR_NO_DEVICE, driver.CUresult.CUDA_ERROR_INVALID_DEVICE)
_REFUSED_CODE = tuple(
    getattr(driver.CUresult, f"CUDA_ERROR_{name}")
    for name in ("INVALID_IMAGE", "NO_BINARY_FOR_GPU", "INVALID_PTX", "UNSUPPORTED_PTX_VERSION", "NOT_FOUND",
                 "INVALID_SOURCE", "JIT_COMPILER_NOT_FOUND")
)  # fmt: skip


def open_host() -> CUDAHost:
    """Open this machine's first GPU. Raises DeviceError, which says whether the driver or the GPU is
    missing."""
    return _NativeCUDAHost()


def _name(error: Any) -> str:
    """The driver's name of an error, and its description."""
    _, name = driver.cuGetErrorName(error)
    _, text = driver.cuGetErrorString(error)
    return f"{(name or b'?').decode()} ({(text or b'?').decode()})"


def _device() -> Any:
    try:
        (error,) = driver.cuInit(0)
    except RuntimeError as e:  # raised by the bindings if the library is missing
        raise DeviceError(
            f"device CUDA: NVIDIA's driver (libcuda) was not found ({e}): install the driver of the GPU "
            "(https://www.nvidia.com/drivers)"
        ) from e
    count = 0
    if error == _OK:
        error, count = driver.cuDeviceGetCount()
    if error in _NO_GPU or (error == _OK and not count):
        raise DeviceError(
            "device CUDA: the driver sees no NVIDIA GPU: look at nvidia-smi and at CUDA_VISIBLE_DEVICES"
        )
    if error != _OK:
        raise DeviceError(
            f"device CUDA: the driver does not start, {_name(error)}: look at nvidia-smi, and "
            "install a driver that fits the GPU"
        )
    return driver.cuDeviceGet(0)[1]


def _describe(device: Any) -> GPU:
    def attribute(name: str) -> int:
        error, value = driver.cuDeviceGetAttribute(getattr(_ATTRIBUTE, f"CU_DEVICE_ATTRIBUTE_{name}"), device)
        if error != _OK:
            raise DeviceError(f"device CUDA: the query of the GPU's {name} failed: {_name(error)}")
        return int(value)

    def three(name: str) -> tuple[int, int, int]:
        return attribute(f"{name}_X"), attribute(f"{name}_Y"), attribute(f"{name}_Z")

    return GPU(
        name=driver.cuDeviceGetName(256, device)[1].split(b"\0")[0].decode(),
        capability=(attribute("COMPUTE_CAPABILITY_MAJOR"), attribute("COMPUTE_CAPABILITY_MINOR")),
        multiprocessors=attribute("MULTIPROCESSOR_COUNT"),
        memory_bytes=int(driver.cuDeviceTotalMem(device)[1]),
        shared_bytes=attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        invocations=attribute("MAX_THREADS_PER_BLOCK"),
        block=three("MAX_BLOCK_DIM"),
        grid=three("MAX_GRID_DIM"),
        warp=attribute("WARP_SIZE"),
    )


class _Arguments:
    """A kernel's arguments as an array of addresses, as the driver takes them. It keeps the values alive."""

    def __init__(self, call: KernelLaunch) -> None:
        n, m = len(call.pointers), len(call.values)
        self._pointers = (ctypes.c_uint64 * n)(*call.pointers)
        self._values = (ctypes.c_int32 * m)(*call.values)
        pointers, values = ctypes.addressof(self._pointers), ctypes.addressof(self._values)
        each = [*(pointers + 8 * i for i in range(n)), *(values + 4 * i for i in range(m))]
        self._addresses = (ctypes.c_void_p * max(n + m, 1))(*each)
        self.address = ctypes.addressof(self._addresses)


class _Function(NamedTuple):
    """A kernel: what it is launched with beside its arguments."""

    module: Any
    function: Any
    shared_bytes: int


class _Graph:
    """A graph, and its kernels' nodes and parameters."""

    def __init__(self, graph: Any, nodes: list[Any], parameters: list[Any]) -> None:
        self.graph, self.nodes, self.parameters = graph, nodes, parameters
        self.executable: Any = None
        self.enabled = [True] * len(nodes)


class _NativeCUDAHost(CUDAHost):
    _numbers = itertools.count(1)  # shared by all hosts, so that a handle of one host is invalid in another

    def __init__(self) -> None:
        self._device = _device()
        self.gpu = _describe(self._device)
        self.counters = CUDACounters()
        self._lost = ""
        self._current = threading.local()
        self._pinned: list[int] = []
        self._events: dict[int, Any] = {}
        self._functions: dict[int, _Function] = {}
        self._graphs: dict[int, _Graph] = {}
        self._reset_if_lost()
        self._context = self._check(driver.cuDevicePrimaryCtxRetain(self._device), "a context")
        self._enter()
        flags = driver.CUstream_flags.CU_STREAM_NON_BLOCKING.value
        self._streams = [self._check(driver.cuStreamCreate(flags), "a stream") for _ in range(2)]

    def _reset_if_lost(self) -> None:
        """Reset a context that an earlier error has made unusable."""
        if not driver.cuDevicePrimaryCtxGetState(self._device)[2]:
            return
        context = self._check(driver.cuDevicePrimaryCtxRetain(self._device), "a context")
        error = driver.cuCtxSetCurrent(context)[0]
        if error == _OK:
            error = driver.cuCtxSynchronize()[0]
        driver.cuDevicePrimaryCtxRelease(self._device)
        if error in _FATAL:
            driver.cuDevicePrimaryCtxReset(self._device)

    @property
    def lost(self) -> str:
        return self._lost

    def close(self) -> None:
        if self._lost:
            return
        self._enter()
        driver.cuCtxSynchronize()
        for graph in [*self._graphs]:
            self.drop_graph(graph)
        for function in [*self._functions]:
            self.unload(function)
        for event in [*self._events]:
            self.drop_event(event)
        for address in self._pinned:
            driver.cuMemFreeHost(address)
        for stream in self._streams:
            driver.cuStreamDestroy(stream)
        driver.cuDevicePrimaryCtxRelease(self._device)
        self._lost = "closed"

    def _enter(self) -> None:
        """Make the context current in this thread."""
        if self._lost:
            raise DeviceError(
                f"device CUDA: the context is lost ({self._lost}) with all that it "
                'held; Device["CUDA"] opens another'
            )
        if not hasattr(self._current, "entered"):
            self._check(driver.cuCtxSetCurrent(self._context), "a context for this thread")
            self._current.entered = True

    def _check(self, result: tuple[Any, ...], what: str) -> Any:
        """The result of a driver call. Raises DeviceError, OutOfMemoryError."""
        error, *values = result
        if error == _OK:
            return values[0] if values else None
        if error == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            raise OutOfMemoryError(f"device CUDA: no room for {what}: free some, or use less")
        if error in _FATAL:
            self._lost = _name(error)
            raise DeviceError(
                f"device CUDA: {what} failed with {self._lost}, of this or an earlier kernel: the context "
                'and all that it held is lost; Device["CUDA"] opens another'
            )
        raise DeviceError(f"device CUDA: {what} failed: {_name(error)}")

    def _add(self, table: dict[int, Any], value: Any) -> int:
        number = next(self._numbers)
        table[number] = value
        return number

    # --- memory

    def allocate(self, nbytes: int) -> int:
        self._enter()
        self.counters.allocations += 1
        return int(self._check(driver.cuMemAlloc(nbytes), f"{nbytes} bytes"))

    def free(self, pointer: int) -> None:
        if not self._lost:
            self._enter()
            driver.cuMemFree(pointer)

    def pin(self, nbytes: int) -> Pinned:
        self._enter()
        address = int(self._check(driver.cuMemHostAlloc(nbytes, 0), f"{nbytes} bytes of pinned memory"))
        self._pinned.append(address)
        return Pinned(address, memoryview((ctypes.c_char * nbytes).from_address(address)).cast("B"))

    def copy_in(self, pointer: int, address: int, nbytes: int, stream: int) -> None:
        self._enter()
        self.counters.copies += 1
        self._check(driver.cuMemcpyHtoDAsync(pointer, address, nbytes, self._streams[stream]), "a copy")

    def copy_out(self, address: int, pointer: int, nbytes: int, stream: int) -> None:
        self._enter()
        self.counters.copies += 1
        self._check(driver.cuMemcpyDtoHAsync(address, pointer, nbytes, self._streams[stream]), "a copy")

    # --- events

    def create_event(self) -> int:
        self._enter()
        return self._add(self._events, self._check(driver.cuEventCreate(0), "an event"))

    def drop_event(self, event: int) -> None:
        driver_event = self._events.pop(event, None)
        if driver_event is not None and not self._lost:
            self._enter()
            driver.cuEventDestroy(driver_event)

    def record(self, event: int, stream: int) -> None:
        self._enter()
        self._check(driver.cuEventRecord(self._events[event], self._streams[stream]), "an event")

    def wait(self, stream: int, event: int) -> None:
        self._enter()
        self._check(driver.cuStreamWaitEvent(self._streams[stream], self._events[event], 0), "an event")

    def synchronize(self, event: int) -> None:
        self._enter()
        self._check(driver.cuEventSynchronize(self._events[event]), "the GPU's work to be done")

    def seconds(self, start: int, stop: int) -> float:
        self._enter()
        times = driver.cuEventElapsedTime(self._events[start], self._events[stop])
        return float(self._check(times, "the time between events")) / 1e3

    # --- kernels

    def load(self, code: bytes, name: str, shared_bytes: int = 0) -> int:
        self._enter()
        error, module = driver.cuModuleLoadData(code)
        if error in _REFUSED_CODE:
            raise CompileError(
                f"kernel {name}: expected code for {self.gpu.architecture}, got {_name(error)}"
            )
        self._check((error, module), f"to load kernel {name}")
        self.counters.modules += 1
        error, function = driver.cuModuleGetFunction(module, name.encode())
        if error in _REFUSED_CODE:
            driver.cuModuleUnload(module)
            raise CompileError(f"kernel {name}: expected code that has it, got {_name(error)}")
        self._check((error, function), f"kernel {name}")
        if shared_bytes:
            attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            result = driver.cuFuncSetAttribute(function, attribute, shared_bytes)
            self._check(result, f"{shared_bytes} bytes of shared memory for kernel {name}")
        return self._add(self._functions, _Function(module, function, shared_bytes))

    def unload(self, function: int) -> None:
        entry = self._functions.pop(function, None)
        if entry is not None and not self._lost:
            self._enter()
            driver.cuModuleUnload(entry.module)

    def launch(self, call: KernelLaunch, stream: int) -> None:
        self._enter()
        self.counters.launches += 1
        _, function, shared_bytes = self._functions[call.function]
        arguments = _Arguments(call)
        result = driver.cuLaunchKernel(
            function, *call.grid, *call.block, shared_bytes, self._streams[stream], arguments.address, 0
        )
        self._check(result, f"a launch of {call.block} threads in {call.grid} blocks")

    # --- graphs

    def _set(self, parameters: Any, call: KernelLaunch) -> _Arguments:
        """Set a node's parameters from a call; returns the arguments, which must live until the driver has
        read them."""
        arguments = _Arguments(call)
        _, parameters.func, parameters.sharedMemBytes = self._functions[call.function]
        x, y, z = (max(n, 1) for n in call.grid)  # an empty grid is not allowed: the node is disabled instead
        parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ = x, y, z
        parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ = call.block
        parameters.kernelParams = arguments.address
        return arguments

    def create_graph(self, calls: Sequence[KernelLaunch]) -> int:
        self._enter()
        graph = self._check(driver.cuGraphCreate(0), "a graph")
        result = _Graph(graph, [], [])
        for call in calls:
            parameters = driver.CUDA_KERNEL_NODE_PARAMS()
            arguments = self._set(parameters, call)
            before = result.nodes[-1:]
            node = driver.cuGraphAddKernelNode(graph, before, len(before), parameters)
            result.nodes.append(self._check(node, "a graph's kernel"))
            result.parameters.append(parameters)
            del arguments
        result.enabled = [True] * len(result.nodes)
        result.executable = self._check(driver.cuGraphInstantiate(graph, 0), "a graph")
        for i, call in enumerate(calls):
            self._enable(result, i, call)
        self.counters.graphs += 1
        return self._add(self._graphs, result)

    def _enable(self, graph: _Graph, position: int, call: KernelLaunch) -> None:
        enabled = 0 not in call.grid
        if enabled is not graph.enabled[position]:
            node = graph.nodes[position]
            self._check(
                driver.cuGraphNodeSetEnabled(graph.executable, node, int(enabled)), "a graph's kernel"
            )
            graph.enabled[position] = enabled

    def update(self, graph: int, position: int, call: KernelLaunch) -> None:
        self._enter()
        self.counters.updates += 1
        entry = self._graphs[graph]
        parameters = entry.parameters[position]
        arguments = self._set(parameters, call)
        result = driver.cuGraphExecKernelNodeSetParams(entry.executable, entry.nodes[position], parameters)
        self._check(result, "a graph's kernel that changes")
        del arguments
        self._enable(entry, position, call)

    def launch_graph(self, graph: int, stream: int) -> None:
        self._enter()
        self.counters.graph_launches += 1
        result = driver.cuGraphLaunch(self._graphs[graph].executable, self._streams[stream])
        self._check(result, "a graph's launch")

    def drop_graph(self, graph: int) -> None:
        entry = self._graphs.pop(graph, None)
        if entry is not None and not self._lost:
            self._enter()
            driver.cuGraphExecDestroy(entry.executable)
            driver.cuGraphDestroy(entry.graph)
