"""Arithmetic on tiles: elementwise operations, and reductions over axes of the tile."""

from __future__ import annotations

from polygrad.dtype import DType, dtypes
from polygrad.renderer.builder import Value
from polygrad.renderer.tile_values import tile_constants
from polygrad.renderer.tiles import Tiles
from polygrad.uop.args import AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def emit_elementwise(tiles: Tiles, node: UOp) -> None:
    b, op, axes, simd = tiles.builder, node.op, tiles.axes[node], tiles.simd[node]
    lanes = tiles.lanes if simd else 1
    operand = node.src[-1].dtype
    if operand is dtypes.index and not simd and (constants := tile_constants(node, axes, 1)):
        values = [value for (value,) in constants]
        tiles.make(node, len(values), lambda k: b.const(node.dtype, values[k], 1), range(len(values)))
        return
    sources = [(s, tiles.project(axes, tiles.axes[s])) for s in node.src]

    def make(k: int) -> Value:
        args = [tiles.value(s, positions[k], simd) for s, positions in sources]
        if op is Ops.CAST:
            return b.cast(args[0], operand, node.dtype, lanes)
        if op is Ops.BITCAST:
            return b.bitcast(args[0], operand, node.dtype, lanes)
        if op is Ops.DOT:
            return b.dot(node.arg, args[0], args[1], args[2], lanes)
        return b.alu(op, operand, args, lanes)

    count = len(sources[0][1])
    # All uses of one value of the largest deferred source come before the next value is written.
    deferred = [positions for s, positions in sources if s in tiles.deferred]
    largest = max(deferred, key=max, default=None)
    order = range(count) if largest is None else sorted(range(count), key=largest.__getitem__)
    tiles.make(node, count, make, order)


def emit_reduce(tiles: Tiles, node: UOp) -> None:
    """Combine a tile over some of its axes: elements pairwise, then the lanes."""
    b, value, op = tiles.builder, node.src[0], node.arg
    axes, inner = tiles.axes[node], tiles.axes[value]
    lanes = tiles.lanes if tiles.simd[value] else 1
    repeats = 1  # of each value, by reduced ranges that it does not depend on
    for r in node.src[1:]:
        if not tiles.simd[value] if r.arg.kind is AxisKind.LANE else r not in inner:
            repeats *= r.src[0].arg
    groups: dict[int, list[Value]] = {}
    for position, k in enumerate(tiles.project(inner, axes)):
        groups.setdefault(k, []).append(tiles.values[value][position])
    out = []
    for k in range(len(groups)):
        parts = groups[k]
        while len(parts) > 1:
            half = len(parts) // 2
            pairs = [b.alu(op, node.dtype, [parts[i], parts[i + half]], lanes) for i in range(half)]
            parts = pairs + parts[2 * half :]
        total = parts[0]
        if tiles.simd[value] and not tiles.simd[node]:
            total = b.reduce(op, total, node.dtype, lanes)
        out.append(_repeat(tiles, op, total, node.dtype, repeats, tiles.lanes if tiles.simd[node] else 1))
    tiles.values[node] = out


def _repeat(tiles: Tiles, op: Ops, value: Value, dtype: DType, repeats: int, lanes: int) -> Value:
    """Combine `repeats` copies of a value, by doubling."""
    b, out = tiles.builder, None
    while True:
        if repeats & 1:
            out = value if out is None else b.alu(op, dtype, [out, value], lanes)
        repeats >>= 1
        if not repeats:
            return out
        value = b.alu(op, dtype, [value, value], lanes)
