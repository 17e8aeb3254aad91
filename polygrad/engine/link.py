"""The driver of a captured Program, as the data that a renderer writes it from."""

from __future__ import annotations

from polygrad.helpers import THREAD_VARIABLES
from polygrad.renderer.driver import Driver, DriverCall, TablePointer
from polygrad.runtime.program import Program
from polygrad.runtime.undo import undo_plan


def driver_of(program: Program) -> Driver:
    """The driver that makes the launches of `program`."""
    numbers: dict[str, int | str] = {v.name: i for i, v in enumerate(program.variables)}
    numbers |= {name: name for name in THREAD_VARIABLES}
    calls = []
    for launch in program.launches:
        kernel = program.kernels[launch.kernel]
        pointers = tuple(TablePointer(*program.place(binding)) for binding in launch.bindings)
        values = tuple(numbers[name] for name in kernel.variables)
        calls.append(DriverCall(launch.kernel, pointers, values, kernel.parallel, launch.barrier))
    return Driver(
        tuple(k.name for k in program.kernels),
        tuple(calls),
        len(program.buffers) + 1,
        undo_plan(program).commit,
    )
