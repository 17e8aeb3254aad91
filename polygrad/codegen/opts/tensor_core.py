"""Sums of products on tensor cores.

    TENSOR_CORE r0 r1 r2 0    out[r0, r1] = sum(a[r0, r2] * b[r2, r1] for r2)  in blocks of core 0

Rows, columns and terms are split into blocks of the core's m, n and k. A subgroup has the block of an output
tile: which of its elements a lane holds follows from the core's fragments (uop/tensor_cores.py), whose axes
replace the rest of the rows, columns and terms:

    for m, n:                                                  r0.0, r1.0
        sum over k of WMMA(a[16*m + row, 16*k + term],         r2.0
                           b[16*k + term, 8*n + column], 0)
        out[16*m + row', 8*n + column'] = it

The blocks are loops as any others: LOCAL gives subgroups of a workgroup theirs, UPCAST several to a subgroup,
SPLIT and STAGE bring chunks of the operands to shared memory, where they lie in the order that lanes read.

Sizes that the core's do not divide end in a block that overlaps the one before, so all loads are in bounds:
a row or column is stored by the block that has it first, and of the terms those that were counted before are
zero in both operands (zero in one alone would leave what an infinity of the other makes). A size that is less
than a block stops at its last element.
"""

from __future__ import annotations

from typing import NamedTuple

from polygrad.codegen.kernels.narrow_storage import narrow_value
from polygrad.codegen.opts.loops import nest_of, replace_loops
from polygrad.codegen.opts.split import gated, overlaps, substituted
from polygrad.codegen.target import Target
from polygrad.dtype import dtypes
from polygrad.errors import OptError
from polygrad.helpers import ceildiv
from polygrad.schedule.kernel_info import nest_info
from polygrad.uop.args import Axis, AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.printer import axis_name
from polygrad.uop.symbolic import simplify
from polygrad.uop.tensor_cores import TENSOR_CORES, Fragment, TensorCore, Terms


class _Product(NamedTuple):
    """A sum of products: `a` depends on the rows, `b` on the columns."""

    total: UOp
    a: UOp
    b: UOp


def product_of(total: UOp, m: UOp, n: UOp, k: UOp, core: TensorCore) -> _Product | None:
    """The operands of a sum, if a core takes them."""
    if total.op is not Ops.REDUCE or total.arg is not Ops.ADD or k not in total.src[1:]:
        return None
    product = total.src[0]
    if product.op is not Ops.MUL or total.dtype is not core.total:
        return None
    operands = [narrow_value(factor, core.operands) for factor in product.src]
    first, second = operands
    if first is None or second is None:
        return None
    a, b = (first, second) if m in first.ranges else (second, first)
    if m not in a.ranges or n in a.ranges or n not in b.ranges or m in b.ranges:
        return None
    if any(k not in x.ranges or any(y.op is Ops.REDUCE for y in x.toposort()) for x in (a, b)):
        return None
    return _Product(total, a, b)


def efficiency(m: UOp, n: UOp, k: UOp, core: TensorCore) -> float:
    """The part of a core's work that counts, as its blocks overlap; 0 where a size is not constant."""
    out = 1.0
    for r, block in ((m, core.m), (n, core.n), (k, core.k)):
        if not r.src[0].is_const:
            return 0.0
        out *= r.src[0].arg / (ceildiv(r.src[0].arg, block) * block)
    return out


def use_tensor_core(kernel: UOp, m: UOp, n: UOp, k: UOp, number: int) -> UOp:
    """The kernel with its sum over `k` by core `number` of TENSOR_CORES. Raises OptError.

    out[m, n] = REDUCE(a[m, k] * b[k, n], k)

    ->  out[row', column'] = REDUCE(WMMA(a[row, term], b[term, column], 0), k.0), see the module's docstring
    """
    if number >= len(TENSOR_CORES):
        raise OptError(f"expected a core from 0 to {len(TENSOR_CORES) - 1}, got {number}")
    core = TENSOR_CORES[number]
    nest = _check(kernel, m, n, k, core)
    totals = [x for x in nest.toposort() if x.op is Ops.REDUCE and k in x.src[1:]]
    product = product_of(totals[0], m, n, k, core) if len(totals) == 1 else None
    if product is None:
        raise OptError(
            f"expected one sum of products of {core.operands.name} that has rows, columns and terms along "
            f"{', '.join(axis_name(r.arg.id) for r in (m, n, k))}"
        )
    return replace_loops(kernel, nest, _on_core(nest, product, m, n, k, core))


def _check(kernel: UOp, m: UOp, n: UOp, k: UOp, core: TensorCore) -> UOp:
    nest = nest_of(kernel, m)
    order = kernel.toposort()
    if len(kernel.src) > 1 or n not in nest.src[1:] or m is n or k.arg.kind is not AxisKind.REDUCE:
        raise OptError("expected two loops over output elements, and a reduced loop")
    for r in (m, n):
        if r.arg.kind not in (AxisKind.LOOP, AxisKind.GLOBAL) or overlaps(nest, r):
            raise OptError(f"expected loops that are not tiled yet, got {axis_name(r.arg.id)}")
    if nest_info(nest).is_in_place or any(x.op in (Ops.STAGE, Ops.WMMA) for x in order):
        raise OptError("expected a kernel that writes to new memory, and has none of its own yet")
    if any(x.op is Ops.RANGE and x not in (m, n, k) and {m, n, k} & x.ranges for x in order):
        raise OptError("expected loops that no other loop's size depends on")
    return nest


class _Blocks:
    """The blocks of an axis that has `size` elements each: `loops` over them (none for a single one)."""

    def __init__(self, r: UOp, size: int) -> None:
        self.size, self.count = size, r.src[0].arg
        blocks = ceildiv(self.count, size)
        self.block = UOp.range(blocks, r.arg.child(0)) if blocks > 1 else UOp.index(0)
        self.loops = [self.block] if blocks > 1 else []

    def place(self, offset: UOp) -> tuple[UOp, UOp | None]:
        """The element at an offset in a block, and the condition that no block before has it, nor this one
        at another offset (None: that is so)."""
        first = self.block * self.size
        if self.count % self.size == 0:
            return first + offset, None
        if self.count < self.size:
            last = UOp.index(self.count - 1)
            return (offset < last).where(offset, last), offset < self.count
        last = UOp.index(self.count - self.size)
        element = (first < last).where(first, last) + offset
        return element, element >= first


def _on_core(nest: UOp, product: _Product, m: UOp, n: UOp, k: UOp, core: TensorCore) -> UOp:
    sizes = enumerate(core.lanes)
    lanes = [UOp.range(size, k.arg.child(1).child(i, AxisKind.SUBGROUP)) for i, size in sizes]
    a_elements, b_elements = (_elements(x, k.arg.child(2).child(i)) for i, x in enumerate((core.a, core.b)))
    c_elements = _elements(core.c, m.arg.child(1))
    blocks = {r: _Blocks(r, size) for r, size in ((m, core.m), (n, core.n), (k, core.k))}

    def place(r: UOp, terms: Terms, elements: list[UOp]) -> tuple[UOp, UOp | None]:
        offset = UOp.index(0)
        for term in terms:
            offset = offset + (lanes if term.is_lane else elements)[term.axis] * term.step
        return blocks[r].place(offset)

    def operand(value: UOp, r: UOp, along_r: Terms, along_k: Terms, elements: list[UOp]) -> UOp:
        (at, _), (term, counts) = place(r, along_r, elements), place(k, along_k, elements)
        lane_value = substituted(value, {r: at, k: term})
        return lane_value if counts is None else simplify(counts).where(lane_value, UOp.const(value.dtype, 0))

    a = operand(product.a, m, core.a.rows, core.a.columns, a_elements)
    b = operand(product.b, n, core.b.columns, core.b.rows, b_elements)
    zero = UOp.const(core.total, 0)
    value = UOp(Ops.WMMA, core.total, (a, b, zero, *c_elements, *a_elements, *b_elements), core)
    loops = [x for q in product.total.src[1:] for x in (blocks[k].loops if q is k else [q])]
    total = UOp(Ops.REDUCE, value.dtype, (value, *loops), Ops.ADD) if loops else value
    rows, columns = place(m, core.c.rows, c_elements), place(n, core.c.columns, c_elements)
    store = substituted(nest.src[0], {product.total: total, m: rows[0], n: columns[0]})
    for _, stores in (rows, columns):
        if stores is not None:
            store = gated(store, stores)
    outer = [x for q in nest.src[1:] for x in (blocks[q].loops if q in (m, n) else [q])]
    return UOp(Ops.END, dtypes.void, (store, *outer, *lanes))


def _elements(fragment: Fragment, axis: Axis) -> list[UOp]:
    """The axes of a lane's elements: tiles of registers. The fastest has the greatest id, as in memory."""
    last = len(fragment.elements) - 1
    return [
        UOp.range(size, axis.child(last - i, AxisKind.UPCAST)) for i, size in enumerate(fragment.elements)
    ]


def require_tensor_cores(kernel: UOp, target: Target) -> None:
    """Raises OptError for a kernel with a core that a target has not."""
    for node in kernel.toposort():
        if node.op is Ops.WMMA and node.arg not in target.tensor_cores:
            raise OptError(f"opt TENSOR_CORE: expected a target with {node.arg.name}, got {target.name}")
        if node.op is Ops.WMMA and node.arg.in_memory and not all(map(_is_swizzled, node.src[:2])):
            raise OptError(
                "opt TENSOR_CORE: expected a STAGE of each operand, which this core reads in memory"
            )


def _is_swizzled(operand: UOp) -> bool:
    memory = operand.src[0].src[0] if operand.op is Ops.LOAD else operand
    return memory.op is Ops.STAGE and memory.arg.swizzled
