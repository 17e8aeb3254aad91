"""Merging loops: two neighbouring output loops that every index walks through as one become one.

    for i < 4: for j < 8: out[8*i + j] = a[8*i + j]   ->   for i < 32: out[i] = a[i]

MLIR calls this loop coalescing.
"""

from __future__ import annotations

import itertools

from polygrad.dtype import dtypes
from polygrad.uop.linear import linear_terms
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.scopes import scopes


def merge_loops(sink: UOp) -> UOp:
    """Merge what can be merged in a kernel of one output nest."""
    while True:
        loops = list(sink.src[0].src[1:]) if len(sink.src) == 1 and sink.src[0].op is Ops.END else []
        for outer, inner in itertools.pairwise(loops):
            merged = _merged(sink, outer, inner)
            if merged is not None:
                sink = merged
                break
        else:
            return sink


def _merged(sink: UOp, outer: UOp, inner: UOp) -> UOp | None:
    if not (outer.src[0].is_const and inner.src[0].is_const):
        return None
    order = sink.toposort()
    n = inner.src[0].arg
    scope = scopes(order)
    both = scope.bit[outer] | scope.bit[inner]
    together: dict[UOp, UOp] = {}
    merged = UOp.range(outer.src[0].arg * n, outer.arg.id, outer.arg.kind)
    for node in order:
        if node.op is Ops.INDEX and scope.mask[node] & both:
            if len(node.src) > 2 and scope.mask[node.src[2]] & both:
                return None
            terms, constant = linear_terms(node.src[1])
            factor = terms.pop(inner, 0)
            if terms.pop(outer, 0) != factor * n or any(scope.mask[a] & both for a in terms):
                return None
            position = merged * factor if factor != 1 else merged
            for atom, f in reversed(terms.items()):
                position = (atom * f if f != 1 else atom) + position
            together[node.src[1]] = position + constant if constant else position
        elif (
            node.dtype is not dtypes.index
            and node.op is not Ops.INDEX
            and any(s.dtype is dtypes.index and scope.mask[s] & both for s in node.src)
        ):
            if node.op is not Ops.END:
                return None  # an index is used as a value
    new = sink.substitute(together)
    end = new.src[0]
    loops = tuple(merged if r is outer else r for r in end.src[1:] if r is not inner)
    return UOp.sink(UOp(Ops.END, dtypes.void, (end.src[0], *loops)))
