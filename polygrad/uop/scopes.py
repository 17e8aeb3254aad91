"""Which loops each node of a kernel is inside of: the ranges its value depends on and that have not ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

_CLOSES = frozenset({Ops.END, Ops.REDUCE})


@dataclass(slots=True)
class Scopes:
    """`mask[node]` has bit i set when the node depends on `ranges[i]`."""

    ranges: list[UOp]
    mask: dict[UOp, int]
    bit: dict[UOp, int]

    def of(self, node: UOp) -> list[UOp]:
        """The ranges that `node` is inside of."""
        m = self.mask[node]
        return [r for i, r in enumerate(self.ranges) if m >> i & 1]

    def mask_of(self, ranges: Iterable[UOp]) -> int:
        m = 0
        for r in ranges:
            m |= self.bit[r]
        return m


def scopes(order: list[UOp]) -> Scopes:
    """The scopes of every node of `order`, a toposort."""
    ranges: list[UOp] = []
    mask: dict[UOp, int] = {}
    bit: dict[UOp, int] = {}
    for node in order:
        m = 0
        if node.op is Ops.RANGE:
            m = bit[node] = 1 << len(ranges)
            ranges.append(node)
            for s in node.src[1:]:  # control edges of the lineariser
                m |= mask[s]
        elif node.op in _CLOSES:
            ended = 0
            for s in node.src[1:]:
                ended |= bit[s]
            m = mask[node.src[0]] & ~ended
        else:
            for s in node.src:
                m |= mask[s]
        mask[node] = m
    return Scopes(ranges, mask, bit)
