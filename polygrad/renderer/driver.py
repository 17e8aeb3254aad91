"""Drivers as plain data. A driver is the function `run` of a captured step, which calls the step's kernels in
order on every thread. `llvm/driver.py`, `cstyle/c_driver.py` and `wasm/driver.py` write it in their
languages.

Must not know: Programs.
"""

from __future__ import annotations

from dataclasses import dataclass

from polygrad.helpers import PART


@dataclass(frozen=True)
class TablePointer:
    """The address in entry `entry` of the driver's table, plus `offset` bytes."""

    entry: int
    offset: int


@dataclass(frozen=True)
class DriverCall:
    """A call of kernel number `kernel`: by all threads if `parallel`, else by thread 0. `values`: the number
    of a driver's variable, or the name of one of `THREAD_VARIABLES`, for each argument. `barrier`: all
    threads wait for each other first.
    """

    kernel: int
    pointers: tuple[TablePointer, ...]
    values: tuple[int | str, ...]
    parallel: bool
    barrier: bool

    @property
    def has_parts(self) -> bool:
        """Whether the kernel is called for each part of its work, by the thread that takes the part."""
        return PART in self.values


@dataclass(frozen=True)
class Driver:
    """`calls`, in order, of the functions `kernels`. `entries`: the length of the table. A run may be stopped
    before call number `commit`; None: it may not be stopped."""

    kernels: tuple[str, ...]
    calls: tuple[DriverCall, ...]
    entries: int
    commit: int | None = None

    @property
    def parallel(self) -> bool:
        """Whether several threads may run it."""
        return any(call.parallel for call in self.calls)
