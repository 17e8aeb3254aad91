"""WebGPU by wgpu-native as a `WebGPUHost`, for CPython: the package `wgpu`. Importing this module without it
raises ImportError.

A list of steps is recorded anew for each submit, because WebGPU's command buffers are used once; that takes
three calls of C a dispatch, through the package's own binding. Bind groups are kept as long as their
buffers live.
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

_BACKENDS = ("Vulkan", "Metal", "D3D12")  # of those that wgpu-native has, what is more than an emulation
_KEPT_GROUPS = 4096  # bind groups, least used dropped first
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
_OWN_NAMES = {SUBGROUPS: "subgroup"}  # of features that WebGPU calls otherwise
_ENABLE_SUBGROUPS = "enable subgroups;\n"  # WGSL's; this implementation knows the functions without it
_PREFERRED = ("DiscreteGPU", "IntegratedGPU")
_Key = tuple[tuple[int, int, int], ...]  # of a bind group: a buffer, an offset and a size for each binding
_LINE = re.compile(r"wgsl:(\d+):(\d+)")


def find_adapters() -> list[Any]:
    """The adapters of this machine, hardware first."""
    found = [a for a in wgpu.gpu.enumerate_adapters_sync() if a.info["backend_type"] in _BACKENDS]
    kinds = (
        *_PREFERRED,
        *sorted({a.info["adapter_type"] for a in found}.difference(_PREFERRED), reverse=True),
    )
    return sorted(found, key=lambda a: kinds.index(a.info["adapter_type"]))


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
    least, most = (adapter.info.get(f"stackgroup_{word}_size", 0) for word in ("min", "max"))  # so spelled
    return int(least) if _OWN_NAMES[SUBGROUPS] in adapter.features and least == most else 0


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
    """The best adapter of this machine. Raises DeviceError when there is none."""
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
        """`call()`, with WebGPU's errors as ours."""
        self._check()
        try:
            return call()
        except wgpu.GPUOutOfMemoryError as e:
            raise OutOfMemoryError(f"{what}: no room on the GPU ({e}): free tensors") from e
        except wgpu.GPUError as e:
            if "Not enough memory" in str(e):  # of wgpu-native, whose class of error says otherwise
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
        found = self._buffers.get(number)
        if found is None:
            raise DeviceError(
                f"device WEBGPU: expected memory of this device, got {number}, which was lost with another: "
                "make the tensors anew"
            )
        return found

    def write(self, buffer: int, offset: int, data: memoryview) -> None:
        target = self._buffer(buffer)
        self._call("write", lambda: self._queue.write_buffer(target, offset, data))

    def read(self, buffer: int, offset: int, nbytes: int) -> memoryview:
        source = self._buffer(buffer)
        self._counters.reads += 1
        found = self._call("read", lambda: self._queue.read_buffer(source, offset, nbytes))
        return found if not found.readonly else memoryview(bytearray(found))

    async def read_async(self, buffer: int, offset: int, nbytes: int) -> memoryview:
        return self.read(buffer, offset, nbytes)

    # --- pipelines

    def compile(self, sources: Sequence[KernelSource]) -> list[int]:
        self._check()
        if len(sources) == 1:
            made = [self._pipeline(sources[0])]
        else:  # the driver's compiler runs without Python's lock
            for n in {s.n_buffers for s in sources}:
                self._layout(n)
            with ThreadPoolExecutor(4) as pool:
                made = list(pool.map(self._pipeline, sources))
        given = [next(numbers) for _ in made]
        self._pipelines.update(zip(given, made, strict=True))
        self._counters.pipelines += len(made)
        return given

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
        found = self._layouts.get(n_buffers)
        if found is None:
            kinds = ["storage"] * n_buffers + ["uniform"]
            entries = [
                {"binding": i, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": kind}}
                for i, kind in enumerate(kinds)
            ]
            group = self._device.create_bind_group_layout(entries=entries)
            pipeline = self._device.create_pipeline_layout(bind_group_layouts=[group])
            found = self._layouts[n_buffers] = group, pipeline
        return found

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
        self.submit_again(commands)

    def submit_again(self, commands: int) -> None:
        self._check()
        self._call("submit", lambda: self._record(commands))
        self._counters.submits += 1

    def measure(self, commands: int, table: array[int], grids: array[int]) -> float:
        self._bind(commands, table, grids)
        clock = self._stamps()
        self.read(clock.buffer, 0, 4)  # what was submitted before is done
        started = time.perf_counter()
        self._call("submit", lambda: self._record(commands, clock))
        self._counters.submits += 1
        begun, done = self.read(clock.buffer, 0, 16).cast("Q")
        if clock.queries is None:
            return time.perf_counter() - started
        return (done - begun) * clock.period

    def _stamps(self) -> _Clock:
        """What a measurement needs, made at the first."""
        if self._clock is None:
            buffer = self._create_buffer(256, wgpu.BufferUsage.QUERY_RESOLVE | wgpu.BufferUsage.COPY_SRC)
            if TIMESTAMPS in self.adapter.features:
                period = 1e-9 * lib.wgpuQueueGetTimestampPeriod(self._queue._internal)
                self._clock = _Clock(buffer, self._device.create_query_set(type="timestamp", count=2), period)
            else:
                self._clock = _Clock(buffer, None, 0.0)
        return self._clock

    def _bind(self, commands: int, table: array[int], grids: array[int]) -> None:
        """Let the steps be those of this table and these grids."""
        self._check()
        words = tuple(table)
        for step in self._commands[commands]:
            if isinstance(step, _DispatchStep) and step.words != words:
                step.group, step.words = self._group(step, words), words
        self._last[commands] = words, grids[:]

    def _group(self, step: _DispatchStep, table: tuple[int, ...]) -> Any:
        """The bind group of a dispatch."""
        key = tuple([(table[r.entry], r.offset, r.nbytes) for r in step.ranges])
        found = self._groups.get(key)
        if found is not None:
            self._groups.move_to_end(key)
            return found
        buffers = [self._buffer(number) for number, _, _ in key]
        entries = [
            {"binding": i, "resource": {"buffer": buffer, "offset": offset, "size": nbytes}}
            for i, (buffer, (_, offset, nbytes)) in enumerate(zip(buffers, key, strict=True))
        ]
        layout = self._layout(len(key) - 1)[0]
        made = self._call("bind", lambda: self._device.create_bind_group(layout=layout, entries=entries))
        self._counters.bind_groups += 1
        self._groups[key] = made
        for number, _, _ in key:
            self._groups_of.setdefault(number, set()).add(key)
        if len(self._groups) > _KEPT_GROUPS:
            self._forget_group(next(iter(self._groups)))
        return made

    def _record(self, commands: int, clock: _Clock | None = None) -> None:
        """Record and submit; where there is a clock, what it says before the steps and after them."""
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
            # What is wrong with these, `finish` tells.
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
    """A buffer for what the GPU's clock says, the queries that ask it (None: the adapter has none), and the
    seconds of a tick."""

    buffer: int
    queries: Any
    period: float


def _stamp(encoder: Any, queries: Any, index: int) -> None:
    """What the clock says between the passes before and those after, which an empty pass asks it."""
    encoder.begin_compute_pass(
        timestamp_writes={"query_set": queries, "beginning_of_pass_write_index": index}
    ).end()


class _DispatchStep:
    """A Dispatch whose bind group is that of the table `words`."""

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
    """What a compiler of WGSL said, with the line that it means."""
    found = _LINE.search(message)
    lines = source.text.splitlines()
    where = ""
    if found is not None and int(found[1]) <= len(lines):
        where = f", line {found[1]}: {lines[int(found[1]) - 1].strip()}"
    return CompileError(
        f"kernel {source.name}{where}: expected WGSL that the adapter takes, got: {message.strip()}"
    )
