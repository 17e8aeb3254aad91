"""Batches, shuffles, splits, progress and the history of a training run.

    train, test = data.split((x, y), 0.8, seed=0)
    history = data.History()
    for a, b in data.progress(data.batches(train, 32, epochs=10, seed=0), history=history):
        history.add(loss=step(a, b))
    history.save("loss.svg")

Orders come from Python's random generator, by `seed`, so they are the same on every host. All batches of a
size are gathered by one kernel, which gets the positions as an argument.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError, ShapeError
from polygrad.nn.progress import progress
from polygrad.pictures.curves import chart
from polygrad.tensor.tensor import Tensor

__all__ = ["Batches", "History", "batches", "part_of", "progress", "shuffle", "split"]


class Batches:
    """An iterator of batches, made by `batches`. `len` is their total number, with those before `start`;
    `position` the number of those that have been given, which is a `start` to go on from.

    >>> batches = nn.data.batches(Tensor.arange(6), batch_size=2, shuffle=False)
    >>> len(batches), [x.tolist() for x, in batches]
    (3, [[0, 1], [2, 3], [4, 5]])
    """

    def __init__(self, count: int, rows: Iterator[tuple[Tensor, ...]], position: int = 0) -> None:
        self._count, self._rows, self.position = count, rows, position

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        return self

    def __next__(self) -> tuple[Tensor, ...]:
        batch = next(self._rows)
        self.position += 1
        return batch

    def __len__(self) -> int:
        return self._count


def batches(
    tensors: Tensor | Sequence[Tensor],
    batch_size: int,
    shuffle: bool = True,
    drop_last: bool = False,
    seed: int | None = None,
    epochs: int = 1,
    rank: int = 0,
    ranks: int = 1,
    start: int = 0,
) -> Batches:
    """Iterate over the rows of `tensors`, `batch_size` at a time, as tuples of realized Tensors. All Tensors
    must have the same number of rows.

    `shuffle`: in a random order, by `seed` in the first epoch, seed + 1 in the second, and so on (None: other
    orders in every run); else in their order. `drop_last`: drop a smaller batch at an epoch's end, which does
    not fit a captured step. `epochs`: how often all rows are visited.

    `rank`, `ranks`: the part of each batch that this process has, see `part_of`; the batches of all ranks
    together are those of one process. A rank may have no rows of a smaller batch. `start`: begin after so
    many batches, in the middle of an epoch too. Both need a `seed`, or `shuffle=False`.

    Raises ArgumentError, ShapeError.

    >>> rows = Tensor.arange(6)
    >>> [x.tolist() for x, in nn.data.batches(rows, 4, shuffle=False, rank=1, ranks=2)]
    [[2, 3], [5]]
    >>> [x.tolist() for x, in nn.data.batches(rows, 4, shuffle=False, start=1, epochs=2)]
    [[4, 5], [0, 1, 2, 3], [4, 5]]
    """
    if not isinstance(batch_size, int) or batch_size < 1:
        raise ArgumentError(f"batches: expected a batch_size of at least 1, got {batch_size!r}")
    if not isinstance(epochs, int) or epochs < 0:
        raise ArgumentError(f"batches: expected epochs of at least 0, got {epochs!r}")
    columns, count = _rows("batches", tensors)
    end = count - count % batch_size if drop_last else count
    in_epoch = -(-end // batch_size)
    _check_part(batch_size, rank, ranks)
    if not isinstance(start, int) or not 0 <= start <= epochs * in_epoch:
        raise ArgumentError(f"batches: start: expected 0 to {epochs * in_epoch} batches, got {start!r}")
    if shuffle and seed is None and (ranks > 1 or start):
        raise ArgumentError("batches: expected a seed, on which the order of several ranks or runs depends")

    def orders() -> Iterator[tuple[Tensor, ...]]:
        begun, skipped = divmod(start, in_epoch) if in_epoch else (0, 0)
        for epoch in range(begun, epochs):
            epoch_seed = None if seed is None else seed + epoch
            order = row_order(count, epoch_seed) if shuffle else list(range(count))
            for first in range(skipped * batch_size, end, batch_size):
                part = part_of(min(first + batch_size, end) - first, rank, ranks)
                yield pick_rows(columns, order[first + part.start : first + part.stop])
            skipped = 0

    return Batches(epochs * in_epoch, orders(), start)


def part_of(count: int, rank: int, ranks: int) -> range:
    """The part of `count` rows that a rank has: together they are all rows once, in order, and none has more
    than one row more than another.

    >>> [list(nn.data.part_of(5, rank, 3)) for rank in range(3)]
    [[0], [1, 2], [3, 4]]
    """
    return range(rank * count // ranks, (rank + 1) * count // ranks)


def _check_part(batch_size: int, rank: int, ranks: int) -> None:
    if not isinstance(ranks, int) or not isinstance(rank, int) or not 0 <= rank < ranks:
        raise ArgumentError(f"batches: expected a rank from 0 to ranks - 1, got {rank!r} of {ranks!r}")
    if batch_size % ranks:
        raise ArgumentError(
            f"batches: expected a batch_size that {ranks} ranks can divide, so that all have the same step, "
            f"got {batch_size}"
        )


def shuffle(tensors: Tensor | Sequence[Tensor], seed: int | None = None) -> tuple[Tensor, ...]:
    """The same rows of `tensors` in another order, that of `seed`. Raises ShapeError."""
    columns, count = _rows("shuffle", tensors)
    return pick_rows(columns, row_order(count, seed))


def split(
    tensors: Tensor | Sequence[Tensor], *fractions: float, shuffle: bool = True, seed: int | None = None
) -> tuple[tuple[Tensor, ...], ...]:
    """Split the rows of `tensors` into parts: `split((x, y), 0.8)` returns (train, test), each (x, y).

    fractions: the fraction of the rows in each part; if they add up to less than 1, the remaining rows are
    another part. `shuffle`: in a random order, by `seed`. Raises ArgumentError for fractions that are not
    over 0 or add up to more than 1.
    """
    if not fractions or not all(f > 0 for f in fractions) or sum(fractions) > 1 + 1e-9:
        raise ArgumentError(
            f"split: expected fractions over 0 that add up to at most 1, got {fractions}: as in 0.8, 0.1, 0.1"
        )
    columns, count = _rows("split", tensors)
    order = row_order(count, seed) if shuffle else list(range(count))
    shares = [*fractions, 1.0] if sum(fractions) < 1 - 1e-9 else list(fractions)
    ends, total = [], 0.0
    for share in shares:
        total += share
        ends.append(round(min(total, 1.0) * count))
    ends[-1] = count
    starts = [0, *ends[:-1]]
    return tuple(pick_rows(columns, order[a:b]) for a, b in zip(starts, ends, strict=True))


class History:
    """Records measured values by name, in order.

    `add(loss=0.3, accuracy=0.9)` takes numbers, or Tensors of one element, which are read.

    >>> history = nn.data.History()
    >>> history.add(loss=0.5)
    >>> history.add(loss=Tensor(0.25))
    >>> history.values
    {'loss': [0.5, 0.25]}
    """

    def __init__(self) -> None:
        self.values: dict[str, list[float]] = {}

    def add(self, **values: Any) -> None:
        """Append one value to each name."""
        for name, x in values.items():
            self.values.setdefault(name, []).append(float(x.item() if isinstance(x, Tensor) else x))

    def __getitem__(self, name: str) -> list[float]:
        return self._of(name)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def last(self, name: str) -> float:
        """The last value. Raises ArgumentError for a name that has none."""
        return self._of(name)[-1]

    def mean(self, name: str, of: int | None = None) -> float:
        """The mean of the last `of` values, or of all. Raises ArgumentError."""
        numbers = self._of(name)
        part = numbers if of is None else numbers[-of:]
        return sum(part) / len(part)

    def best(self, name: str, largest: bool = False) -> tuple[int, float]:
        """The position and the value of the least number or, if `largest`, of the largest. Raises
        ArgumentError."""
        numbers = self._of(name)
        value = max(numbers) if largest else min(numbers)
        return numbers.index(value), value

    def csv(self) -> str:
        """CSV text: a line of names, then one line for each position; fields without a value are empty."""
        lines = [",".join(self.values)]
        for i in range(max(map(len, self.values.values()), default=0)):
            lines.append(",".join(repr(v[i]) if i < len(v) else "" for v in self.values.values()))
        return "\n".join(lines) + "\n"

    def svg(self, *names: str, title: str = "", x_label: str = "step", log: bool = False) -> str:
        """The values of `names`, or of all, as curves in a picture: SVG text (`pictures.chart`).

        `log`: on a logarithmic scale. Raises ArgumentError for a name that has no values, or none to draw.
        """
        return chart({name: self._of(name) for name in names or self.values}, title, x_label, log)

    def save(
        self,
        path: str | os.PathLike[str],
        *names: str,
        title: str = "",
        x_label: str = "step",
        log: bool = False,
    ) -> None:
        """Write `svg` to the file `path`. Raises ArgumentError, OSError."""
        Path(path).write_text(self.svg(*names, title=title, x_label=x_label, log=log), encoding="utf-8")

    def _of(self, name: str) -> list[float]:
        if name not in self.values:
            raise ArgumentError(
                f"history: expected one of {', '.join(self.values) or 'none yet'}, got {name!r}"
            )
        return self.values[name]


def _rows(what: str, tensors: Tensor | Sequence[Tensor]) -> tuple[tuple[Tensor, ...], int]:
    columns = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
    counts = [t.shape[0] if isinstance(t, Tensor) and t.ndim else None for t in columns]
    if not columns or not all(isinstance(n, int) and n == counts[0] for n in counts):
        raise ShapeError(f"{what}: expected Tensors with as many rows each, got {counts or 'none'}")
    assert isinstance(counts[0], int)
    return columns, counts[0]


def row_order(count: int, seed: int | None) -> list[int]:
    """The positions of `count` rows in the random order of `seed`; another one each time if it is None."""
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return order


def pick_rows(tensors: Sequence[Tensor], rows: Sequence[int]) -> tuple[Tensor, ...]:
    """These rows of each Tensor, computed."""
    if not rows:
        return tuple(t[:0] for t in tensors)
    out = []
    positions: dict[str, Tensor] = {}
    for t in tensors:
        index = positions.setdefault(t.device, Tensor(list(rows), device=t.device, dtype=dtypes.int32))
        out.append(t.detach()[index])
    out[0].realize(*out[1:])
    return tuple(out)
