"""The code generation pipeline: from a kernel's AST to its linear form for one Target.

Optimised and unoptimised lowering share the passes and the IR; with optimisation off the linear form is
scalar, one node an operation.
"""

from __future__ import annotations

import hashlib
import sys

from polygrad.codegen.decompose import decompose
from polygrad.codegen.linearize import linearize
from polygrad.codegen.optimize import arrange_loops, optimize
from polygrad.codegen.reduce import reduces_to_registers, simplify_reduces
from polygrad.codegen.search import Plan, first_plan, neighbours
from polygrad.codegen.target import Target
from polygrad.codegen.tile import is_tile, split_indices
from polygrad.helpers import debug_level, env_int
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.printer import render
from polygrad.uop.rewrite import graph_rewrite
from polygrad.uop.spec import verify
from polygrad.uop.symbolic import symbolic


def lower(ast: UOp, target: Target, optimized: bool = True, plan: Plan | None = None) -> list[UOp]:
    """The linear form of a kernel AST; `plan`: how to tile it, instead of the heuristics' choice. DEBUG=4
    shows it after each pass, SPEC=1 checks each against uop/spec.py."""
    sink = _after("simplify", graph_rewrite(ast, symbolic))
    sink = _after("simplify reduces", simplify_reduces(sink))
    if optimized:
        sink = _after("optimize", optimize(sink, target, plan))
    sink = _after("simplify indices", graph_rewrite(sink, symbolic))
    tile = frozenset(n for n in sink.toposort() if is_tile(n))
    sink = _after("reduces to registers", reduces_to_registers(sink, tile))
    if optimized:
        sink = _after("split indices", split_indices(sink))
    sink = _after("decompose", graph_rewrite(sink, decompose(target, optimized)))
    return linearize(sink)


def plans_near(ast: UOp, target: Target, plan: Plan | None) -> list[Plan]:
    """Plans to try for a kernel AST: those next to `plan`, or only the heuristics' own for None."""
    sink = arrange_loops(simplify_reduces(graph_rewrite(ast, symbolic)))
    return [first_plan(sink, target)] if plan is None else neighbours(sink, plan, target)


def _after(name: str, sink: UOp) -> UOp:
    if debug_level() >= 4:
        print(f"# after {name}\n{render(sink)}", file=sys.stderr)
    if env_int("SPEC", 0):
        verify(sink.toposort(), "kernel")
    return sink


def signature(linear: list[UOp]) -> str:
    """A text that two linear kernels share exactly when they are the same, in every process."""
    position = {node: i for i, node in enumerate(linear)}
    lines = []
    for node in linear:
        arg = node.arg
        if node.op is Ops.INDEX and arg is not None:
            arg = [[(*map(int, r.arg), r.src[0].arg, step) for r, step in arg.steps], arg.offset]
        sources = ",".join([str(position[s]) for s in node.src])
        lines.append(
            f"{int(node.op)} {node.dtype} {sources} {arg!r}"
            if arg is not None
            else f"{int(node.op)} {node.dtype} {sources}"
        )
    return "\n".join(lines)


def kernel_name(linear: list[UOp], text: str) -> str:
    """A readable, unique name: `r` for a reduction or `e`, the loop sizes, a digest of the signature."""
    sizes = [str(n.src[0].arg) if n.src[0].is_const else "n" for n in linear if n.op is Ops.RANGE]
    kind = "r" if any(n.op is Ops.DEFINE_REG for n in linear) else "e"
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return "_".join([kind, *sizes[:6], digest])
