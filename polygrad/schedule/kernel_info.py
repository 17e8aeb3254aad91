"""What a kernel computes, described once for everything that decides about it.

    kernel_info(ast)    a KernelInfo: its output nests, its loops, how often its innermost code runs
    nest_info(nest)     a NestInfo: loops, sums, and every access to memory with its strides
    NestInfo.products   the sums that are products, with the loops along which operands are read again

Passes over kernels (codegen/kernels/passes.py) and the heuristics that choose Opts (codegen/opts) ask here. A
description is made when it is first asked for, and kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from polygrad.helpers import dedup
from polygrad.schedule.selection import factors, find_positions
from polygrad.uop import alu
from polygrad.uop.args import AxisKind
from polygrad.uop.linear import Terms, linear_terms
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.path_conditions import conjuncts

_KEPT = 512  # descriptions


def rounds(ranges: Collection[UOp]) -> int:
    """The greatest number of times that the code inside of these loops runs."""
    out = 1
    for r in ranges:
        out *= r.src[0].vmax
    return out


def key_of(node: UOp) -> UOp | None:
    """The key of a SCAN with a running value for each key; None of every other node."""
    return node.src[3] if node.op is Ops.SCAN and node.arg is not Ops.MULACC and len(node.src) > 3 else None


class Access:
    """A LOAD from memory, or a STORE to it.

    `memory`: a PARAM or a STAGE. `terms` and `offset`: its position, in elements, as a sum of atoms with
    their factors and of a constant. `condition`: the access happens only where this holds; None: everywhere.
    """

    def __init__(self, node: UOp) -> None:
        index = node.src[0]
        self.node = node
        self.memory = index.memory
        self.condition = index.src[2] if len(index.src) > 2 else None
        self.ranges = node.ranges if node.op is Ops.LOAD else index.ranges
        self.itemsize = index.dtype.itemsize

    @property
    def slot(self) -> int | None:
        """The number of the kernel's argument that the memory is; None for memory of the kernel's own."""
        return self.memory.arg.slot if self.memory.op is Ops.PARAM else None

    @cached_property
    def _position(self) -> tuple[Terms, int]:
        return linear_terms(self.node.src[0].src[1])

    @property
    def terms(self) -> Terms:
        return self._position[0]

    @property
    def offset(self) -> int:
        return self._position[1]

    @cached_property
    def strides(self) -> Terms:
        """The elements from one round to the next of each loop that the position is linear in."""
        return {atom: step for atom, step in self.terms.items() if atom.op is Ops.RANGE}

    def stride(self, r: UOp) -> int:
        return self.terms.get(r, 0)

    def nbytes(self, fixed: Collection[UOp] = ()) -> int:
        """The greatest number of bytes accessed in one round of the loops `fixed`."""
        return rounds(self.ranges.difference(fixed)) * self.itemsize


@dataclass(frozen=True, slots=True)
class Product:
    """A sum with one operand that each round of the loop `columns` reads again, and another that each round
    of `rows` reads again: a matrix product, a convolution, a table of distances."""

    total: UOp
    rows: UOp
    columns: UOp


@dataclass(frozen=True, slots=True)
class Selection:
    """A reduction over one-hots: a term belongs to the output element at `positions`, by output loop, and is
    `value` there.

    sum(index[i] == v ? x[i] : 0 for i)  ->  {v: index[i]}, x[i]
    """

    positions: dict[UOp, UOp]
    value: UOp


class Sum:
    """A reduction: of `value`, over `loops`, outermost first. `outer`: the loops that it is inside of."""

    def __init__(self, node: UOp) -> None:
        self.node = node
        self.op: Ops = node.arg
        self.value = node.src[0]
        self.loops = node.src[1:]
        self.outer = node.ranges

    @cached_property
    def loads(self) -> tuple[Access, ...]:
        """The loads from memory in the value."""
        return tuple(Access(n) for n in self.value.toposort() if n.op is Ops.LOAD)

    @property
    def terms(self) -> int:
        """The greatest number of values that are combined."""
        return rounds(self.loops)

    @property
    def work(self) -> int:
        """The greatest number of values that are combined in all rounds of all loops."""
        return rounds(self.value.ranges)

    @property
    def reuse(self) -> int:
        """The least number of times that an element of an operand is read; 1 if there is one operand. With
        enough reuse the sum is a product."""
        return min(self.work // rounds(n.ranges) for n in self.loads) if len(self.loads) > 1 else 1

    @property
    def is_static(self) -> bool:
        return all(r.src[0].is_const for r in self.loops)

    @cached_property
    def selection(self) -> Selection | None:
        """The output elements that its terms belong to, if conditions in the terms determine these."""
        value, conditions = self.value, list[UOp]()
        identity = UOp.const(self.node.dtype, alu.identity_element(self.op, self.node.dtype))
        if self.op is Ops.ADD:
            terms, conditions = factors(value)
            value = UOp.const(self.node.dtype, 1) if not terms else terms[0]
            for t in terms[1:]:
                value = value * t
        elif self.op is Ops.MAX:
            while value.op is Ops.WHERE and value.src[2] is identity:
                conditions += conjuncts(value.src[0])
                value = value.src[1]
        positions, others = find_positions(conditions, self.outer, of=self.loops)
        apart = (value, *others, *positions.values())
        if not positions or any(not n.ranges.isdisjoint(positions) for n in apart):
            return None
        for condition in others:
            value = condition.where(value, identity)
        return Selection(positions, value)

    @property
    def factors(self) -> tuple[UOp, UOp] | None:
        """The two factors of a sum of products; None of another reduction."""
        if self.op is not Ops.ADD or self.value.op is not Ops.MUL:
            return None
        a, b = self.value.src
        return a, b

    @property
    def operands(self) -> tuple[UOp, ...]:
        """The different factors of a sum of products; of another reduction the value that it combines."""
        return tuple(dedup(self.factors or (self.value,)))


class NestInfo:
    """A STORE and the loops around it.

    `loops`: all of them, outermost first; `parallel`: those whose rounds may run in any order. `order`: its
    nodes in toposort order, without those that fill memory of the kernel's own.
    """

    def __init__(self, nest: UOp) -> None:
        self.node = nest
        self.store = nest.src[0] if nest.op is Ops.END else nest
        self.loops = nest.src[1:] if nest.op is Ops.END else ()
        self.parallel = tuple(r for r in self.loops if r.arg.kind is AxisKind.LOOP)
        self.order = nest.toposort(lambda n: n.op is not Ops.STAGE)

    @property
    def value(self) -> UOp:
        """What is stored."""
        return self.store.src[1]

    @property
    def kept(self) -> tuple[UOp, ...]:
        """The STOREs of further results, in outer loops.

        STORE(INDEX(AFTER(PARAM 0, STORE(PARAM 1 [r0], m)), r0*n + r1), x - m)  ->  STORE(PARAM 1 [r0], m)
        """
        pointer = self.store.src[0].src[0]
        return pointer.src[1:] if pointer.op is Ops.AFTER else ()

    @cached_property
    def write(self) -> Access:
        return Access(self.store)

    @cached_property
    def sums(self) -> tuple[Sum, ...]:
        """Its reductions, inner ones first."""
        return tuple(Sum(n) for n in self.order if n.op is Ops.REDUCE)

    @property
    def only_sum(self) -> Sum | None:
        """Its reduction, if it has exactly one."""
        return self.sums[0] if len(self.sums) == 1 else None

    @cached_property
    def loads(self) -> tuple[Access, ...]:
        return tuple(Access(n) for n in self.order if n.op is Ops.LOAD)

    @property
    def is_ordered(self) -> bool:
        """Whether the rounds of one of its loops have to run in order (a scan)."""
        return any(r.arg.kind is AxisKind.SCAN for r in self.loops)

    @property
    def is_static(self) -> bool:
        return all(r.src[0].is_const for r in self.order if r.op is Ops.RANGE)

    @cached_property
    def is_in_place(self) -> bool:
        """Whether it reads memory that it writes. Each element is then written once, after it was read."""
        order = self.node.toposort()
        written = {n.src[0].memory for n in order if n.op is Ops.STORE}
        return any(n.op is Ops.LOAD and n.src[0].memory in written for n in order)

    def products(self, min_side: int) -> Iterator[Product]:
        """Its only sum as a product, for each pair of loops that are its rows and columns, of `min_side`
        rounds or more."""
        total = self.only_sum
        if total is None or not total.is_static or self.is_in_place:
            return
        reads = [n.ranges for n in total.loads if not n.ranges.isdisjoint(total.loops)]
        sides = [
            r for r in self.parallel if r in total.outer and r.src[0].is_const and r.src[0].arg >= min_side
        ]
        for rows in sides:
            for columns in sides:
                by_row = any(rows in loops and columns not in loops for loops in reads)
                by_column = any(columns in loops and rows not in loops for loops in reads)
                if by_row and by_column:
                    yield Product(total.node, rows, columns)


class KernelInfo:
    """A kernel: `SINK(*nests)`. `has_own_opts`: Opts were given for it by hand."""

    def __init__(self, ast: UOp) -> None:
        self.ast = ast
        self.order = ast.toposort()
        self.has_own_opts = ast.arg is not None

    @cached_property
    def nests(self) -> tuple[NestInfo, ...]:
        return tuple(map(nest_info, self.ast.src))

    @property
    def only_nest(self) -> NestInfo | None:
        """Its nest, if it has exactly one and passes may change it: it has one result, and no Opts were given
        by hand."""
        if len(self.nests) != 1 or self.has_own_opts or self.nests[0].kept:
            return None
        return self.nests[0]

    @cached_property
    def ranges(self) -> tuple[UOp, ...]:
        return tuple(n for n in self.order if n.op is Ops.RANGE)

    @cached_property
    def loads(self) -> tuple[Access, ...]:
        """All loads, also those that fill memory of the kernel's own."""
        return tuple(Access(n) for n in self.order if n.op is Ops.LOAD)

    @property
    def is_static(self) -> bool:
        return all(r.src[0].is_const for r in self.ranges)

    def has(self, *ops: Ops) -> bool:
        return any(n.op in ops for n in self.order)

    def is_sum_of(self, min_rounds: int) -> bool:
        """Whether it has one nest, constant sizes and a reduction, and its innermost code runs `min_rounds`
        times or more. Passes that reorder or divide reductions are for such kernels."""
        return (
            self.only_nest is not None
            and any(r.arg.kind is AxisKind.REDUCE for r in self.ranges)
            and self.is_static
            and rounds(self.ranges) >= min_rounds
        )


@lru_cache(_KEPT)
def kernel_info(ast: UOp) -> KernelInfo:
    return KernelInfo(ast)


@lru_cache(_KEPT)
def nest_info(nest: UOp) -> NestInfo:
    return NestInfo(nest)


def forget_kernels() -> None:
    """Release the nodes that descriptions hold. Descriptions are needed only while a Program is made."""
    kernel_info.cache_clear()
    nest_info.cache_clear()
