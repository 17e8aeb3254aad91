"""`WebGPURuntime`: the WEBGPU device. Kernels are WGSL, run by the host's implementation of WebGPU.

Handles are the host's numbers of buffers. Freed buffers are reused, because making one takes longer than most
launches, and because bind groups are cached with them. A Program is one list of steps, recorded and submitted
at once. Only a read waits for the GPU.

A kernel has its buffers at the bindings 0, 1, ... of group 0, and after them a uniform buffer. That contains
the float32 infinity, NaN and zero and the u32 zero, then the kernel's Variables as i32. The first four are
not constants in the text, because WGSL compilers may assume that infinities and NaN do not occur.
"""

from __future__ import annotations

import functools
import importlib
import struct
import sys
from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from polygrad.dtype import to_dtype
from polygrad.errors import DeviceError, OutOfMemoryError, ProgramError
from polygrad.helpers import round_up
from polygrad.runtime.gpu import GPURuntime, KernelSource, call_when_dropped
from polygrad.runtime.grid import Grid, grid_size
from polygrad.runtime.interface import Executable
from polygrad.runtime.memory_pool import MemoryPool
from polygrad.runtime.program import BufferSpec, Kernel, Launch, Program
from polygrad.runtime.webgpu.host import (
    ALIGNMENT,
    COPY_ALIGNMENT,
    FLOAT16,
    WORD,
    Adapter,
    Copy,
    Dispatch,
    Range,
    Step,
    WebGPUHost,
)

# The first words of every kernel's uniform buffer.
_CONSTANTS = struct.pack("<IIII", 0x7F800000, 0x7FC00000, 0, 0)
_KEPT_BYTES = 256 << 20  # the most bytes of freed buffers in the pool


def default_host() -> WebGPUHost:
    """The page's or Node's WebGPU under Pyodide, wgpu-native elsewhere. Raises DeviceError."""
    if sys.platform == "emscripten":
        module, advice = "js", "load polygrad with its own loader (polygrad.load, loadPolygrad)"
    else:
        module, advice = "native", 'pip install "polygrad[webgpu]"'
    try:
        host: WebGPUHost = importlib.import_module(f"polygrad.runtime.webgpu.{module}").open_host()
    except ImportError as e:
        raise DeviceError(f"device WEBGPU: expected an implementation of WebGPU, got {e}: {advice}") from e
    return host


class WebGPURuntime(GPURuntime):
    """A GPU as a device."""

    name = "WEBGPU"

    def __init__(self, host: WebGPUHost | None = None) -> None:
        self.host = default_host() if host is None else host
        self.adapter = self.host.adapter
        pool = MemoryPool(self.host.create_buffer, self.host.destroy_buffer, ALIGNMENT, _KEPT_BYTES)
        super().__init__(pool, self.host.drop_pipeline)
        self._constants = 0

    @property
    def lost(self) -> bool:
        return bool(self.host.lost)

    @property
    def description(self) -> str:
        kind = "software adapter" if self.adapter.software else "GPU"
        return f"{kind} {self.adapter.name}"

    @property
    def accelerates(self) -> bool:
        return not self.adapter.software

    @property
    def buffer_bytes(self) -> int:
        return self.adapter.buffer_bytes

    # --- memory

    def write(self, handle: int, offset: int, data: memoryview) -> None:
        end = offset + len(data)
        start, stop = _whole_words(offset, end)
        if start == offset and stop == end:
            self.host.write(handle, offset, data)
            return
        # The host writes whole words. The other bytes of the words at both ends are preserved, except those
        # after the end of the allocation.
        words = bytearray(stop - start)
        if start != offset:
            words[:COPY_ALIGNMENT] = self.host.read(handle, start, COPY_ALIGNMENT)
        if stop != end and offset != 0:
            words[-COPY_ALIGNMENT:] = self.host.read(handle, stop - COPY_ALIGNMENT, COPY_ALIGNMENT)
        words[offset - start : end - start] = data
        self.host.write(handle, start, memoryview(words))

    def read(self, handle: int, offset: int, nbytes: int) -> memoryview:
        start, stop = _whole_words(offset, offset + nbytes)
        return self.host.read(handle, start, stop - start)[offset - start : offset - start + nbytes]

    async def read_async(self, handle: int, offset: int, nbytes: int) -> memoryview:
        start, stop = _whole_words(offset, offset + nbytes)
        contents = await self.host.read_async(handle, start, stop - start)
        return contents[offset - start : offset - start + nbytes]

    # --- Programs

    def load(self, program: Program) -> Executable:
        """Raises ProgramError for another device's Program and for one that needs features which the adapter
        lacks, CompileError for a kernel that the adapter rejects."""
        program.require(self.name, "wgsl")
        for kernel in program.kernels:
            _check_extensions(kernel, self.adapter)
        return WebGPUExecutable(self, program)

    def _compile(self, sources: Sequence[KernelSource]) -> list[int]:
        return self.host.compile(sources)

    def constants(self) -> int:
        """The uniform buffer of kernels without Variables."""
        if not self._constants:
            self._constants = self.host.create_buffer(ALIGNMENT)
            self.host.write(self._constants, 0, memoryview(_CONSTANTS))
        return self._constants


def _check_extensions(kernel: Kernel, adapter: Adapter) -> None:
    """Raises ProgramError for a kernel that needs features which this adapter lacks."""
    advice = "export the step anew with WEBGPU_F16=0 and WEBGPU_SUBGROUPS=0, which all adapters run"
    if kernel.code.startswith(b"enable f16;") and FLOAT16 not in adapter.features:
        raise ProgramError(
            f"load: kernel {kernel.name}: expected an adapter with the feature {FLOAT16}, got {adapter.name} "
            f"without: {advice}"
        )
    if kernel.subgroup not in (0, adapter.subgroup):
        actual = f"of {adapter.subgroup}" if adapter.subgroup else "of no one size"
        raise ProgramError(
            f"load: kernel {kernel.name}: expected subgroups of {kernel.subgroup} invocations, got "
            f"{adapter.name}, whose are {actual}: {advice}"
        )


def _grid(program: Program, launch: Launch) -> Grid:
    if launch.grid is None:
        raise ProgramError(
            f"kernel {program.kernels[launch.kernel].name}: a launch has no grid of workgroups"
        )
    return launch.grid


def _whole_words(start: int, end: int) -> tuple[int, int]:
    return start // COPY_ALIGNMENT * COPY_ALIGNMENT, round_up(end, COPY_ALIGNMENT)


class _LastRun(NamedTuple):
    """The arguments of a Program's last run. `values`: the same list object for the same values of
    Variables."""

    buffers: list[int | None]
    arena: int | None
    values: list[int] | None
    commands: int


class WebGPUExecutable(Executable):
    """A Program as a list of steps. Entry i of the table is the Program's buffer i, then comes the arena,
    then the uniform buffer."""

    def __init__(self, runtime: WebGPURuntime, program: Program) -> None:
        self._runtime, self._host, self._program = runtime, runtime.host, program
        self._kernels = runtime.kernels(program)
        self._uniform_entry = len(program.buffers) + 1
        # The uniform buffer has one part for each distinct list of Variables of kernels.
        lists = list(dict.fromkeys(kernel.variables for kernel in program.kernels))
        self._parts = {names: i * ALIGNMENT for i, names in enumerate(lists)}
        self._values: list[int] | None = None
        self._uniform = 0
        sizes = [_grid(program, launch) for launch in program.launches]
        self._sizes = [] if all(isinstance(n, int) for grid in sizes for n in grid) else sizes
        self._grids = array(WORD, [n for grid in sizes for n in (grid if not self._sizes else (0, 0, 0))])
        self._steps = [self._dispatch(i) for i in range(len(program.launches))]
        self._commands: dict[tuple[int, ...], _Commands] = {}  # by the entries that are the same memory
        self._last: _LastRun | None = None

    def _dispatch(self, number: int) -> Dispatch:
        program, adapter = self._program, self._runtime.adapter
        launch = program.launches[number]
        kernel = program.kernels[launch.kernel]
        ranges = []
        for binding in launch.bindings:
            entry, offset = program.place(binding)
            spec = program.buffers[binding.buffer]
            nbytes = round_up(max(_nbytes(spec) - binding.offset, 1), 16)
            if offset % ALIGNMENT:
                raise ProgramError(
                    f"kernel {kernel.name}: expected a binding at a multiple of {ALIGNMENT} bytes, got "
                    f"{offset}"
                )
            if nbytes > adapter.binding_bytes:
                raise OutOfMemoryError(
                    f"kernel {kernel.name}: expected buffers of at most {adapter.binding_bytes} bytes, which "
                    f"is what {adapter.name} binds, got {nbytes}: use smaller tensors"
                )
            ranges.append(Range(entry, offset, nbytes))
        uniform = Range(self._uniform_entry, self._parts[kernel.variables], ALIGNMENT)
        return Dispatch(self._kernels[launch.kernel].number, tuple(ranges), uniform, 3 * number)

    def run(self, buffers: Sequence[int | None], arena: int | None, variables: Mapping[str, int]) -> None:
        self._set(variables)
        buffer_list, last = list(buffers), self._last
        if (
            last is not None
            and last.buffers == buffer_list
            and last.arena == arena
            and last.values is self._values
        ):
            self._host.resubmit(last.commands)
            return
        commands, table = self._bound_to(buffer_list, arena)
        self._last = None
        self._host.submit(commands.number, table, self._grids)
        self._last = _LastRun(buffer_list, arena, self._values, commands.number)

    def measure(
        self, buffers: Sequence[int | None], arena: int | None, variables: Mapping[str, int]
    ) -> float:
        """The time by the GPU's clock, if the adapter has timestamp queries."""
        self._set(variables)
        commands, table = self._bound_to(list(buffers), arena)
        self._last = None
        return self._host.measure(commands.number, table, self._grids)

    def _bound_to(self, buffers: list[int | None], arena: int | None) -> tuple[_Commands, array[int]]:
        """The steps for these buffers, and the table of a run on them. Raises ProgramError."""
        handles = [handle or 0 for handle in buffers]
        self._program.check_memory(handles, arena)
        commands = self._commands_for(handles)
        uniform = self._uniform or self._runtime.constants()
        return commands, array(WORD, [*handles, arena or 0, uniform, *commands.copies])

    def _set(self, variables: Mapping[str, int]) -> None:
        """Write the values of the Variables, and the grids that depend on them, if they have changed."""
        program = self._program
        if not program.variables:
            return
        values = program.check_variables(variables)
        if values == self._values:
            return
        if not self._uniform:
            self._uniform = self._runtime.allocate(ALIGNMENT * len(self._parts))
            call_when_dropped(self, functools.partial(self._runtime.free, self._uniform))
        contents = bytearray(ALIGNMENT * len(self._parts))
        for names, start in self._parts.items():
            words = struct.pack(f"<{len(names)}i", *[variables[name] for name in names])
            if len(_CONSTANTS) + len(words) > ALIGNMENT:
                raise ProgramError(
                    f"run: expected at most {(ALIGNMENT - len(_CONSTANTS)) // 4} Variables in a kernel, got "
                    f"{len(names)}"
                )
            contents[start : start + len(_CONSTANTS) + len(words)] = _CONSTANTS + words
        self._values = None  # so that an exception invalidates them
        self._runtime.write(self._uniform, 0, memoryview(contents))
        for i, grid in enumerate(self._sizes):
            self._grids[3 * i : 3 * i + 3] = array(WORD, [grid_size(n, variables) for n in grid])
        self._values = values

    def _commands_for(self, handles: list[int]) -> _Commands:
        """The prepared steps. WebGPU forbids overlapping bindings if a kernel may write to them. So if
        buffers are the same memory, the binding that a kernel only reads is copied before its launch."""
        aliases: tuple[int, ...] = ()
        bound = [handles[i] for i in self._program.bound_buffers]
        if len(set(bound)) < len(bound):
            aliases = tuple(handles.index(h) if h else i for i, h in enumerate(handles))
        commands = self._commands.get(aliases)
        if commands is None:
            commands = self._commands[aliases] = _Commands(self._runtime, *self._separate_aliases(aliases))
        return commands

    def _separate_aliases(self, aliases: tuple[int, ...]) -> tuple[list[Step], list[int]]:
        """The steps, with copies where a launch binds memory twice; and the sizes of the copies."""
        if not aliases:
            return [*self._steps], []
        sizes: list[int] = []
        steps: list[Step] = []
        for launch, step in zip(self._program.launches, self._steps, strict=True):
            kernel = self._program.kernels[launch.kernel]
            ranges = list(step.bindings)
            bound_ranges: list[Range] = []  # by which entry the memory was first
            # Written bindings stay in place.
            order = sorted(range(len(ranges)), key=lambda i: i not in kernel.writes)
            n_copies = 0
            for i in order:
                r = ranges[i]
                place = Range(aliases[r.entry] if r.entry < len(aliases) else r.entry, r.offset, r.nbytes)
                if not any(_overlap(place, other) for other in bound_ranges):
                    bound_ranges.append(place)
                    continue
                if i in kernel.writes:
                    raise ProgramError(f"kernel {kernel.name}: it writes to one buffer by two pointers")
                if n_copies == len(sizes):
                    sizes.append(0)
                sizes[n_copies] = max(sizes[n_copies], r.nbytes)
                ranges[i] = Range(self._uniform_entry + 1 + n_copies, 0, r.nbytes)
                steps.append(Copy(r, ranges[i]))
                n_copies += 1
            steps.append(Dispatch(step.pipeline, tuple(ranges), step.uniform, step.grid))
        return steps, sizes


def _overlap(a: Range, b: Range) -> bool:
    return a.entry == b.entry and a.offset < b.offset + b.nbytes and b.offset < a.offset + a.nbytes


def _nbytes(spec: BufferSpec) -> int:
    return spec.size * to_dtype(spec.dtype).itemsize


class _Commands:
    """Prepared steps, and the memory of their copies."""

    def __init__(self, runtime: WebGPURuntime, steps: Sequence[Step], sizes: Sequence[int]) -> None:
        self.number = runtime.host.prepare(steps)
        call_when_dropped(self, functools.partial(runtime.host.drop, self.number))
        self.copies = []
        for size in sizes:
            self.copies.append(runtime.allocate(size))
            call_when_dropped(self, functools.partial(runtime.free, self.copies[-1]))
