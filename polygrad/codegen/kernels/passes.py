"""The kernels that a machine runs for a graph: those of its schedule, some of them joined, others divided.

`KERNEL_PASSES` lists, in order, the passes over all kernels before each is lowered by itself
(`lower/passes.py`). The first and the last are always necessary. The others decide: each proposes KernelOpts,
which `apply` carries out. SKIP_PASSES=relayout,compute-at leaves some of them out; KERNEL_OPTS gives
KernelOpts instead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from polygrad.codegen.kernels.apply import apply
from polygrad.codegen.kernels.compute_at import propose_compute_at, propose_copy_at
from polygrad.codegen.kernels.fp8_storage import store_as_bits
from polygrad.codegen.kernels.fuse import each_pair, propose_fuse, propose_fuse_positions
from polygrad.codegen.kernels.index_put import propose_index_put
from polygrad.codegen.kernels.interchange import (
    propose_interchange,
    propose_parts_of_rows,
    propose_root_of_columns,
)
from polygrad.codegen.kernels.kernel_opt import (
    Calls,
    Decide,
    KernelContext,
    KernelOpt,
    KernelOpts,
    Proposal,
    each,
    parse_kernel_opts,
    render_kernel_opts,
)
from polygrad.codegen.kernels.keyed_scan import propose_keyed_scan
from polygrad.codegen.kernels.multi_output import propose_kept, propose_last, propose_siblings
from polygrad.codegen.kernels.narrow_storage import narrow_buffers
from polygrad.codegen.kernels.partition import propose_partition
from polygrad.codegen.kernels.polyphase import propose_phases
from polygrad.codegen.kernels.relayout import propose_copies, propose_operands
from polygrad.codegen.kernels.scatter import propose_scatter
from polygrad.codegen.kernels.separate_offsets import separate_offsets
from polygrad.codegen.kernels.separate_windows import propose_part_at, propose_separation
from polygrad.codegen.kernels.split_ranges import propose_split_ranges
from polygrad.codegen.kernels.split_reduce import propose_parts, propose_parts_of_few, propose_root_of_rows
from polygrad.codegen.target import Target
from polygrad.errors import ArgumentError
from polygrad.helpers import debug_level, env_int, env_text
from polygrad.schedule.kernels import KernelCall
from polygrad.schedule.memory import ALIGN
from polygrad.schedule.schedule import Schedule, schedule
from polygrad.schedule.split_scan import CORES, GPU
from polygrad.uop.node import UOp
from polygrad.uop.printer import render
from polygrad.uop.spec import verify


def _always(context: KernelContext) -> bool:
    return True


def _optimized(context: KernelContext) -> bool:
    return context.optimized


def _for_caches(context: KernelContext) -> bool:
    return context.optimized and context.target.workgroups is None


def _for_workgroups(context: KernelContext) -> bool:
    return context.optimized and context.target.workgroups is not None


@dataclass(frozen=True, slots=True)
class KernelPass:
    """One transformation of all kernels of a graph. `decide`: its proposals, in order. `rewrite`: a change
    that it always makes. `applies`: whether the kernels of a context go through it."""

    name: str
    decide: tuple[Decide, ...]
    applies: Callable[[KernelContext], bool] = _optimized
    rewrite: Callable[[Calls, KernelContext], Calls] | None = None


KERNEL_PASSES = (
    # dtypes that no machine has
    KernelPass("store-fp8-as-bits", (), _always, lambda ks, c: _each(ks, store_as_bits)),
    # divide long concatenations
    KernelPass("partition", (each(propose_partition, repeat=True),), _for_caches),
    # sums over earlier elements with the same key go through the elements once
    KernelPass("keyed-scan", (each(propose_keyed_scan),), _for_caches),
    # join kernels
    KernelPass("fuse-reductions", (each_pair(propose_fuse),)),
    # divide sums to few elements
    KernelPass("split-reduce", (each(propose_root_of_rows, repeat=True), each(propose_parts_of_few))),
    # join kernels with a large intermediate value between them
    KernelPass("compute-at", (each_pair(propose_compute_at),), _for_caches),
    # comparisons with all positions become writes at positions
    KernelPass("index-put", (each(propose_index_put, repeat=True),)),
    KernelPass("scatter", (each(propose_scatter),)),
    # positions that running values give are computed where they are written at
    KernelPass("fuse-positions", (each_pair(propose_fuse_positions),), _for_caches),
    # sums in another order, or in parts
    KernelPass(
        "interchange",
        (each(propose_root_of_columns, repeat=True), each(propose_parts_of_rows), each(propose_interchange)),
        _for_caches,
    ),
    KernelPass("polyphase", (each(propose_phases),)),
    KernelPass(
        "separate-windows",
        (each(propose_separation, repeat=True), each_pair(propose_part_at)),
        _for_caches,
    ),
    KernelPass("relayout", (each(propose_copies), each_pair(propose_copy_at)), _for_caches),
    KernelPass("split-k", (each(propose_parts),), _for_workgroups),
    KernelPass("split-ranges", (each(propose_split_ranges),)),
    # kernels that go through the same rows become one with several results
    KernelPass(
        "multi-output",
        (each_pair(propose_kept, kept=True), each_pair(propose_last), propose_siblings),
        _for_caches,
    ),
    # memory
    KernelPass("narrow-storage", (narrow_buffers,), _for_workgroups),
    KernelPass("store-operands", (each(propose_operands), narrow_buffers), _for_workgroups),
    KernelPass(
        "separate-offsets", (), _always, lambda ks, c: separate_offsets(ks, max(ALIGN, c.target.alignment))
    ),
)

Choose = Callable[[Calls, Proposal], KernelOpt | None]  # the decision about a proposal


def kernels_of(sink: UOp, target: Target, optimized: bool) -> Schedule:
    """The schedule of a normalised graph for a machine, whose kernels are ready to be lowered."""
    return decide_kernels(*schedule_graph(sink, target, optimized), given_opts())


def schedule_graph(sink: UOp, target: Target, optimized: bool) -> tuple[Schedule, KernelContext]:
    """The schedule of a normalised graph for a machine, before the kernel passes."""
    limits = target.workgroups
    scans = CORES if limits is None or limits.software else GPU
    plan = schedule(sink, optimized, target.max_buffers, limits is not None, scans)
    return plan, KernelContext(target, optimized, frozenset(plan.roots), plan.apart)


def decide_kernels(plan: Schedule, context: KernelContext, given: KernelOpts | None) -> Schedule:
    """A schedule after the kernel passes. `given`: takes the place of their decisions. DEBUG=3 shows all
    decisions in the form that KERNEL_OPTS takes."""
    done = list(steps(plan.calls, context, given=given))
    opts = [opt for step in done for opt in step.opts]
    if opts and debug_level() >= 3:
        print(f'# KERNEL_OPTS="{render_kernel_opts(opts)}"', file=sys.stderr)
    return replace(plan, calls=tuple(done[-1].calls))


@dataclass(frozen=True, slots=True)
class GraphPassResult:
    """A pass, the decisions that were carried out in it, and the kernels after it."""

    name: str
    opts: KernelOpts
    calls: Calls


def choose_what_pays(calls: Calls, proposal: Proposal) -> KernelOpt | None:
    """The decision of the heuristics."""
    return proposal.opt if proposal.pays else None


def steps(
    calls: Sequence[KernelCall],
    context: KernelContext,
    choose: Choose = choose_what_pays,
    given: KernelOpts | None = None,
) -> Iterator[GraphPassResult]:
    """Carry out each pass that applies. `given`: takes the place of the passes that decide, in optimised
    programs.


    DEBUG=3 shows the passes that changed kernels, DEBUG=4 the kernels after each; SPEC=1 checks these against
    uop/spec.py. Raises ArgumentError for a name in SKIP_PASSES that no pass has, or that of a necessary pass;
    OptError for a given KernelOpt that does not apply.
    """
    skipped = _skipped_passes()
    given = given if context.optimized else None
    now = list(calls)
    for p in KERNEL_PASSES:
        if p.name in skipped or not p.applies(context) or (given is not None and p.decide):
            continue
        before, opts = now, tuple[KernelOpt, ...]()
        if p.rewrite is not None:
            if given and p is KERNEL_PASSES[-1]:
                yield (step := _apply_given(now, given, context))
                before = now = step.calls
            now = p.rewrite(now, context)
        for decide in p.decide:
            now, made = carry_out(decide, now, context, choose)
            opts += made
        _check_and_show(p.name, before, now, 0 if context.searching else debug_level())
        yield GraphPassResult(p.name, opts, now)


def carry_out(
    decide: Decide, calls: Calls, context: KernelContext, choose: Choose = choose_what_pays
) -> tuple[Calls, KernelOpts]:
    """The kernels after the chosen proposals of a pass, and these decisions."""
    opts: list[KernelOpt] = []
    decisions = decide(calls, context)
    try:
        proposal = next(decisions)
        while True:
            opt = choose(calls, proposal)
            if opt is not None:
                calls = apply(calls, opt, context)
                opts.append(opt)
            proposal = decisions.send(calls)
    except StopIteration:
        return calls, tuple(opts)


def _apply_given(calls: Calls, given: KernelOpts, context: KernelContext) -> GraphPassResult:
    before = calls
    for opt in given:
        calls = apply(calls, opt, context)
    _check_and_show("KERNEL_OPTS", before, calls, debug_level())
    return GraphPassResult("KERNEL_OPTS", given, calls)


def given_opts() -> KernelOpts | None:
    """The KernelOpts in KERNEL_OPTS; None where it is not set."""
    text = env_text("KERNEL_OPTS")
    try:
        return parse_kernel_opts(text) if text else None
    except ArgumentError as error:
        raise ArgumentError(f"environment variable KERNEL_OPTS: {error}") from None


def _skipped_passes() -> frozenset[str]:
    skipped = frozenset(name.strip() for name in env_text("SKIP_PASSES").split(",")) - {""}
    optional = [p.name for p in KERNEL_PASSES if p.applies is not _always]
    for name in skipped.difference(optional):
        raise ArgumentError(
            f"environment variable SKIP_PASSES: {name!r} is no pass that can be left out: use some of "
            f"{', '.join(optional)}"
        )
    return skipped


def _check_and_show(name: str, before: Calls, after: Calls, level: int) -> None:
    checking = env_int("SPEC", 0)
    if level < 3 and not checking:
        return
    asts_before = {call.ast for call in before}
    new_asts = dict.fromkeys(call.ast for call in after if call.ast not in asts_before)
    if level >= 3 and new_asts:
        change = f"{len(before)} kernels, now {len(after)}, {len(new_asts)} of them new"
        print(f"# {name}: {change}", file=sys.stderr)
    for ast in new_asts:
        if level >= 4:
            print(f"# kernel after {name}\n{render(ast)}", file=sys.stderr)
        if checking:
            verify(ast.toposort(), "kernel")


def _each(calls: list[KernelCall], change: Callable[[UOp], UOp]) -> list[KernelCall]:
    return [replace(call, ast=change(call.ast)) for call in calls]
