"""Stores of tiles: to registers, and to memory, each under a condition or not."""

from __future__ import annotations

from collections.abc import Sequence

from polygrad.dtype import DType
from polygrad.errors import InternalError
from polygrad.renderer.access_plan import AccessPlan
from polygrad.renderer.addresses import addresses_of, each_lane, lane_addresses, places_of
from polygrad.renderer.builder import Address, Value
from polygrad.renderer.copies import copy_elements
from polygrad.renderer.neighbours import store_runs
from polygrad.renderer.tile_axes import pointer_of
from polygrad.renderer.tile_values import are_consecutive, by_id
from polygrad.renderer.tiles import Tiles
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def emit_store(tiles: Tiles, plan: AccessPlan, node: UOp) -> None:
    b, (index, value) = tiles.builder, node.src
    pointer = pointer_of(index)
    if pointer.op is Ops.DEFINE_REG:
        axes, simd = tiles.axes[pointer], tiles.simd[pointer]
        positions = tiles.project(axes, tiles.axes[value])
        for k, register in enumerate(tiles.values[pointer]):
            b.set(register, tiles.value(value, positions[k], simd))
        return
    axes = tuple(sorted({*tiles.axes[index], *tiles.axes[value]}, key=by_id))
    positions = tiles.project(axes, tiles.axes[value])
    simd = tiles.simd[index]
    places = places_of(tiles, index, axes) if simd else None
    gate = index.src[2] if len(index.src) > 2 else None
    gates = tiles.project(axes, tiles.axes[gate]) if gate is not None else []
    one_gate = gate is not None and not tiles.axes[gate]
    if value in plan.copied and copy_elements(tiles, plan, node, axes):
        return
    if gate is not None and tiles.simd[gate]:
        raise InternalError(f"kernel {tiles.kernel}: a store has a condition for each lane")
    if gate is not None and one_gate:
        values = [tiles.value(value, p, simd) for p in positions]  # written outside of the block
        b.begin_if(tiles.values[gate][0])
    if (plan.has_wmma or (pointer.op is Ops.PARAM and pointer.arg.depth > 1)) and not simd:
        made = values if one_gate else [tiles.value(value, p, False) for p in positions]
        conditions = None if one_gate or gate is None else [tiles.values[gate][g] for g in gates]
        store_runs(b, value.dtype, addresses_of(tiles, index, axes), made, conditions)
        if one_gate:
            b.end_if()
        return
    for k, address in enumerate(addresses_of(tiles, index, axes)):
        stored = values[k] if one_gate else tiles.value(value, positions[k], simd)
        if gate is not None and not one_gate:
            b.begin_if(tiles.values[gate][gates[k]])
        if not simd:
            b.store(address, stored, value.dtype, 1)
        elif places is None:
            _store_lanes(tiles, lane_addresses(tiles, address), stored, value.dtype)
        else:
            first, offsets = places[k]
            if are_consecutive(offsets):
                b.store(first, stored, value.dtype, tiles.lanes)
            else:
                _store_lanes(tiles, each_lane(places[k]), stored, value.dtype)
        if gate is not None and not one_gate:
            b.end_if()
    if one_gate:
        b.end_if()


def _store_lanes(tiles: Tiles, addresses: Sequence[Address], value: Value, dtype: DType) -> None:
    """Store a SIMD value lane by lane."""
    b = tiles.builder
    for i, address in enumerate(addresses):
        b.store(address, b.extract(value, dtype, i, tiles.lanes), dtype, 1)
