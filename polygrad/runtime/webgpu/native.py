"""WebGPU by wgpu-native as a `WebGPUHost`, for CPython: the package `wgpu`. Importing this module without it
raises ImportError.

A list of steps is recorded again for each submit, because WebGPU's command buffers can be used only once;
that takes three C calls for each dispatch, through the package's binding. Bind groups are cached as long as
their buffers live.
"""

from __future__ import annotations

import re
import time
from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import wgpu
from wgpu.backends.wgpu_native import ffi, lib

from polygrad.errors import CompileError, DeviceError, InternalError, OutOfMemoryError
from polygrad.runtime.gpu import KernelSource
from polygrad.runtime.webgpu.host import (
    FEATURES,
    SUBGROUPS,
    TIMESTAMPS,
    Adapter,
    Copy,
    Range,
    Step,
    WebGPUCounters,
    WebGPUHost,
    numbers,
)

_BACKENDS = ("Vulkan", "Metal", "D3D12")  # the native backends of wgpu-native; OpenGL is an emulation
_KEPT_GROUPS = 4096  # cached bind groups; the least recently used is dropped first
_USAGE = (
    wgpu.BufferUsage.STORAGE
    | wgpu.BufferUsage.UNIFORM
    | wgpu.BufferUsage.COPY_SRC
    | wgpu.BufferUsage.COPY_DST
)
_ADVICE = (
    "install a driver for the GPU (Vulkan, Metal or Direct3D 12), or a software one (Debian: "
    "mesa-vulkan-drivers)"
)
_OWN_NAMES = {SUBGROUPS: "subgroup"}  # features whose name differs from WebGPU's
_ENABLE_SUBGROUPS = "enable subgroups;\n"  # WGSL's; this implementation knows the functions without it
_PREFERRED = ("DiscreteGPU", "IntegratedGPU")
_Key = tuple[tuple[int, int, int], ...]  # the buffer, offset and size of each binding of a bind group
_LINE = re.compile(r"wgsl:(\d+):(\d+)")


def find_adapters() -> list[Any]:
    """The adapters of this machine, hardware first."""
    adapters = [a for a in wgpu.gpu.enumerate_adapters_sync() if a.info["backend_type"] in _BACKENDS]
    kinds = (
        *_PREFERRED,
        *sorted({a.info["adapter_type"] for a in adapters}.difference(_PREFERRED), reverse=True),
    )
    return sorted(adapters, key=lambda a: kinds.index(a.info["adapter_type"]))


def _describe(adapter: Any) -> Adapter:
    limits = adapter.limits
    return Adapter(
        name=str(adapter.info["device"]).strip(),
        software=adapter.info["adapter_type"] == "CPU",
        features=frozenset(f for f in FEATURES if _OWN_NAMES.get(f, f) in adapter.features),
        storage_buffers=limits["max-storage-buffers-per-shader-stage"],
        buffer_bytes=limits["max-buffer-size"],
        binding_bytes=limits["max-storage-buffer-binding-size"],
        workgroups=limits["max-compute-workgroups-per-dimension"],
        invocations=limits["max-compute-invocations-per-workgroup"],
        shared_bytes=limits["max-compute-workgroup-storage-size"],
        subgroup=_subgroup(adapter),
    )


def _subgroup(adapter: Any) -> int:
    smallest, largest = (
        adapter.info.get(f"stackgroup_{word}_size", 0) for word in ("min", "max")
    )  # so spelled
    return int(smallest) if _OWN_NAMES[SUBGROUPS] in adapter.features and smallest == largest else 0


_ASKED = (
    "max-storage-buffers-per-shader-stage",
    "max-buffer-size",
    "max-storage-buffer-binding-size",
    "max-compute-workgroups-per-dimension",
    "max-compute-invocations-per-workgroup",
    "max-compute-workgroup-size-x",
    "max-compute-workgroup-size-y",
    "max-compute-workgroup-size-z",
    "max-compute-workgroup-storage-size",
)


def open_host() -> NativeHost:
    """Open the best adapter of this machine. Raises DeviceError when there is none."""
    adapters = find_adapters()
    if not adapters:
        raise DeviceError(f"device WEBGPU: no GPU adapter was found: {_ADVICE}")
    return NativeHost(adapters[0])


class NativeHost(WebGPUHost):
    """One device of wgpu-native."""

    def __init__(self, adapter: Any) -> None:
        self.adapter = _describe(adapter)
        limits = {name: adapter.limits[name] for name in _ASKED}
        self._device = adapter.request_device_sync(
            required_limits=limits,
            required_features=[_OWN_NAMES.get(f, f) for f in sorted(self.adapter.features)],
        )
        self._queue = self._device.queue
        self._buffers: dict[int, Any] = {}
        self._pipelines: dict[int, Any] = {}
        self._layouts: dict[int, Any] = {}
        self._commands: dict[int, Sequence[_Step]] = {}
        self._last: dict[int, tuple[tuple[int, ...], array[int]]] = {}  # table and grids, by commands
        self._groups: OrderedDict[_Key, Any] = OrderedDict()
        self._groups_of: dict[int, set[_Key]] = {}  # by buffer
        self._clock: _Clock | None = None
        self._lost = ""
        self._counters = WebGPUCounters()

    @property
    def lost(self) -> str:
        return self._lost

    @property
    def counters(self) -> WebGPUCounters:
        return self._counters

    def _check(self) -> None:
        if self._lost:
            raise DeviceError(
                f"device WEBGPU: expected a device that is there, got one that was lost ({self._lost}): make "
                'the tensors anew; Device["WEBGPU"] opens it again'
            )

    def _call(self, what: str, call: Callable[[], Any]) -> Any:
        """`call()`, with WebGPU's errors converted to polygrad's."""
        self._check()
        try:
            return call()
        except wgpu.GPUOutOfMemoryError as e:
            raise OutOfMemoryError(f"{what}: no room on the GPU ({e}): free tensors") from e
        except wgpu.GPUError as e:
            if "Not enough memory" in str(e):  # wgpu-native does not use its class for out-of-memory errors
                raise OutOfMemoryError(f"{what}: no room on the GPU: free tensors") from e
            if "lost" in str(e).lower():
                self._lost = str(e).splitlines()[0]
                self._check()
            raise InternalError(f"WebGPU: {what}: {e}") from e

    # --- buffers

    def create_buffer(self, nbytes: int) -> int:
        return self._create_buffer(nbytes, _USAGE)

    def _create_buffer(self, nbytes: int, usage: int) -> int:
        buffer = self._call(
            f"allocate {nbytes} bytes", lambda: self._device.create_buffer(size=nbytes, usage=usage)
        )
        number = next(numbers)
        self._buffers[number] = buffer
        self._counters.buffers += 1
        return number

    def destroy_buffer(self, buffer: int) -> None:
        for key in tuple(self._groups_of.get(buffer, ())):
            self._forget_group(key)
        self._buffers.pop(buffer).destroy()

    def _forget_group(self, key: _Key) -> None:
        del self._groups[key]
        for number in {number for number, _, _ in key}:
            keys = self._groups_of[number]
            keys.discard(key)
            if not keys:
                del self._groups_of[number]

    def _buffer(self, number: int) -> Any:
        self._check()
        buffer = self._buffers.get(number)
        if buffer is None:
            raise DeviceError(
                f"device WEBGPU: expected memory of this device, got {number}, which was lost with another: "
                "make the tensors anew"
            )
        return buffer

    def write(self, buffer: int, offset: int, data: memoryview) -> None:
        target = self._buffer(buffer)
        self._call("write", lambda: self._queue.write_buffer(target, offset, data))

    def read(self, buffer: int, offset: int, nbytes: int) -> memoryview:
        source = self._buffer(buffer)
        self._counters.reads += 1
        contents = self._call("read", lambda: self._queue.read_buffer(source, offset, nbytes))
        return contents if not contents.readonly else memoryview(bytearray(contents))

    async def read_async(self, buffer: int, offset: int, nbytes: int) -> memoryview:
        return self.read(buffer, offset, nbytes)

    # --- pipelines

    def compile(self, sources: Sequence[KernelSource]) -> list[int]:
        self._check()
        if len(sources) == 1:
            pipelines = [self._pipeline(sources[0])]
        else:  # the driver's compiler runs without Python's lock
            for n in {s.n_buffers for s in sources}:
                self._layout(n)
            with ThreadPoolExecutor(4) as pool:
                pipelines = list(pool.map(self._pipeline, sources))
        pipeline_numbers = [next(numbers) for _ in pipelines]
        self._pipelines.update(zip(pipeline_numbers, pipelines, strict=True))
        self._counters.pipelines += len(pipelines)
        return pipeline_numbers

    def _pipeline(self, source: KernelSource) -> Any:
        layout = self._layout(source.n_buffers)[1]
        try:
            module = self._device.create_shader_module(
                label=source.name, code=source.text.replace(_ENABLE_SUBGROUPS, "", 1)
            )
            return self._device.create_compute_pipeline(
                label=source.name, layout=layout, compute={"module": module, "entry_point": source.name}
            )
        except wgpu.GPUError as e:
            raise compile_error(source, str(e)) from e

    def drop_pipeline(self, pipeline: int) -> None:
        del self._pipelines[pipeline]

    def _layout(self, n_buffers: int) -> tuple[Any, Any]:
        """The layouts of a kernel's bind group, and of its pipeline."""
        layouts = self._layouts.get(n_buffers)
        if layouts is None:
            kinds = ["storage"] * n_buffers + ["uniform"]
            entries = [
                {"binding": i, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": kind}}
                for i, kind in enumerate(kinds)
            ]
            group = self._device.create_bind_group_layout(entries=entries)
            pipeline = self._device.create_pipeline_layout(bind_group_layouts=[group])
            layouts = self._layouts[n_buffers] = group, pipeline
        return layouts

    # --- steps

    def prepare(self, steps: Sequence[Step]) -> int:
        number = next(numbers)
        self._commands[number] = [
            _CopyStep(step) if isinstance(step, Copy) else _DispatchStep(self._pipelines[step.pipeline], step)
            for step in steps
        ]
        return number

    def drop(self, commands: int) -> None:
        del self._commands[commands]
        self._last.pop(commands, None)

    def submit(self, commands: int, table: array[int], grids: array[int]) -> None:
        self._bind(commands, table, grids)
        self.resubmit(commands)

    def resubmit(self, commands: int) -> None:
        self._check()
        self._call("submit", lambda: self._record(commands))
        self._counters.submits += 1

    def measure(self, commands: int, table: array[int], grids: array[int]) -> float:
        self._bind(commands, table, grids)
        clock = self._stamps()
        self.read(clock.buffer, 0, 4)  # wait for earlier work
        started = time.perf_counter()
        self._call("submit", lambda: self._record(commands, clock))
        self._counters.submits += 1
        begun, ended = self.read(clock.buffer, 0, 16).cast("Q")
        if clock.queries is None:
            return time.perf_counter() - started
        return (ended - begun) * clock.period

    def _stamps(self) -> _Clock:
        """The clock for measurements, made at the first one."""
        if self._clock is None:
            buffer = self._create_buffer(256, wgpu.BufferUsage.QUERY_RESOLVE | wgpu.BufferUsage.COPY_SRC)
            if TIMESTAMPS in self.adapter.features:
                period = 1e-9 * lib.wgpuQueueGetTimestampPeriod(self._queue._internal)
                self._clock = _Clock(buffer, self._device.create_query_set(type="timestamp", count=2), period)
            else:
                self._clock = _Clock(buffer, None, 0.0)
        return self._clock

    def _bind(self, commands: int, table: array[int], grids: array[int]) -> None:
        """Bind the steps to this table and these grids."""
        self._check()
        words = tuple(table)
        for step in self._commands[commands]:
            if isinstance(step, _DispatchStep) and step.words != words:
                step.group, step.words = self._group(step, words), words
        self._last[commands] = words, grids[:]

    def _group(self, step: _DispatchStep, table: tuple[int, ...]) -> Any:
        """The bind group of a dispatch."""
        key = tuple([(table[r.entry], r.offset, r.nbytes) for r in step.ranges])
        cached_group = self._groups.get(key)
        if cached_group is not None:
            self._groups.move_to_end(key)
            return cached_group
        buffers = [self._buffer(number) for number, _, _ in key]
        entries = [
            {"binding": i, "resource": {"buffer": buffer, "offset": offset, "size": nbytes}}
            for i, (buffer, (_, offset, nbytes)) in enumerate(zip(buffers, key, strict=True))
        ]
        layout = self._layout(len(key) - 1)[0]
        group = self._call("bind", lambda: self._device.create_bind_group(layout=layout, entries=entries))
        self._counters.bind_groups += 1
        self._groups[key] = group
        for number, _, _ in key:
            self._groups_of.setdefault(number, set()).add(key)
        if len(self._groups) > _KEPT_GROUPS:
            self._forget_group(next(iter(self._groups)))
        return group

    def _record(self, commands: int, clock: _Clock | None = None) -> None:
        """Record and submit. With a clock, also record its time before and after the steps."""
        steps, (table, grids) = self._commands[commands], self._last[commands]
        encoder = self._device.create_command_encoder()
        queries = None if clock is None else clock.queries
        if queries is not None:
            _stamp(encoder, queries, 0)
        compute: Any = None
        recorder: Any = None
        pipeline: Any = None  # the pass's
        for step in steps:
            if isinstance(step, _CopyStep):
                if compute is not None:
                    compute.end()
                    compute = None
                source, target = step.source, step.target
                encoder.copy_buffer_to_buffer(
                    self._buffer(table[source.entry]),
                    source.offset,
                    self._buffer(table[target.entry]),
                    target.offset,
                    source.nbytes,
                )
                continue
            if compute is None:
                compute = encoder.begin_compute_pass()
                recorder, pipeline = compute._internal, None
            # `finish` reports errors of these calls.
            at = step.grid
            if step.pipeline is not pipeline:
                pipeline = step.pipeline
                lib.wgpuComputePassEncoderSetPipeline(recorder, pipeline._internal)
            lib.wgpuComputePassEncoderSetBindGroup(recorder, 0, step.group._internal, 0, ffi.NULL)
            lib.wgpuComputePassEncoderDispatchWorkgroups(recorder, grids[at], grids[at + 1], grids[at + 2])
            self._counters.dispatches += 1
        if compute is not None:
            compute.end()
        if clock is not None and queries is not None:
            _stamp(encoder, queries, 1)
            encoder.resolve_query_set(queries, 0, 2, self._buffer(clock.buffer), 0)
        self._queue.submit([encoder.finish()])

    def close(self) -> None:
        self._lost = self._lost or "it was closed"
        self._device.destroy()


@dataclass(frozen=True)
class _Clock:
    """A buffer for timestamps, the query set (None: the adapter has no timestamp queries), and the seconds of
    a tick."""

    buffer: int
    queries: Any
    period: float


def _stamp(encoder: Any, queries: Any, index: int) -> None:
    """Record a timestamp between earlier and later passes, by an empty pass."""
    encoder.begin_compute_pass(
        timestamp_writes={"query_set": queries, "beginning_of_pass_write_index": index}
    ).end()


class _DispatchStep:
    """A Dispatch with the bind group of the table `words`."""

    __slots__ = ("grid", "group", "pipeline", "ranges", "words")

    def __init__(self, pipeline: Any, step: Any) -> None:
        self.pipeline, self.grid = pipeline, step.grid
        self.ranges: tuple[Range, ...] = (*step.bindings, step.uniform)
        self.words: tuple[int, ...] | None = None
        self.group: Any = None


class _CopyStep:
    __slots__ = ("source", "target")

    def __init__(self, step: Copy) -> None:
        self.source, self.target = step.source, step.target


_Step = _DispatchStep | _CopyStep


def compile_error(source: KernelSource, message: str) -> CompileError:
    """The error of a WGSL compiler, with the source line that it refers to."""
    match = _LINE.search(message)
    lines = source.text.splitlines()
    location = ""
    if match is not None and int(match[1]) <= len(lines):
        location = f", line {match[1]}: {lines[int(match[1]) - 1].strip()}"
    return CompileError(
        f"kernel {source.name}{location}: expected WGSL that the adapter takes, got: {message.strip()}"
    )
