"""Where the threads of a run wait for each other: decided here, once, when a Program is assembled.

Two launches conflict when one writes memory that the other reads or writes, and not both are serial (thread
0 runs those in order). Between two that conflict there is a barrier. Launches are visited in order, and one
gets a barrier when it conflicts with a launch since the last barrier. That is the latest place at which the
conflict can be resolved, so no placement has fewer barriers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

from polygrad.dtype import to_dtype
from polygrad.runtime.program import Program


def place_barriers(program: Program, memory: Sequence[Hashable] | None = None) -> Program:
    """`program` with barriers at the launches that need one, and at no others.

    `memory`: what tells the memory of each buffer that is not scratch, where two of them may be the same.
    """
    parallel = [program.kernels[launch.kernel].parallel for launch in program.launches]
    if not any(parallel):
        return replace(program, launches=tuple(replace(x, barrier=False) for x in program.launches))
    ranges = _ranges(program, range(len(program.buffers)) if memory is None else memory)
    serial_accesses, parallel_accesses = _Accesses(), _Accesses()
    launches = []
    for launch, is_parallel in zip(program.launches, parallel, strict=True):
        kernel = program.kernels[launch.kernel]
        used = [ranges[b.buffer] for b in launch.bindings]
        written = [used[i] for i in kernel.writes]
        barrier = parallel_accesses.conflict(used, written) or (
            is_parallel and serial_accesses.conflict(used, written)
        )
        if barrier:
            serial_accesses, parallel_accesses = _Accesses(), _Accesses()
        (parallel_accesses if is_parallel else serial_accesses).add(used, written)
        launches.append(replace(launch, barrier=barrier))
    return replace(program, launches=tuple(launches))


_Range = tuple[int, int]  # first and last + 1


def _ranges(program: Program, memory: Sequence[Hashable]) -> list[_Range]:
    """Every buffer's place in one space of addresses: the arena's bytes, then an address for each memory."""
    number: dict[Hashable, int] = {}
    out = []
    for spec, key in zip(program.buffers, memory, strict=True):
        if spec.role == "scratch":
            start, size = spec.offset, spec.size * to_dtype(spec.dtype).itemsize
        else:
            start, size = program.arena + number.setdefault(key, len(number)), 1
        out.append((start, start + size))
    return out


@dataclass(slots=True)
class _Accesses:
    """The memory that launches use, and of it what they write."""

    used: _Ranges = field(default_factory=lambda: _Ranges())
    written: _Ranges = field(default_factory=lambda: _Ranges())

    def conflict(self, used: list[_Range], written: list[_Range]) -> bool:
        """Whether another launch conflicts with one of these."""
        return any(self.used.overlap(r) for r in written) or any(self.written.overlap(r) for r in used)

    def add(self, used: list[_Range], written: list[_Range]) -> None:
        for r in used:
            self.used.add(r)
        for r in written:
            self.written.add(r)


class _Ranges:
    """A union of ranges, kept apart and in order."""

    __slots__ = ("ends", "starts")

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []

    def overlap(self, r: _Range) -> bool:
        """Whether a range shares an address with the union."""
        i = bisect_right(self.ends, r[0])  # the first that ends behind its start
        return i < len(self.ends) and self.starts[i] < r[1] and r[0] < r[1]

    def add(self, r: _Range) -> None:
        start, end = r
        if start == end:
            return
        i, j = bisect_left(self.ends, start), bisect_right(self.starts, end)
        if i < j:  # it overlaps or touches these
            start, end = min(start, self.starts[i]), max(end, self.ends[j - 1])
        self.starts[i:j], self.ends[i:j] = [start], [end]
