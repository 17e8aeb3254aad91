"""The time of a kernel or a Program on memory of its own, outside of any computation."""

from __future__ import annotations

from collections.abc import Hashable

from polygrad.codegen.lower.passes import LoweringContext, parameters
from polygrad.dtype import to_dtype
from polygrad.engine.assembler import Call, assemble, plan_arena
from polygrad.engine.compiled_kernels import describe_kernel
from polygrad.engine.devices import Backend, kind_of
from polygrad.errors import OutOfMemoryError
from polygrad.runtime.interface import Handle, Runtime
from polygrad.runtime.program import BufferSpec, Program
from polygrad.uop.args import AddrSpace
from polygrad.uop.node import UOp

_RUNS = 5
_LONG = 0.05  # seconds: what takes this long is timed twice, the first time touches new memory


def time_kernel(linear: list[UOp], context: LoweringContext, device: str, backend: Backend) -> float:
    """The least seconds of some runs of a linear kernel without Variables, which `context` lowered; infinite
    for lack of memory. Raises CompileError, InternalError."""
    artefact = describe_kernel(linear, context, backend.language)
    artefact = artefact.with_code(backend.compile(artefact.kernel.name, linear)())
    buffers: dict[Hashable, BufferSpec] = {}
    for n in parameters(linear):
        role = "scratch" if n.arg.space is AddrSpace.LOCAL else "input"
        buffers[n] = BufferSpec(n.arg.size, n.dtype.name, role)
    call = Call(artefact.kernel, tuple((key, 0) for key in buffers), artefact.grid)
    kind = kind_of(device)  # what `open` gives, also for "CPU:1"
    program = assemble(kind, buffers, [call], plan_arena(kind, buffers, [buffers]))
    return time_program(program, backend.open())


def time_program(program: Program, runtime: Runtime) -> float:
    """The least seconds of some runs of a Program without Variables, in memory of its own; infinite where
    that is more than there is."""
    executable = runtime.load(program)
    handles: list[Handle | None] = []
    arena = None
    try:
        for spec in program.buffers:
            handles.append(None if spec.role == "scratch" else _fill(runtime, spec))
        arena = runtime.allocate(program.arena) if program.arena else None
        best = float("inf")
        for i in range(_RUNS):
            best = min(best, executable.measure(handles, arena, {}))
            if i and best > _LONG:
                break
        return best
    except OutOfMemoryError:
        return float("inf")
    finally:
        for handle in (*handles, arena):
            if handle is not None:
                runtime.free(handle)


def _fill(runtime: Runtime, spec: BufferSpec) -> Handle:
    """Memory for a buffer with ordinary numbers in it: halves, and zeros for integers (safe indices)."""
    dtype = to_dtype(spec.dtype)
    handle = runtime.allocate(max(spec.size * dtype.itemsize, 1))
    half = {2: b"\x00\x38", 4: b"\x00\x00\x00\x3f", 8: b"\x00\x00\x00\x00\x00\x00\xe0\x3f"}
    unit = half.get(dtype.itemsize, bytes(1)) if dtype.is_float else bytes(dtype.itemsize)
    if spec.size:
        runtime.write(handle, 0, memoryview(unit * spec.size))
    return handle
