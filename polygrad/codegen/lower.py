"""The code generation pipeline: from a kernel's AST to its linear form for one Target.

`PASSES` is all of it, in order. Optimised and unoptimised lowering share the IR; with optimisation off the
linear form is scalar, one node an operation.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from dataclasses import dataclass

from polygrad.codegen.decompose import decompose
from polygrad.codegen.linearize import linearize, order_loops, split_ends
from polygrad.codegen.materialize import materialize_rows
from polygrad.codegen.merge import merge_loops
from polygrad.codegen.parallel import parallelize
from polygrad.codegen.partition import partition_loops
from polygrad.codegen.plans import Plan, tile_loops
from polygrad.codegen.reductions import flatten_reductions, lower_reductions, simplify_reductions
from polygrad.codegen.spill import spill_accumulators
from polygrad.codegen.stage import stage_operands
from polygrad.codegen.target import Target
from polygrad.codegen.tile import split_indices
from polygrad.errors import InternalError
from polygrad.helpers import debug_level, env_int
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.printer import render
from polygrad.uop.rewrite import graph_rewrite
from polygrad.uop.spec import verify
from polygrad.uop.symbolic import symbolic

Code = UOp | list[UOp]  # a kernel's SINK, or its linear form


@dataclass(frozen=True, slots=True)
class Context:
    """What a kernel is lowered for. `plan`: how to tile it, instead of the heuristics' choice."""

    target: Target
    optimized: bool = True
    plan: Plan | None = None


def _always(context: Context) -> bool:
    return True


def _optimized(context: Context) -> bool:
    return context.optimized


def _tiled(context: Context) -> bool:
    return context.optimized and context.target.simd_bytes > 0


@dataclass(frozen=True, slots=True)
class Pass:
    """One transformation of a whole kernel. `applies`: whether kernels of a Context go through it."""

    name: str
    run: Callable[[UOp, Context], Code]
    applies: Callable[[Context], bool] = _always


PASSES = (
    # algebra
    Pass("simplify", lambda k, c: graph_rewrite(k, symbolic)),
    Pass("simplify-reductions", lambda k, c: simplify_reductions(k)),
    # the loops that there are to tile
    Pass("flatten-reductions", lambda k, c: flatten_reductions(k), _optimized),
    Pass("merge-loops", lambda k, c: merge_loops(k), _optimized),
    Pass("partition-loops", lambda k, c: partition_loops(k), _optimized),
    Pass("materialize-rows", lambda k, c: materialize_rows(k), _optimized),
    # lanes, register tiles, memory of the kernel's own, threads
    Pass("tile-loops", lambda k, c: tile_loops(k, c.target, c.plan), _tiled),
    Pass("stage-operands", lambda k, c: stage_operands(k), _tiled),
    Pass("spill-accumulators", lambda k, c: spill_accumulators(k), _tiled),
    Pass("parallelize", lambda k, c: parallelize(k, c.target), _tiled),
    # what renderers take
    Pass("simplify-indices", lambda k, c: graph_rewrite(k, symbolic)),
    Pass("lower-reductions", lambda k, c: lower_reductions(k)),
    Pass("split-indices", lambda k, c: split_indices(k), _optimized),
    Pass("decompose", lambda k, c: graph_rewrite(k, decompose(c.target, c.optimized))),
    # the order of execution
    Pass("split-ends", lambda k, c: split_ends(k)),
    Pass("order-loops", lambda k, c: order_loops(k)),
    Pass("linearize", lambda k, c: linearize(k)),
)
LOOPS_ARRANGED = "materialize-rows"  # a plan names the loops that there are after this pass

_POSITION = {p.name: i for i, p in enumerate(PASSES)}


def run_passes(
    kernel: UOp, context: Context, *, after: str | None = None, through: str | None = None
) -> Code:
    """`kernel` put through `PASSES`: from the first, or from the one that follows the pass `after`, to the
    last or to the pass `through`, included. The result is a graph until `linearize` makes a list of it.

    DEBUG=4 shows the kernel after each pass, SPEC=1 checks each result against uop/spec.py.
    Raises InternalError for a name that no pass has.
    """
    start = 0 if after is None else _position(after) + 1
    stop = len(PASSES) if through is None else _position(through) + 1
    show, check = debug_level() >= 4, env_int("SPEC", 0)
    code: Code = kernel
    for p in PASSES[start:stop]:
        if not p.applies(context):
            continue
        assert isinstance(code, UOp)  # only the last pass makes a list
        code = p.run(code, context)
        if show:
            print(f"# after {p.name}\n{render(code)}", file=sys.stderr)
        if check and isinstance(code, UOp):
            verify(code.toposort(), "kernel")
        elif check:
            verify(code, "linear")
    return code


def _position(name: str) -> int:
    if name not in _POSITION:
        raise InternalError(f"lower: expected a pass, one of {', '.join(_POSITION)}, got {name!r}")
    return _POSITION[name]


def lower(ast: UOp, target: Target, optimized: bool = True, plan: Plan | None = None) -> list[UOp]:
    """The linear form of a kernel AST; `plan`: how to tile it, instead of the heuristics' choice."""
    linear = run_passes(ast, Context(target, optimized, plan))
    assert isinstance(linear, list)
    return linear


def arrange(ast: UOp, target: Target) -> UOp:
    """A kernel AST whose loops are those that a plan tiles."""
    arranged = run_passes(ast, Context(target), through=LOOPS_ARRANGED)
    assert isinstance(arranged, UOp)
    return arranged


def lower_arranged(arranged: UOp, target: Target, plan: Plan) -> list[UOp]:
    """The linear form of what `arrange` gave, tiled by `plan`."""
    linear = run_passes(arranged, Context(target, True, plan), after=LOOPS_ARRANGED)
    assert isinstance(linear, list)
    return linear


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
