"""`Engine`: what the layers above need of MPI or torch.distributed. One process is a *rank*, from 0 to size -
1.

Arrays are numpy's: one axis, contiguous, of 32 or 64 bits if they are reduced. Collectives block, and write
to their last array. All ranks call the same ones in the same order, each from one thread of its own
(`group.py`), so an engine needs no lock. The other methods are called from any thread, also while a
collective does not end: they are how a rank finds out why.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

Array = Any  # a numpy array


class Engine(ABC):
    """`name`: for people. `local_rank`: the number of this process on its machine."""

    name: str
    rank: int
    size: int
    local_rank: int

    # --- collectives

    @abstractmethod
    def all_reduce(self, array: Array, op: str) -> None:
        """Replace `array` by the `op` (sum, max or min) of all ranks' arrays, with equal bits on all
        ranks."""

    @abstractmethod
    def broadcast(self, array: Array, root: int) -> None:
        """Replace `array` by that of the rank `root`."""

    @abstractmethod
    def all_gather(self, array: Array, out: Array) -> None:
        """Write the arrays of all ranks to `out`, in the order of the ranks."""

    @abstractmethod
    def reduce_scatter(self, array: Array, out: Array, op: str) -> None:
        """Write to `out` this rank's part, of `size` equal ones, of the `op` of all ranks' arrays."""

    @abstractmethod
    def all_to_all(self, array: Array, out: Array) -> None:
        """Send part i of `array`, of `size` equal ones, to rank i; `out` gets the parts from all ranks."""

    @abstractmethod
    def barrier(self) -> None:
        """Return when all ranks have called it."""

    # --- guards

    @abstractmethod
    def serve(self, state: Callable[[], str]) -> None:
        """From now on answer the other ranks' `ask` with `state()`, called by a thread of the engine."""

    @abstractmethod
    def ask(self) -> list[str | None]:
        """The state of each rank; None: no answer within two seconds, or an unreadable one."""

    @abstractmethod
    def notify(self, notice: str) -> None:
        """Leave a last notice to all ranks: why this one ends. Returns at once."""

    @abstractmethod
    def notices(self) -> Mapping[int, str]:
        """The notices of other ranks, as far as they have arrived."""

    @abstractmethod
    def close(self) -> None:
        """End the engine's threads, at the end of the program."""

    @abstractmethod
    def abort(self) -> None:
        """End all ranks, or at least this one, at once, with exit status 1."""


class Single(Engine):
    """One process: every collective is a copy, or nothing."""

    name, rank, size, local_rank = "one process", 0, 1, 0

    def all_reduce(self, array: Array, op: str) -> None:
        pass

    def broadcast(self, array: Array, root: int) -> None:
        pass

    def all_gather(self, array: Array, out: Array) -> None:
        out[:] = array

    def reduce_scatter(self, array: Array, out: Array, op: str) -> None:
        out[:] = array

    def all_to_all(self, array: Array, out: Array) -> None:
        out[:] = array

    def barrier(self) -> None:
        pass

    def serve(self, state: Callable[[], str]) -> None:
        pass

    def ask(self) -> list[str | None]:
        return [""]

    def notify(self, notice: str) -> None:
        pass

    def notices(self) -> Mapping[int, str]:
        return {}

    def close(self) -> None:
        pass

    def abort(self) -> None:
        pass
