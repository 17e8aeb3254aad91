"""Tiles: ranges of kind UPCAST, UNROLL and LANE open no loop; a node that depends on them stands for a value
each.

Here an INDEX that is linear in its tile ranges is split into what the loops compute, once, and constant
steps:

    INDEX(p, base + 4*u + l + 7)  ->  INDEX(p, base, arg=Steps(((u, 4), (l, 1)), 7))

so that a renderer can put the steps into instruction offsets. An INDEX that is not linear stays whole.
"""

from __future__ import annotations

from typing import NamedTuple

from polygrad.codegen.scopes import scopes
from polygrad.uop.node import AxisKind, UOp
from polygrad.uop.ops import Ops

TILE_KINDS = frozenset({AxisKind.UPCAST, AxisKind.UNROLL, AxisKind.LANE})


class Steps(NamedTuple):
    """The part of an INDEX that is constant per tile element: sum(step * range) + offset."""

    steps: tuple[tuple[UOp, int], ...]
    offset: int


def is_tile(node: UOp) -> bool:
    """A RANGE that opens no loop."""
    return node.op is Ops.RANGE and node.arg.kind in TILE_KINDS


def linear_terms(index: UOp) -> tuple[dict[UOp, int], int]:
    """`index` as sum(factor * atom) + constant."""
    terms: dict[UOp, int] = {}
    constant = 0
    stack = [(index, 1)]
    while stack:
        node, factor = stack.pop()
        if node.op is Ops.ADD:
            stack.append((node.src[1], factor))
            stack.append((node.src[0], factor))
        elif node.op is Ops.CONST:
            constant += factor * node.arg
        elif node.op is Ops.MUL and node.src[1].is_const:
            stack.append((node.src[0], factor * node.src[1].arg))
        else:
            terms[node] = terms.get(node, 0) + factor
    return {n: f for n, f in terms.items() if f}, constant


def sum_of(terms: dict[UOp, int], constant: int = 0) -> UOp:
    """The UOp of sum(factor * atom) + constant."""
    out: UOp | None = None
    for atom, factor in terms.items():
        term = atom if factor == 1 else atom * factor
        out = term if out is None else out + term
    if out is None:
        return UOp.index(constant)
    return out + constant if constant else out


def split_indices(sink: UOp) -> UOp:
    """Take the tile ranges out of every INDEX that is linear in them, and add up the rest outermost loop
    first, so that each partial sum is made as far out as it can."""
    order = sink.toposort()
    scope = scopes(order)
    tile = scope.mask_of(r for r in scope.ranges if is_tile(r))
    depth = {1 << i: (r.arg.kind is AxisKind.REDUCE, r.arg.id) for i, r in enumerate(scope.ranges)}

    def innermost(atom: UOp) -> tuple[bool, int]:
        return max((d for bit, d in depth.items() if scope.mask[atom] & bit), default=(False, -1))

    new: dict[UOp, UOp] = {}
    for node in order:
        src = tuple([new[s] for s in node.src])
        if node.op is Ops.INDEX and node.src[1].op is not Ops.CONST:
            terms, constant = linear_terms(node.src[1])
            steps = tuple((a, f) for a, f in terms.items() if is_tile(a))
            loops = {a: f for a, f in terms.items() if not is_tile(a)}
            if not any(scope.mask[a] & tile for a in loops):
                loops = dict(sorted(loops.items(), key=lambda t: innermost(t[0])))
                at = Steps(steps, constant) if steps or constant else None
                new[node] = UOp(Ops.INDEX, node.dtype, (src[0], sum_of(loops), *src[2:]), at)
                continue
        new[node] = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
    return new[sink]
