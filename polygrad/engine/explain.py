"""What a compiled kernel is: its graph after each pass, how much it computes and how much memory it touches.

Reads `PASSES` and knows none of them by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from polygrad.codegen.lower import PASSES, Code, arrange, run_passes
from polygrad.codegen.stage import LOCAL_SLOT
from polygrad.engine.compile import Origin
from polygrad.helpers import prod
from polygrad.uop.node import UOp, sint_max
from polygrad.uop.ops import GroupOp, Ops

_ARITHMETIC = GroupOp.ALU - GroupOp.Comparison - {Ops.WHERE}


@dataclass(frozen=True, slots=True)
class PassResult:
    """A kernel after the pass `name`: a SINK, or its linear form. `changed`: by this pass."""

    name: str
    code: Code
    changed: bool


def pass_results(origin: Origin) -> list[PassResult]:
    """The kernel after each pass that it went through, in order; `origin.ast` is what it was before."""
    out: list[PassResult] = []
    code: Code = origin.ast
    after: str | None = None
    for p in PASSES:
        assert isinstance(code, UOp)  # only the last pass makes a list
        before, code = code, run_passes(code, origin.context, after=after, through=p.name)
        out.append(PassResult(p.name, code, code is not before))
        after = p.name
    return out


@dataclass(frozen=True, slots=True)
class Work:
    """What one launch has to do, whatever instructions it is made of; Variables at their largest.

    `flops`: operations on floats (a multiply-add is two, an exponential is one; comparisons, selections and
    conversions are none), once redundant loops are gone; what is computed twice counts twice. `nbytes`: what
    is read or written of the buffers, each element once however often that happens.
    """

    flops: int
    nbytes: int


def work(origin: Origin) -> Work:
    """How much a launch of a kernel computes, and how much memory it touches."""
    kernel = arrange(origin.ast, origin.context.target)
    loops = _loops(kernel)
    flops = 0
    touched: dict[UOp, int] = {}
    for node, around in loops.items():
        if node.op in _ARITHMETIC and node.dtype.is_float:
            flops += (2 if node.op is Ops.MULACC else 1) * _rounds(around)
        elif node.op is Ops.REDUCE and node.dtype.is_float:
            flops += _rounds(loops[node.src[0]].union(*(loops[r] for r in node.src[1:])))
        elif node.op is Ops.INDEX and _is_buffer(node.src[0]):
            memory = node.src[0]
            touched[memory] = min(touched.get(memory, 0) + _rounds(around), memory.arg.size)
    return Work(flops, sum(size * memory.dtype.itemsize for memory, size in touched.items()))


def _loops(kernel: UOp) -> dict[UOp, frozenset[UOp]]:
    """The RANGEs in which each node's value differs."""
    out: dict[UOp, frozenset[UOp]] = {}
    for node in kernel.toposort():
        around = frozenset[UOp]().union(*(out[s] for s in node.src))
        if node.op is Ops.RANGE:
            around |= {node}
        elif node.op in (Ops.REDUCE, Ops.END):
            around -= set(node.src[1:])
        out[node] = around
    return out


def _is_buffer(node: UOp) -> bool:
    return node.op is Ops.PARAM and node.arg.slot < LOCAL_SLOT


def _rounds(loops: Iterable[UOp]) -> int:
    return int(prod(sint_max(r.src[0]) for r in loops))
