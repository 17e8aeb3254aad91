"""The driver of a captured Program: what its launches are to a renderer."""

from __future__ import annotations

from polygrad.renderer.driver import Call, Driver, Pointer, ThreadValue
from polygrad.runtime.program import THREAD, THREADS, Program

_THREAD_VALUES: dict[str, ThreadValue] = {THREAD: "thread", THREADS: "threads"}


def driver_of(program: Program) -> Driver:
    """The driver that makes the launches of `program`."""
    numbers: dict[str, int | ThreadValue] = {v.name: i for i, v in enumerate(program.variables)}
    numbers |= _THREAD_VALUES
    calls = []
    for launch in program.launches:
        kernel = program.kernels[launch.kernel]
        pointers = tuple(Pointer(*program.place(binding)) for binding in launch.bindings)
        values = tuple(numbers[name] for name in kernel.variables)
        calls.append(Call(launch.kernel, pointers, values, kernel.parallel, launch.barrier))
    return Driver(tuple(k.name for k in program.kernels), tuple(calls), len(program.buffers) + 1)
