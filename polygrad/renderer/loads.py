"""Loads of tiles. The lanes of a SIMD value may be neighbours in memory; else they are loaded by permutations
of blocks, by a transpose, or one by one. Each load may have a condition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from polygrad.codegen.lower import strided_loads as strided
from polygrad.codegen.opts.cost import LINE_BYTES
from polygrad.dtype import dtypes
from polygrad.helpers import prod
from polygrad.renderer.access_plan import AccessPlan
from polygrad.renderer.addresses import Place, addresses_of, each_lane, lane_addresses, places_of, safe_base
from polygrad.renderer.builder import Address, Block, Value
from polygrad.renderer.neighbours import load_runs
from polygrad.renderer.streams import AHEAD
from polygrad.renderer.tile_axes import gate_of
from polygrad.renderer.tile_values import Axes, are_consecutive, coordinates
from polygrad.renderer.tiles import Tiles
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

Maker = Callable[[int], Value]
Blocks = dict[Address, Block]


def emit_load(tiles: Tiles, plan: AccessPlan, node: UOp) -> None:
    index = node.src[0]
    pointer, gate = index.memory, gate_of(index)
    if pointer.op is Ops.DEFINE_REG:
        _get_registers(tiles, node, pointer)
        return
    if node in plan.copied or node in plan.in_memory:
        return
    axes, simd = tiles.axes[node], tiles.simd[node]
    if gate is None and not simd and plan.in_runs(index):
        tiles.deferred.discard(node)
        tiles.values[node] = load_runs(tiles.builder, node.dtype, addresses_of(tiles, index, axes))
        return
    if gate is None and simd and (across := tiles.axis_across(index)) is not None:
        tiles.values[node] = _load_transposed(tiles, node, axes, across)
        return
    if node in plan.streamed:
        _prefetch(tiles, index, axes)
    count = prod(r.src[0].arg for r in axes)
    tiles.make(node, count, _maker(tiles, node, None if gate is None else _Gate(tiles, node)), range(count))


def _get_registers(tiles: Tiles, node: UOp, registers: UOp) -> None:
    tiles.values[node] = [tiles.builder.get(r) for r in tiles.values[registers]]
    tiles.axes[node], tiles.simd[node] = tiles.axes[registers], tiles.simd[registers]


class _Gate:
    """The condition of a load, and the value that is taken where it does not hold."""

    def __init__(self, tiles: Tiles, load: UOp) -> None:
        self.tiles, self.condition, self.load = tiles, load.src[0].src[2], load
        self.positions = tiles.project(tiles.axes[load], tiles.axes[self.condition])
        self.others = tiles.project(tiles.axes[load], tiles.axes[load.src[1]])

    @property
    def simd(self) -> bool:
        """Whether each lane has a condition of its own."""
        return self.tiles.simd[self.condition]

    def predicate(self, k: int) -> Value:
        return self.tiles.values[self.condition][self.positions[k]]

    def other(self, k: int) -> Value:
        return self.tiles.value(self.load.src[1], self.others[k], self.tiles.simd[self.load])


def _maker(tiles: Tiles, node: UOp, gate: _Gate | None) -> Maker:
    """What loads the value number k of a tile."""
    index, axes = node.src[0], tiles.axes[node]
    if not tiles.simd[index]:
        places: list[Place] | None = [(a, [a.offset]) for a in addresses_of(tiles, index, axes)]
    else:
        places = places_of(tiles, index, axes)
    if places is None:
        return _lane_maker(tiles, node, addresses_of(tiles, index, axes), gate)
    if gate is None:
        return _place_maker(tiles, node, places)
    if gate.simd:
        return lambda k: _load_masked(tiles, node, places[k], gate, k)
    return _gated_maker(tiles, node, places, gate)


def _lane_maker(tiles: Tiles, node: UOp, addresses: Sequence[Address], gate: _Gate | None) -> Maker:
    """Loads at computed addresses, lane by lane."""

    def make(k: int) -> Value:
        if gate is None:
            return _load_lanes(tiles, node, lane_addresses(tiles, addresses[k]))
        return _load_gated_lanes(tiles, node, lane_addresses(tiles, addresses[k]), gate, k)

    return make


def _place_maker(tiles: Tiles, node: UOp, places: Sequence[Place]) -> Maker:
    """Loads without a condition."""
    readable: dict[Value | None, list[int]] = {}  # by base: the offsets of all loads
    for first, offsets in places:
        readable.setdefault(first.base, []).extend(offsets)
    blocks: Blocks = {}
    return lambda k: _load(tiles, node, places[k], readable[places[k][0].base], blocks)


def _gated_maker(tiles: Tiles, node: UOp, places: Sequence[Place], gate: _Gate) -> Maker:
    """Loads under a condition for all lanes. They read in any case: where it does not hold, at the start of
    the buffer."""
    b, simd, size = tiles.builder, tiles.simd[node], node.src[0].memory.arg.size
    # By condition and base: the offsets of all loads, and an index that may be read in any case.
    readable: dict[tuple[int, Value | None], list[int]] = {}
    for position, (first, offsets) in zip(gate.positions, places, strict=True):
        readable.setdefault((position, first.base), []).extend(offsets)
    safe: dict[tuple[int, Value | None], Value] = {}
    blocks: Blocks = {}

    def make(k: int) -> Value:
        other, predicate = gate.other(k), gate.predicate(k)
        first, offsets = places[k]
        key = (gate.positions[k], first.base)
        all_offsets = readable[key]
        if max(all_offsets) - min(all_offsets) >= size:  # the condition never holds
            return other
        if key not in safe:
            safe[key] = safe_base(tiles, predicate, first.base, min(all_offsets))
        loaded = _load(tiles, node, (first.with_base(safe[key]), offsets), all_offsets, blocks)
        if simd:
            predicate = b.splat(predicate, dtypes.bool, tiles.lanes)
        return b.alu(Ops.WHERE, node.dtype, [predicate, loaded, other], tiles.lanes if simd else 1)

    return make


def _prefetch(tiles: Tiles, index: UOp, axes: Axes) -> None:
    """Fetch what the loads of a tile read some rounds later, once for each line."""
    itemsize, asked = index.dtype.itemsize, set()
    for address in addresses_of(tiles, index, axes):
        line = (address.base, address.offset * itemsize // LINE_BYTES)
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
            halves = zip(rows[: lanes // 2], rows[lanes // 2 :], strict=True)
            pairs = [b.interleave(low, high, node.dtype, lanes) for low, high in halves]
            rows = [v for pair in pairs for v in pair]
            width //= 2
        for u, row in enumerate(rows):
            out[k + u * stride] = row
    return out


def _load(tiles: Tiles, node: UOp, place: Place, readable: Sequence[int], blocks: Blocks) -> Value:
    """One value of a load. `readable`: the offsets of all loads at the same index; these loads share
    `blocks`."""
    b, dtype, lanes, simd = tiles.builder, node.dtype, tiles.lanes, tiles.simd[node]
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


def _load_masked(tiles: Tiles, node: UOp, place: Place, gate: _Gate, k: int) -> Value:
    """A SIMD value of a load with a condition for each lane."""
    first, offsets = place
    if are_consecutive(offsets):
        return tiles.builder.load_masked(first, node.dtype, tiles.lanes, gate.predicate(k), gate.other(k))
    addresses = [first] * tiles.lanes if len(offsets) == 1 else each_lane(place)
    return _load_gated_lanes(tiles, node, addresses, gate, k)


def _load_gated_lanes(tiles: Tiles, node: UOp, addresses: Sequence[Address], gate: _Gate, k: int) -> Value:
    """A SIMD value whose lanes are loaded one by one, under one condition or under one for each."""
    b, dtype, lanes, predicate = tiles.builder, node.dtype, tiles.lanes, gate.predicate(k)
    elements = []
    for i, address in enumerate(addresses):
        condition = b.extract(predicate, dtypes.bool, i, lanes) if gate.simd else predicate
        safe = safe_base(tiles, condition, address.base, address.offset)
        elements.append(b.load(address.with_base(safe), dtype, 1))
    mask = predicate if gate.simd else b.splat(predicate, dtypes.bool, lanes)
    return b.alu(Ops.WHERE, dtype, [mask, b.pack(elements, dtype), gate.other(k)], lanes)
