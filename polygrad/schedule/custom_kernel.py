"""Kernels written by hand: from what a user's function returns to ASTs like those of `kernels.py`.

The function gets a placeholder for each operand, a PARAM under a reshape, and returns a SINK of STOREs in
their loops. Movement ops over a placeholder become index arithmetic, as in scheduled kernels; elements that
are used are loaded. The optimiser treats the result like a scheduled kernel, so the same rules hold: each
STORE is a kernel of its own, whose loops write different elements, at indices that are proved to be in range.
The interface is tinygrad's (`Tensor.custom_kernel`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.errors import ArgumentError, InternalError
from polygrad.helpers import prod
from polygrad.schedule.index_maps import TRUE, flat_index, input_indices
from polygrad.uop.args import Axis, AxisKind
from polygrad.uop.for_loop import placeholder
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.spec import verify
from polygrad.uop.symbolic import simplify

_NO_VALUES = frozenset(
    {Ops.AFTER, Ops.BARRIER, Ops.DEFINE_REG, Ops.STAGE, Ops.SPECIAL, Ops.END, Ops.STORE}
)  # ops that no value may contain


@dataclass(frozen=True, slots=True)
class StoreKernel:
    """One STORE. `output`: the operand that it writes, PARAM 0 of `ast`. `reads`: the operands that are
    PARAMs 1, 2, ... `is_whole`: whether it writes every element."""

    output: int
    reads: tuple[int, ...]
    ast: UOp
    is_whole: bool


def custom_kernels(
    function: Callable[..., Any], operands: Sequence[tuple[tuple[int, ...], DType]]
) -> list[StoreKernel]:
    """The STOREs, in order, that `function` makes of placeholders for `operands`, of these shapes and dtypes.

    Raises ArgumentError for a result that is no kernel.
    """
    sink = function(*[placeholder(i, shape, dtype) for i, (shape, dtype) in enumerate(operands)])
    if not isinstance(sink, UOp) or sink.op is not Ops.SINK or not sink.src:
        got = f"a {sink.op}" if isinstance(sink, UOp) else type(sink).__name__
        raise _error("a function that returns a SINK of stores, as in x[i].store(v).end(i).sink()", got)
    kernels = [_store_kernel(effect) for effect in sink.src]
    written = [k.output for k in kernels]
    for kernel in kernels:
        if any(written.count(i) > 1 or (i in written and i != kernel.output) for i in kernel.reads):
            raise _error("stores that do not read what others write", "one that does: make it two kernels")
    return kernels


def _error(expected: str, got: str) -> ArgumentError:
    return ArgumentError(f"custom_kernel: expected {expected}, got {got}")


def _store_kernel(effect: UOp) -> StoreKernel:
    loops: tuple[UOp, ...] = ()
    while effect.op is Ops.END:
        if not effect.src[1:] or any(r.op is not Ops.RANGE for r in effect.src[1:]):
            raise _error("an END of RANGEs", f"one of {', '.join(str(r.op) for r in effect.src[1:])}")
        effect, loops = effect.src[0], (*effect.src[1:], *loops)
    if effect.op is not Ops.STORE or effect.src[0].op is not Ops.INDEX:
        raise _error("a STORE to an element, and its loops ended", f"a {effect.op}")
    target, value = effect.src
    if value.dtype is not target.dtype:
        raise _error(f"a value of the dtype that is written, {target.dtype}", f"{value.dtype}: cast it")
    lowering = _Lowering(loops)
    output = lowering.output(target)
    ast = lowering.ast(target, value)
    try:
        verify(ast.toposort(), "kernel")
    except InternalError as e:
        raise _error("a kernel of legal IR", str(e).removeprefix("internal: ")) from e
    if ast.ranges:
        names = ", ".join(str(r.arg.id[0]) for r in ast.ranges)
        raise _error("loops that are ended or reduced over", f"axis {names} open: end() or reduce() it")
    size = lowering.params[0].arg.size
    return StoreKernel(output, tuple(lowering.reads), ast, prod(_size(r) for r in lowering.loops) == size)


def _size(r: UOp) -> int:
    size = r.src[0]
    if not size.is_const:
        raise _error("loops whose sizes are ints", f"one of {size}")
    return int(size.arg)


class _Lowering:
    """A STORE's graph, in which operands are numbered for this kernel."""

    def __init__(self, loops: tuple[UOp, ...]) -> None:
        if len(set(loops)) != len(loops):
            raise _error("each loop to be ended once", "one that is ended twice")
        self._ranges: dict[UOp, UOp] = {}
        self.loops = [self._range(r, AxisKind.LOOP) for r in loops]
        self.params: list[UOp] = []
        self.reads: list[int] = []

    def _range(self, r: UOp, kind: AxisKind) -> UOp:
        """A loop under the kind that its use says."""
        if r not in self._ranges:
            if any(r.arg.id == other.arg.id for other in self._ranges):
                raise _error("loops with axis numbers of their own", f"two with number {r.arg.id[0]}")
            if _size(r) < 1:
                raise _error("loops of at least one round", f"one of {_size(r)}")
            self._ranges[r] = UOp.range(_size(r), Axis(r.arg.id, kind))
        loop = self._ranges[r]
        if loop.arg.kind is not kind:
            raise _error("loops that are either ended or reduced over", f"axis {r.arg.id[0]}, which is both")
        return loop

    def output(self, target: UOp) -> int:
        """The operand that a STORE writes, which becomes PARAM 0."""
        pointer, _ = target.src[0].movements()
        if pointer.op is not Ops.PARAM:
            raise _error("a store to an operand", f"one to a {pointer.op}")
        self.params.append(pointer.replace(arg=pointer.arg._replace(slot=0)))
        slot: int = pointer.arg.slot
        return slot

    def ast(self, target: UOp, value: UOp) -> UOp:
        """The kernel."""
        order = UOp.sink(*target.src[1:], value).toposort(lambda n: n.op not in GroupOp.Movement)
        for node in order:
            if node.op is Ops.REDUCE:
                for r in node.src[1:]:
                    if r.op is not Ops.RANGE:
                        raise _error("a reduction over RANGEs", f"one over a {r.op}")
                    self._range(r, AxisKind.REDUCE)
            elif node.op in _NO_VALUES:
                raise _error("loads, arithmetic and reductions in what is stored", f"a {node.op}")
        new: dict[UOp, UOp] = {}
        for node in order:
            if node.op is Ops.SINK or node.op in GroupOp.Movement or node.op is Ops.PARAM:
                continue
            if node.op is Ops.RANGE:
                if node not in self._ranges:
                    raise _error("loops that are ended or reduced over", f"axis {node.arg.id[0]} open")
                new[node] = self._ranges[node]
            elif node.op is Ops.INDEX:
                new[node] = self._element(node.src[0], [new[i] for i in node.src[1:]])
            elif node.op is Ops.LOAD and node.src[0].op is Ops.INDEX:
                new[node] = new[node.src[0]]
            else:
                new[node] = node.replace(src=tuple([new[s] for s in node.src]))
        index, valid = self._place(target.src[0], [new[i] for i in target.src[1:]])
        if valid is not TRUE:
            raise _error("a store to elements", "one to padding")
        self._check_distinct(index)
        element = UOp(Ops.INDEX, target.dtype, (self.params[0], index))
        return UOp.sink(UOp(Ops.STORE, dtypes.void, (element, new[value])).end(*self.loops))

    def _place(self, view: UOp, indices: list[UOp]) -> tuple[UOp, UOp]:
        """The position in memory of an element of a view of an operand, and whether it is there."""
        for i, n in zip(indices, view.shape, strict=True):
            if not (0 <= i.vmin and i.vmax < n):
                raise _error(
                    f"an index that is proved to be in 0 to {n - 1}",
                    f"one from {i.vmin} to {i.vmax}: clip() it",
                )
        places, valid = tuple([simplify(i) for i in indices]), TRUE
        while view.op in GroupOp.Movement:
            places, valid = input_indices(view, places, valid)
            view = view.src[0]
        return flat_index(view.shape, places), valid

    def _element(self, view: UOp, indices: list[UOp]) -> UOp:
        """The value of an element of an operand."""
        index, valid = self._place(view, indices)
        view, _ = view.movements()
        if view.op is not Ops.PARAM:
            raise _error("elements of operands", f"one of a {view.op}")
        if view.arg.slot not in self.reads:
            self.reads.append(view.arg.slot)
            self.params.append(view.replace(arg=view.arg._replace(slot=len(self.reads))))
        pointer = self.params[1 + self.reads.index(view.arg.slot)]
        if valid is TRUE:
            return UOp(Ops.LOAD, view.dtype, (UOp(Ops.INDEX, view.dtype, (pointer, index)),))
        gated = UOp(Ops.INDEX, view.dtype, (pointer, index, valid))
        return UOp(Ops.LOAD, view.dtype, (gated, UOp.const(view.dtype, 0)))

    def _check_distinct(self, index: UOp) -> None:
        """Each round of the loops writes an element of its own: the index is a sum of loops times steps, each
        of which is more than all smaller ones reach."""
        steps = _steps(index)
        if steps is None:
            raise _error(
                "a store at a sum of loops times steps", f"one at {index.op} of what is loaded or cut"
            )
        reach = 0
        for step, size in sorted((abs(steps.get(r, 0)), _size(r)) for r in self.loops if _size(r) > 1):
            if step <= reach:
                raise _error(
                    "a store that writes another element in each round of its loops",
                    "one that does not: reduce() over the loop",
                )
            reach += step * (size - 1)


def _steps(index: UOp) -> dict[UOp, int] | None:
    """The steps of an affine index along each loop; None for any other."""
    steps: dict[UOp, int] = {}
    stack = [(index, 1)]
    while stack:
        node, factor = stack.pop()
        if node.op is Ops.RANGE:
            steps[node] = steps.get(node, 0) + factor
        elif node.op is Ops.ADD:
            stack += [(s, factor) for s in node.src]
        elif node.op is Ops.MUL and node.src[1].is_const:
            stack.append((node.src[0], factor * node.src[1].arg))
        elif not node.is_const:
            return None
    return steps
