"""Runs of consecutive addresses in a tile, which are loaded or stored as one vector: for scalars of the IR,
by a Builder whose SIMD values are tuples of scalars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polygrad.dtype import DType
from polygrad.renderer.builder import Address, Builder, Value

_MAX_RUN = 8  # elements


def runs_of(addresses: Sequence[Address]) -> list[list[int]]:
    """The positions of addresses in one buffer, each once: in runs of 8, 4 or 2 consecutive offsets, the
    first of which is a multiple of the run's length, and one by one where there is no run."""
    by_index: dict[Any, dict[int, int]] = {}  # positions by index and offset
    for position, address in enumerate(addresses):
        by_index.setdefault(address.base, {}).setdefault(address.offset, position)
    out: list[list[int]] = []
    for offsets in by_index.values():
        remaining = sorted(offsets)
        while remaining:
            start, size = remaining[0], 1
            while (
                2 * size <= _MAX_RUN
                and start % (2 * size) == 0
                and remaining[: 2 * size] == list(range(start, start + 2 * size))
            ):
                size *= 2
            out.append([offsets[o] for o in remaining[:size]])
            del remaining[:size]
    in_runs = {position for run in out for position in run}
    return out + [[p] for p in range(len(addresses)) if p not in in_runs]


def load_runs(builder: Builder, dtype: DType, addresses: Sequence[Address]) -> list[Value]:
    """Load the element at each address."""
    out: list[Value] = [None] * len(addresses)
    for run in runs_of(addresses):
        loaded = builder.load(addresses[run[0]], dtype, len(run))
        for position, value in zip(run, loaded if len(run) > 1 else [loaded], strict=True):
            out[position] = value
    return out


def store_runs(
    builder: Builder,
    dtype: DType,
    addresses: Sequence[Address],
    values: Sequence[Value],
    conditions: Sequence[Value] | None = None,
) -> None:
    """Store a value at each address. Stores under the same condition are in one block."""
    if conditions is None:
        return _store(builder, dtype, addresses, values)
    positions: dict[Value, list[int]] = {}
    for k, condition in enumerate(conditions):
        positions.setdefault(condition, []).append(k)
    for condition, members in positions.items():
        builder.begin_if(condition)
        _store(builder, dtype, [addresses[k] for k in members], [values[k] for k in members])
        builder.end_if()


def _store(builder: Builder, dtype: DType, addresses: Sequence[Address], values: Sequence[Value]) -> None:
    for run in runs_of(addresses):
        stored = tuple([values[position] for position in run])
        builder.store(addresses[run[0]], stored if len(run) > 1 else stored[0], dtype, len(run))
