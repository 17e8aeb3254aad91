"""Barriers, at which the threads of a run wait for each other. They are placed once, when a Program is
assembled.

Two launches conflict when one writes memory that the other reads or writes, unless both are serial: thread 0
runs serial launches in order. Between two launches that conflict there is a barrier. Launches are visited in
order, and a launch gets a barrier when it conflicts with a launch since the last barrier. That is the latest
place for a barrier that resolves the conflict, so no placement has fewer barriers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

from polygrad.dtype import to_dtype
from polygrad.runtime.program import Program


def place_barriers(program: Program, memory: Sequence[Hashable] | None = None) -> Program:
    """`program` with barriers at exactly the launches that need one.

    `memory`: a key for the memory of each buffer, equal for buffers that share memory; scratch needs none.
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
    """The range of every buffer in one address space: the arena's bytes, then one address for each memory."""
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
    """The memory that launches use, and the part of it that they write."""

    used: _Ranges = field(default_factory=lambda: _Ranges())
    written: _Ranges = field(default_factory=lambda: _Ranges())

    def conflict(self, used: list[_Range], written: list[_Range]) -> bool:
        """Whether a launch with these accesses conflicts with one of the launches."""
        return any(self.used.overlap(r) for r in written) or any(self.written.overlap(r) for r in used)

    def add(self, used: list[_Range], written: list[_Range]) -> None:
        for r in used:
            self.used.add(r)
        for r in written:
            self.written.add(r)


class _Ranges:
    """A union of ranges, as disjoint ranges in order."""

    __slots__ = ("ends", "starts")

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []

    def overlap(self, r: _Range) -> bool:
        """Whether a range shares an address with the union."""
        i = bisect_right(self.ends, r[0])  # the first range that ends after the start of r
        return i < len(self.ends) and self.starts[i] < r[1] and r[0] < r[1]

    def add(self, r: _Range) -> None:
        start, end = r
        if start == end:
            return
        i, j = bisect_left(self.ends, start), bisect_right(self.starts, end)
        if i < j:  # it overlaps or touches ranges i to j - 1
            start, end = min(start, self.starts[i]), max(end, self.ends[j - 1])
        self.starts[i:j], self.ends[i:j] = [start], [end]
