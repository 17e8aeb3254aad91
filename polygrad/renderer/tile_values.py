"""Tiles without a Builder: coordinates along axes, and the constants that an index has at each."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from polygrad.codegen.opts.tile import is_tile
from polygrad.uop.alu import evaluate
from polygrad.uop.args import AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops

Axes = tuple[UOp, ...]  # UPCAST and UNROLL ranges, by id


def by_id(r: UOp) -> tuple[int, ...]:
    return r.arg.id


def coordinates(axes: Axes) -> itertools.product[tuple[int, ...]]:
    """Every combination of positions along `axes`, the last fastest."""
    return itertools.product(*(range(r.src[0].arg) for r in axes))


def are_consecutive(offsets: Sequence[int]) -> bool:
    return len(offsets) > 1 and all(b - a == 1 for a, b in itertools.pairwise(offsets))


def tile_constants(node: UOp, axes: Axes, lanes: int) -> list[list[int]] | None:
    """For each coordinate over `axes`, the values of an expression of tile ranges, one for each lane; None
    for any other expression."""
    if not all(map(is_tile, node.ranges)):
        return None
    values: dict[UOp, list[list[int]]] = {}
    places = list(coordinates(axes))
    for n in node.toposort():
        if n.op is Ops.CONST:
            values[n] = [[n.arg] * lanes for _ in places]
        elif is_tile(n):
            if n.arg.kind is AxisKind.LANE:
                values[n] = [list(range(lanes)) for _ in places]
            elif n in axes:
                values[n] = [[c[axes.index(n)]] * lanes for c in places]
            else:  # of a reduction within the expression
                return None
        elif n.op in GroupOp.ALU:
            columns = [[row[i] for row in values[s] for i in range(lanes)] for s in n.src]
            results = [evaluate(n.op, n.src[-1].dtype, operands) for operands in zip(*columns, strict=True)]
            if None in results:
                return None
            values[n] = [results[i : i + lanes] for i in range(0, len(results), lanes)]
        else:
            return None
    return values[node]
