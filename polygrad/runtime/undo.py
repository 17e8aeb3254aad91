"""Undo plans: they prevent a stopped run from leaving half-written memory that outlives it.

Launches write scratch and outputs, which are dropped with a stopped run, and memory that outlives the run:
state, parameters, the targets of assignments. Buffers of the second kind that early launches write are saved
before a run, if they are small, and restored when it is stopped: counters of random numbers, running
statistics, or all state of a long step. The commit point is the first launch that writes more than that. From
there on a run continues to its end.
"""

from __future__ import annotations

from dataclasses import dataclass

from polygrad.dtype import to_dtype
from polygrad.runtime.program import Program

SAVED_BYTES = 1 << 20  # the most bytes to save; copying them takes a tenth of a millisecond

_LOCAL_ROLES = frozenset({"scratch", "output"})


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """`saved`: the numbers of the buffers to save, with their bytes. `commit`: the number of the launch
    before which a run may be stopped, or the number of launches if it may always be stopped."""

    saved: tuple[tuple[int, int], ...]
    commit: int


def undo_plan(program: Program, limit: int = SAVED_BYTES) -> UndoPlan:
    """The plan that saves up to `limit` bytes."""
    saved: dict[int, int] = {}
    total = 0
    for i, launch in enumerate(program.launches):
        for position in program.kernels[launch.kernel].writes:
            number = launch.bindings[position].buffer
            spec = program.buffers[number]
            if spec.role in _LOCAL_ROLES or number in saved:
                continue
            nbytes = spec.size * to_dtype(spec.dtype).itemsize
            if total + nbytes > limit:
                return UndoPlan(tuple(saved.items()), i)
            saved[number] = nbytes
            total += nbytes
    return UndoPlan(tuple(saved.items()), len(program.launches))
