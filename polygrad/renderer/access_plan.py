"""How a kernel's loads and stores go to memory, as far as it is decided before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polygrad.renderer.builder import Builder
from polygrad.renderer.streams import streamed_loads
from polygrad.renderer.tile_axes import TileAxes, gate_of, readers_of
from polygrad.uop.args import AddrSpace
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


@dataclass(frozen=True, slots=True)
class AccessPlan:
    copied: set[UOp]  # loads that a store of the same elements may copy; less those that turn out not to fit
    in_memory: frozenset[UOp]  # loads of operands that a tensor core reads itself
    streamed: frozenset[UOp]  # loads that are prefetched
    has_wmma: bool

    def in_runs(self, index: UOp) -> bool:
        """Whether scalars at an INDEX that are neighbours are loaded or stored together: in kernels of tensor
        cores, and in memory of a workgroup of which there are several buffers."""
        pointer = index.memory
        return self.has_wmma or (pointer.op is Ops.PARAM and pointer.arg.depth > 1)


def access_plan(linear: Sequence[UOp], tiles: TileAxes, builder: Builder) -> AccessPlan:
    cores = [n for n in linear if n.op is Ops.WMMA]
    streamed = streamed_loads(linear, tiles.lanes, builder.target) if builder.has_prefetch else frozenset()
    in_memory = frozenset(s for n in cores if n.arg.in_memory for s in n.src[:2])
    return AccessPlan(_copied_loads(linear, tiles), in_memory, streamed, bool(cores))


def _copied_loads(linear: Sequence[UOp], tiles: TileAxes) -> set[UOp]:
    """Find the loads whose elements a store puts as they are into one of several buffers of a workgroup:
    they may be copied without a way through registers."""
    readers = readers_of(linear)
    return {
        store.src[1]
        for store in linear
        if store.op is Ops.STORE
        and store.src[1].op is Ops.LOAD
        and (memory := store.src[0].memory).op is Ops.PARAM
        and memory.arg.depth > 1
        and gate_of(store.src[1].src[0]) is None
        and (source := store.src[1].src[0].memory).op is Ops.PARAM
        and source.arg.space is AddrSpace.GLOBAL
        and len(readers[store.src[1]]) == 1
        and lanes_copied(tiles, store) is not None
    }


def lanes_copied(tiles: TileAxes, store: UOp) -> int | None:
    """How many neighbours a SIMD value copies; 1 for a scalar, None for lanes that are no neighbours."""
    indices = (store.src[0], store.src[1].src[0])
    if not any(tiles.simd[index] for index in indices):
        return 1
    return tiles.lanes if all(tiles.lane_step(index) == 1 for index in indices) else None
