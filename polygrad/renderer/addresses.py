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
    memory, base = _memory(tiles, index), index.src[1]
    steps = index.arg or NO_STEPS
    positions = tiles.project(axes, tiles.axes[base])
    sizes = [
        (axes.index(r), step) for r, step in steps.steps if r.arg.kind is not AxisKind.LANE and r not in first
    ]
    out: list[Address] = []
    for k, coordinate in enumerate(coordinates(axes)):
        offset = steps.offset + sum(coordinate[i] * step for i, step in sizes)
        if base.op is Ops.CONST:
            out.append(Address(memory, None, offset + base.arg))
        else:
            out.append(Address(memory, tiles.values[base][positions[k]], offset))
    return out


def places_of(tiles: Tiles, index: UOp, axes: Axes) -> list[Place] | None:
    """The place for each coordinate over `axes`. None when the differences between lanes are not
    constant."""
    step, lanes = tiles.lane_step(index), range(tiles.lanes)
    if step is not None:
        return [(a, [a.offset + step * i for i in lanes]) for a in addresses_of(tiles, index, axes)]
    base: UOp | None = None
    constants = index.src[1]
    if constants.op is Ops.ADD and not tiles.simd[constants.src[0]]:  # as the pass split-indices leaves it
        base, constants = constants.src
    offsets = tile_constants(constants, axes, tiles.lanes)
    if offsets is None:
        return None
    memory, bases = _memory(tiles, index), [None] * len(offsets)
    if base is not None:
        bases = [tiles.values[base][k] for k in tiles.project(axes, tiles.axes[base])]
    return [(Address(memory, b, row[0]), row) for b, row in zip(bases, offsets, strict=True)]


def lane_addresses(tiles: Tiles, address: Address) -> list[Address]:
    """The address of each lane of one whose index is a SIMD value."""
    extract, lanes = tiles.builder.extract, tiles.lanes
    return [address.with_base(extract(address.base, dtypes.index, i, lanes)) for i in range(lanes)]


def safe_base(tiles: Tiles, predicate: Value, base: Value | None, offset: int) -> Value:
    """The index if the gate holds, else the index for which the address is the buffer's start."""
    b = tiles.builder
    index = b.const(dtypes.index, 0, 1) if base is None else base
    return b.alu(Ops.WHERE, dtypes.index, [predicate, index, b.const(dtypes.index, -offset, 1)], 1)
