"""`GlobalCounters`: totals of all computations, under tinygrad's names."""

from __future__ import annotations

from polygrad.engine.stats import stats
from polygrad.runtime.buffer import Allocation


class _Counters(type):
    @property
    def kernel_count(cls) -> int:
        """How many kernels have run."""
        return stats.launches

    @property
    def program_count(cls) -> int:
        """How many Programs have run: each is one or more kernels."""
        return stats.runs

    @property
    def global_mem(cls) -> int:
        """The bytes of the buffers that kernels were given: at most so many were read and written."""
        return stats.bytes

    @property
    def mem_used(cls) -> int:
        """The bytes that are allocated now, on all devices, without scratch memory kept for reuse."""
        return Allocation.allocated_bytes


class GlobalCounters(metaclass=_Counters):
    """Totals since the start, or since `reset`, but for `mem_used`, which is of now."""

    @staticmethod
    def reset() -> None:
        """Everything that is counted back to zero."""
        stats.launches = stats.runs = stats.bytes = 0
