"""What a compiled kernel is: its graph after each pass, how much it computes and how much memory it touches.

Reads `PASSES`; of the pass that carries out Opts, it tells them one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from polygrad.codegen.lower.passes import OPTIMIZE, PASSES, UNOPTIMIZED, Code, opt_steps, run_passes
from polygrad.codegen.opts.opt import Opt
from polygrad.engine.compile import Origin
from polygrad.helpers import prod
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.shapes import sint_max

_ARITHMETIC = GroupOp.ALU - GroupOp.Comparison - {Ops.WHERE}


@dataclass(frozen=True, slots=True)
class PassResult:
    """A kernel after the pass `name`, or after the Opt of that name: a SINK, or its linear form. `changed`:
    by it."""

    name: str
    code: Code
    changed: bool


def opts_of(origin: Origin) -> tuple[Opt, ...]:
    """How a kernel is computed: the Opts that were chosen for it, given or found."""
    if not origin.context.optimized:
        return ()
    kernel = run_passes(origin.ast, origin.context, through=UNOPTIMIZED)
    assert isinstance(kernel, UOp)
    return tuple(opt for opt, _ in opt_steps(kernel, origin.context))


def pass_results(origin: Origin) -> list[PassResult]:
    """The kernel after each pass that it went through, in order; `origin.ast` is what it was before."""
    out: list[PassResult] = []
    code: Code = origin.ast
    after: str | None = None
    for p in PASSES:
        assert isinstance(code, UOp)  # only the last pass makes a list
        before, code = code, run_passes(code, origin.context, after=after, through=p.name)
        if p.name == OPTIMIZE and p.applies(origin.context):
            for opt, made in opt_steps(before, origin.context):
                out.append(PassResult(str(opt), made, made is not before))
                before = made
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
    kernel = run_passes(origin.ast, origin.context, through=UNOPTIMIZED)
    assert isinstance(kernel, UOp)
    flops = 0
    touched: dict[UOp, int] = {}
    for node in kernel.toposort():
        if node.op in _ARITHMETIC and node.dtype.is_float:
            flops += (2 if node.op is Ops.MULACC else 1) * _rounds(node.ranges)
        elif node.op is Ops.REDUCE and node.dtype.is_float:
            flops += _rounds(node.src[0].ranges.union(node.src[1:]))
        elif node.op is Ops.INDEX:
            memory = node.src[0]
            touched[memory] = min(touched.get(memory, 0) + _rounds(node.ranges), memory.arg.size)
    return Work(flops, sum(size * memory.dtype.itemsize for memory, size in touched.items()))


def _rounds(loops: Iterable[UOp]) -> int:
    return int(prod(sint_max(r.src[0]) for r in loops))
