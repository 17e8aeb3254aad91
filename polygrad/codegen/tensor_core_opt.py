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
"""

from __future__ import annotations

from typing import NamedTuple

from polygrad.codegen.loops import nest_of, replaced
from polygrad.codegen.split import overlaps, reads_its_output, substituted
from polygrad.codegen.target import Target
from polygrad.dtype import dtypes
from polygrad.errors import OptError
from polygrad.uop.args import Axis, AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.printer import axis_name
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
    operands = []
    for factor in product.src:
        if factor.dtype is core.operands:
            operands.append(factor)
        elif factor.op is Ops.CAST and factor.src[0].dtype is core.operands:
            operands.append(factor.src[0])
        else:
            return None
    a, b = operands if m in operands[0].ranges else reversed(operands)
    if m not in a.ranges or n in a.ranges or n not in b.ranges or m in b.ranges:
        return None
    if any(k not in x.ranges or any(y.op is Ops.REDUCE for y in x.toposort()) for x in (a, b)):
        return None
    return _Product(total, a, b)


def fits(m: UOp, n: UOp, k: UOp, core: TensorCore) -> bool:
    """Whether a core's blocks divide rows, columns and terms."""
    sizes = ((m, core.m), (n, core.n), (k, core.k))
    return all(r.src[0].is_const and r.src[0].arg % block == 0 for r, block in sizes)


def use_tensor_core(kernel: UOp, m: UOp, n: UOp, k: UOp, number: int) -> UOp:
    """The kernel with its sum over `k` by core `number` of TENSOR_CORES. Raises OptError."""
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
    return replaced(kernel, nest, _on_core(nest, product, m, n, k, core))


def _check(kernel: UOp, m: UOp, n: UOp, k: UOp, core: TensorCore) -> UOp:
    nest = nest_of(kernel, m)
    order = kernel.toposort()
    if len(kernel.src) > 1 or n not in nest.src[1:] or m is n or k.arg.kind is not AxisKind.REDUCE:
        raise OptError("expected two loops over output elements, and a reduced loop")
    for r in (m, n):
        if r.arg.kind not in (AxisKind.LOOP, AxisKind.GLOBAL) or overlaps(nest, r):
            raise OptError(f"expected loops that are not tiled yet, got {axis_name(r.arg.id)}")
    if not fits(m, n, k, core):
        raise OptError(f"expected multiples of {core.m}, {core.n} and {core.k} rows, columns and terms")
    if reads_its_output(nest) or any(x.op in (Ops.STAGE, Ops.WMMA) for x in order):
        raise OptError("expected a kernel that writes to new memory, and has none of its own yet")
    if any(x.op is Ops.RANGE and x not in (m, n, k) and {m, n, k} & x.ranges for x in order):
        raise OptError("expected loops that no other loop's size depends on")
    return nest


def _on_core(nest: UOp, product: _Product, m: UOp, n: UOp, k: UOp, core: TensorCore) -> UOp:
    sizes = enumerate(core.lanes)
    lanes = [UOp.range(size, k.arg.child(1).child(i, AxisKind.SUBGROUP)) for i, size in sizes]
    a_elements, b_elements = (_elements(x, k.arg.child(2).child(i)) for i, x in enumerate((core.a, core.b)))
    c_elements = _elements(core.c, m.arg.child(1))
    blocks = {r: _block(r, size) for r, size in ((m, core.m), (n, core.n), (k, core.k))}

    def place(r: UOp, size: int, terms: Terms, elements: list[UOp]) -> UOp:
        value = blocks[r] * size
        for term in terms:
            value = value + (lanes if term.is_lane else elements)[term.axis] * term.step
        return value

    a = substituted(product.a, {
        m: place(m, core.m, core.a.rows, a_elements), k: place(k, core.k, core.a.columns, a_elements)
    })  # fmt: skip
    b = substituted(product.b, {
        k: place(k, core.k, core.b.rows, b_elements), n: place(n, core.n, core.b.columns, b_elements)
    })  # fmt: skip
    zero = UOp.const(core.total, 0)
    value = UOp(Ops.WMMA, core.total, (a, b, zero, *c_elements, *a_elements, *b_elements), core)
    loops = [x for q in product.total.src[1:] for x in (_loops(blocks[k]) if q is k else [q])]
    total = UOp(Ops.REDUCE, value.dtype, (value, *loops), Ops.ADD) if loops else value
    store = substituted(nest.src[0], {
        product.total: total,
        m: place(m, core.m, core.c.rows, c_elements),
        n: place(n, core.n, core.c.columns, c_elements),
    })  # fmt: skip
    outer = [x for q in nest.src[1:] for x in (_loops(blocks[q]) if q in (m, n) else [q])]
    return UOp(Ops.END, dtypes.void, (store, *outer, *lanes))


def _block(r: UOp, size: int) -> UOp:
    count = r.src[0].arg // size
    return UOp.range(count, r.arg.child(0)) if count > 1 else UOp.index(0)


def _loops(block: UOp) -> list[UOp]:
    return [block] if block.op is Ops.RANGE else []


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
