"""Batches of a run's data, in an order that depends on a seed and an epoch's number alone.

Data are pairs (inputs, targets), each a Tensor or array of rows, or a tuple of some; or an iterable of such
pairs, which are the batches. So any batch of any epoch can be had again, by a run that goes on from a
checkpoint.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import Any, Protocol

from polygrad import nn
from polygrad.capture.jit import TinyJit
from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError, ShapeError
from polygrad.tensor.tensor import Tensor
from polygrad.training.ranks import Share


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of inputs and of targets. `weight`: how many rows it counts for in a mean over all ranks; None: as
    many as it has."""

    inputs: tuple[Tensor, ...]
    targets: tuple[Tensor, ...]
    weight: float | None = None

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.tensors[0].shape[0])

    @property
    def counted(self) -> float:
        """How many rows it counts for."""
        return self.rows if self.weight is None else self.weight

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
        """The values on which the batches depend, by name: plain data."""

    def epoch(self, number: int, start: int = 0) -> Iterator[Batch | None]:
        """The batches of epoch `number`, from position `start` on. None: the next one is not there yet."""


class RowBatches:
    """Batches of the rows of Tensors. `shuffle`: in another order in each epoch. `share`: the part of each
    batch that this rank has; batches of which it has no row are left out.

    One captured Program gathers each batch: the order and the position in it are on the device. The Tensors
    of a batch are those of the batch before, overwritten.
    """

    def __init__(
        self, rows: Batch, size: int, seed: int, shuffle: bool, drop_last: bool, share: Share | None = None
    ) -> None:
        self.rows, self.size, self.seed, self.share = rows, size, seed, share or Share()
        self.shuffle, self.drop_last = shuffle, drop_last
        self._cursors: dict[str, _Cursor] = {}
        self._gathers: dict[int, Callable[[], tuple[Tensor, ...]]] = {}

    @property
    def count(self) -> int:
        """The batches of an epoch."""
        rows = self.rows.rows
        return rows // self.size if self.drop_last else -(-rows // self.size)

    @property
    def sizes(self) -> list[int]:
        """The different numbers of rows of batches."""
        full, remainder = divmod(self.rows.rows, self.size)
        return [*([self.size] if full else []), *([remainder] if remainder and not self.drop_last else [])]

    @property
    def settings(self) -> dict[str, Any]:
        """The number of rows, and how they become batches."""
        how = {"batch_size": self.size, "shuffle": self.shuffle, "drop_last": self.drop_last}
        return {"rows": self.rows.rows, **how}

    def epoch(self, number: int, start: int = 0) -> Iterator[Batch]:
        """The batches of epoch `number`, from position `start` on."""
        split, rows = len(self.rows.inputs), self.rows.rows
        order = nn.data.row_order(rows, self.seed + number) if self.shuffle else list(range(rows))
        batches = [order[i * self.size :][: self.size] for i in range(start, self.count)]
        parts = [[batch[i] for i in self.share.rows(len(batch))] for batch in batches]
        devices = {t.device for t in self.rows.tensors}
        on_devices = all(isinstance(device, str) for device in devices)  # else parts of rows are on several
        if on_devices:
            for device in devices:
                cursor = self._cursors.setdefault(device, _Cursor(rows, device))
                cursor.set([row for part in parts for row in part])
        for batch, part in zip(batches, parts, strict=True):
            if not part:
                continue
            tensors = (
                self._gather_of(len(part))() if on_devices else nn.data.pick_rows(self.rows.tensors, part)
            )
            yield Batch(tensors[:split], tensors[split:], self.share.weight(len(batch)))

    def _gather_of(self, size: int) -> Callable[[], tuple[Tensor, ...]]:
        """A function that gathers the next `size` rows and advances the cursor."""
        if size not in self._gathers:
            columns, cursors = self.rows.tensors, self._cursors

            @TinyJit
            def gather() -> tuple[Tensor, ...]:
                positions = {device: cursor.next(size) for device, cursor in cursors.items()}
                out = tuple([t.detach()[positions[t.device]].contiguous() for t in columns])
                for cursor in cursors.values():
                    cursor.advance(size)
                return out

            self._gathers[size] = gather
        return self._gathers[size]


class _Cursor:
    """An order of rows, and a position in it, on a device."""

    def __init__(self, rows: int, device: str) -> None:
        self.order = Tensor.zeros(rows, device=device, dtype=dtypes.int32).contiguous().realize()
        self.position = Tensor.zeros(1, device=device, dtype=dtypes.int32).contiguous().realize()

    def set(self, order: Sequence[int]) -> None:
        """Begin with an order, of at most as many rows as there are."""
        padded = [*order, *[0] * (self.order.shape[0] - len(order))]
        for target, values in ((self.order, padded), (self.position, [0])):
            target.assign(Tensor(values, device=target.device, dtype=dtypes.int32)).realize()

    def next(self, size: int) -> Tensor:
        """The next `size` rows of the order."""
        return self.order[self.position + Tensor.arange(size, device=self.order.device, dtype=dtypes.int32)]

    def advance(self, size: int) -> None:
        """Advance by `size` rows."""
        self.position.assign(self.position + size)


@dataclass(frozen=True, slots=True)
class LoaderBatches:
    """The batches of an iterable, which is iterated once in each epoch. `share`: as of `RowBatches`."""

    loader: Iterable[Any]
    share: Share = field(default_factory=Share)

    @property
    def count(self) -> int | None:
        """The batches of an epoch, if the iterable has a length."""
        return len(self.loader) if isinstance(self.loader, Sized) else None

    @property
    def settings(self) -> dict[str, Any]:
        """None: those of an iterable are unknown."""
        return {}

    def epoch(self, number: int, start: int = 0) -> Iterator[Batch]:
        """The batches of epoch `number`, from position `start` on. A loader with a method `set_epoch` is told
        the number."""
        if hasattr(self.loader, "set_epoch"):
            self.loader.set_epoch(number)
        for i, pair in enumerate(itertools.islice(self.loader, start, None), start):
            batch = pair_of(pair, f"data: batch {i}")
            if self.share.ranks == 1:
                yield batch
                continue
            part = self.share.rows(batch.rows)
            if part:
                tensors = tuple(t[part.start : part.stop] for t in batch.tensors)
                split = len(batch.inputs)
                yield Batch(tensors[:split], tensors[split:], self.share.weight(batch.rows))


class FedBatches:
    """Batches of another program, which feeds them in order, from the position on at which the run begins.

    `count`: the batches of an epoch, None if it is not known. `settings`: what they depend on.
    """

    def __init__(self, count: int | None, settings: Mapping[str, Any]) -> None:
        self.count, self.settings = count, dict(settings)
        self._fed: deque[Batch | None] = deque()

    def feed(self, batch: Batch | None) -> None:
        """Append a batch, or the end of an epoch."""
        self._fed.append(batch)

    def epoch(self, number: int, start: int = 0) -> Iterator[Batch | None]:
        """The batches of an epoch. None: the next one has not been fed yet."""
        while True:
            if not self._fed:
                yield None
                continue
            batch = self._fed.popleft()
            if batch is None:
                return
            yield batch


def sources_of(
    data: Any,
    validation: Any,
    size: int,
    seed: int,
    shuffle: bool,
    drop_last: bool,
    rank: int = 0,
    ranks: int = 1,
) -> tuple[BatchSource, BatchSource | None]:
    """The batches to train on, and those to measure on, in their order. `validation`: data, a fraction of
    `data`, or None. `size`: rows of a batch, of all ranks together. Raises ArgumentError, ShapeError."""
    if size % ranks:
        raise ArgumentError(f"batch_size: expected a multiple of the {ranks} ranks, got {size}")
    equal, share = Share(rank, ranks, equal=True), Share(rank, ranks)
    if isinstance(validation, (int, float)):
        if not isinstance(data, tuple):
            raise ArgumentError("validation: expected data, as a fraction of an iterable cannot be held out")
        trained, held_out = _split_rows(pair_of(data, "data"), validation, seed)
        source: BatchSource = RowBatches(trained, size, seed, shuffle, drop_last, equal)
        measured: BatchSource | None = RowBatches(held_out, size, seed, False, False, share)
    else:
        source = _source_of(data, size, seed, shuffle, drop_last, "data", equal)
        measured = None
        if validation is not None:
            measured = _source_of(validation, size, seed, False, False, "validation", share)
    if source.count == 0:
        raise ArgumentError(
            "data: expected at least one batch, got none: drop_last leaves out what is smaller"
        )
    return source, measured


def _source_of(
    data: Any, size: int, seed: int, shuffle: bool, drop_last: bool, what: str, share: Share
) -> BatchSource:
    if isinstance(data, FedBatches):
        return data
    if isinstance(data, tuple):
        return RowBatches(pair_of(data, what), size, seed, shuffle, drop_last, share)
    if isinstance(data, Iterator) or not isinstance(data, Iterable) or hasattr(data, "shape"):
        raise ArgumentError(
            f"{what}: expected a tuple (inputs, targets), or an iterable of such batches that can be "
            f"iterated once for each epoch, got {type(data).__name__}"
        )
    return LoaderBatches(data, share)


def pair_of(pair: Any, what: str) -> Batch:
    """(inputs, targets) as Tensors. Raises ArgumentError, ShapeError for different numbers of rows."""
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise ArgumentError(f"{what}: expected a pair (inputs, targets), got {type(pair).__name__}")
    inputs, targets = pair
    batch = Batch(_tensors(inputs), _tensors(targets))
    counts = [t.shape[0] if t.ndim else None for t in batch.tensors]
    if not batch.inputs or not all(isinstance(n, int) and n == counts[0] for n in counts) or not counts[0]:
        raise ShapeError(f"{what}: expected Tensors with as many rows each, at least one, got {counts}")
    return batch


def _split_rows(batch: Batch, fraction: float, seed: int) -> tuple[Batch, Batch]:
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
