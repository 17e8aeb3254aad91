"""Merging a recording into one CapturedProgram, or two if constant work is to run once.

A buffer is identified by its memory. Memory that the capture allocated and that nothing outside of it needs
is scratch, planned as a whole. Kernels whose results are never read are removed (dead code elimination).
Consecutive launches on one device are one Program, which exchanges with other processes cut (`overlap.py`).

Capturing the kernels of a function is tinygrad's idea (TinyJit), and so is pruning.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from polygrad.capture.captured_program import BeginStep, CapturedProgram, CopyStep, EndStep, ProgramStep, Step
from polygrad.capture.overlap import Begin, End, overlap
from polygrad.dtype import to_dtype
from polygrad.engine.assembler import Call, assemble, plan_arena
from polygrad.engine.devices import Device
from polygrad.engine.normalize import is_uncomputed, stored_value
from polygrad.engine.recording import Exchange, RecordedRun, Recording, Transfer
from polygrad.errors import CaptureError
from polygrad.helpers import THREAD_VARIABLES
from polygrad.runtime.buffer import Allocation, Buffer
from polygrad.runtime.program import BufferSpec, Variable
from polygrad.tensor.core.aliasing import live_values
from polygrad.uop.node import UOp


class _Scratch(NamedTuple):
    """Scratch buffer number `buffer` of the recorded Program number `run`."""

    run: int
    buffer: int


@dataclass(frozen=True, slots=True)
class _Launch(Call):
    """A launch on `device`. The keys of its buffers are allocations, or `_Scratch`."""

    device: str = field(kw_only=True)

    @property
    def varies(self) -> bool:
        """Whether it depends on the values of Variables."""
        sizes = () if self.grid is None else self.grid
        return not THREAD_VARIABLES.issuperset(self.kernel.variables) or any(
            type(n) is not int for n in sizes
        )


class _Copy(NamedTuple):
    """A copy from memory to memory on another device."""

    source: Hashable
    target: Hashable

    @property
    def varies(self) -> bool:
        return False

    @property
    def used(self) -> list[Hashable]:
        return [self.source, self.target]

    @property
    def written(self) -> list[Hashable]:
        return [self.target]


_Item = _Launch | _Copy | Begin


@dataclass(slots=True)
class _Memory:
    """For each memory: its role, its spec, its device and, unless it is scratch, its Buffer. `internal`:
    scratch memory with a Buffer of its own."""

    roles: dict[Hashable, str]
    specs: dict[Hashable, BufferSpec] = field(default_factory=dict)
    devices: dict[Hashable, str] = field(default_factory=dict)
    buffers: dict[Hashable, Buffer] = field(default_factory=dict)
    internal: set[Hashable] = field(default_factory=set)

    def allocate(self, key: Hashable, role: str) -> None:
        """Give scratch memory a Buffer of its own."""
        spec = self.specs[key]
        if self.roles[key] == "scratch":
            self.internal.add(key)
        self.roles[key] = role
        if key not in self.buffers:
            dtype = to_dtype(spec.dtype)
            self.buffers[key] = Buffer(Device[self.devices[key]], spec.size, dtype)


class Merged(NamedTuple):
    """`program`: of each replay. `once`: of the constant work, which runs before the first replay, if any."""

    program: CapturedProgram
    once: CapturedProgram | None


def live_memory() -> set[Allocation]:
    """The memory that live Tensors hold or read."""
    allocations: set[Allocation] = set()
    for node in UOp.sink(*live_values()).toposort(is_uncomputed):
        value = stored_value(node)
        if value is not None:
            allocations.update(part.allocation for part in value.arg.parts)
    return allocations


def merge(
    recording: Recording,
    inputs: Sequence[Buffer],
    outputs: Sequence[Buffer],
    prune: bool = False,
    may_be_empty: bool = False,
) -> Merged:
    """Merge a recording into one loaded Program.

    `inputs`: the Program's first buffers, which may be bound to other memory before each run. `outputs` hold
    the results. `prune`: launches that depend neither on inputs, nor on memory that a run writes, nor on
    Variables are a Program of their own. Raises CaptureError when nothing was recorded, unless it
    `may_be_empty`, and for a Variable with two values.
    """
    recorded_runs = [run for run in recording.runs if isinstance(run, RecordedRun)]
    if not recorded_runs and not may_be_empty:
        raise CaptureError("captured function: it does no work on a device: return or realize its results")
    values, bounds = _variables(recorded_runs)
    roles: dict[Hashable, str] = {b.allocation: "input" for b in inputs}
    roles |= {b.allocation: "output" for b in outputs if not _is_older(b) and b.allocation not in roles}
    memory = _Memory(roles)
    items = _eliminate_dead(_gather(recording.runs, memory, live_memory()), roles)
    for target in {target for x in items for target in x.written}:
        if roles[target] in ("input", "param"):
            roles[target] = "state"
    constant = _constant(items, {b.allocation for b in inputs}, roles) if prune else set()
    for key in {key for x in items if not isinstance(x, _Launch) for key in x.used}:
        if roles[key] == "scratch":
            memory.allocate(key, "state")
    for b in (*inputs, *outputs):
        memory.buffers[b.allocation] = b
        memory.devices.setdefault(b.allocation, b.device)
        memory.specs[b.allocation] = BufferSpec(b.size, b.dtype.name, "")
        roles.setdefault(b.allocation, "param")
    varying_items: list[_Item] = [x for i, x in enumerate(items) if i not in constant]
    constant_items = [x for i, x in enumerate(items) if i in constant]
    once = None
    first: list[Hashable] = [b.allocation for b in inputs]
    if constant_items:
        read_keys = {key for x in varying_items for key in x.used}
        for key in dict.fromkeys(key for x in constant_items for key in x.written):
            if key in read_keys and roles[key] in ("scratch", "state"):
                memory.allocate(key, "param")
        once = _assemble(constant_items, [], memory, {}, {})
    first += [b.allocation for b in outputs if b.allocation not in first]
    return Merged(_assemble(overlap(varying_items), first, memory, values, bounds), once)


def _constant(items: list[_Item], inputs: set[Hashable], roles: dict[Hashable, str]) -> set[int]:
    """The numbers of the constant items, which do the same in every run. They use no memory that is an input
    or that other items write, and write none that exists outside of the call."""
    varying = set(inputs)
    constant = set(range(len(items)))
    while True:
        now_varying = {
            i
            for i in constant
            if items[i].varies
            or not varying.isdisjoint(items[i].used)
            or any(roles[key] == "state" for key in items[i].written)
        }
        if not now_varying:
            return constant
        constant -= now_varying
        varying.update(key for i in now_varying for key in items[i].written)


def _assemble(
    items: Sequence[_Item | End],
    first: list[Hashable],
    memory: _Memory,
    values: dict[str, int],
    bounds: dict[str, Variable],
) -> CapturedProgram:
    """Number the buffers, `first` first, plan the scratch memory of each device, and load the Programs."""
    roles = memory.roles
    used_keys = dict.fromkeys([*first, *(key for x in items for key in x.used)])
    keys = sorted(used_keys, key=lambda key: roles[key] == "scratch")
    specs = [memory.specs[key] for key in keys]
    buffers = {k: BufferSpec(s.size, s.dtype, roles[k]) for k, s in zip(keys, specs, strict=True)}
    number = {key: i for i, key in enumerate(keys)}
    devices = dict.fromkeys(x.device for x in items if isinstance(x, _Launch))
    device_buffers = dict.fromkeys(devices, buffers)
    if len(devices) > 1:
        for device in devices:
            device_buffers[device] = {
                key: spec for key, spec in buffers.items() if memory.devices[key] == device
            }
    arenas = {
        device: plan_arena(device, device_buffers[device], [x.used for x in items]) for device in devices
    }
    steps: list[Step] = []
    begun: dict[Begin, BeginStep] = {}
    for device, group in itertools.groupby(items, lambda x: x.device if isinstance(x, _Launch) else ""):
        launches = []
        for x in group:
            if isinstance(x, _Launch):
                launches.append(x)
            elif isinstance(x, _Copy):
                steps.append(CopyStep(number[x.source], number[x.target]))
            elif isinstance(x, Begin):
                begun[x] = BeginStep(x.label, tuple(number[key] for key in x.keys), x.start)
                steps.append(begun[x])
            else:
                steps.append(EndStep(begun[x.begin]))
        if launches:
            variables = [bounds[name] for name in sorted(bounds)]
            program = assemble(device, device_buffers[device], launches, arenas[device], variables)
            positions = None if len(devices) == 1 else [number[key] for key in device_buffers[device]]
            steps.append(ProgramStep(program, positions))
    smallest = sum(arena.lower_bound for arena in arenas.values())
    bound_buffers = [memory.buffers.get(key) for key in keys]
    shown_roles = ["scratch" if key in memory.internal else roles[key] for key in keys]
    return CapturedProgram(steps, bound_buffers, shown_roles, values, smallest)


def _is_older(buffer: Buffer) -> bool:
    """Whether memory is older than the capture. A capture allocates memory for the host's data only."""
    return buffer.allocation.is_allocated


def _gather(
    records: Iterable[RecordedRun | Transfer | Exchange], memory: _Memory, live: set[Allocation]
) -> list[_Item]:
    """All launches, copies and exchanges. Their memory is noted in `memory`."""
    items: list[_Item] = []

    def note(key: Hashable, spec: BufferSpec, buffer: Buffer | None, device: str) -> None:
        roles = memory.roles
        if key not in memory.specs or spec.size > memory.specs[key].size:
            memory.specs[key] = spec
        memory.devices.setdefault(key, device)
        if key not in roles:
            if buffer is None:
                roles[key] = "scratch"
            elif _is_older(buffer):
                roles[key] = "param"
            else:
                roles[key] = "state" if buffer.allocation in live else "scratch"
        if buffer is not None and roles[key] != "scratch":
            memory.buffers.setdefault(key, buffer)

    keys: list[Hashable]
    for number, run in enumerate(records):
        if not isinstance(run, RecordedRun):
            for b in run.buffers:
                note(b.allocation, BufferSpec(b.size, b.dtype.name, ""), b, b.device)
            keys = [b.allocation for b in run.buffers]
            items.append(
                _Copy(*keys) if isinstance(run, Transfer) else Begin(run.label, tuple(keys), run.start)
            )
            continue
        program = run.program
        keys = []
        for i, (spec, buffer) in enumerate(zip(program.buffers, run.buffers, strict=True)):
            key: Hashable = _Scratch(number, i) if buffer is None else buffer.allocation
            keys.append(key)
            note(key, spec, buffer, program.device)
        for launch in program.launches:
            pointers = tuple((keys[b.buffer], b.offset) for b in launch.bindings)
            kernel = program.kernels[launch.kernel]
            items.append(_Launch(kernel, pointers, launch.grid, launch.places, device=program.device))
    return items


def _eliminate_dead(items: list[_Item], roles: dict[Hashable, str]) -> list[_Item]:
    """What has results that are read, or are not scratch."""
    needed_keys: set[Hashable] = set()
    live = []
    for item in reversed(items):
        if any(roles[target] != "scratch" or target in needed_keys for target in item.written):
            needed_keys.update(item.used)
            live.append(item)
    return live[::-1]


def _variables(recorded_runs: list[RecordedRun]) -> tuple[dict[str, int], dict[str, Variable]]:
    """The value of every Variable, and its bounds."""
    values: dict[str, int] = {}
    bounds: dict[str, Variable] = {}
    for run in recorded_runs:
        for v in run.program.variables:
            value = run.variables[v.name]
            if values.setdefault(v.name, value) != value or bounds.setdefault(v.name, v) != v:
                raise CaptureError(
                    f"captured function: Variable {v.name} is {values[v.name]} and {value} in one call: use "
                    "two Variables"
                )
    return values, bounds
