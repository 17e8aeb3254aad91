"""Loops of Tensors: a body that is built once and carried out many times, as a FOR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polygrad.uop.for_loop import for_loop, placeholder


def repeat(trip_count: int, step: Callable[..., Sequence[Any]], *values: Any) -> list[Any]:
    """Apply `step`, which maps values to their next values, `trip_count` times to `values`.

    `step` is called once, with placeholders for the values, and may use constants besides.
    """
    placeholders = [x._of(placeholder(i, x.shape, x.dtype), x._device, False) for i, x in enumerate(values)]
    results = for_loop(trip_count, [r.uop for r in step(*placeholders)], [x.uop for x in values])
    return [x._result(r) for x, r in zip(values, results, strict=True)]
