"""Examples as rows of one length: padded, or several texts side by side.

Rows are lists of Python; a batch is made of some of them when it is needed. All batches of a length have the
same shape, so that one captured step serves them: where examples run out there are rows of padding.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from polygrad.models.causal_lm import IGNORED_LABEL
from polygrad.tensor.tensor import Tensor
from polygrad.tuning.texts import Example

_SHORTEST = 16  # the least length that rows are padded to


@dataclass
class Row:
    """Texts side by side: for each token its label, its position, and the 1-based number of its text; 0 is
    padding."""

    ids: list[int] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    texts: list[int] = field(default_factory=list)

    def add(self, example: Example) -> None:
        """One more text."""
        count = len(example.ids)
        number = self.texts[-1] + 1 if self.texts else 1
        self.ids += example.ids
        self.labels += example.labels
        self.positions += range(count)
        self.texts += [number] * count

    @property
    def counted(self) -> int:
        """The number of labels that count."""
        return sum(label != IGNORED_LABEL for label in self.labels)


@dataclass(frozen=True)
class TokenBatch:
    """Rows as int32 Tensors (rows, length). `counted`: the number of labels that count. `tokens`: their
    number without padding."""

    input_ids: Tensor
    labels: Tensor
    position_ids: Tensor
    text_ids: Tensor
    counted: int
    tokens: int

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The inputs of a step."""
        return self.input_ids, self.labels, self.position_ids, self.text_ids


def packed_rows(examples: Sequence[Example], length: int) -> list[Row]:
    """Rows of up to `length` tokens, with as many examples as fit: long ones first, each in the first row
    that has room."""
    rows: list[Row] = []
    first = 0  # rows before it are full
    for example in sorted(examples, key=lambda x: -len(x.ids)):
        row = next((r for r in rows[first:] if len(r.ids) + len(example.ids) <= length), None)
        if row is None:
            row = Row()
            rows.append(row)
        row.add(example)
        while first < len(rows) and len(rows[first].ids) > length - 2:
            first += 1
    return rows


def single_rows(examples: Sequence[Example]) -> list[Row]:
    """A row for each example."""
    out = []
    for example in examples:
        out.append(Row())
        out[-1].add(example)
    return out


def padded_length(rows: Sequence[Row], longest: int) -> int:
    """The length that rows are padded to: a power of two, or `longest`. So there are few lengths, each of
    which is compiled once."""
    need, length = max(len(row.ids) for row in rows), _SHORTEST
    while length < need:
        length *= 2
    return min(length, longest)


def token_batch(rows: Sequence[Row], count: int, length: int, device: str | None = None) -> TokenBatch:
    """`rows` with padding behind them, and rows of padding, up to `count`."""

    def matrix(values: Sequence[Sequence[int]], filler: int) -> Tensor:
        padded = [[*v, *[filler] * (length - len(v))] for v in values]
        padded += [[filler] * length] * (count - len(padded))
        return Tensor(padded, dtype="int32", device=device).realize()

    return TokenBatch(
        matrix([row.ids for row in rows], 0),
        matrix([row.labels for row in rows], IGNORED_LABEL),
        matrix([row.positions for row in rows], 0),
        matrix([row.texts for row in rows], 0),
        sum(row.counted for row in rows),
        sum(len(row.ids) for row in rows),
    )


def epoch_order(count: int, seed: int, epoch: int) -> list[int]:
    """The order of `count` rows in an epoch. It differs from epoch to epoch, and is the same on every
    host."""
    order = list(range(count))
    random.Random(f"{seed}/{epoch}").shuffle(order)
    return order
