"""Recorded Programs merged into one, which is loaded to be run many times.

A buffer is identified by its memory. What the capture allocated and nothing outside it needs is scratch,
planned as a whole; kernels whose results are never read are removed (dead code elimination).

The idea of capturing what a function runs is tinygrad's (TinyJit).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from polygrad.dtype import to_dtype
from polygrad.engine.barriers import place_barriers
from polygrad.engine.devices import Device
from polygrad.engine.normalize import uncomputed, value_of
from polygrad.engine.realize import arena_for, live_roots
from polygrad.engine.recording import Recording, Run, watch
from polygrad.engine.running import run_program
from polygrad.engine.stats import stats
from polygrad.errors import CaptureError
from polygrad.runtime.buffer import Allocation, Buffer
from polygrad.runtime.grid import GridSize
from polygrad.runtime.interface import Handle
from polygrad.runtime.program import Binding, BufferSpec, Kernel, Launch, Program, Variable
from polygrad.schedule.memory import Lifetime, lower_bound, plan
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


class _Scratch(NamedTuple):
    """Scratch number `buffer` of the recorded Program number `run`."""

    run: int
    buffer: int


class CapturedProgram:
    """A captured Program and its buffers: `buffers[i]` is the memory of buffer i, None for scratch. Inputs
    come first. `program` has its driver, `_unlinked` is what that was made of.

    `written` are the positions of the buffers that a run writes, `arena_lower_bound` the most bytes of
    scratch alive at one time.
    """

    def __init__(
        self,
        program: Program,
        buffers: list[Buffer | None],
        variables: dict[str, int],
        arena_lower_bound: int,
    ) -> None:
        self.buffers, self.variables = buffers, variables
        self.arena_lower_bound = arena_lower_bound
        self._handles: list[Handle | None] = []
        self._unlinked = program
        self._load(program)
        self.written = tuple(i for i in sorted(self._targets()) if buffers[i] is not None)

    def _load(self, program: Program) -> None:
        link = Device.backend(program.device).link
        self.program = program if link is None else link(program)
        self._executable = Device[program.device].load(self.program)

    def _targets(self) -> set[int]:
        """The buffers that launches write."""
        program = self._unlinked
        return {
            launch.bindings[i].buffer
            for launch in program.launches
            for i in program.kernels[launch.kernel].writes
        }

    def bind(self, position: int, buffer: Buffer) -> None:
        """Let the Program's buffer `position` be `buffer`, of the same size and dtype."""
        self.buffers[position] = buffer
        if self._handles:
            self._handles[position] = buffer.handle

    def order_shared_memory(self) -> None:
        """Let launches that use the same memory run in order, where buffers share some since the capture."""
        memory = [i if b is None else b.allocation for i, b in enumerate(self.buffers)]
        program = place_barriers(self._unlinked, memory)
        if program != self._unlinked:
            self._unlinked = program
            self._load(program)

    def run(self, variables: Mapping[str, int] | None = None) -> None:
        """Run the Program once. Raises CaptureError inside a captured function."""
        if watch.recording is not None:
            watch.forbid("a step that is captured already", "call the function it was made of")
        if not self._handles:  # memory is taken on the first run
            self._handles = [b.handle if b is not None else None for b in self.buffers]
        program = self.program
        if variables is None:
            variables = self.variables
        if watch.runner is None:
            run_program(self._executable, self._handles, arena_for(program), variables)
        else:
            watch.runner(program, self._handles, arena_for(program), variables)
        stats.count(program)


def live_memory() -> set[Allocation]:
    """The memory that live Tensors hold or read."""
    roots = [uop for hook in live_roots for uop in hook(0)]
    allocations = set()
    for node in UOp.sink(*roots).toposort(uncomputed):
        value = node if node.op is Ops.BUFFER else value_of(node) if node.op is not Ops.SINK else None
        if value is not None:
            allocations.add(value.arg.allocation)
    return allocations


def merge(recording: Recording, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> CapturedProgram:
    """What was recorded as one Program, loaded.

    `inputs` may be bound to other memory before each run; they are the Program's first buffers. `outputs`
    hold results. Raises CaptureError when nothing was recorded, on several devices, or with a Variable of two
    values.
    """
    runs = recording.runs
    devices = sorted({run.program.device for run in runs})
    if len(devices) != 1:
        raise CaptureError(
            f"captured function: expected work on one device, got {' and '.join(devices) or 'none'}: "
            "return or realize what it computes, on one device"
        )
    device = devices[0]
    values, bounds = _variables(runs)
    live = live_memory()
    roles: dict[Hashable, str] = {b.allocation: "input" for b in inputs}
    roles |= {b.allocation: "output" for b in outputs if not _existed(b) and b.allocation not in roles}
    launches, specs, memory = _gather(runs, roles, live)
    launches = _eliminate_dead(launches, roles)
    for target in {target for x in launches for target in x.written}:
        if roles[target] in ("input", "param"):
            roles[target] = "state"

    used = dict.fromkeys(key for x in launches for key, _ in x.pointers)
    keys: list[Hashable] = [b.allocation for b in inputs]
    keys += [b.allocation for b in outputs if b.allocation not in keys]
    keys += [key for key in used if roles[key] != "scratch" and key not in keys]
    for b in (*inputs, *outputs):
        memory[b.allocation], specs[b.allocation] = b, BufferSpec(b.size, b.dtype.name, "")
        roles.setdefault(b.allocation, "param")
    lifetimes = _lifetimes(launches, specs, roles)
    offsets, arena = plan(list(lifetimes.values()), Device.backend(device).target.alignment)
    arena_lower_bound = lower_bound(list(lifetimes.values()))
    offset_of = dict(zip(lifetimes, offsets, strict=True))
    keys += list(lifetimes)
    buffer_index = {key: i for i, key in enumerate(keys)}
    kernels = list(dict.fromkeys(x.kernel for x in launches))
    kernel_index = {kernel: i for i, kernel in enumerate(kernels)}
    program = Program(
        device,
        runs[0].program.target,
        tuple(BufferSpec(specs[k].size, specs[k].dtype, roles[k], offset_of.get(k, -1)) for k in keys),
        tuple(kernels),
        tuple(
            Launch(
                kernel_index[x.kernel],
                tuple(Binding(buffer_index[key], offset) for key, offset in x.pointers),
                x.grid,
            )
            for x in launches
        ),
        tuple(bounds[name] for name in sorted(bounds)),
        arena,
        threads=max(run.program.threads for run in runs) if any(k.parallel for k in kernels) else 1,
        shared_memory=runs[0].program.shared_memory,
    )
    return CapturedProgram(
        place_barriers(program), [memory.get(key) for key in keys], values, arena_lower_bound
    )


def _existed(buffer: Buffer) -> bool:
    """Whether the memory is older than the capture, in which nothing is allocated but for the host's data."""
    return buffer.allocation.is_allocated


class _Launch(NamedTuple):
    """A launch whose pointers are (memory, byte offset)."""

    kernel: Kernel
    pointers: tuple[tuple[Hashable, int], ...]
    grid: tuple[GridSize, GridSize, GridSize] | None

    @property
    def written(self) -> list[Hashable]:
        """The memory that it writes."""
        return [self.pointers[i][0] for i in self.kernel.writes]


def _gather(
    runs: list[Run], roles: dict[Hashable, str], live: set[Allocation]
) -> tuple[list[_Launch], dict[Hashable, BufferSpec], dict[Hashable, Buffer]]:
    """All launches, and for all memory its role (into `roles`), its spec, and its Buffer unless scratch."""
    launches: list[_Launch] = []
    specs: dict[Hashable, BufferSpec] = {}
    memory: dict[Hashable, Buffer] = {}
    for number, run in enumerate(runs):
        keys: list[Hashable] = []
        for i, (spec, buffer) in enumerate(zip(run.program.buffers, run.buffers, strict=True)):
            key: Hashable = _Scratch(number, i) if buffer is None else buffer.allocation
            keys.append(key)
            if key not in specs or spec.size > specs[key].size:
                specs[key] = spec
            if key not in roles:
                if buffer is None:
                    roles[key] = "scratch"
                elif _existed(buffer):
                    roles[key] = "param"
                else:
                    roles[key] = "state" if buffer.allocation in live else "scratch"
            if buffer is not None and roles[key] != "scratch":
                memory.setdefault(key, buffer)
        for launch in run.program.launches:
            pointers = tuple((keys[b.buffer], b.offset) for b in launch.bindings)
            launches.append(_Launch(run.program.kernels[launch.kernel], pointers, launch.grid))
    return launches, specs, memory


def _eliminate_dead(launches: list[_Launch], roles: dict[Hashable, str]) -> list[_Launch]:
    """The launches whose results are read, or are not scratch."""
    needed: set[Hashable] = set()
    kept = []
    for launch in reversed(launches):
        if any(roles[target] != "scratch" or target in needed for target in launch.written):
            needed.update(key for key, _ in launch.pointers)
            kept.append(launch)
    return kept[::-1]


def _lifetimes(
    launches: list[_Launch], specs: dict[Hashable, BufferSpec], roles: dict[Hashable, str]
) -> dict[Hashable, Lifetime]:
    first: dict[Hashable, int] = {}
    last: dict[Hashable, int] = {}
    for i, launch in enumerate(launches):
        for key, _ in launch.pointers:
            if roles[key] == "scratch":
                first.setdefault(key, i)
                last[key] = i
    return {key: Lifetime(_nbytes(specs[key]), first[key], last[key]) for key in first}


def _nbytes(spec: BufferSpec) -> int:
    return spec.size * to_dtype(spec.dtype).itemsize


def _variables(runs: list[Run]) -> tuple[dict[str, int], dict[str, Variable]]:
    """The value of every Variable, and its bounds."""
    values: dict[str, int] = {}
    bounds: dict[str, Variable] = {}
    for run in runs:
        for v in run.program.variables:
            value = run.variables[v.name]
            if values.setdefault(v.name, value) != value or bounds.setdefault(v.name, v) != v:
                raise CaptureError(
                    f"captured function: expected Variable {v.name} to have one value in a call, got "
                    f"{values[v.name]} and {value}: use two Variables"
                )
    return values, bounds
