"""The values of a kernel's nodes as a Builder has written them: for each node a tile, in the order of the
coordinates along its axes. A value that does not depend on the lanes stays a scalar until a SIMD operation
needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from polygrad.renderer.builder import Builder, Value
from polygrad.renderer.deferral import deferred_nodes
from polygrad.renderer.tile_axes import TileAxes
from polygrad.renderer.tile_values import Axes, coordinates
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops


class Tiles(TileAxes):
    """`values`: the tile of each node, with None where a deferred node's value is yet to be written."""

    def __init__(self, kernel: str, linear: Sequence[UOp], builder: Builder) -> None:
        super().__init__(kernel, linear)
        self.builder = builder
        self.values: dict[UOp, list[Value]] = {}
        self.splats: dict[UOp, list[Value]] = {}
        self.makers: dict[UOp, Callable[[int], Value]] = {}
        self.deferred = deferred_nodes(linear, self)
        self.needs_splat = _nodes_to_splat(linear, self)
        self.projections: dict[tuple[Axes, Axes], list[int]] = {}

    def project(self, outer: Axes, inner: Axes) -> list[int]:
        """For each coordinate over `outer`, the position of the value over `inner`."""
        key = (outer, inner)
        positions = self.projections.get(key)
        if positions is None:
            sizes = [r.src[0].arg for r in inner]
            places = [outer.index(r) for r in inner]
            positions = []
            for coordinate in coordinates(outer):
                position = 0
                for size, place in zip(sizes, places, strict=True):
                    position = position * size + coordinate[place]
                positions.append(position)
            self.projections[key] = positions
        return positions

    def value(self, node: UOp, position: int, simd: bool) -> Value:
        """A value of `node`'s tile. `simd`: as a SIMD value, which is the splat of a scalar."""
        if node in self.deferred and self.values[node][position] is None:
            value = self.values[node][position] = self.makers[node](position)
            if node in self.needs_splat:
                self.splats[node][position] = self.builder.splat(value, node.dtype, self.lanes)
        return (self.splats if simd and not self.simd[node] else self.values)[node][position]

    def make(self, node: UOp, count: int, maker: Callable[[int], Value], order: Iterable[int]) -> None:
        """Write the `count` values of a node's tile: now and in this order or, for a deferred node, each when
        it is first needed."""
        self.values[node] = [None] * count
        if node in self.deferred:
            self.makers[node] = maker
            self.splats[node] = [None] * count
        else:
            for position in order:
                self.values[node][position] = maker(position)

    def splat(self, node: UOp) -> None:
        """Splat a scalar that a SIMD operation uses; a deferred one is splat when it is written."""
        if node in self.needs_splat and node not in self.deferred:
            b, lanes = self.builder, self.lanes
            if node.op is Ops.CONST:
                self.splats[node] = [b.const(node.dtype, node.arg, lanes)]
            else:
                self.splats[node] = [b.splat(v, node.dtype, lanes) for v in self.values[node]]


def _nodes_to_splat(linear: Sequence[UOp], tiles: TileAxes) -> set[UOp]:
    """The scalars that a SIMD operation uses."""
    out: set[UOp] = set()
    for node in linear:
        if node.op in GroupOp.Elementwise and tiles.simd[node]:
            used = node.src
        elif node.op is Ops.LOAD and tiles.simd[node]:
            used = node.src[1:]
        elif node.op is Ops.STORE:
            pointer = node.src[0].memory
            simd = tiles.simd[pointer if pointer.op is Ops.DEFINE_REG else node.src[0]]
            used = node.src[1:] if simd else ()
        else:
            continue
        out.update(s for s in used if not tiles.simd[s])
    return out
