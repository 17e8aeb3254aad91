"""`BEAM=n`: a beam search of width n for the fastest Opts of each new kernel, timed on the device.

It starts from what the heuristics choose and from no Opts at all, and goes on from the n fastest sequences,
one Opt more, less or with other numbers at a time, until no step is faster. What it finds is kept on disk, so
a kernel is searched for once on a machine, until the code generator changes.
"""

from __future__ import annotations

import sys

from polygrad.codegen.lower.passes import (
    UNOPTIMIZED,
    Context,
    kernel_name,
    lower,
    parameters,
    run_passes,
    signature,
)
from polygrad.codegen.opts.heuristics import optimize
from polygrad.codegen.opts.opt import Opt, parse_opts, render_opts
from polygrad.codegen.opts.search_space import neighbours
from polygrad.engine.cache import DiskCache
from polygrad.engine.compiled_kernels import kernel_of
from polygrad.engine.devices import Backend
from polygrad.engine.launch_grid import launch_grid
from polygrad.errors import ArgumentError, CompileError, InternalError, OptError, OutOfMemoryError
from polygrad.helpers import THREAD_VARIABLES, debug_level
from polygrad.runtime.interface import Handle, Runtime
from polygrad.runtime.program import Binding, BufferSpec, Launch, Program, Variable
from polygrad.schedule.memory import ALIGN, GUARD
from polygrad.uop.args import AddrSpace
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

_RUNS = 5
_LONG = 0.05  # seconds: a kernel that takes this long is timed once
_FASTER = 0.97  # of the time so far: a step that is worth it
_MAX_STEPS = 12

Opts = tuple[Opt, ...]


def search(ast: UOp, device: str, backend: Backend, width: int) -> Opts | None:
    """The fastest Opts found for a kernel; None for the heuristics' own where kernels have Variables."""
    target = backend.target
    plain = lower(ast, target, optimized=False)
    if any(n.op is Ops.DEFINE_VAR for n in plain) or not target.simd_bytes:
        return None
    disk = DiskCache.default()
    key = DiskCache.key(target.key, f"beam {width}\n{signature(plain)}")
    kept = disk.get(key)
    if kept is not None and (opts := _read(kept)) is not None:
        return opts
    kernel = run_passes(ast, Context(target), through=UNOPTIMIZED)
    assert isinstance(kernel, UOp)
    found = _Beam(kernel, device, backend).search(width)
    disk.put(key, render_opts(found).encode())
    return found


def _read(kept: bytes) -> Opts | None:
    """Opts from the cache; None for anything else."""
    try:
        return parse_opts(kept.decode())
    except (ArgumentError, UnicodeDecodeError):
        return None


class _Beam:
    def __init__(self, kernel: UOp, device: str, backend: Backend) -> None:
        self.kernel, self.device, self.backend = kernel, device, backend
        self.times: dict[UOp, float] = {}  # seconds, by the kernel that Opts made

    def search(self, width: int) -> Opts:
        """The fastest sequence of Opts that a beam of this width finds."""
        steps = optimize(self.kernel, self.backend.target)
        start = self.time(steps[-1][1] if steps else self.kernel)
        opts = tuple(opt for opt, _ in steps)
        beam = sorted([(start, opts), (self.time(self.kernel), ())], key=lambda entry: entry[0])[:width]
        for _ in range(_MAX_STEPS):
            found = [
                (self.time(kernel), sequence)
                for _, opts in beam
                for sequence, kernel in neighbours(self.kernel, opts, self.backend.target)
                if kernel not in self.times
            ]
            fastest = beam[0][0]
            beam = sorted([*beam, *found], key=lambda entry: entry[0])[:width]
            if beam[0][0] >= _FASTER * fastest:
                break
        seconds, best = beam[0]
        if debug_level() >= 1:
            change = f"{start * 1e6:.1f} -> {seconds * 1e6:.1f} us"
            print(f"search: {change} with {render_opts(best)} of {len(self.times)} kernels", file=sys.stderr)
        return best

    def time(self, kernel: UOp) -> float:
        """The least seconds of some runs; infinite for a kernel that cannot be compiled, or run for lack of
        memory."""
        if kernel not in self.times:
            self.times[kernel] = _seconds(kernel, self.device, self.backend)
        return self.times[kernel]


def _seconds(kernel: UOp, device: str, backend: Backend) -> float:
    runtime = backend.open()
    try:
        linear = run_passes(kernel, Context(backend.target), after="optimize")
        assert isinstance(linear, list)
        name = kernel_name(linear, signature(linear))
        code = backend.compile(name, linear)()
    except (CompileError, InternalError, OptError):  # OptError: more than a workgroup has
        return float("inf")
    params = parameters(linear)
    grid = launch_grid(linear) if backend.target.workgroups else None
    described = kernel_of(name, linear, params, backend, code)
    specs, at = [], 0
    for n in params:
        own = n.arg.space is AddrSpace.LOCAL
        specs.append(BufferSpec(n.arg.size, n.dtype.name, "scratch" if own else "input", at if own else -1))
        if own:
            at += -(-(n.arg.size * n.dtype.itemsize + GUARD) // ALIGN) * ALIGN
    program = Program(
        device=device,
        target=backend.target.key,
        buffers=tuple(specs),
        kernels=(described,),
        launches=(Launch(0, tuple(Binding(i) for i in range(len(params))), grid),),
        variables=tuple(
            Variable(v, 0, backend.target.threads) for v in described.variables if v not in THREAD_VARIABLES
        ),
        arena=at,
    )
    executable = runtime.load(program)
    handles: list[Handle] = []
    arena = None
    try:
        handles += [None if n.arg.space is AddrSpace.LOCAL else _fill(runtime, n) for n in params]
        arena = runtime.allocate(at) if at else None
        best = float("inf")
        for _ in range(_RUNS):
            best = min(best, executable.measure(handles, arena, {}))
            if best > _LONG:
                break
        return best
    except OutOfMemoryError:
        return float("inf")
    finally:
        for handle in (*handles, arena):
            if handle is not None:
                runtime.free(handle)


def _fill(runtime: Runtime, param: UOp) -> Handle:
    """Memory for a PARAM with ordinary numbers in it: halves, and zeros for integers (safe indices)."""
    nbytes = param.arg.size * param.dtype.itemsize
    handle = runtime.allocate(max(nbytes, 1))
    half = {2: b"\x00\x38", 4: b"\x00\x00\x00\x3f", 8: b"\x00\x00\x00\x00\x00\x00\xe0\x3f"}
    unit = half[param.dtype.itemsize] if param.dtype.is_float else bytes(param.dtype.itemsize)
    if nbytes:
        runtime.write(handle, 0, memoryview(unit * param.arg.size))
    return handle
