"""Products of matrices of words, by the tile registers of a processor (x86's AMX).

    MATMUL r0.1    sums of DOTs for the rows r0.1 and the lanes of a register tile become a MATMUL

A tile register holds 16 rows of 16 words. An instruction adds to one the dot products of the rows of a second
with the columns of a third, 16 words long:

    for row tile: for column tile:
        total[r0.1, lane] = sum(DOT(a[r0.1, w], b[w, lane], 0) for w)    MATMUL, in memory of the kernel's own
        for r0.1: out[r0.1, lane] = f(total[r0.1, lane])

The words of a row of `a` are neighbours in memory, as the lanes of `b` are. Up to four tile registers hold
sums.
"""

from __future__ import annotations

from typing import NamedTuple

from polygrad.codegen.opts.stage import stage, values_of
from polygrad.codegen.opts.tile import is_tile
from polygrad.codegen.target import Target
from polygrad.errors import OptError
from polygrad.helpers import prod
from polygrad.schedule.kernel_info import Access
from polygrad.uop.args import MATRIX_SIDE, AddrSpace, AxisKind, Dot
from polygrad.uop.linear import linear_terms
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

MAX_SUMS = 4  # tile registers of sums


class WordProduct(NamedTuple):
    """A sum of DOTs over one loop of whole tiles. `rows`: the load of the operand of the rows, whose words
    are neighbours; `columns`: the other operand. `kinds`: of their elements."""

    rows: Access
    columns: UOp
    words: UOp
    kinds: Dot

    def needs_panel(self, lanes: UOp) -> bool:
        """Whether the columns have to be copied, because they are computed or no neighbours."""
        return self.columns.op is not Ops.LOAD or Access(self.columns).stride(lanes) != 1


def product_of(total: UOp, lanes: UOp) -> WordProduct | None:
    """A REDUCE as a product of words with columns along `lanes`; None if it is none."""
    if total.op is not Ops.REDUCE or total.arg is not Ops.ADD or len(total.src) != 2:
        return None
    dot, words = total.src
    if dot.op is not Ops.DOT or dot.src[2].op is not Ops.CONST or dot.src[2].arg != 0 or is_tile(words):
        return None
    if not words.src[0].is_const or words.src[0].arg % MATRIX_SIDE:
        return None
    left, right = dot.src[:2]
    kinds = dot.arg
    if lanes in left.ranges:
        left, right = right, left
        kinds = Dot(kinds.b, kinds.a)
    if left.op is not Ops.LOAD or lanes in left.ranges or not {lanes, words} <= right.ranges:
        return None
    rows = Access(left)
    if rows.stride(words) != 1 or any(len(x.src) > 1 for x in (left, right) if x.op is Ops.LOAD):
        return None
    return WordProduct(rows, right, words, kinds)


def has_matrices(kinds: Dot, target: Target) -> bool:
    """Whether a target has products of matrices of these words, in either order."""
    return kinds in target.matrices or Dot(kinds.b, kinds.a) in target.matrices


def row_axis_of(total: UOp) -> UOp | None:
    """The rows of a register tile of sums that can be a MATMUL; None if it cannot."""
    tile = [r for r in total.ranges if is_tile(r)]
    lanes = next((r for r in tile if r.arg.kind is AxisKind.LANE), None)
    if lanes is None or lanes.src[0].arg != MATRIX_SIDE or (product := product_of(total, lanes)) is None:
        return None
    rows = [r for r in tile if r in product.rows.ranges]
    vectors = [r for r in tile if r in product.columns.ranges and r is not lanes]
    if len(rows) != 1 or len(vectors) > 1 or product.needs_panel(lanes):
        return None
    if any(Access(product.columns).stride(r) != MATRIX_SIDE for r in vectors):
        return None
    indices = [x.src[0].src[1] for x in (product.rows.node, product.columns)]
    if any(is_tile(r) and a is not r for i in indices for a in linear_terms(i).terms for r in a.ranges):
        return None
    count = rows[0].src[0].arg
    tiles = max(count // MATRIX_SIDE, 1) * int(prod(r.src[0].arg for r in vectors))
    return rows[0] if tiles <= MAX_SUMS and (count < MATRIX_SIDE or count % MATRIX_SIDE == 0) else None


def fits_beside(kernel: UOp, rows: UOp) -> bool:
    """Whether the tile registers of `rows` have as many rows as those of a kernel's MATMULs. There are eight,
    and each has one shape for all of a function."""
    products = [n for n in kernel.toposort() if n.op is Ops.MATMUL]
    heights = {r.src[0].arg for n in products for r in n.src[0].ranges if is_tile(r) and r is not n.src[2]}
    return {min(h, MATRIX_SIDE) for h in heights} <= {min(rows.src[0].arg, MATRIX_SIDE)}


def use_matrices(kernel: UOp, rows: UOp) -> UOp:
    """The kernel with its register tile of sums for `rows` as a MATMUL. Raises OptError.

    REDUCE(DOT(a[m, w], b[w, n], 0), w)  ->  LOAD(INDEX(STAGE(MATMUL(a[m', w'], b[w', n'], w'), ...), m, n))
    """
    sums = values_of(kernel, Ops.REDUCE)
    numbers = [i for i, total in enumerate(sums) if row_axis_of(total) is rows]
    if len(numbers) != 1:
        raise OptError("expected the rows of a register tile of sums of DOTs, whose words are neighbours")
    if not fits_beside(kernel, rows):
        raise OptError("expected as many rows of a tile as the kernel's other MATMULs have")
    staged = stage(kernel, [rows], Ops.REDUCE, *numbers)
    before = set(kernel.toposort())
    memory = next(n for n in staged.toposort() if n.op is Ops.STAGE and n not in before)
    lanes = next(r for r in memory.src[2:] if r.arg.kind is AxisKind.LANE)
    product = product_of(memory.src[0], lanes)
    assert product is not None and memory.arg.space is AddrSpace.LOCAL
    words = product.words.replace(arg=product.words.arg._replace(kind=AxisKind.UNROLL))
    loads = (product.rows.node, product.columns)
    places = (load.src[0].substitute({product.words: words}) for load in loads)
    value = UOp(Ops.MATMUL, memory.dtype, (*places, words), product.kinds)
    return staged.substitute({memory: memory.replace(src=(value, *memory.src[1:]))})


def require_matrices(kernel: UOp, target: Target) -> None:
    """Raises OptError for a kernel with a MATMUL that a target has not."""
    for node in kernel.toposort():
        if node.op is Ops.MATMUL and not has_matrices(node.arg, target):
            raise OptError(f"opt MATMUL: expected a target with products of {node.arg}, got {target.name}")
