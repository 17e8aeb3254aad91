"""Copies from memory of the device to memory of a workgroup, without a way through registers: what a pipeline
of staged operands fills its buffers with.
"""

from __future__ import annotations

from polygrad.errors import InternalError
from polygrad.renderer.access_plan import AccessPlan, lanes_copied
from polygrad.renderer.addresses import addresses_of
from polygrad.renderer.builder import Address
from polygrad.renderer.loads import emit_load
from polygrad.renderer.neighbours import runs_of
from polygrad.renderer.tile_axes import gate_of
from polygrad.renderer.tile_values import Axes
from polygrad.renderer.tiles import Tiles
from polygrad.uop.node import UOp


def copy_elements(tiles: Tiles, plan: AccessPlan, store: UOp, axes: Axes) -> bool:
    """Copy the elements of a store to memory of the workgroup, under its gate. False: the device has no
    such copies of them, and they were loaded instead."""
    b, (index, load) = tiles.builder, store.src
    runs = _runs(tiles, store, axes)
    if not all(b.copies(target, source, load.dtype, size) for target, source, size in runs):
        plan.copied.discard(load)
        emit_load(tiles, plan, load)
        tiles.splat(load)
        return False
    gate = gate_of(index)
    if gate is not None and tiles.axes[gate]:
        raise InternalError(f"kernel {tiles.kernel}: a copy has a condition for each element")
    if gate is not None:
        b.begin_if(tiles.values[gate][0])
    for target, source, size in runs:
        b.copy(target, source, load.dtype, size)
    if gate is not None:
        b.end_if()
    return True


def _runs(tiles: Tiles, store: UOp, axes: Axes) -> list[tuple[Address, Address, int]]:
    """Neighbours in both memories that are copied together: target, source and number of elements."""
    index, load = store.src
    targets, sources = addresses_of(tiles, index, axes), addresses_of(tiles, load.src[0], axes)
    lanes, runs = lanes_copied(tiles, store), list[tuple[Address, Address, int]]()
    for run in runs_of(targets) if lanes == 1 else [[p] for p in range(len(targets))]:
        first = sources[run[0]]
        together = all(sources[p] == first.plus(i) for i, p in enumerate(run))
        for part in [run] if together else [[p] for p in run]:
            runs.append((targets[part[0]], sources[part[0]], len(part) * (lanes or 1)))
    return runs
