"""Which values are written when they are first needed, and not where their node stands: those that one node
alone reads, several times. Otherwise all loads of a register tile would be live at once, which takes more
registers than there are.
"""

from __future__ import annotations

from collections.abc import Sequence

from polygrad.codegen.opts.tile import is_tile
from polygrad.renderer.tile_axes import TileAxes, gate_of, readers_of
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops


def deferred_nodes(linear: Sequence[UOp], tiles: TileAxes) -> set[UOp]:
    """Find loads and operations with one reader. The reader is an operation of the same block, and reads
    each value more than once or is deferred itself."""
    blocks, readers = _blocks(linear), readers_of(linear)
    deferred: set[UOp] = set()
    for node in reversed(linear):
        if len(readers.get(node, ())) != 1 or not _may_wait(node, tiles):
            continue
        (reader,) = readers[node]
        if reader.op in GroupOp.Elementwise and blocks[node] == blocks[reader]:
            if reader in deferred or set(tiles.axes[node]) < set(tiles.axes[reader]):
                deferred.add(node)
    return deferred


def _may_wait(node: UOp, tiles: TileAxes) -> bool:
    """Whether a node's values may be written one by one: those of an operation, and those of a load from
    memory that has no condition and needs no transpose."""
    if node.op is not Ops.LOAD:
        return node.op in GroupOp.Elementwise
    index = node.src[0]
    return gate_of(index) is None and index.memory.op is Ops.PARAM and tiles.axis_across(index) is None


def _blocks(linear: Sequence[UOp]) -> dict[UOp, int]:
    """The number of each node's block. A block ends where a loop does or begins, and where memory changes."""
    block, blocks = 0, {}
    for node in linear:
        if node.op in (Ops.BARRIER, Ops.END) or (node.op is Ops.RANGE and not is_tile(node)):
            block += 1
        elif node.op is Ops.STORE:
            block += node.src[0].memory.op is Ops.PARAM
        blocks[node] = block
    return blocks
