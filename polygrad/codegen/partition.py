"""Loop partition (index-set splitting): an output loop becomes several where a condition on it changes, so
that each part knows whether the condition holds.

    for r < 9: out[r] = r < 3 ? a[r] : b[r - 3]   ->   for r < 3: out[r] = a[r];  for r < 6: out[r + 3] = b[r]

What was padded or concatenated is then computed for no element that does not need it: the gradient of a split
into three would sum up each third for all of them.
"""

from __future__ import annotations

import itertools

from polygrad.codegen.split import reads_its_output, with_ids_from
from polygrad.dtype import dtypes
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.rewrite import graph_rewrite
from polygrad.uop.symbolic import symbolic

_MAX_PARTS = 4
_MIN_PART = 16  # elements


def partition_loops(sink: UOp) -> UOp:
    """Partition what can be partitioned in every output nest, one loop of each."""
    return UOp.sink(*(part for nest in sink.src for part in _parts(nest)))


def _parts(nest: UOp) -> list[UOp]:
    if nest.op is not Ops.END or reads_its_output(nest):
        return [nest]
    order = nest.toposort()
    for r in nest.src[1:]:
        if not r.src[0].is_const:
            continue
        size = r.src[0].arg
        bounds = sorted({0, size, *(p for n in order if 0 < (p := _changes_at(n, r)) < size)})
        parts = list(itertools.pairwise(bounds))
        if 1 < len(parts) <= _MAX_PARTS and min(b - a for a, b in parts) >= _MIN_PART:
            return [_part(nest, r, a, b, i) for i, (a, b) in enumerate(parts)]
    return [nest]


def _changes_at(node: UOp, r: UOp) -> int:
    """The value of `r` from which on a comparison of it with a constant is another; 0 for other nodes."""
    if node.op is Ops.CMPLT and node.src[0] is r and node.src[1].is_const:
        return int(node.src[1].arg)
    if node.op is Ops.CMPLT and node.src[1] is r and node.src[0].is_const:
        return int(node.src[0].arg) + 1
    return 0


def _part(nest: UOp, r: UOp, start: int, stop: int, number: int) -> UOp:
    """The elements from `start` to `stop` of `r`, in loops of their own."""
    ranges = [n for n in nest.toposort() if n.op is Ops.RANGE]
    new = with_ids_from(ranges, number * (1 + max(int(q.arg.id) for q in ranges)))
    new[r] = UOp.range(stop - start, new[r].arg.id)
    store = nest.src[0].substitute(new | {r: new[r] + start} if start else new)
    return graph_rewrite(UOp(Ops.END, dtypes.void, (store, *(new[q] for q in nest.src[1:]))), symbolic)
