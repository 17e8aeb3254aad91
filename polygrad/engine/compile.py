"""From a normalised graph to a Program: schedule, lower and compile each distinct kernel once, and say what
each launch reads and writes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from polygrad.codegen.kernels.passes import decide_kernels, given_opts, schedule_graph
from polygrad.codegen.lower.passes import LoweringContext, lower
from polygrad.engine.assembler import Call, Compiled, assemble, plan_arena
from polygrad.engine.cache import DiskCache
from polygrad.engine.compiled_kernels import KernelArtefact, artefact_key, describe_kernel
from polygrad.engine.devices import Backend, Device
from polygrad.engine.kept_programs import keep_program, program_key, read_program
from polygrad.engine.search import search, search_graph
from polygrad.engine.stats import stats
from polygrad.errors import InternalError, OutOfMemoryError
from polygrad.helpers import LRU, debug_level, env_int, env_text
from polygrad.helpers import Context as Settings
from polygrad.runtime.program import BufferSpec, Kernel, Variable
from polygrad.schedule.kernel_info import forget_kernels
from polygrad.schedule.schedule import Schedule
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.origins import watch
from polygrad.uop.printer import render
from polygrad.uop.shapes import max_numel

_KERNEL_BYTES = 16 << 20  # of compiled kernels kept
_GRAPH_BYTES = 8 << 20  # of graphs whose Programs came from the disk
_NODE_BYTES = 400  # of a node of an AST, about


@dataclass(frozen=True, slots=True)
class Origin:
    """What a compiled kernel was made of: `run_passes(ast, context)` is its linear form again. `slots`: the
    PARAMs of the AST that its first pointers are for."""

    kernel: Kernel
    ast: UOp
    context: LoweringContext
    slots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _KeptGraph:
    """A graph whose Program came from the disk, and the names of its kernels."""

    sink: UOp
    device: str
    n_slots: int
    names: frozenset[str]


_kernels: LRU[tuple[UOp, str, bool, int], KernelArtefact] = LRU(_KERNEL_BYTES)
_kept_graphs: LRU[str, _KeptGraph] = LRU(_GRAPH_BYTES)


def compile_graph(sink: UOp, device: str, n_slots: int) -> Compiled:
    """The Program of a normalised graph with `n_slots` BUFFERs, from the disk or newly made."""
    started = time.perf_counter()
    backend = Device.backend(device)
    optimized = backend.optimized and optimizing()
    key = _program_key(sink, device, backend, optimized, n_slots)
    is_new = key is None or _is_observed() or watch.origins is not None
    compiled = None if key is None or is_new else read_program(key, backend.target, optimized)
    stats.schedule_seconds += time.perf_counter() - started
    if compiled is None:
        backend.prepare()
        compiled, kernels = _compile(sink, device, backend, optimized, n_slots)
        if key is not None:
            keep_program(key, compiled, kernels)
    elif key is not None:
        names = frozenset(kernel.name for kernel in compiled.program.kernels)
        _note_kept(key, _KeptGraph(sink, device, n_slots, names))
    stats.arena_bytes, stats.arena_lower_bound = compiled.program.arena, compiled.arena_lower_bound
    stats.programs += 1
    return compiled


def _note_kept(key: str, graph: _KeptGraph) -> None:
    """Count a Program that came from the disk, and remember its graph for `origin_of`."""
    _kept_graphs.put(key, graph, _NODE_BYTES * len(graph.sink.toposort()))
    stats.kernels_found += len(graph.names)
    if debug_level() >= 1:
        print(f"program of {len(graph.names)} kernels: from the disk", file=sys.stderr)


def _program_key(sink: UOp, device: str, backend: Backend, optimized: bool, n_slots: int) -> str | None:
    """None for a Program that is not kept: decisions that the environment gives are tried, not used."""
    if not backend.caches_on_disk or any(map(env_text, Settings.TEXTS)):
        return None
    width = env_int("BEAM", 0)
    how = (device, backend.target.key, backend.language, backend.shared_memory, optimized, width)
    return program_key(sink, n_slots, *how)


def _is_observed() -> bool:
    """Whether somebody looks at how kernels are made, so that they are made."""
    return debug_level() >= 3 or bool(env_int("SPEC", 0))


def _compile(
    sink: UOp, device: str, backend: Backend, optimized: bool, n_slots: int
) -> tuple[Compiled, list[KernelArtefact]]:
    """The Program of a graph, and a compiled kernel for each of its launches."""
    started = time.perf_counter()
    plan, context = schedule_graph(sink, backend.target, optimized)
    opts, width = given_opts(), env_int("BEAM", 0) if optimized else 0

    def build(schedule: Schedule, width: int) -> tuple[Compiled, list[KernelArtefact]]:
        kernels = compile_kernels([call.ast for call in schedule.calls], device, backend, width)
        return _program(sink, schedule, kernels, device, n_slots), kernels

    if opts is None and width:
        opts = search_graph(plan, context, backend, width, lambda schedule: build(schedule, 0)[0].program)
    schedule = decide_kernels(plan, context, opts)
    stats.schedule_seconds += time.perf_counter() - started
    if backend.target.workgroups is not None:
        _check_sizes(schedule, device, backend)
    out = build(schedule, width)
    forget_kernels()
    return out


def _check_sizes(plan: Schedule, device: str, backend: Backend) -> None:
    """Raises OutOfMemoryError for a buffer that has more elements than an index counts: then there is no
    grid."""
    limit = 1 << (backend.target.index_bits - 1)
    for call in plan.calls:
        for arg in call.args:
            if max_numel(arg.shape) > limit:
                raise OutOfMemoryError(
                    f"device {device}: expected tensors of at most {limit} elements, got one of shape "
                    f"{arg.shape}"
                )


def optimizing() -> bool:
    """NOOPT=1 turns the optimiser off."""
    return not env_int("NOOPT", 0)


def compile_kernels(asts: list[UOp], device: str, backend: Backend, width: int = 0) -> list[KernelArtefact]:
    """A compiled kernel for each AST; equal ASTs share one, from memory, disk or the compiler. `width`: of
    the search for Opts."""
    optimized = backend.optimized and optimizing()
    key = backend.target.key
    artefacts = {a: _kernels.get((a, key, optimized, width)) for a in asts}
    missing = [a for a, artefact in artefacts.items() if artefact is None]
    compiled = _compile_missing(missing, device, backend, optimized, width) if missing else {}
    for a, artefact in compiled.items():
        nbytes = len(artefact.kernel.code) + _NODE_BYTES * len(a.toposort())
        _kernels.put((a, key, optimized, width), artefact, nbytes)
    return [artefacts[a] or compiled[a] for a in asts]


def origin_of(name: str, device: str) -> Origin | None:
    """What the kernel of this name was compiled from; None unless it, or a graph that has it, is in memory.

    A captured step's driver holds the code of its kernels; this one has its own.
    """
    backend = Device.backend(device)
    origin = _origin_in_memory(name, backend.target.key)
    if origin is not None:
        return origin
    for _, graph in _kept_graphs.items():
        if graph.device == device and name in graph.names:
            _compile(graph.sink, device, backend, backend.optimized and optimizing(), graph.n_slots)
            return _origin_in_memory(name, backend.target.key)
    return None


def _origin_in_memory(name: str, target: str) -> Origin | None:
    for (ast, key, *_), artefact in _kernels.items():
        if artefact.kernel.name == name and key == target:
            return Origin(artefact.kernel, ast.replace(arg=None), artefact.context, artefact.slots)
    return None


def _compile_missing(
    asts: list[UOp], device: str, backend: Backend, optimized: bool, width: int
) -> dict[UOp, KernelArtefact]:
    started = time.perf_counter()
    artefacts: dict[UOp, KernelArtefact] = {}
    target = backend.target
    disk = DiskCache.default() if backend.caches_on_disk else None
    waiting: list[tuple[UOp, KernelArtefact, str, Callable[[], bytes]]] = []
    for ast in asts:
        key = ""
        if disk is not None:
            key = artefact_key(ast, target.key, backend.language, backend.shared_memory, optimized, width)
            entry = None if _is_observed() else disk.get(key)
            if entry is not None:
                artefact = artefacts[ast] = KernelArtefact.from_bytes(entry, target, optimized, key)
                if debug_level() >= 1:
                    print(f"kernel {artefact.kernel.name}: from the disk", file=sys.stderr)
                stats.kernels_found += 1
                continue
        body, opts = ast.replace(arg=None), ast.arg
        if opts is None and optimized and width:
            opts = search(body, device, backend, width)
        linear = lower(body, target, optimized, opts)
        artefact = describe_kernel(linear, LoweringContext(target, optimized, opts), backend.language)
        name = artefact.kernel.name
        if debug_level() >= 3:
            print(f"# {name}\n{render(linear)}", file=sys.stderr)
        if debug_level() >= 1:
            print(f"kernel {name}: compiled", file=sys.stderr)
        waiting.append((ast, artefact, key, backend.compile(name, linear)))
    stats.codegen_seconds += time.perf_counter() - started
    started = time.perf_counter()
    for ast, artefact, key, finish in waiting:
        artefact = artefacts[ast] = artefact.with_code(finish(), key)
        if disk is not None:
            disk.put(key, artefact.to_bytes())
    stats.kernels_compiled += len(waiting)
    stats.compile_seconds += time.perf_counter() - started
    return artefacts


def _program(
    sink: UOp, schedule: Schedule, kernels: list[KernelArtefact], device: str, n_slots: int
) -> Compiled:
    """The Program of scheduled kernels: its buffers are the slots, the outputs, then what is scratch."""
    slots = {node: node.arg.slot for node in sink.toposort() if node.op is Ops.BUFFER}

    def key(node: UOp) -> Hashable:
        return slots.get(node, node)

    buffers: dict[Hashable, BufferSpec] = {slot: BufferSpec(0, "uint8", "input") for slot in range(n_slots)}
    for node, slot in slots.items():
        buffers[slot] = BufferSpec(node.arg.size, node.dtype.name, "input")
    written = {node for call in schedule.calls for node in call.written}
    for root in schedule.roots:
        if root in written or root not in slots:
            buffers[key(root)] = _spec(root, "state" if root in slots else "output")
        if root not in written and root not in slots and max_numel(root.shape):
            raise InternalError(f"{root.op} was asked for but no kernel computes it")
    calls = []
    for i, (call, artefact) in enumerate(zip(schedule.calls, kernels, strict=True)):
        pointers: list[tuple[Hashable, int]] = []
        for slot in artefact.slots:
            arg = call.args[slot]
            buffers.setdefault(key(arg), _spec(arg, "scratch"))
            pointers.append((key(arg), call.offsets[slot] if call.offsets else 0))
        for n, nbytes in enumerate(artefact.local):
            buffers[i, n] = BufferSpec(nbytes, "uint8", "scratch")
            pointers.append(((i, n), 0))
        calls.append(Call(artefact.kernel, tuple(pointers), artefact.grid, call.places))
    arena = plan_arena(device, buffers, [call.used for call in calls])
    variables = sorted({v for call in schedule.calls for v in call.ast.variables()}, key=lambda v: v.arg)
    program = assemble(device, buffers, calls, arena, [Variable(*v.arg[:3]) for v in variables])
    number = {k: i for i, k in enumerate(buffers)}
    return Compiled(program, tuple(number[key(root)] for root in schedule.roots), arena.lower_bound)


def _spec(node: UOp, role: str) -> BufferSpec:
    return BufferSpec(max_numel(node.shape), node.dtype.name, role)
