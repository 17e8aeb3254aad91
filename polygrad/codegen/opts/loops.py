"""Output loops made of others: two neighbours as one, one as two, or the same loops in another order."""

from __future__ import annotations

import itertools

from polygrad.codegen.opts.split import substituted
from polygrad.dtype import dtypes
from polygrad.errors import OptError
from polygrad.uop.args import AxisKind
from polygrad.uop.linear import linear_terms
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.printer import axis_name
from polygrad.uop.shapes import sint_max
from polygrad.uop.symbolic import simplify


def nest_of(kernel: UOp, r: UOp) -> UOp:
    """The output nest that `r` is a loop of. Raises OptError."""
    for nest in kernel.src:
        if nest.op is Ops.END and r in nest.src[1:]:
            return nest
    raise OptError(f"expected a loop over output elements, got {axis_name(r.arg.id)}, a {r.arg.kind.name}")


def require_any_order(*ranges: UOp) -> None:
    """Raises OptError for a loop whose rounds go in order."""
    for r in ranges:
        if r.arg.kind is AxisKind.SCAN:
            raise OptError(f"expected loops that may run in any order, got {axis_name(r.arg.id)}, a SCAN")


def replace_loops(kernel: UOp, nest: UOp, *parts: UOp) -> UOp:
    """The kernel with one output nest replaced."""
    return UOp.sink(*(new for n in kernel.src for new in (parts if n is nest else (n,))))


def merge(kernel: UOp, outer: UOp, inner: UOp) -> UOp:
    """Two neighbouring loops that every index walks through as one (MLIR calls this loop coalescing):

    for i < 4: for j < 8: out[8*i + j] = a[8*i + j]   ->   for i < 32: out[i] = a[i]

    They are loops of one output nest, fill one STAGE, or are of the same reductions.
    """
    if outer.arg.kind is AxisKind.REDUCE:
        return _merge_reduced(kernel, outer, inner)
    nest = stage_filled_over(kernel, outer) or nest_of(kernel, outer)
    loops = nest.src[nest.src.index(outer) :]
    if (outer, inner) not in itertools.pairwise(loops):
        raise OptError("expected two loops one directly inside the other")
    positions, merged = _position_replacements(nest, outer, inner)
    source = nest.replace(
        src=tuple(
            merged if s is outer else s.substitute(positions) if s not in loops else s
            for s in nest.src
            if s is not inner
        )
    )
    return replace_loops(kernel, nest, source) if nest.op is Ops.END else kernel.substitute({nest: source})


def _merge_reduced(kernel: UOp, outer: UOp, inner: UOp) -> UOp:
    """Two neighbouring loops of the same reductions as one.

    REDUCE(f(8*i + j), i < 4, j < 8)   ->   REDUCE(f(i), i < 32)
    """
    positions, merged = _reduced_replacements(kernel, outer, inner)
    new: dict[UOp, UOp] = {}
    for node in kernel.substitute(positions).toposort():
        if node.op is Ops.REDUCE and outer in node.src[1:]:
            loops = [merged if s is outer else s for s in node.src[1:] if s is not inner]
            src = (new[node.src[0]], *loops)
        else:
            src = tuple([new[s] for s in node.src])
        new[node] = node.over(src)
    return next(reversed(new.values()))


def _reduced_replacements(kernel: UOp, outer: UOp, inner: UOp) -> tuple[dict[UOp, UOp], UOp]:
    """The replacement of each index, and the merged loop. Raises OptError."""
    totals = [n for n in kernel.toposort() if n.op is Ops.REDUCE and not {outer, inner}.isdisjoint(n.src[1:])]
    if not totals or any((outer, inner) not in itertools.pairwise(n.src[1:]) for n in totals):
        raise OptError("expected two loops one directly inside the other")
    if inner.arg.kind is not AxisKind.REDUCE:
        raise OptError(f"expected reduced loops, got {axis_name(inner.arg.id)}, a {inner.arg.kind.name}")
    return _position_replacements(kernel, outer, inner)


def stage_filled_over(kernel: UOp, r: UOp) -> UOp | None:
    """The STAGE that `r` is a loop of."""
    return next((n for n in kernel.toposort() if n.op is Ops.STAGE and r in n.src[2:]), None)


def mergeable(nest: UOp, outer: UOp, inner: UOp) -> bool:
    """Whether `merge` takes two neighbouring loops of an output nest or a STAGE, or of reductions in it."""
    reduced = outer.arg.kind is AxisKind.REDUCE
    try:
        (_reduced_replacements if reduced else _position_replacements)(nest, outer, inner)
    except OptError:
        return False
    return True


def _position_replacements(nest: UOp, outer: UOp, inner: UOp) -> tuple[dict[UOp, UOp], UOp]:
    """The replacement of each index, and the merged loop. Raises OptError."""
    require_any_order(outer, inner)
    n = inner.src[0].arg
    both = {outer, inner}
    merged = UOp.range(outer.src[0].arg * n, outer.arg)
    positions: dict[UOp, UOp] = {}
    for node in nest.toposort():
        if node.op is Ops.INDEX:  # of a STAGE, what it holds may depend on the loops, and the index not
            if len(node.src) > 2 and not both.isdisjoint(node.src[2].ranges):
                raise OptError("expected indices without a condition on the loops")
            if both.isdisjoint(node.src[1].ranges):
                continue
            positions[node.src[1]] = _merged_index(node.src[1], outer, inner, n, merged)
        elif node.op is Ops.STAGE and outer in node.src[2:]:
            positions[node.src[1]] = _merged_index(node.src[1], outer, inner, n, merged)
        elif node.dtype is not dtypes.index and node.op not in (Ops.INDEX, Ops.END):
            read = [s for s in node.src if s not in both] if node.op is Ops.REDUCE else node.src
            if any(s.dtype is dtypes.index and not both.isdisjoint(s.ranges) for s in read):
                raise OptError("expected loops that only indices depend on")
    return positions, merged


def _merged_index(position: UOp, outer: UOp, inner: UOp, n: int, merged: UOp) -> UOp:
    terms, constant = linear_terms(position)
    factor = terms.pop(inner, 0)
    if terms.pop(outer, 0) != factor * n or any(outer in a.ranges or inner in a.ranges for a in terms):
        raise OptError(f"expected indices that step {n} times as far in the outer loop as in the inner")
    out = merged * factor if factor != 1 else merged
    for atom, f in reversed(terms.items()):
        out = (atom * f if f != 1 else atom) + out
    return out + constant if constant else out


def split_loop(kernel: UOp, r: UOp, size: int) -> UOp:
    """A loop as a loop over blocks of `size` elements and one over those of a block.

    for r < 32: out[r] = f(r)   ->   for r.0 < 4: for r.1 < 8: out[8*r.0 + r.1] = f(8*r.0 + r.1)
    """
    nest = nest_of(kernel, r)
    require_any_order(r)
    if size < 2 or r.src[0].arg % size or size == r.src[0].arg:
        raise OptError(f"expected a part of the loop's size that divides it, {r.src[0].arg}, got {size}")
    blocks = UOp.range(r.src[0].arg // size, r.arg.child(0))
    inner = UOp.range(size, r.arg.child(1))
    loops = [x for q in nest.src[1:] for x in ((blocks, inner) if q is r else (q,))]
    store = substituted(nest.src[0], {r: blocks * size + inner})
    return replace_loops(kernel, nest, UOp(Ops.END, dtypes.void, (store, *loops)))


def split_sum(kernel: UOp, r: UOp, size: int) -> UOp:
    """A reduced loop as a loop over chunks of `size` elements and one over those of a chunk. The last chunk
    may have fewer.

    REDUCE(f(r), r < n)   ->   REDUCE(f(8*r.0 + r.1), r.0 < ceil(n / 8), r.1 < min(8, n - 8*r.0))
    """
    count = r.src[0]
    if size < 2 or size >= sint_max(count):
        raise OptError(f"expected less than the loop's size, {sint_max(count)}, and at least 2, got {size}")
    chunks = UOp.range(simplify((count + (size - 1)) // size), r.arg.child(0))
    chunk_size = -(-(count - chunks * size)).maximum(-size)
    whole = count.is_const and count.arg % size == 0
    inner = UOp.range(size if whole else simplify(chunk_size), r.arg.child(1))
    return with_sums_over(kernel, r, (chunks, inner), chunks * size + inner)


def with_sums_over(kernel: UOp, r: UOp, ranges: tuple[UOp, ...], value: UOp) -> UOp:
    """A kernel whose sums over `r` go over `ranges`, with `value` in the place of `r`.

    REDUCE(f(r), r)   ->   REDUCE(f(value), *ranges)
    """
    new: dict[UOp, UOp] = {r: value}
    for node in kernel.toposort():
        if node is r:
            continue
        src = tuple([new[s] for s in node.src])
        if node.op is Ops.REDUCE and r in node.src[1:]:
            loops = [x for q in node.src[1:] for x in (ranges if q is r else (new[q],))]
            src = (src[0], *loops)
        elif node.op is Ops.INDEX and src != node.src:
            src = (src[0], *(simplify(s) for s in src[1:]))
        new[node] = node.over(src)
    return new[kernel]


def reorder(kernel: UOp, ranges: list[UOp]) -> UOp:
    """The loops of one nest, output or STAGE, in this order, in the places that they have.

    END(store, a, b, c), ranges (c, a)   ->   END(store, c, b, a)
    """
    nest = stage_filled_over(kernel, ranges[0]) or nest_of(kernel, ranges[0])
    if len(set(ranges)) < len(ranges) or not set(ranges) <= set(nest.src[1:]):
        raise OptError("expected different loops of one nest")
    if any(r.arg.kind is not AxisKind.LOOP for r in ranges):
        raise OptError("expected loops")
    order = iter(ranges)
    source = nest.replace(src=tuple(next(order) if s in ranges else s for s in nest.src))
    return replace_loops(kernel, nest, source) if nest.op is Ops.END else kernel.substitute({nest: source})
