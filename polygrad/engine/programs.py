"""The cache of Programs: graphs of one device as Programs that are kept and run again.

A Program's key is the structure of its graph, which `PendingGraph` gives, and the constants. So an eager loop
that computes the same expression again makes no node, schedules nothing and compiles nothing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from polygrad.engine.assembler import Compiled
from polygrad.engine.compile import compile_graph, optimizing
from polygrad.engine.devices import Device, reopened
from polygrad.engine.normalize import normalize, stored_value
from polygrad.engine.pending import PendingGraph
from polygrad.engine.recording import RecordedRun, watch
from polygrad.engine.running import Outcome, await_run, outcome, run_program
from polygrad.engine.scalar_arguments import Family
from polygrad.engine.stats import stats
from polygrad.errors import ArgumentError
from polygrad.helpers import LRU, Context, debug_level, env_text, set_all
from polygrad.runtime.buffer import NEW_MEMORY, Allocation, Buffer, half_written
from polygrad.runtime.interface import Executable, Handle, Runtime
from polygrad.runtime.program import Program
from polygrad.uop import origins
from polygrad.uop.alu import bytes_of
from polygrad.uop.intern import table
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops

_GRAPH_BYTES = 24 << 20  # of Programs in the cache
_STRUCTURE_BYTES = 8 << 20  # of their keys
_ENTRY_BYTES = 200  # about: of a node in a structure, or a buffer or a launch of a Program
_KERNEL_BYTES = 48 << 10  # about: of a loaded kernel without its code


@dataclass(slots=True)
class _Ready:
    compiled: Compiled
    arguments: list[Buffer] = field(default_factory=list)  # for the constants that vary
    values: tuple[UOp, ...] = ()  # the constants in `arguments`
    executable: Executable | None = None  # loaded on the first run
    # of the roots that get new memory: the number of the root, the position of its buffer, and its elements
    new_outputs: tuple[tuple[int, int, int], ...] = field(init=False)

    def __post_init__(self) -> None:
        specs = self.compiled.program.buffers
        outputs = enumerate(self.compiled.outputs)
        self.new_outputs = tuple([(i, p, specs[p].size) for i, p in outputs if specs[p].role == "output"])

    def loaded(self) -> Executable:
        if self.executable is None:
            program = self.compiled.program
            self.executable = Device[program.device].load(program)
        return self.executable


# by structure: the family of the graphs, and the values of its Variables
_families: LRU[tuple[Any, ...], tuple[Family, Mapping[str, int]]] = LRU(_STRUCTURE_BYTES)
# by family and the constants that do not vary in it
_graphs: LRU[tuple[Any, ...], _Ready] = LRU(_GRAPH_BYTES)
_arenas: dict[str, Allocation] = {}


@reopened.append
def _forget_device(name: str) -> None:
    """Forget loaded Programs, the scratch memory of a lost device, and the values on it that can be computed
    again: an equal expression is the same node."""
    clear_caches()
    _arenas.pop(name, None)
    computable: set[UOp] = set()  # the table has sources before their consumers
    for node in list(table.values()):
        value = node.value
        if value is not None and not value.arg.is_lost:
            computable.add(node)
        elif node.op not in GroupOp.Memory and all(_is_source(s, computable) for s in node.src):
            computable.add(node)
            node.value = None


def _is_source(node: UOp, computable: set[UOp]) -> bool:
    """Whether a node can be computed again, or has a value."""
    if isinstance(node.arg, Buffer):
        return not node.arg.is_overwritten and not node.arg.is_lost
    return node in computable


def clear_caches() -> None:
    """Forget every Program (kernels stay)."""
    _families.clear()
    _graphs.clear()


def run(roots: list[UOp], pending: PendingGraph, device: str) -> None:
    """Compute `roots` in one Program, and keep their values on them. `pending`: of the roots. Writes come
    oldest version first."""
    runtime = Device[device]  # before a Program is found: in the place of a lost device this opens another
    ready, variables = _find_program(roots, pending, device)
    _execute(ready, roots, pending.buffers, variables, runtime)


def prepare(roots: list[UOp], pending: PendingGraph, device: str) -> None:
    """Make and load the Program that `run` runs, and allocate its memory, as far as that is possible before
    it runs. For a capture the Program is only made."""
    Device[device]  # as in `run`
    ready, _ = _find_program(roots, pending, device)
    if watch.recording is None:
        ready.loaded()
        _arena_for(ready.compiled.program)
        for node in pending.buffers:
            node.arg.allocation.handle  # noqa: B018  allocates


def _find_program(roots: list[UOp], pending: PendingGraph, device: str) -> tuple[_Ready, Mapping[str, int]]:
    """The Program that computes `roots`, with its varying constants set, and the values of its Variables."""
    order, constants = pending.order, pending.constants
    if origins.watch.origins is not None:  # a Program that is kept has the lines of its first graph
        return _make_program(roots, pending, [], device), pending.unbound_key()[1]
    ends = (*[order[root] for root in roots], device, optimizing(), *map(env_text, Context.TEXTS))
    family, variables = _family(pending, ends)
    varying = family.arguments(constants) if family.varying and watch.recording is None else ()
    key = _graph_key(family, constants, varying)
    ready = _graphs.get(key)
    if ready is None:
        if watch.recording is None:  # a captured Program keeps its constants
            family.compare(pending, roots)
            varying = family.arguments(constants)
            key = _graph_key(family, constants, varying)
        ready = _make_program(roots, pending, [constants[i] for i in varying], device)
        _graphs.put(key, ready, _bytes_of(ready))
    if varying:
        values = tuple([constants[i] for i in varying])
        if values != ready.values:
            ready.values = ()
            for buffer, value in zip(ready.arguments, values, strict=True):
                buffer.write(memoryview(bytes_of(value.dtype, value.arg)))
            ready.values = values
    return ready, variables


def _graph_key(family: Family, constants: list[UOp], varying: tuple[int, ...]) -> tuple[Any, ...]:
    """The key of a graph's Program: its family, and its constants but for those that vary."""
    if not varying:
        return (family, *constants)
    return (family, *[None if i in varying else c for i, c in enumerate(constants)])


def _family(pending: PendingGraph, ends: tuple[Any, ...]) -> tuple[Family, Mapping[str, int]]:
    """The family of a graph with these `ends`, and the values of its Variables."""
    structure = (*pending.key, *ends)
    result = _families.get(structure)
    if result is not None:
        return result
    key, variables = pending.unbound_key()
    family = _families.get((*key, *ends)) if variables else None
    result = Family() if family is None else family[0], variables
    nbytes = _ENTRY_BYTES * (len(structure) + len(pending.constants))
    if variables:
        _families.put((*key, *ends), result, nbytes)
    _families.put(structure, result, nbytes)
    return result


def _bytes_of(ready: _Ready) -> int:
    """About how many bytes a loaded Program takes, with the code of its kernels."""
    program = ready.compiled.program
    code = sum(len(kernel.code) + _KERNEL_BYTES for kernel in program.kernels) + len(program.driver)
    return code + _ENTRY_BYTES * (len(program.buffers) + len(program.launches))


def _make_program(roots: list[UOp], pending: PendingGraph, scalars: list[UOp], device: str) -> _Ready:
    """The Program that computes `roots`, with arguments for the constants `scalars`."""
    arguments = {c: UOp.buffer_of(Buffer(Device[device], 1, c.dtype), c.dtype) for c in scalars}
    normal = normalize(UOp.sink(*roots), pending.buffers, arguments)
    compiled = compile_graph(normal.sink, device, len(normal.buffers))
    return _Ready(compiled, [node.arg for node in arguments.values()])


def _execute(
    ready: _Ready, roots: list[UOp], slots: list[UOp], variables: Mapping[str, int], runtime: Runtime
) -> None:
    program = ready.compiled.program
    for variable in program.variables:
        if variable.name not in variables:
            raise ArgumentError(f"Variable {variable.name}: it is not bound: use .bind(value)")
    buffers: list[Buffer | None] = [s.arg for s in slots]
    buffers += ready.arguments
    buffers += [None] * (len(program.buffers) - len(buffers))
    for i, position, size in ready.new_outputs:
        buffers[position] = Buffer(runtime, size, roots[i].dtype)
    if watch.recording is None:
        await_run()
        try:
            _perform(ready, buffers, variables, lambda: _is_repeatable(roots))
            set_all(*_values(ready.compiled, roots, slots, buffers))
        except BaseException as error:
            _after_exception(ready, roots, slots, buffers, error)
            raise
    else:
        recording = watch.recording
        run = RecordedRun(program, buffers, variables, lambda: _perform(ready, buffers, variables))
        objects, names, values = _values(ready.compiled, roots, slots, buffers)
        # at once: a run that is recorded, and whose values are not kept, would be made again
        set_all([*objects, recording], [*names, "runs"], [*values, [*recording.runs, run]])


def _after_exception(
    ready: _Ready,
    roots: list[UOp],
    slots: list[UOp],
    buffers: list[Buffer | None],
    error: BaseException,
) -> None:
    """Update nodes and memory after a run that an exception has ended."""
    if outcome() is Outcome.WHOLE:
        set_all(*_values(ready.compiled, roots, slots, buffers))
    elif outcome() is Outcome.HALF:
        program = ready.compiled.program
        for launch in program.launches:
            for position in program.kernels[launch.kernel].writes:
                buffer = buffers[launch.bindings[position].buffer]
                if buffer is not None:
                    buffer.allocation.damage(f"{half_written(error)}: {NEW_MEMORY}")


def _is_repeatable(roots: list[UOp]) -> bool:
    """Whether nodes can be computed again, with equal values, after some of the writes among them were
    made."""
    memory = {root.buffer.arg.allocation for root in roots if root.op is Ops.AFTER}
    seen: set[UOp] = set()
    todo = list(roots)
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        value = stored_value(node)
        if value is not None:
            if value.arg.allocation in memory:
                return False
        elif node.op is Ops.AFTER and node.src[1].op is not Ops.ASSIGN:
            return False  # a custom kernel may read what it writes
        else:
            todo += node.src[1:] if node.op in (Ops.AFTER, Ops.ASSIGN) else node.src
    return True


def _values(
    compiled: Compiled, roots: list[UOp], slots: list[UOp], buffers: list[Buffer | None]
) -> tuple[list[Any], list[str], list[Any]]:
    """The computed values, to be kept on their nodes, and the new versions of memory: for `set_all`."""
    versions: dict[Allocation, int] = {}
    kept = []
    for root, position in zip(roots, compiled.outputs, strict=True):
        buffer = buffers[position]
        assert buffer is not None
        if root.op is Ops.AFTER:  # roots come oldest version first: each replaces the previous ones
            allocation, buffer = buffer.allocation, buffer.alias()
            buffer.version = versions[allocation] = versions.get(allocation, buffer.version) + 1
        elif position < len(slots):  # a custom kernel has just written it
            buffer = buffer.alias()
            buffer.version = versions.get(buffer.allocation, buffer.version)
        kept.append(UOp.buffer_of(buffer, root.dtype))
    names = ["version"] * len(versions) + ["value"] * len(roots)
    return [*versions, *roots], names, [*versions.values(), *kept]


def _perform(
    ready: _Ready,
    buffers: list[Buffer | None],
    variables: Mapping[str, int],
    repeatable: Callable[[], bool] = lambda: False,
) -> None:
    program = ready.compiled.program
    executable = ready.loaded()
    handles = [b.allocation.handle if b is not None else None for b in buffers]
    started = time.perf_counter()
    run_loaded(executable, program, handles, variables, repeatable)
    if debug_level() >= 2:
        milliseconds = (time.perf_counter() - started) * 1e3
        size = f"{len(program.launches)} launches, {len(program.kernels)} different"
        print(f"{program.device}: {size}, {milliseconds:.3f} ms", file=sys.stderr)
    watch.executed += 1


def run_loaded(
    executable: Executable,
    program: Program,
    buffers: Sequence[Handle | None],
    variables: Mapping[str, int],
    repeatable: Callable[[], bool] = lambda: False,
) -> None:
    """Run a loaded Program, or let the profile run it that is being taken, and count the run. `repeatable`:
    as of `run_program`."""
    arena = _arena_for(program)
    if watch.runner is None:
        run_program(executable, program, buffers, arena, variables, repeatable)
    else:
        watch.runner(program, buffers, arena, variables)
    stats.count(program)


def _arena_for(program: Program) -> Handle | None:
    """The device's scratch memory, grown as needed. All Programs share it: they run one after the other."""
    if not program.arena:
        return None
    arena = _arenas.get(program.device)
    if arena is None or arena.nbytes < program.arena:
        arena = None  # the old one is freed before the new one is allocated
        _arenas.pop(program.device, None)
        arena = _arenas[program.device] = Allocation(Device[program.device], program.arena)
    return arena.handle
