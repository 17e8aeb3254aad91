"""What a driver is: the function `run` of a captured step, which calls its kernels in order on every thread.

Plain data that `llvm/driver.py` and `wasm/driver.py` write in their languages. Must not know: Programs.
"""

from __future__ import annotations

from dataclasses import dataclass

from polygrad.helpers import PART


@dataclass(frozen=True)
class Pointer:
    """The address in entry `entry` of the driver's table, plus `offset` bytes."""

    entry: int
    offset: int


@dataclass(frozen=True)
class Call:
    """A call of kernel number `kernel`, by all threads if `parallel`, else by thread 0. `values`: numbers of
    the driver's variables, or names of `THREAD_VARIABLES`. `barrier`: wait for all threads first.
    """

    kernel: int
    pointers: tuple[Pointer, ...]
    values: tuple[int | str, ...]
    parallel: bool
    barrier: bool

    @property
    def has_parts(self) -> bool:
        """Whether it is made for each part of the kernel's work, by the thread that takes the part."""
        return PART in self.values


@dataclass(frozen=True)
class Driver:
    """`calls` in order, of the functions `kernels`; `entries` is the length of the table. Up to call number
    `commit` a run may be stopped; None: there is no such point."""

    kernels: tuple[str, ...]
    calls: tuple[Call, ...]
    entries: int
    commit: int | None = None

    @property
    def parallel(self) -> bool:
        """Whether several threads may run it."""
        return any(call.parallel for call in self.calls)
