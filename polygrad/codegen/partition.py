"""Loop partition (index-set splitting): an output loop becomes several where a condition on it changes, so
that each part knows whether the condition holds.

    for r < 9: out[r] = r < 3 ? a[r] : b[r - 3]   ->   for r < 3: out[r] = a[r];  for r < 6: out[r + 3] = b[r]

What was padded or concatenated is then computed for no element that does not need it: the gradient of a split
into three would sum up each third for all of them.
"""

from __future__ import annotations

import itertools

from polygrad.codegen.loops import nest_of, replaced
from polygrad.codegen.split import reads_its_output
from polygrad.dtype import dtypes
from polygrad.errors import OptError
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.rewrite import graph_rewrite
from polygrad.uop.symbolic import symbolic


def partition(kernel: UOp, r: UOp, bounds: tuple[int, ...]) -> UOp:
    """The loop `r` divided where its value is one of `bounds`. Raises OptError."""
    nest = nest_of(kernel, r)
    if reads_its_output(nest):
        raise OptError("expected a kernel that does not read what it writes")
    points = [0, *bounds, r.src[0].arg]
    if any(a >= b for a, b in itertools.pairwise(points)):
        raise OptError(f"expected increasing values between 0 and {r.src[0].arg}, got {bounds}")
    parts = [_part(nest, r, a, b, i) for i, (a, b) in enumerate(itertools.pairwise(points))]
    return replaced(kernel, nest, *parts)


def changes(nest: UOp, r: UOp) -> tuple[int, ...]:
    """The values of `r` from which on a comparison of it with a constant is another."""
    size = r.src[0].arg
    return tuple(sorted({p for n in nest.toposort() if 0 < (p := _changes_at(n, r)) < size}))


def _changes_at(node: UOp, r: UOp) -> int:
    if node.op is Ops.CMPLT and node.src[0] is r and node.src[1].is_const:
        return int(node.src[1].arg)
    if node.op is Ops.CMPLT and node.src[1] is r and node.src[0].is_const:
        return int(node.src[0].arg) + 1
    return 0


def _part(nest: UOp, r: UOp, start: int, stop: int, number: int) -> UOp:
    """The elements from `start` to `stop` of `r`, in loops of their own."""
    ranges = [n for n in nest.toposort() if n.op is Ops.RANGE]
    new = {q: q.replace(arg=q.arg.segment(number)) for q in ranges}
    new[r] = UOp.range(stop - start, new[r].arg)
    store = nest.src[0].substitute(new | {r: new[r] + start} if start else new)
    return graph_rewrite(UOp(Ops.END, dtypes.void, (store, *(new[q] for q in nest.src[1:]))), symbolic)
