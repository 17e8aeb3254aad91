"""Stores of tiles: to registers, and to memory, each under a condition or not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from polygrad.dtype import DType
from polygrad.errors import InternalError
from polygrad.renderer.access_plan import AccessPlan
from polygrad.renderer.addresses import addresses_of, each_lane, lane_addresses, places_of
from polygrad.renderer.builder import Address, Value
from polygrad.renderer.copies import copy_elements
from polygrad.renderer.neighbours import store_runs
from polygrad.renderer.tile_axes import gate_of
from polygrad.renderer.tile_values import Axes, are_consecutive, by_id
from polygrad.renderer.tiles import Tiles
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def emit_store(tiles: Tiles, plan: AccessPlan, node: UOp) -> None:
    b, (index, value) = tiles.builder, node.src
    pointer = index.memory
    if pointer.op is Ops.DEFINE_REG:
        _set_registers(tiles, pointer, value)
        return
    axes = tuple(sorted({*tiles.axes[index], *tiles.axes[value]}, key=by_id))
    if value in plan.copied and copy_elements(tiles, plan, node, axes):
        return
    gate = gate_of(index)
    if gate is not None and tiles.simd[gate]:
        raise InternalError(f"kernel {tiles.kernel}: a store has a condition for each lane")
    positions = tiles.project(axes, tiles.axes[value])
    values: Iterable[Value] = (tiles.value(value, p, tiles.simd[index]) for p in positions)
    if gate is None:
        _store_values(tiles, plan, index, axes, values, value.dtype)
    elif tiles.axes[gate]:
        conditions = [tiles.values[gate][k] for k in tiles.project(axes, tiles.axes[gate])]
        _store_values(tiles, plan, index, axes, values, value.dtype, conditions)
    else:
        values = list(values)  # written outside of the block
        b.begin_if(tiles.values[gate][0])
        _store_values(tiles, plan, index, axes, values, value.dtype)
        b.end_if()


def _set_registers(tiles: Tiles, registers: UOp, value: UOp) -> None:
    axes, simd = tiles.axes[registers], tiles.simd[registers]
    positions = tiles.project(axes, tiles.axes[value])
    for k, register in enumerate(tiles.values[registers]):
        tiles.builder.set(register, tiles.value(value, positions[k], simd))


def _store_values(
    tiles: Tiles,
    plan: AccessPlan,
    index: UOp,
    axes: Axes,
    values: Iterable[Value],
    dtype: DType,
    conditions: Sequence[Value] | None = None,
) -> None:
    """Store a value for each coordinate over `axes`, each under its condition. Values are read one by one, as
    a deferred one is written then."""
    b, addresses = tiles.builder, addresses_of(tiles, index, axes)
    if plan.in_runs(index) and not tiles.simd[index]:
        store_runs(b, dtype, addresses, list(values), conditions)
        return
    places = places_of(tiles, index, axes) if tiles.simd[index] else None
    for k, value in enumerate(values):
        if conditions is not None:
            b.begin_if(conditions[k])
        if not tiles.simd[index]:
            b.store(addresses[k], value, dtype, 1)
        elif places is None:
            _store_lanes(tiles, lane_addresses(tiles, addresses[k]), value, dtype)
        elif are_consecutive(places[k][1]):
            b.store(places[k][0], value, dtype, tiles.lanes)
        else:
            _store_lanes(tiles, each_lane(places[k]), value, dtype)
        if conditions is not None:
            b.end_if()


def _store_lanes(tiles: Tiles, addresses: Sequence[Address], value: Value, dtype: DType) -> None:
    """Store a SIMD value lane by lane."""
    b = tiles.builder
    for i, address in enumerate(addresses):
        b.store(address, b.extract(value, dtype, i, tiles.lanes), dtype, 1)
