"""Tiles: ranges of kind UPCAST, UNROLL and LANE open no loop. A node that depends on them stands for one
value for each of their elements.

Here an INDEX that is linear in its tile ranges is split into the part that loops compute, once, and constant
steps:

    INDEX(p, base + 4*u + l + 7)  ->  INDEX(p, base, arg=Steps(((u, 4), (l, 1)), 7))

so that a renderer can put the steps into instruction offsets. In an INDEX that is not linear in the lanes,
what depends on tile ranges alone is added last, where that leaves a scalar: its values are constants, too.

    INDEX(p, 4*(l//2) + base)  ->  INDEX(p, base + 4*(l//2))
"""

from __future__ import annotations

from polygrad.dtype import dtypes
from polygrad.uop.args import AxisKind
from polygrad.uop.linear import Steps, linear_terms, sum_of
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

_BOUND_KINDS = frozenset({AxisKind.GLOBAL, AxisKind.LOCAL, AxisKind.SUBGROUP})
TILE_KINDS = frozenset({AxisKind.UPCAST, AxisKind.UNROLL, AxisKind.LANE})


def is_tile(node: UOp) -> bool:
    """Whether a node is a RANGE that opens no loop."""
    return node.op is Ops.RANGE and node.arg.kind in TILE_KINDS


def is_bound(node: UOp) -> bool:
    """Whether a node is a RANGE that is a dimension of a grid or of a workgroup, which opens no loop
    either."""
    return node.op is Ops.RANGE and node.arg.kind in _BOUND_KINDS


def loops_of(node: UOp) -> frozenset[UOp]:
    """The ranges that a node depends on and that open a loop."""
    return frozenset(r for r in node.ranges if not is_tile(r) and not is_bound(r))


def split_indices(sink: UOp) -> UOp:
    """Take the tile ranges out of every INDEX that is linear in the SIMD lanes, and add up the other terms
    outermost loop first, so that each partial sum is computed as far out as possible.

    INDEX(p, k + 8*i + 4*u + l + 7)   ->   INDEX(p, 8*i + k, arg=Steps(((u, 4), (l, 1)), 7)), i outside of k
    """
    order = sink.toposort()
    depth = {  # outermost first: output loops in the order of their nest, then those of sums
        r: (r.arg.kind is AxisKind.REDUCE, i)
        for end in order
        if end.op is Ops.END
        for i, r in enumerate(end.src[1:])
    }

    def innermost(atom: UOp) -> tuple[bool, int]:
        return max((depth[r] for r in atom.ranges if r in depth), default=(False, -1))

    new: dict[UOp, UOp] = {}
    for node in order:
        src = tuple([new[s] for s in node.src])
        if node.op is Ops.INDEX and node.src[1].op is not Ops.CONST:
            terms, constant = linear_terms(node.src[1])
            steps = tuple((a, f) for a, f in terms.items() if is_tile(a))
            loops = {a: f for a, f in terms.items() if not is_tile(a)}
            if not any(r.arg.kind is AxisKind.LANE for a in loops for r in a.ranges):
                loops = {new[a]: f for a, f in sorted(loops.items(), key=lambda t: innermost(t[0]))}
                at = Steps(steps, constant) if steps or constant else None
                new[node] = UOp(Ops.INDEX, node.dtype, (src[0], UOp.index(sum_of(loops)), *src[2:]), at)
                continue
            tiles = {a: f for a, f in terms.items() if all(map(is_tile, a.ranges))}
            loops = {new[a]: f for a, f in terms.items() if a not in tiles}
            if loops and not any(r.arg.kind is AxisKind.LANE for a in loops for r in a.ranges):
                constants = UOp.index(sum_of({new[a]: f for a, f in tiles.items()}, constant))
                whole = UOp(Ops.ADD, dtypes.index, (UOp.index(sum_of(loops)), constants))
                new[node] = UOp(Ops.INDEX, node.dtype, (src[0], whole, *src[2:]))
                continue
        new[node] = node.over(src)
    return new[sink]
