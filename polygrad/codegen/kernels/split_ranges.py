"""Loops whose quotient and remainder positions take, as a loop over blocks and one inside of a block.

    sum(x[k] * (q[k // 32 * 16 + k % 16] >> k // 16 % 2 * 4) for k < 896)
    sum(x[a * 32 + b * 16 + c] * (q[a * 16 + c] >> b * 4) for a < 28, b < 2, c < 16)

Then each position is linear in the loops: it has strides, and what is read in a row is read as a vector. Axes
that were made one by a reshape are so made several again, and elements of packed blocks (a scale, and some
bits for each number) are read block by block. tinygrad calls it range splitting; compilers of loops call it
strip-mining.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from polygrad.codegen.kernels.division import axes_of
from polygrad.codegen.kernels.kernel_opt import AxisId, KernelContext, KernelOpt, Kind, Proposal
from polygrad.codegen.opts.gpu_heuristics import find_tiled_product
from polygrad.errors import OptError
from polygrad.schedule.kernel_info import kernel_info
from polygrad.schedule.kernels import KernelCall
from polygrad.schedule.selection import equality_with, factors
from polygrad.uop.args import AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.rewrite import graph_rewrite
from polygrad.uop.symbolic import symbolic

MIN_INNERMOST = 8  # elements: shorter loops are worse than a position that is no sum

_KINDS = (AxisKind.REDUCE, AxisKind.LOOP)


def propose_split_ranges(call: KernelCall, context: KernelContext) -> Iterator[Proposal]:
    """Loops of sums that are split where that makes positions linear; on machines with workgroups also loops
    over output elements, where that makes a sum a product (of each head's values, which lie side by side)."""
    for r, sizes in _blocks(call.ast).items():
        if r.arg.kind is AxisKind.REDUCE or (
            context.target.workgroups is not None and _makes_product(call.ast, r, sizes)
        ):
            yield Proposal(KernelOpt(Kind.SPLIT_RANGE, (), (r.arg.id,), tuple(sizes)))


def _makes_product(ast: UOp, loop: UOp, sizes: list[int]) -> bool:
    """Whether a kernel's only sum is one that workgroups compute in tiles, but only after the split."""
    nests = [kernel_info(k).only_nest for k in (ast, split_range(ast, [loop.arg.id], sizes))]
    before, after = (n is not None and find_tiled_product(n) is not None for n in nests)
    return after and not before


def split_range(ast: UOp, axes: Sequence[AxisId], sizes: Sequence[int]) -> UOp:
    """A kernel with a loop as loops over blocks of these sizes.

    sum(f(k) for k < 896), sizes 16 and 32  ->  sum(f(32*a + 16*b + c) for a < 28, b < 2, c < 16)
    """
    (loop,) = axes_of(kernel_info(ast), axes)
    divides = all(a and b % a == 0 for a, b in itertools.pairwise((*sizes, loop.src[0].arg)))
    if loop.arg.kind not in _KINDS or not loop.src[0].is_const or not divides:
        raise OptError("expected a loop, and sizes that divide each other and its rounds")
    return graph_rewrite(_with_parts(ast, {loop: _parts(loop, list(sizes))}), symbolic)


def _blocks(ast: UOp) -> dict[UOp, list[int]]:
    """For each loop that is split, the sizes of blocks in it, which divide each other and the loop."""
    divisors: dict[UOp, set[int]] = {}
    for index in (n for n in ast.toposort() if n.op is Ops.INDEX):
        for node in index.src[1].toposort():
            found = loop_and_divisor(node)
            if found is not None:
                divisors.setdefault(found[0], set()).add(found[1])
    chains = {r: sorted(sizes) for r, sizes in divisors.items()}
    chains = {r: sizes for r, sizes in chains.items() if _is_chain(r.src[0].arg, sizes)}
    removed = _loops_of_one_hots(ast) if chains else frozenset()
    return {r: sizes for r, sizes in chains.items() if r not in removed}


def _loops_of_one_hots(ast: UOp) -> frozenset[UOp]:
    """The loops of sums over one-hots. Lowering replaces such a sum by a load (lower/reductions.py), which it
    recognizes by a comparison with the whole loop."""
    sums = [n for n in ast.toposort() if n.op is Ops.REDUCE and n.arg is Ops.ADD]
    return frozenset(
        r
        for total in sums
        for r in total.src[1:]
        if any(equality_with(pick, r) is not None for pick in factors(total.src[0])[1])
    )


def loop_and_divisor(node: UOp) -> tuple[UOp, int] | None:
    """(r, c) of r // c, r % c, and of quotients of quotients."""
    if node.op not in (Ops.IDIV, Ops.MOD) or not node.src[1].is_const:
        return None
    loop, size = node.src[0], node.src[1].arg
    while loop.op is Ops.IDIV and loop.src[1].is_const:
        loop, size = loop.src[0], size * loop.src[1].arg
    if loop.op is not Ops.RANGE or loop.arg.kind not in _KINDS or not loop.src[0].is_const:
        return None
    return loop, size


def _is_chain(count: int, sizes: list[int]) -> bool:
    return sizes[0] >= MIN_INNERMOST and all(b % a == 0 for a, b in zip(sizes, [*sizes[1:], count]))


def _parts(loop: UOp, sizes: list[int]) -> tuple[UOp, ...]:
    """Loops over blocks, the largest first, and over the elements of the smallest."""
    counts = [b // a for a, b in zip([1, *sizes], [*sizes, loop.src[0].arg])][::-1]
    return tuple(UOp.range(count, loop.arg.child(i)) for i, count in enumerate(counts))


def _position(parts: tuple[UOp, ...]) -> UOp:
    """The round of the loop that was split, in those of its parts."""
    out = parts[0]
    for part in parts[1:]:
        out = out * part.src[0].arg + part
    return out


def _with_parts(ast: UOp, parts: dict[UOp, tuple[UOp, ...]]) -> UOp:
    new = {r: _position(loops) for r, loops in parts.items()}
    for node in ast.toposort():
        if node in new:
            continue
        if node.op in (Ops.REDUCE, Ops.END):
            loops = [x for s in node.src[1:] for x in parts.get(s, (new[s],))]
            new[node] = node.replace(src=(new[node.src[0]], *loops))
        else:
            new[node] = node.over(tuple([new[s] for s in node.src]))
    return new[ast]
