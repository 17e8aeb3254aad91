"""Neighbours among the addresses of a tile, which memory takes together: scalars of the IR, vectors of a
Builder whose SIMD values are tuples of scalars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polygrad.dtype import DType
from polygrad.renderer.builder import Builder, Pointer, Value

_MOST = 8  # elements at once


def runs_of(addresses: Sequence[tuple[Any, int]]) -> list[list[int]]:
    """The positions of addresses (base, offset), each once: runs of 2, 4 or 8 that follow each other, the
    first of them at a multiple of their number, and what is left, one by one."""
    found: dict[Any, dict[int, int]] = {}
    for position, (base, offset) in enumerate(addresses):
        found.setdefault(base, {}).setdefault(offset, position)
    out: list[list[int]] = []
    for offsets in found.values():
        waiting = sorted(offsets)
        while waiting:
            start, size = waiting[0], 1
            while (
                2 * size <= _MOST
                and start % (2 * size) == 0
                and waiting[: 2 * size] == list(range(start, start + 2 * size))
            ):
                size *= 2
            out.append([offsets[o] for o in waiting[:size]])
            del waiting[:size]
    taken = {position for run in out for position in run}
    return out + [[p] for p in range(len(addresses)) if p not in taken]


def load_runs(
    builder: Builder, pointer: Pointer, dtype: DType, addresses: Sequence[tuple[Any, int]]
) -> list[Value]:
    """What is at each address."""
    out: list[Value] = [None] * len(addresses)
    for run in runs_of(addresses):
        base, offset = addresses[run[0]]
        loaded = builder.load(pointer, base, offset, dtype, len(run))
        for position, value in zip(run, loaded if len(run) > 1 else [loaded], strict=True):
            out[position] = value
    return out


def store_runs(
    builder: Builder,
    pointer: Pointer,
    dtype: DType,
    addresses: Sequence[tuple[Any, int]],
    values: Sequence[Value],
    conditions: Sequence[Value] | None = None,
) -> None:
    """Store a value at each address, those of one condition in one block."""
    if conditions is None:
        return _store(builder, pointer, dtype, addresses, values)
    positions: dict[Value, list[int]] = {}
    for k, condition in enumerate(conditions):
        positions.setdefault(condition, []).append(k)
    for condition, found in positions.items():
        builder.begin_if(condition)
        _store(builder, pointer, dtype, [addresses[k] for k in found], [values[k] for k in found])
        builder.end_if()


def _store(
    builder: Builder,
    pointer: Pointer,
    dtype: DType,
    addresses: Sequence[tuple[Any, int]],
    values: Sequence[Value],
) -> None:
    for run in runs_of(addresses):
        base, offset = addresses[run[0]]
        stored = tuple([values[position] for position in run])
        builder.store(pointer, base, offset, stored if len(run) > 1 else stored[0], dtype, len(run))
