"""From a normalised graph to a Program: schedule, lower and compile each distinct kernel once, plan the
arena."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from polygrad.codegen.kernels.passes import decided, given_opts, scheduled
from polygrad.codegen.lower.passes import LoweringContext, kernel_name, lower, parameters, signature
from polygrad.engine.barriers import place_barriers
from polygrad.engine.cache import DiskCache
from polygrad.engine.compiled_kernels import Built, built_key, kernel_of
from polygrad.engine.devices import Backend, Device
from polygrad.engine.launch_grid import launch_grid
from polygrad.engine.search import search, search_graph
from polygrad.engine.stats import stats
from polygrad.errors import InternalError, OutOfMemoryError
from polygrad.helpers import LRU, debug_level, env_int
from polygrad.runtime.program import (
    Binding,
    BufferSpec,
    Kernel,
    Launch,
    Program,
    Variable,
)
from polygrad.schedule.kernel_info import forget_kernels
from polygrad.schedule.kernels import KernelCall
from polygrad.schedule.memory import Lifetime, lower_bound, plan
from polygrad.schedule.schedule import Schedule
from polygrad.uop.args import AddrSpace
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.printer import render
from polygrad.uop.shapes import max_numel

_KERNEL_BYTES = 16 << 20  # of compiled kernels kept
_NODE_BYTES = 400  # of a node of an AST, about


@dataclass(frozen=True, slots=True)
class Compiled:
    """A Program and where its results are: the SINK's source i lies in buffer `outputs[i]`, the first buffers
    are the slots."""

    program: Program
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Origin:
    """What a compiled kernel was made of: `run_passes(ast, context)` is its linear form again."""

    kernel: Kernel
    ast: UOp
    context: LoweringContext


_kernels: LRU[tuple[UOp, str, bool, int], Built] = LRU(_KERNEL_BYTES)


def compile_graph(sink: UOp, device: str, n_slots: int) -> Compiled:
    """Make the Program of a normalised graph with `n_slots` BUFFERs."""
    started = time.perf_counter()
    backend = Device.backend(device)
    backend.prepare()
    optimized = backend.optimized and optimizing()
    plan, context = scheduled(sink, backend.target, optimized)
    opts, width = given_opts(), env_int("BEAM", 0) if optimized else 0

    def build(done: Schedule, width: int) -> Compiled:
        kernels = compile_kernels([call.ast for call in done.calls], device, backend, width)
        return _assemble(sink, done, kernels, device, backend, n_slots)

    if opts is None and width:
        opts = search_graph(plan, context, backend, width, lambda done: build(done, 0).program)
    done = decided(plan, context, opts)
    stats.schedule_seconds += time.perf_counter() - started
    if backend.target.workgroups is not None:
        _check_sizes(done, device, backend)
    compiled = build(done, width)
    forget_kernels()
    stats.programs += 1
    return compiled


def _check_sizes(scheduled: Schedule, device: str, backend: Backend) -> None:
    """Raises OutOfMemoryError for a buffer that has more elements than an index counts: then there is no
    grid."""
    most = 1 << (backend.target.index_bits - 1)
    for call in scheduled.calls:
        for arg in call.args:
            if max_numel(arg.shape) > most:
                raise OutOfMemoryError(
                    f"device {device}: expected tensors of at most {most} elements, got one of shape "
                    f"{arg.shape}"
                )


def optimizing() -> bool:
    """NOOPT=1 turns the optimiser off."""
    return not env_int("NOOPT", 0)


def compile_kernels(asts: list[UOp], device: str, backend: Backend, width: int = 0) -> list[Built]:
    """A compiled kernel for each AST; equal ASTs share one, from memory, disk or the compiler. `width`: of
    the search for Opts."""
    optimized = backend.optimized and optimizing()
    key = backend.target.key
    found = {a: _kernels.get((a, key, optimized, width)) for a in asts}
    missing = [a for a, built in found.items() if built is None]
    made = _compile_missing(missing, device, backend, optimized, width) if missing else {}
    for a, built in made.items():
        nbytes = len(built.kernel.code) + _NODE_BYTES * len(a.toposort())
        _kernels.put((a, key, optimized, width), built, nbytes)
    return [found[a] or made[a] for a in asts]


def origin_of(name: str, device: str) -> Origin | None:
    """What the kernel of this name was compiled from; None unless it is among the kernels in memory.

    A captured step's driver holds the code of its kernels; this one has its own.
    """
    target = Device.backend(device).target.key
    for (ast, key, *_), built in _kernels.items():
        if built.kernel.name == name and key == target:
            return Origin(built.kernel, ast.replace(arg=None), built.context)
    return None


def _compile_missing(
    asts: list[UOp], device: str, backend: Backend, optimized: bool, width: int
) -> dict[UOp, Built]:
    started = time.perf_counter()
    made: dict[UOp, Built] = {}
    target = backend.target
    disk = DiskCache.default() if backend.caches_on_disk else None
    looking = debug_level() >= 3 or env_int("SPEC", 0)  # at what is done to a kernel: so it is done
    waiting: list[tuple[UOp, Built, str, Callable[[], bytes]]] = []
    for ast in asts:
        key = ""
        if disk is not None:
            key = built_key(ast, target.key, backend.language, backend.shared_memory, optimized, width)
            kept = None if looking else disk.get(key)
            if kept is not None:
                found = made[ast] = Built.from_bytes(kept, target, optimized)
                if debug_level() >= 1:
                    print(f"kernel {found.kernel.name}: from the disk", file=sys.stderr)
                stats.kernels_found += 1
                continue
        body, opts = ast.replace(arg=None), ast.arg
        if opts is None and optimized and width:
            opts = search(body, device, backend, width)
        linear = lower(body, target, optimized, opts)
        text = signature(linear)
        name = kernel_name(linear, text)
        if debug_level() >= 3:
            print(f"# {name}\n{render(linear)}", file=sys.stderr)
        params = parameters(linear)
        slots = tuple(n.arg.slot for n in params if n.arg.space is AddrSpace.GLOBAL)
        local = tuple(n.arg.size * n.dtype.itemsize for n in params[len(slots) :])
        if debug_level() >= 1:
            print(f"kernel {name}: compiled", file=sys.stderr)
        grid = launch_grid(linear) if target.workgroups else None
        kernel = kernel_of(name, linear, params, backend)
        built = Built(kernel, slots, local, LoweringContext(target, optimized, opts), grid)
        waiting.append((ast, built, key, backend.compile(name, linear)))
    stats.codegen_seconds += time.perf_counter() - started
    started = time.perf_counter()
    for ast, built, key, finish in waiting:
        built = replace(built, kernel=replace(built.kernel, code=finish()))
        made[ast] = built
        if disk is not None:
            disk.put(key, built.to_bytes())
    stats.kernels_compiled += len(waiting)
    stats.compile_seconds += time.perf_counter() - started
    return made


def _assemble(
    sink: UOp, done: Schedule, kernels: list[Built], device: str, backend: Backend, n_slots: int
) -> Compiled:
    """Number the buffers (slots, outputs, scratch), plan the scratch, list the launches, place barriers."""
    specs: list[BufferSpec | None] = [None] * n_slots
    number: dict[UOp, int] = {}
    for node in sink.toposort():
        if node.op is Ops.BUFFER:
            number[node] = node.arg.slot
            specs[node.arg.slot] = BufferSpec(node.arg.size, node.dtype.name, "input")
    written = {call.args[0] for call in done.calls}
    outputs = []
    for root in done.roots:
        if root not in number:
            if root not in written and max_numel(root.shape):
                raise InternalError(f"{root.op} was asked for but no kernel computes it")
            number[root] = len(specs)
            specs.append(BufferSpec(max_numel(root.shape), root.dtype.name, "output"))
        elif root in written and number[root] < n_slots:
            specs[number[root]] = BufferSpec(max_numel(root.shape), root.dtype.name, "state")
        outputs.append(number[root])
    first: dict[UOp, int] = {}
    last: dict[UOp, int] = {}
    for i, call in enumerate(done.calls):
        for arg in call.args:
            if arg not in number:
                first.setdefault(arg, i)
                last[arg] = i
    lives = [Lifetime(max_numel(n.shape) * n.dtype.itemsize, first[n], last[n]) for n in first]
    lives += [Lifetime(nbytes, i, i) for i, k in enumerate(kernels) for nbytes in k.local]
    offsets, arena = plan(lives, backend.target.alignment)
    stats.arena_bytes, stats.arena_lower_bound = arena, lower_bound(lives)
    for node, offset in zip(first, offsets, strict=False):
        number[node] = len(specs)
        specs.append(BufferSpec(max_numel(node.shape), node.dtype.name, "scratch", offset))
    locals_: list[list[Binding]] = [[] for _ in kernels]
    for life, offset in zip(lives[len(first) :], offsets[len(first) :], strict=True):
        locals_[life.first].append(Binding(len(specs)))
        specs.append(BufferSpec(life.nbytes, "uint8", "scratch", offset))
    distinct = list(dict.fromkeys(k.kernel for k in kernels))
    where = {k: i for i, k in enumerate(distinct)}
    launches = tuple(
        Launch(where[k.kernel], (*(_binding(call, slot, number) for slot in k.slots), *own), k.grid)
        for k, call, own in zip(kernels, done.calls, locals_, strict=True)
    )
    variables = tuple(Variable(*v.arg[:3]) for v in _variables(done))
    buffers = tuple(s if s is not None else BufferSpec(0, "uint8", "input") for s in specs)
    threads = backend.target.threads if any(k.parallel for k in distinct) else 1
    program = Program(
        device,
        backend.target.key,
        buffers,
        tuple(distinct),
        launches,
        variables,
        arena,
        threads=threads,
        shared_memory=backend.shared_memory,
    )
    return Compiled(place_barriers(program), tuple(outputs))


def _binding(call: KernelCall, slot: int, number: dict[UOp, int]) -> Binding:
    return Binding(number[call.args[slot]], call.offsets[slot] if call.offsets else 0)


def _variables(done: Schedule) -> list[UOp]:
    asts = {call.ast for call in done.calls}
    return sorted({v for ast in asts for v in ast.variables()}, key=lambda v: v.arg)
