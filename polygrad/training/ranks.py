"""The ranks that a run is divided among: those of `polygrad.distributed` once it is initialized, else one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polygrad import distributed, nn
from polygrad.distributed.agreement import PATIENCE
from polygrad.dtype import dtypes
from polygrad.tensor.tensor import Tensor


def rank() -> int:
    """The number of this process, from 0."""
    return distributed.rank() if distributed.is_initialized() else 0


def size() -> int:
    """The number of processes."""
    return distributed.size() if distributed.is_initialized() else 1


def gathered(value: Any, label: str) -> list[Any]:
    """The value of each rank, of what JSON can hold. Ranks wait for each other for minutes: they compile,
    read and write files in between. Raises RankError."""
    return [value] if size() == 1 else distributed.all_gather_json(value, label, PATIENCE)


def of_rank_0(value: Any, label: str) -> Any:
    """The value of rank 0, likewise."""
    return gathered(value if rank() == 0 else None, label)[0]


def any_rank(flag: bool) -> bool:
    """Whether the flag of any rank is set. All ranks call it, in each step. Raises RankError."""
    if size() == 1:
        return flag
    flags = distributed.all_reduce(Tensor([int(flag)], dtype=dtypes.int32), "max")
    return bool(flags.item())


@dataclass(frozen=True, slots=True)
class Share:
    """The part of each batch that a rank has. `equal`: all ranks have as many rows, as a training step needs;
    a batch that cannot be divided so is computed by every rank, with the same result."""

    rank: int = 0
    ranks: int = 1
    equal: bool = False

    def rows(self, count: int) -> range:
        """The rows of a batch of `count`."""
        if self.equal and count % self.ranks:
            return range(count)
        return nn.data.part_of(count, self.rank, self.ranks)

    def weight(self, count: int) -> float:
        """How many of a batch's rows this rank stands for: over all ranks, `count`."""
        return count / self.ranks if self.equal and count % self.ranks else len(self.rows(count))
