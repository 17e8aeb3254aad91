"""What a run writes that outlives it, and how a run that is stopped leaves no half of that.

Launches write scratch and outputs, which go with a run that is stopped, and memory that others see: state,
parameters, what is assigned to. Of that, what is written early and can be copied in next to no time (counters
of random numbers, running statistics; all state of a step that takes long) is saved before the run and
restored. From the first launch on that writes more, the commit point, a run goes through to its end.
"""

from __future__ import annotations

from dataclasses import dataclass

from polygrad.dtype import to_dtype
from polygrad.runtime.program import Program

SAVED_BYTES = 1 << 20  # at most; copying them takes a tenth of a millisecond

_LOCAL_ROLES = frozenset({"scratch", "output"})


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """`saved`: the numbers of the buffers to save, with their bytes; `commit`: the number of the launch
    before which a run may be stopped, that of all launches where it may always."""

    saved: tuple[tuple[int, int], ...]
    commit: int


def undo_plan(program: Program, most: int = SAVED_BYTES) -> UndoPlan:
    """The plan that saves up to `most` bytes."""
    saved: dict[int, int] = {}
    total = 0
    for i, launch in enumerate(program.launches):
        for position in program.kernels[launch.kernel].writes:
            number = launch.bindings[position].buffer
            spec = program.buffers[number]
            if spec.role in _LOCAL_ROLES or number in saved:
                continue
            nbytes = spec.size * to_dtype(spec.dtype).itemsize
            if total + nbytes > most:
                return UndoPlan(tuple(saved.items()), i)
            saved[number] = nbytes
            total += nbytes
    return UndoPlan(tuple(saved.items()), len(program.launches))
