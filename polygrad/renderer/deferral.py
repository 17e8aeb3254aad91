"""Which values are written when they are first needed, and not where their node stands: those that one node
alone reads, several times. Otherwise all loads of a register tile would be live at once, which takes more
registers than there are.
"""

from __future__ import annotations

from collections.abc import Sequence

from polygrad.codegen.opts.tile import is_tile
from polygrad.renderer.tile_axes import TileAxes, pointer_of
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops


def deferred_nodes(linear: Sequence[UOp], tiles: TileAxes) -> set[UOp]:
    """Find loads and operations with one reader. The reader is an operation of the same block, and reads
    each value more than once or is deferred itself."""
    block, blocks = 0, {}
    readers: dict[UOp, list[UOp]] = {}
    for node in linear:
        if node.op is Ops.BARRIER:
            block += 1
        elif node.op is Ops.STORE:
            block += pointer_of(node.src[0]).op is Ops.PARAM
        elif node.op is Ops.END or (node.op is Ops.RANGE and not is_tile(node)):
            block += 1
        blocks[node] = block
        for s in node.src:
            readers.setdefault(s, []).append(node)
    deferred: set[UOp] = set()
    for node in reversed(linear):
        if node.op is Ops.LOAD:
            index = node.src[0]
            if len(index.src) > 2 or pointer_of(index).op is not Ops.PARAM or tiles.axis_across(index):
                continue
        elif node.op not in GroupOp.Elementwise:
            continue
        if len(readers.get(node, [])) != 1:
            continue
        (reader,) = readers[node]
        if reader.op not in GroupOp.Elementwise:
            continue
        if blocks[node] == blocks[reader] and (
            reader in deferred or set(tiles.axes[node]) < set(tiles.axes[reader])
        ):
            deferred.add(node)
    return deferred
