"""`BEAM=n`: look for a faster way to tile each new kernel, timed on the device; n is how many steps from the
heuristics' choice the search may go. What it finds is kept on disk, so a kernel is searched for once on a
machine.
"""

from __future__ import annotations

import json
import sys
import time

from polygrad.codegen.lower import arrange, kernel_name, lower, lower_arranged, signature
from polygrad.codegen.parallel import THREAD, THREADS
from polygrad.codegen.plans import Plan, first_plan, neighbours
from polygrad.codegen.stage import LOCAL_SLOT
from polygrad.engine.cache import DiskCache
from polygrad.engine.devices import Backend
from polygrad.errors import CompileError, InternalError
from polygrad.helpers import debug_level
from polygrad.runtime.interface import Handle, Runtime
from polygrad.runtime.program import Binding, BufferSpec, Kernel, Launch, Program, Variable
from polygrad.schedule.memory import ALIGN, GUARD
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

_RUNS = 5
_LONG = 0.05  # seconds: a kernel that takes this long is timed once


def search(ast: UOp, device: str, backend: Backend, steps: int) -> Plan | None:
    """The fastest plan found for a kernel; None for the heuristics' own, and where kernels have Variables."""
    target = backend.target
    plain = lower(ast, target, optimized=False)
    if any(n.op is Ops.DEFINE_VAR for n in plain) or not target.simd_bytes:
        return None
    disk = DiskCache.default()
    key = DiskCache.key(target.key, f"plan within {steps}\n{signature(plain)}")
    kept = disk.get(key)
    if kept is not None:
        return _read(kept)
    arranged = arrange(ast, target)
    best = first_plan(arranged, target)
    fastest = _seconds(arranged, best, device, backend)
    start = fastest
    tried = {best}
    for _ in range(steps):
        improved = False
        for plan in neighbours(arranged, best, target):
            if plan in tried:
                continue
            tried.add(plan)
            seconds = _seconds(arranged, plan, device, backend)
            if seconds < 0.97 * fastest:
                best, fastest, improved = plan, seconds, True
        if not improved:
            break
    if debug_level() >= 1:
        change = f"{start * 1e6:.1f} -> {fastest * 1e6:.1f} us"
        print(f"search: {change} with {best} of {len(tried)} plans", file=sys.stderr)
    disk.put(key, json.dumps(best).encode())
    return best


def _read(kept: bytes) -> Plan | None:
    """A plan from the cache; None for anything else."""
    try:
        return tuple((int(a), int(b), int(c)) for a, b, c in json.loads(kept))
    except (ValueError, TypeError):
        return None


def _seconds(arranged: UOp, plan: Plan, device: str, backend: Backend) -> float:
    """The least time of some runs of a kernel whose loops are arranged, tiled by `plan`; infinite when it
    cannot be compiled."""
    runtime = backend.open()
    try:
        linear = lower_arranged(arranged, backend.target, plan)
        name = kernel_name(linear, signature(linear))
        code = backend.compile(name, linear)()
    except (CompileError, InternalError):
        return float("inf")
    params = sorted((n for n in linear if n.op is Ops.PARAM), key=lambda n: n.arg.slot)
    names = tuple(sorted(n.arg.name for n in linear if n.op is Ops.DEFINE_VAR))
    specs, at = [], 0
    for n in params:
        own = n.arg.slot >= LOCAL_SLOT
        specs.append(BufferSpec(n.arg.size, n.dtype.name, "scratch" if own else "input", at if own else -1))
        if own:
            at += -(-(n.arg.size * n.dtype.itemsize + GUARD) // ALIGN) * ALIGN
    program = Program(
        device=device,
        target=backend.target.key,
        buffers=tuple(specs),
        kernels=(
            Kernel(
                name,
                code,
                len(params),
                names,
                language=backend.language,
                writes=tuple(range(len(params))),  # one launch alone needs no barriers
                parallel=not {THREAD, THREADS}.isdisjoint(names),
            ),
        ),
        launches=(Launch(0, tuple(Binding(i) for i in range(len(params)))),),
        variables=tuple(Variable(v, 0, backend.target.threads) for v in names if v not in (THREAD, THREADS)),
        arena=at,
    )
    executable = runtime.load(program)
    handles = [None if n.arg.slot >= LOCAL_SLOT else _filled(runtime, n) for n in params]
    arena = runtime.allocate(at) if at else None
    try:
        best = float("inf")
        for _ in range(_RUNS):
            started = time.perf_counter()
            executable.run(handles, arena, {})
            best = min(best, time.perf_counter() - started)
            if best > _LONG:
                break
        return best
    finally:
        for handle in (*handles, arena):
            if handle is not None:
                runtime.free(handle)


def _filled(runtime: Runtime, param: UOp) -> Handle:
    """Memory for a PARAM with ordinary numbers in it: halves, and zeros for integers (safe indices)."""
    nbytes = param.arg.size * param.dtype.itemsize
    handle = runtime.allocate(max(nbytes, 1))
    half = {2: b"\x00\x38", 4: b"\x00\x00\x00\x3f", 8: b"\x00\x00\x00\x00\x00\x00\xe0\x3f"}
    unit = half[param.dtype.itemsize] if param.dtype.is_float else bytes(param.dtype.itemsize)
    if nbytes:
        runtime.write(handle, 0, memoryview(unit * param.arg.size))
    return handle
