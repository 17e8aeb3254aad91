"""What `train` is given as data, as Examples: files, records, a part that is kept for validation."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from polygrad.errors import ArgumentError, ModelError
from polygrad.tuning.rows import epoch_order
from polygrad.tuning.texts import Example, examples_of, read_records

Data = str | os.PathLike[str] | Iterable[Mapping[str, Any]] | Iterable[Example]


def training_examples(
    data: Data, validation: Data | float | None, instance: Any, max_length: int, seed: int
) -> tuple[list[Example], list[Example]]:
    """Examples to train on, and those that are kept for validation. Raises ArgumentError, ModelError."""
    records, where = _records(data, "data")
    held_out: list[Any] = []
    if isinstance(validation, (int, float)) and not isinstance(validation, bool):
        if not 0 < validation < 1:
            raise ArgumentError(f"validation: expected a part between 0 and 1, got {validation}")
        order = epoch_order(len(records), seed, -1)
        count = round(validation * len(records))
        if not 0 < count < len(records):
            raise ArgumentError(f"validation: {validation} of {len(records)} records leaves one side empty")
        held_out = [records[i] for i in sorted(order[:count])]
        records = [records[i] for i in sorted(order[count:])]
        place = where
    elif validation is not None:
        held_out, place = _records(validation, "validation")
    examples = _examples(records, instance, max_length, where)
    if not examples:
        raise ArgumentError(
            f"{where}: expected at least one text with a token that counts in the loss, got none"
        )
    return examples, _examples(held_out, instance, max_length, place) if held_out else []


def _records(data: Any, where: str) -> tuple[list[Any], str]:
    if isinstance(data, (str, os.PathLike)):
        return list(read_records(data)), os.fspath(data)
    records = list(data)
    if not records:
        raise ArgumentError(f"{where}: expected at least one record, got none")
    return records, where


def _examples(records: list[Any], instance: Any, max_length: int, where: str) -> list[Example]:
    if all(isinstance(x, Example) for x in records):
        cut = [Example(x.ids[:max_length], x.labels[:max_length]) for x in records]
        return [x for x in cut if x.counted]
    tokenizer = getattr(instance, "tokenizer", None)
    if tokenizer is None:
        raise ModelError("train: text needs a tokenizer, and the model's folder has none: pass Examples")
    return examples_of(records, tokenizer, max_length, where)
