"""Calls of tensor cores (WMMA): with fragments in registers, and with operands in memory of the workgroup."""

from __future__ import annotations

from collections.abc import Sequence

from polygrad.helpers import prod
from polygrad.renderer.addresses import addresses_of
from polygrad.renderer.builder import Operand, Value
from polygrad.renderer.tile_axes import NO_STEPS
from polygrad.renderer.tile_values import Axes
from polygrad.renderer.tiles import Tiles
from polygrad.uop.node import UOp


def emit_wmma(tiles: Tiles, node: UOp) -> None:
    """Write a call for each coordinate of the node along the axes that are not its core's elements."""
    core, (a, b, c), ranges = node.arg, node.src[:3], node.src[3:]
    if core.in_memory:
        _emit_wmma_in_memory(tiles, node)
        return
    n_c, n_a = len(core.c.elements), len(core.a.elements)
    parts = ((a, ranges[n_c : n_c + n_a]), (b, ranges[n_c + n_a :]), (c, ranges[:n_c]))
    elements_of_c = frozenset(ranges[:n_c])
    outer = tuple([r for r in tiles.axes[node] if r not in elements_of_c])

    def places(source: UOp, elements: Sequence[UOp]) -> list[list[int]]:
        """For each coordinate over `outer`, the positions of the source's elements among its values."""
        order = tuple(reversed(elements))  # the first element is the fastest
        flat = tiles.project((*outer, *order), tiles.axes[source])
        count = prod(r.src[0].arg for r in order)
        return [flat[i : i + count] for i in range(0, len(flat), count)]

    out: list[Value] = [None] * prod(r.src[0].arg for r in tiles.axes[node])
    fragments = [(source, places(source, elements)) for source, elements in parts]
    for k, targets in enumerate(places(node, ranges[:n_c])):
        values = ([tiles.value(source, p, False) for p in rows[k]] for source, rows in fragments)
        for p, value in zip(targets, tiles.builder.wmma(core, *values), strict=True):
            out[p] = value
    tiles.values[node] = out


def _emit_wmma_in_memory(tiles: Tiles, node: UOp) -> None:
    """Write a call for each coordinate of the node along the axes that are not its core's elements."""
    core, ranges = node.arg, node.src[3:]
    n_c, n_a = len(core.c.elements), len(core.a.elements)
    own = tuple(reversed(ranges[:n_c]))  # the first element is the fastest
    outer = tuple([r for r in tiles.axes[node] if r not in own])
    operands = [
        _operands(tiles, source, elements, outer)
        for source, elements in zip(node.src[:2], (ranges[n_c : n_c + n_a], ranges[n_c + n_a :]), strict=True)
    ]
    count = prod(r.src[0].arg for r in own)
    totals = tiles.project((*outer, *own), tiles.axes[node.src[2]])
    places = tiles.project((*outer, *own), tiles.axes[node])
    out: list[Value] = [None] * len(places)
    for k, (a, b) in enumerate(zip(*operands, strict=True)):
        each = range(k * count, (k + 1) * count)
        c = [tiles.value(node.src[2], totals[i], False) for i in each]
        for i, value in zip(each, tiles.builder.wmma_in_memory(core, a, b, c), strict=True):
            out[places[i]] = value
    tiles.values[node] = out


def _operands(tiles: Tiles, load: UOp, elements: Sequence[UOp], outer: Axes) -> list[Operand]:
    """A tensor core's operand in memory for each coordinate over `outer`."""
    index = load.src[0]
    steps = dict((index.arg or NO_STEPS).steps)
    step = steps.get(elements[2], 0) if len(elements) > 2 else 0
    return [
        Operand(address, steps[elements[0]] == 1, step)
        for address in addresses_of(tiles, index, outer, frozenset(elements))
    ]
