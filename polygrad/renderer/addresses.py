"""The addresses that the INDEX of a tile has: one for each element, and for each lane."""

from __future__ import annotations

from collections.abc import Sequence

from polygrad.dtype import dtypes
from polygrad.renderer.builder import Address, Pointer, Value
from polygrad.renderer.tile_axes import NO_STEPS
from polygrad.renderer.tile_values import Axes, coordinates, tile_constants
from polygrad.renderer.tiles import Tiles
from polygrad.uop.args import AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

Place = tuple[Address, Sequence[int]]  # the address of the first lane, and the offset of each lane


def each_lane(place: Place) -> list[Address]:
    """The address of each lane."""
    first, offsets = place
    return [Address(first.pointer, first.base, offset) for offset in offsets]


def _memory(tiles: Tiles, index: UOp) -> Pointer:
    """The memory under an INDEX."""
    return tiles.values[index.memory][0]


def addresses_of(tiles: Tiles, index: UOp, axes: Axes, first: frozenset[UOp] = frozenset()) -> list[Address]:
    """The address for each coordinate over `axes`, of the first element along the axes `first`. Its index
    is a scalar, or SIMD if it is not linear."""
    memory, steps, position = _memory(tiles, index), index.arg or NO_STEPS, index.src[1]
    base: UOp | None = position
    constants: list[list[int]] | None = None
    if not tiles.simd[position]:
        base, constants = _base_and_constants(tiles, position, axes, 1)
    sizes = [
        (axes.index(r), step) for r, step in steps.steps if r.arg.kind is not AxisKind.LANE and r not in first
    ]
    out: list[Address] = []
    for k, (number, coordinate) in enumerate(zip(_values(tiles, base, axes), coordinates(axes), strict=True)):
        offset = steps.offset + sum(coordinate[i] * step for i, step in sizes)
        out.append(Address(memory, number, offset + (constants[k][0] if constants else 0)))
    return out


def _values(tiles: Tiles, base: UOp | None, axes: Axes) -> list[Value | None]:
    """The values of a part of an index for each coordinate over `axes`."""
    if base is None:
        return [None for _ in coordinates(axes)]
    return [tiles.values[base][k] for k in tiles.project(axes, tiles.axes[base])]


def _base_and_constants(
    tiles: Tiles, position: UOp, axes: Axes, lanes: int
) -> tuple[UOp | None, list[list[int]] | None]:
    """An index as the pass split-indices leaves it: the part that loops compute, None for 0, and for each
    coordinate over `axes` the constants that are added, one for each lane. None instead of these where what
    is added is not constant: then the part is the whole index."""
    base, constants = None, position
    if position.op is Ops.ADD and not tiles.simd[position.src[0]]:
        base, constants = position.src
    values = tile_constants(constants, axes, lanes)
    return (position, None) if values is None else (base, values)


def places_of(tiles: Tiles, index: UOp, axes: Axes) -> list[Place] | None:
    """The place for each coordinate over `axes`. None when the differences between lanes are not
    constant."""
    step, lanes = tiles.lane_step(index), range(tiles.lanes)
    if step is not None:
        return [(a, [a.offset + step * i for i in lanes]) for a in addresses_of(tiles, index, axes)]
    base, constants = _base_and_constants(tiles, index.src[1], axes, tiles.lanes)
    if constants is None:
        return None
    memory, bases = _memory(tiles, index), _values(tiles, base, axes)
    return [(Address(memory, b, row[0]), row) for b, row in zip(bases, constants, strict=True)]


def lane_addresses(tiles: Tiles, address: Address) -> list[Address]:
    """The address of each lane of one whose index is a SIMD value."""
    extract, lanes = tiles.builder.extract, tiles.lanes
    return [address.with_base(extract(address.base, dtypes.index, i, lanes)) for i in range(lanes)]


def safe_base(tiles: Tiles, predicate: Value, base: Value | None, offset: int) -> Value:
    """The index if the gate holds, else the index for which the address is the buffer's start."""
    b = tiles.builder
    index = b.const(dtypes.index, 0, 1) if base is None else base
    return b.alu(Ops.WHERE, dtypes.index, [predicate, index, b.const(dtypes.index, -offset, 1)], 1)
