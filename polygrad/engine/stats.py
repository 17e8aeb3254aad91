"""Counters of the engine's work, for benchmarks, tests and the curious."""

from __future__ import annotations

from dataclasses import dataclass, fields

from polygrad.runtime.program import Program


@dataclass(slots=True)
class Stats:
    """Totals since the start, or since `reset`."""

    launches: int = 0  # of kernels
    kernels_compiled: int = 0  # distinct ones
    kernels_found: int = 0  # in the disk cache: distinct ones of each Program
    programs: int = 0  # distinct schedules
    runs: int = 0  # of Programs
    bytes: int = 0  # of the buffers that launches were given
    schedule_seconds: float = 0.0
    codegen_seconds: float = 0.0
    compile_seconds: float = 0.0
    arena_bytes: int = 0  # of the last new Program
    arena_lower_bound: int = 0

    def count(self, program: Program) -> None:
        """Count a run of `program`."""
        self.runs += 1
        self.launches += len(program.launches)
        self.bytes += program.bound_bytes

    def reset(self) -> None:
        """Set everything to zero."""
        for f in fields(self):
            setattr(self, f.name, type(getattr(self, f.name))(0))


stats = Stats()
