"""The code of an expression, as text: its Programs, and their kernels as source and as machine code."""

from __future__ import annotations

from collections.abc import Sequence

from polygrad.codegen.lower.passes import run_passes
from polygrad.codegen.opts.opt import render_opts
from polygrad.engine.compile import Origin, origin_of
from polygrad.engine.devices import Device
from polygrad.engine.explain import opts_of, work
from polygrad.engine.preview import preview
from polygrad.engine.recording import RecordedRun, Transfer
from polygrad.engine.report import count_of
from polygrad.runtime.grid import GridSize
from polygrad.runtime.program import Launch, Program
from polygrad.uop.node import UOp

_WIDTH = 80


def listing(uops: Sequence[UOp], device: str | None = None, machine: bool = False) -> str:
    """The Programs that `realize` would run for nodes, as text; nothing is computed. `machine`: with machine
    code."""
    runs = preview(uops, device)
    what = ", ".join(f"{u.dtype} of shape {u.shape}" for u in uops)
    if not runs:
        return f"{what}: nothing to run: it is computed already, or has no elements\n"
    parts = [f"{what}\n"]
    seen: set[tuple[str, str]] = set()
    for i, run in enumerate(runs, 1):
        place = f"{i} of {len(runs)}"
        if isinstance(run, Transfer):
            parts.append(_transfer(place, run))
        else:
            parts += _program(place, run, seen, machine)
    return "\n".join(parts)


def _heading(text: str, line: str) -> str:
    return f"{text}\n{line * max(len(text), _WIDTH)}"


def _count(things: Sequence[object], one: str, more: str = "") -> str:
    return f"1 {one}" if len(things) == 1 else f"{len(things)} {more or one + 's'}"


def _transfer(place: str, run: Transfer) -> str:
    head = _heading(f"Copy {place}: {run.source.device} to {run.target.device}", "=")
    return f"{head}\n{run.source.nbytes} bytes, {run.source.dtype}[{run.source.size}]\n"


def _program(place: str, run: RecordedRun, seen: set[tuple[str, str]], machine: bool) -> list[str]:
    """A Program, and those of its kernels that are not in `seen`."""
    program = run.program
    counts = f"{_count(program.kernels, 'kernel')}, {_count(program.launches, 'launch', 'launches')}"
    lines = [
        _heading(f"Program {place} on {program.device}: {counts}", "="),
        f"target   {program.target}",
        f"scratch  {program.arena} bytes",
    ]
    if run.variables:
        lines.append("values   " + ", ".join(f"{name} = {n}" for name, n in sorted(run.variables.items())))
    for i, spec in enumerate(program.buffers):
        lines.append(f"buffer   {i}: {spec.role}, {spec.dtype}[{spec.size}]")
    for i, launch in enumerate(program.launches):
        lines.append(f"launch   {i}: {_launch(program, launch)}")
    parts = ["\n".join([*lines, ""])]
    for kernel in program.kernels:
        if (kernel.name, program.device) not in seen:
            seen.add((kernel.name, program.device))
            parts.append(_kernel(kernel.name, program.device, machine))
    return parts


def _launch(program: Program, launch: Launch) -> str:
    kernel = program.kernels[launch.kernel]
    written = [launch.bindings[i].buffer for i in kernel.writes]
    read = [b.buffer for i, b in enumerate(launch.bindings) if i not in kernel.writes]
    words = [kernel.name, f"writes {_numbers(written)}", f"reads {_numbers(read)}"]
    if launch.grid is not None:
        words.append(f"on {' x '.join(map(_size, launch.grid))} workgroups")
    if kernel.parallel:
        words.append("on all threads")
    return ", ".join(words)


def _numbers(buffers: Sequence[int]) -> str:
    return " ".join(map(str, buffers)) or "nothing"


def _size(size: GridSize) -> str:
    return str(size) if isinstance(size, int | str) else repr(size)


def _kernel(name: str, device: str, machine: bool) -> str:
    """A kernel's Opts, work and code."""
    head = _heading(f"Kernel {name} on {device}", "-")
    origin = origin_of(name, device)
    if origin is None:
        return f"{head}\nThe kernel is not in memory any more, so its code is not known.\n"
    todo = work(origin)
    lines = [
        head,
        f"opts     {render_opts(opts_of(origin)) or 'none'}",
        f"work     {count_of(todo.flops)}FLOP, {count_of(todo.nbytes)}B",
    ]
    if origin.kernel.workgroup is not None:
        lines.append(f"group    {' x '.join(map(str, origin.kernel.workgroup))} invocations")
    return "\n".join([*lines, *_code(origin, device, machine), ""])


def _code(origin: Origin, device: str, machine: bool) -> list[str]:
    """A kernel's text in the language of its device and, if asked for, its machine code."""
    backend = Device.backend(device)
    if backend.source is None:
        return ["", f"(device {device} has no text for its kernels)"]
    linear = run_passes(origin.ast, origin.context)
    assert isinstance(linear, list)
    source = backend.source(origin.kernel.name, linear)
    lines = ["", f"{backend.source_name}:", "", source.strip("\n")]
    if machine and backend.assembly is not None:
        lines += ["", "Machine code:", "", backend.assembly(source).strip("\n")]
    elif machine:
        lines += ["", f"(machine code: the driver or engine of {device} makes it, and does not show it)"]
    return lines
