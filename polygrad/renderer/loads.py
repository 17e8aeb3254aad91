"""Loads of tiles. The lanes of a SIMD value may be neighbours in memory; else they are loaded by permutations
of blocks, by a transpose, or one by one. Each load may have a condition.
"""

from __future__ import annotations

from collections.abc import Sequence

from polygrad.codegen.lower import strided_loads as strided
from polygrad.dtype import dtypes
from polygrad.helpers import prod
from polygrad.renderer.access_plan import AccessPlan
from polygrad.renderer.addresses import Place, addresses_of, each_lane, lane_addresses, places_of, safe_base
from polygrad.renderer.builder import Address, Block, Value
from polygrad.renderer.neighbours import load_runs
from polygrad.renderer.streams import AHEAD, LINE
from polygrad.renderer.tile_axes import pointer_of
from polygrad.renderer.tile_values import Axes, are_consecutive, coordinates
from polygrad.renderer.tiles import Tiles
from polygrad.uop.args import AddrSpace
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

Blocks = dict[Address, Block]


def emit_load(tiles: Tiles, plan: AccessPlan, node: UOp) -> None:
    index = node.src[0]
    pointer = pointer_of(index)
    if pointer.op is Ops.DEFINE_REG:
        tiles.values[node] = [tiles.builder.get(r) for r in tiles.values[pointer]]
        tiles.axes[node], tiles.simd[node] = tiles.axes[pointer], tiles.simd[pointer]
        return
    if node in plan.copied or node in plan.in_memory:
        return
    axes, simd = tiles.axes[node], tiles.simd[node]
    gate = index.src[2] if len(index.src) > 2 else None
    in_runs = plan.has_wmma or (pointer.arg.space is AddrSpace.SHARED and pointer.arg.depth > 1)
    if in_runs and gate is None and not simd:
        tiles.deferred.discard(node)
        tiles.values[node] = load_runs(tiles.builder, node.dtype, addresses_of(tiles, index, axes))
        return
    if simd and gate is None and (across := tiles.axis_across(index)) is not None:
        tiles.values[node] = _load_transposed(tiles, node, axes, across)
        return
    places: list[Place] | None
    if tiles.simd[index]:
        places = places_of(tiles, index, axes)
    else:
        places = [(a, [a.offset]) for a in addresses_of(tiles, index, axes)]
    if node in plan.streamed:
        _prefetch(tiles, index, axes)
    addresses = addresses_of(tiles, index, axes) if places is None else []
    gates = tiles.project(axes, tiles.axes[gate]) if gate is not None else [0] * len(places or addresses)
    others = tiles.project(axes, tiles.axes[node.src[1]]) if gate is not None else None
    # By condition and base: the offsets of all loads, and an index that may be read in any case.
    readable: dict[tuple[int, Value | None], list[int]] = {}
    for position, (first, offsets) in zip(gates, places or (), strict=False):
        readable.setdefault((position, first.base), []).extend(offsets)
    safe: dict[tuple[int, Value | None], Value] = {}
    blocks: Blocks = {}

    def make(k: int) -> Value:
        if gate is None:
            if places is None:
                return _load_lanes(tiles, node, lane_addresses(tiles, addresses[k]))
            return _load(tiles, node, places[k], readable[0, places[k][0].base], blocks, simd)
        assert others is not None
        other = tiles.value(node.src[1], others[k], simd)
        predicate = tiles.values[gate][gates[k]]
        if places is None:
            return _load_gated_lanes(tiles, node, lane_addresses(tiles, addresses[k]), gate, predicate, other)
        if tiles.simd[gate]:
            return _load_masked(tiles, node, places[k], gate, predicate, other)
        first, offsets = places[k]
        key = (gates[k], first.base)
        all_offsets = readable[key]
        if max(all_offsets) - min(all_offsets) >= pointer.arg.size:  # the condition never holds
            return other
        if key not in safe:
            safe[key] = safe_base(tiles, predicate, first.base, min(all_offsets))
        first = first.moved(safe[key])
        loaded = _load(tiles, node, (first, offsets), all_offsets, blocks, simd)
        b = tiles.builder
        if simd:
            predicate = b.splat(predicate, dtypes.bool, tiles.lanes)
        return b.alu(Ops.WHERE, node.dtype, [predicate, loaded, other], tiles.lanes if simd else 1)

    tiles.make(node, len(gates), make, range(len(gates)))


def _prefetch(tiles: Tiles, index: UOp, axes: Axes) -> None:
    """Fetch what the loads of a tile read some rounds later, once for each line."""
    itemsize, asked = index.dtype.itemsize, set()
    for address in addresses_of(tiles, index, axes):
        line = (address.base, address.offset * itemsize // LINE)
        if line not in asked:
            asked.add(line)
            tiles.builder.prefetch(address.plus(AHEAD // itemsize))


def _load_transposed(tiles: Tiles, node: UOp, axes: Axes, across: UOp) -> list[Value]:
    b, index, lanes = tiles.builder, node.src[0], tiles.lanes
    step = tiles.lane_step(index)
    assert step is not None
    stride = prod(r.src[0].arg for r in axes[axes.index(across) + 1 :])
    addresses = addresses_of(tiles, index, axes)
    out: list[Value] = [None] * len(addresses)
    for k, coordinate in enumerate(coordinates(axes)):
        if coordinate[axes.index(across)]:
            continue
        rows = [b.load(addresses[k].plus(step * i), node.dtype, lanes) for i in range(lanes)]
        width = lanes
        while width > 1:  # interleave the first half of the rows with the second
            pairs = [
                b.interleave(rows[i], rows[i + lanes // 2], node.dtype, lanes) for i in range(lanes // 2)
            ]
            rows = [v for pair in pairs for v in pair]
            width //= 2
        for u, row in enumerate(rows):
            out[k + u * stride] = row
    return out


def _load(
    tiles: Tiles, node: UOp, place: Place, readable: Sequence[int], blocks: Blocks, simd: bool
) -> Value:
    """One value of a load. `readable`: the offsets of all loads at the same index; these loads share
    `blocks`."""
    b, dtype, lanes = tiles.builder, node.dtype, tiles.lanes
    first, offsets = place
    if not simd or len(set(offsets)) == 1:
        value = b.load(first, dtype, 1)
        return b.splat(value, dtype, lanes) if simd else value
    if are_consecutive(offsets):
        return b.load(first, dtype, lanes)
    size = b.block_size(dtype, lanes)
    if not strided.pays(offsets, size):
        return _load_lanes(tiles, node, each_lane(place))
    plan = strided.plan(offsets, size, min(readable), max(readable))
    starts = each_lane((first, plan.starts))
    for start in starts:
        if start not in blocks:
            blocks[start] = b.load_block(start, dtype, lanes)
    return b.permute([blocks[start] for start in starts], plan.positions, dtype)


def _load_lanes(tiles: Tiles, node: UOp, addresses: Sequence[Address]) -> Value:
    b, dtype = tiles.builder, node.dtype
    return b.pack([b.load(address, dtype, 1) for address in addresses], dtype)


def _load_masked(tiles: Tiles, node: UOp, place: Place, gate: UOp, predicate: Value, other: Value) -> Value:
    """A SIMD value of a load with a condition for each lane."""
    first, offsets = place
    if are_consecutive(offsets):
        return tiles.builder.load_masked(first, node.dtype, tiles.lanes, predicate, other)
    addresses = [first] * tiles.lanes if len(offsets) == 1 else each_lane(place)
    return _load_gated_lanes(tiles, node, addresses, gate, predicate, other)


def _load_gated_lanes(
    tiles: Tiles, node: UOp, addresses: Sequence[Address], gate: UOp, predicate: Value, other: Value
) -> Value:
    b, dtype, lanes = tiles.builder, node.dtype, tiles.lanes
    elements = []
    for i, address in enumerate(addresses):
        condition = b.extract(predicate, dtypes.bool, i, lanes) if tiles.simd[gate] else predicate
        safe = safe_base(tiles, condition, address.base, address.offset)
        elements.append(b.load(address.moved(safe), dtype, 1))
    mask = predicate if tiles.simd[gate] else b.splat(predicate, dtypes.bool, lanes)
    return b.alu(Ops.WHERE, dtype, [mask, b.pack(elements, dtype), other], lanes)
