"""Explanations of a compiled kernel: its graph after each pass, its arithmetic work and its memory traffic.

Passes come from the list `PASSES`. The pass that carries out Opts is shown Opt by Opt.
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
    """A kernel after the pass or the Opt `name`: a SINK, or its linear form. `changed`: whether that changed
    it."""

    name: str
    code: Code
    changed: bool


def opts_of(origin: Origin) -> tuple[Opt, ...]:
    """The Opts of a kernel: chosen by the heuristics, given by the user or found by a search."""
    if not origin.context.optimized:
        return ()
    kernel = run_passes(origin.ast, origin.context, through=UNOPTIMIZED)
    assert isinstance(kernel, UOp)
    return tuple(opt for opt, _ in opt_steps(kernel, origin.context))


def pass_results(origin: Origin) -> list[PassResult]:
    """The kernel after each pass, in order; before the first it is `origin.ast`."""
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
    """The work of one launch, independent of its instructions, for the largest values of Variables.

    `flops`: operations on floats, without redundant loops. A multiply-add counts as two, an exponential as
    one; comparisons, selections and conversions do not count. A value that is computed twice counts twice.
    `nbytes`: the size of the elements that are read or written, each counted once.
    """

    flops: int
    nbytes: int


def work(origin: Origin) -> Work:
    """The work of a launch of a kernel."""
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
            memory = node.memory
            touched[memory] = min(touched.get(memory, 0) + _rounds(node.ranges), memory.arg.size)
    return Work(flops, sum(size * memory.dtype.itemsize for memory, size in touched.items()))


def _rounds(loops: Iterable[UOp]) -> int:
    return int(prod(sint_max(r.src[0]) for r in loops))
