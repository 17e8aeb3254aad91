"""The code generation pipeline: from a kernel's AST to its linear form for one Target.

`PASSES` lists all of its passes, in order. Optimised and unoptimised lowering share the IR; with optimisation
off the linear form is scalar, with one node for each operation.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from polygrad.codegen.lower.bind_workgroups import bind_workgroups
from polygrad.codegen.lower.decompose import decompose
from polygrad.codegen.lower.dot_words import form_dot_products
from polygrad.codegen.lower.fuse_loops import fuse_loops
from polygrad.codegen.lower.guarded_stores import branch_guarded_stores
from polygrad.codegen.lower.linearize import linearize, order_loads, order_loops, split_ends
from polygrad.codegen.lower.peeling import peel_fills
from polygrad.codegen.lower.rare_terms import branch_rare_terms
from polygrad.codegen.lower.reductions import flatten_reductions, simplify_reductions
from polygrad.codegen.lower.slow_paths import branch_slow_paths
from polygrad.codegen.opts.heuristics import optimize
from polygrad.codegen.opts.matmul import require_matrices
from polygrad.codegen.opts.opt import Opt, apply_opts, render_opts
from polygrad.codegen.opts.parallel import threads_of
from polygrad.codegen.opts.stage import lower_stages
from polygrad.codegen.opts.tensor_core import require_tensor_cores
from polygrad.codegen.opts.tile import is_bound, split_indices
from polygrad.codegen.target import Target
from polygrad.errors import InternalError, OptError
from polygrad.helpers import debug_level, env_int
from polygrad.uop.args import AddrSpace, AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.printer import render
from polygrad.uop.rewrite import graph_rewrite
from polygrad.uop.spec import verify
from polygrad.uop.symbolic import symbolic

Code = UOp | list[UOp]  # a kernel's SINK, or its linear form


@dataclass(frozen=True, slots=True)
class LoweringContext:
    """The context of a kernel's lowering. `opts`: how to compute it; None: the heuristics choose."""

    target: Target
    optimized: bool = True
    opts: tuple[Opt, ...] | None = None


def _always(context: LoweringContext) -> bool:
    return True


def _optimized(context: LoweringContext) -> bool:
    return context.optimized


def _on_processors(context: LoweringContext) -> bool:
    return context.optimized and context.target.workgroups is None


def _optimize(kernel: UOp, context: LoweringContext) -> UOp:
    steps = opt_steps(kernel, context)
    if debug_level() >= 3:
        print(f"# opts: {render_opts(opt for opt, _ in steps) or 'none'}", file=sys.stderr)
    for opt, made in steps:
        _check_and_show(str(opt), made)
    optimized = steps[-1][1] if steps else kernel
    threads = threads_of(optimized)
    if threads is not None and threads < context.target.threads:
        raise OptError(
            f"opt PARALLEL: expected a loop divided between the target's {context.target.threads} threads, "
            f"each of which has memory of its own, got {threads}"
        )
    return optimized


def opt_steps(kernel: UOp, context: LoweringContext) -> list[tuple[Opt, UOp]]:
    """The Opts of a kernel in order, with the kernel after each. Raises OptError for an Opt given by hand
    that does not apply."""
    if context.opts is None:
        return optimize(kernel, context.target)
    return apply_opts(kernel, context.opts)


def _bind_workgroups(kernel: UOp, context: LoweringContext) -> UOp:
    require_tensor_cores(kernel, context.target)
    require_matrices(kernel, context.target)
    limits = context.target.workgroups
    if limits is not None:
        return bind_workgroups(kernel, limits)
    bound = next((n for n in kernel.toposort() if is_bound(n)), None)
    if bound is not None:
        raise OptError(
            f"opt {bound.arg.kind.name}: expected a target with workgroups, got {context.target.name}"
        )
    return kernel


@dataclass(frozen=True, slots=True)
class Pass:
    """One transformation of a whole kernel. `applies`: whether kernels of a LoweringContext go through it."""

    name: str
    run: Callable[[UOp, LoweringContext], Code]
    applies: Callable[[LoweringContext], bool] = _always


OPTIMIZE = "optimize"
PASSES = (
    # algebra
    Pass("simplify", lambda k, c: graph_rewrite(k, symbolic)),
    Pass("simplify-reductions", lambda k, c: graph_rewrite(k, simplify_reductions)),
    Pass("flatten-reductions", lambda k, c: graph_rewrite(k, flatten_reductions), _optimized),
    Pass("form-dot-products", lambda k, c: form_dot_products(k, c.target), _optimized),
    # decisions: loops, tiles, memory of the kernel's own, threads
    Pass(OPTIMIZE, _optimize, _optimized),
    # the form that renderers take
    Pass("bind-workgroups", _bind_workgroups, _optimized),
    Pass("simplify-indices", lambda k, c: graph_rewrite(k, symbolic)),
    Pass("lower-stages", lambda k, c: lower_stages(k, c.target.workgroups is None)),
    Pass("peel-fills", lambda k, c: peel_fills(k), _on_processors),
    Pass(
        "branch-slow-paths",
        lambda k, c: branch_slow_paths(k, c.target.scalar_fma, c.target.workgroups is not None),
        _optimized,
    ),
    Pass("branch-rare-terms", lambda k, c: branch_rare_terms(k), _on_processors),
    Pass("branch-guarded-stores", lambda k, c: branch_guarded_stores(k), _on_processors),
    Pass("order-loads", lambda k, c: order_loads(k)),
    Pass("fuse-loops", lambda k, c: fuse_loops(k), _on_processors),
    Pass("split-indices", lambda k, c: split_indices(k), _optimized),
    Pass("decompose", lambda k, c: graph_rewrite(k, decompose(c.target, c.optimized))),
    # the order of execution
    Pass("split-ends", lambda k, c: split_ends(k)),
    Pass("order-loops", lambda k, c: order_loops(k)),
    Pass("linearize", lambda k, c: linearize(k)),
)
UNOPTIMIZED = "form-dot-products"  # Opts apply to the form of a kernel after this pass

_POSITION = {p.name: i for i, p in enumerate(PASSES)}


def run_passes(
    kernel: UOp, context: LoweringContext, *, after: str | None = None, through: str | None = None
) -> Code:
    """`kernel` after `PASSES`: from the first pass, or from the one that follows the pass `after`, up to and
    including the last or the pass `through`. The result is a graph until `linearize` makes a list of it.

    DEBUG=4 shows the kernel after each pass and each Opt, SPEC=1 checks each result against uop/spec.py.
    Raises InternalError for a name that no pass has.
    """
    start = 0 if after is None else _position(after) + 1
    stop = len(PASSES) if through is None else _position(through) + 1
    code: Code = kernel
    for p in PASSES[start:stop]:
        if not p.applies(context):
            continue
        assert isinstance(code, UOp)  # only the last pass makes a list
        code = p.run(code, context)
        _check_and_show(p.name, code)
    return code


def _check_and_show(name: str, code: Code) -> None:
    if debug_level() >= 4:
        print(f"# after {name}\n{render(code)}", file=sys.stderr)
    if env_int("SPEC", 0):
        if isinstance(code, UOp):
            verify(code.toposort(), "kernel")
        else:
            verify(code, "linear")


def _position(name: str) -> int:
    if name not in _POSITION:
        raise InternalError(f"lower: expected a pass, one of {', '.join(_POSITION)}, got {name!r}")
    return _POSITION[name]


def lower(ast: UOp, target: Target, optimized: bool = True, opts: tuple[Opt, ...] | None = None) -> list[UOp]:
    """The linear form of a kernel AST; `opts`: how to compute it, instead of the heuristics' choice."""
    linear = run_passes(ast, LoweringContext(target, optimized, opts))
    assert isinstance(linear, list)
    return linear


def parameters(linear: Sequence[UOp]) -> list[UOp]:
    """The PARAMs of a linear kernel in the order of its arguments: buffers, then memory of its own, without
    memory of workgroups."""
    params = (n for n in linear if n.op is Ops.PARAM and n.arg.space is not AddrSpace.SHARED)
    return sorted(params, key=lambda n: (n.arg.space, n.arg.slot))


def signature(linear: list[UOp]) -> str:
    """A text that two linear kernels share exactly when they are the same, in every process."""
    position = {node: i for i, node in enumerate(linear)}
    lines = []
    for node in linear:
        arg = node.arg
        if node.op is Ops.INDEX and arg is not None:
            arg = [[(r.arg.id, int(r.arg.kind), r.src[0].arg, step) for r, step in arg.steps], arg.offset]
        sources = ",".join([str(position[s]) for s in node.src])
        lines.append(
            f"{int(node.op)} {node.dtype} {sources} {arg!r}"
            if arg is not None
            else f"{int(node.op)} {node.dtype} {sources}"
        )
    return "\n".join(lines)


_SIZED = (Ops.RANGE, Ops.SPECIAL)


def kernel_name(linear: list[UOp], text: str) -> str:
    """A readable, unique name: `r` for a reduction or `e`, the loop sizes, a digest of the signature."""
    sizes = [str(n.src[0].arg) if n.src[0].is_const else "n" for n in linear if n.op in _SIZED]
    reduces = any(
        n.op in (Ops.REDUCE, Ops.MATMUL) or (n.op is Ops.RANGE and n.arg.kind is AxisKind.REDUCE)
        for n in linear
    )
    kind = "r" if reduces else "e"
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return "_".join([kind, *sizes[:6], digest])
