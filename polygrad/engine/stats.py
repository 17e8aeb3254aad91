"""Counters of what the engine has done, for benchmarks, tests and the curious."""

from __future__ import annotations

from dataclasses import dataclass, fields

from polygrad.runtime.program import Program


@dataclass(slots=True)
class Stats:
    """Totals since the start, or since `reset`."""

    launches: int = 0  # kernels run
    kernels_compiled: int = 0  # distinct kernels lowered
    kernels_found: int = 0  # distinct kernels that the disk had
    programs: int = 0  # distinct schedules made
    runs: int = 0  # Programs run
    bytes: int = 0  # of the buffers that kernels were given
    schedule_seconds: float = 0.0
    codegen_seconds: float = 0.0
    compile_seconds: float = 0.0
    arena_bytes: int = 0  # of the last Program made
    arena_lower_bound: int = 0

    def count(self, program: Program) -> None:
        """A run of `program`."""
        self.runs += 1
        self.launches += len(program.launches)
        self.bytes += program.bound_bytes

    def reset(self) -> None:
        """Everything back to zero."""
        for f in fields(self):
            setattr(self, f.name, type(getattr(self, f.name))(0))


stats = Stats()
