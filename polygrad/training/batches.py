"""Batches of a run's data, in an order that depends on a seed and an epoch's number alone.

Data are pairs (inputs, targets), each a Tensor or array of rows, or a tuple of some; or an iterable of such
pairs, which are the batches. So any batch of any epoch can be had again, by a run that goes on from a
checkpoint.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass
from typing import Any, Protocol

from polygrad import nn
from polygrad.errors import ArgumentError, ShapeError
from polygrad.tensor.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of inputs and of targets."""

    inputs: tuple[Tensor, ...]
    targets: tuple[Tensor, ...]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.tensors[0].shape[0])

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Inputs, then targets."""
        return (*self.inputs, *self.targets)


class BatchSource(Protocol):
    """Batches of one epoch after the other."""

    @property
    def count(self) -> int | None:
        """The batches of an epoch; None: not known before its end."""

    @property
    def settings(self) -> dict[str, Any]:
        """What must be the same for the same batches, by name: plain values."""

    def epoch(self, number: int, start: int = 0) -> Iterator[Batch]:
        """The batches of epoch `number`, from position `start` on."""


@dataclass(frozen=True, slots=True)
class RowBatches:
    """Batches of the rows of Tensors. `shuffle`: in another order in each epoch."""

    rows: Batch
    size: int
    seed: int
    shuffle: bool
    drop_last: bool

    @property
    def count(self) -> int:
        """The batches of an epoch."""
        rows = self.rows.rows
        return rows // self.size if self.drop_last else -(-rows // self.size)

    @property
    def settings(self) -> dict[str, Any]:
        """The number of rows, and how they become batches."""
        how = {"batch_size": self.size, "shuffle": self.shuffle, "drop_last": self.drop_last}
        return {"rows": self.rows.rows, **how}

    def epoch(self, number: int, start: int = 0) -> Iterator[Batch]:
        """The batches of epoch `number`, from position `start` on."""
        split = len(self.rows.inputs)
        batches = nn.data.batches(
            self.rows.tensors,
            self.size,
            shuffle=self.shuffle,
            drop_last=self.drop_last,
            seed=self.seed + number,
            start=start,
        )
        for tensors in batches:
            yield Batch(tensors[:split], tensors[split:])


@dataclass(frozen=True, slots=True)
class LoaderBatches:
    """The batches of an iterable, which is iterated once in each epoch."""

    loader: Iterable[Any]

    @property
    def count(self) -> int | None:
        """The batches of an epoch, if the iterable has a length."""
        return len(self.loader) if isinstance(self.loader, Sized) else None

    @property
    def settings(self) -> dict[str, Any]:
        """None that are known."""
        return {}

    def epoch(self, number: int, start: int = 0) -> Iterator[Batch]:
        """The batches of epoch `number`, from position `start` on. A loader with a method `set_epoch` is told
        the number."""
        if hasattr(self.loader, "set_epoch"):
            self.loader.set_epoch(number)
        for i, pair in enumerate(itertools.islice(self.loader, start, None), start):
            yield pair_of(pair, f"data: batch {i}")


def batches_of(data: Any, size: int, seed: int, shuffle: bool, drop_last: bool, what: str) -> BatchSource:
    """The batches of data. Raises ArgumentError, ShapeError."""
    if isinstance(data, tuple):
        return RowBatches(pair_of(data, what), size, seed, shuffle, drop_last)
    if isinstance(data, Iterator) or not isinstance(data, Iterable) or hasattr(data, "shape"):
        raise ArgumentError(
            f"{what}: expected a tuple (inputs, targets), or an iterable of such batches that can be "
            f"iterated once for each epoch, got {type(data).__name__}"
        )
    return LoaderBatches(data)


def check_count(source: BatchSource) -> None:
    """Raises ArgumentError where there is no batch."""
    if source.count == 0:
        raise ArgumentError(
            "data: expected at least one batch, got none: drop_last leaves out what is smaller"
        )


def pair_of(pair: Any, what: str) -> Batch:
    """(inputs, targets) as Tensors. Raises ArgumentError, ShapeError for different numbers of rows."""
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise ArgumentError(f"{what}: expected a pair (inputs, targets), got {type(pair).__name__}")
    batch = Batch(*(_tensors(part) for part in pair))
    counts = [t.shape[0] if t.ndim else None for t in batch.tensors]
    if not batch.inputs or not all(isinstance(n, int) and n == counts[0] for n in counts) or not counts[0]:
        raise ShapeError(f"{what}: expected Tensors with as many rows each, at least one, got {counts}")
    return batch


def split_rows(batch: Batch, fraction: float, seed: int) -> tuple[Batch, Batch]:
    """Rows to train on, and the `fraction` that is held out, drawn by `seed`. Raises ArgumentError."""
    if not 0 < fraction < 1 or not 0 < round(fraction * batch.rows) < batch.rows:
        raise ArgumentError(
            f"validation: expected data, or a fraction of the {batch.rows} rows between 0 and 1 that leaves "
            f"rows on both sides, got {fraction}"
        )
    split = len(batch.inputs)
    held_out, trained = nn.data.split(batch.tensors, fraction, seed=seed)
    return Batch(trained[:split], trained[split:]), Batch(held_out[:split], held_out[split:])


def _tensors(part: Any) -> tuple[Tensor, ...]:
    items = part if isinstance(part, tuple) else (part,)
    return tuple(x if isinstance(x, Tensor) else Tensor(x) for x in items)
