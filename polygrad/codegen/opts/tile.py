"""Tiles: ranges of kind UPCAST, UNROLL and LANE open no loop. A node that depends on them stands for one
value for each of their elements.

Here an INDEX that is linear in its tile ranges is split into the part that loops compute, once, and constant
steps:

    INDEX(p, base + 4*u + l + 7)  ->  INDEX(p, base, arg=Steps(((u, 4), (l, 1)), 7))

so that a renderer can put the steps into instruction offsets. What depends on tile ranges alone in another
way is added last, as its values are constants, too: of the lanes, where the rest is a scalar.

    INDEX(p, (u < 2 ? 16*u : 21) + base + l)
        ->  INDEX(p, base + (u < 2 ? 16*u : 21), arg=Steps(((l, 1),), 0))
    INDEX(p, 4*(l//2) + base)
        ->  INDEX(p, base + 4*(l//2))
"""

from __future__ import annotations

from polygrad.dtype import dtypes
from polygrad.uop.args import AxisKind
from polygrad.uop.linear import Steps, Terms, linear_terms, sum_of
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


def _with_constants(loops: UOp, terms: Terms, constant: int = 0) -> UOp:
    """A part of an index that loops compute, plus terms of tile ranges alone, which are constants."""
    if not terms:
        return loops
    constants = UOp.index(sum_of(terms, constant))
    is_alone = loops.op is Ops.CONST and loops.arg == 0
    return constants if is_alone else UOp(Ops.ADD, dtypes.index, (loops, constants))


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
            tiles = {a: f for a, f in terms.items() if a.ranges and all(map(is_tile, a.ranges))}
            loops = {a: f for a, f in terms.items() if a not in tiles}
            if not any(r.arg.kind is AxisKind.LANE for a in terms if not is_tile(a) for r in a.ranges):
                loops = {new[a]: f for a, f in sorted(loops.items(), key=lambda t: innermost(t[0]))}
                constants = {new[a]: f for a, f in tiles.items() if not is_tile(a)}
                at = Steps(steps, constant) if steps or constant else None
                whole = _with_constants(UOp.index(sum_of(loops)), constants)
                new[node] = UOp(Ops.INDEX, node.dtype, (src[0], whole, *src[2:]), at)
                continue
            if loops and not any(r.arg.kind is AxisKind.LANE for a in loops for r in a.ranges):
                whole = _with_constants(
                    UOp.index(sum_of({new[a]: f for a, f in loops.items()})),
                    {new[a]: f for a, f in tiles.items()},
                    constant,
                )
                new[node] = UOp(Ops.INDEX, node.dtype, (src[0], whole, *src[2:]))
                continue
        new[node] = node.over(src)
    return new[sink]
