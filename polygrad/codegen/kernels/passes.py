"""The kernels that a machine runs for a graph: those of its schedule, some of them joined, others divided.

`KERNEL_PASSES` is all that happens to them before each is lowered by itself (`lower/passes.py`), in order. A
pass takes and gives KernelCalls, and leaves those alone that it is not for. Those that only make programs
faster can be left out: SKIP_PASSES=relayout,compute-at.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from polygrad.codegen.kernels.compute_at import compute_at
from polygrad.codegen.kernels.fp8_storage import store_as_bits
from polygrad.codegen.kernels.index_put import index_put
from polygrad.codegen.kernels.interchange import interchange
from polygrad.codegen.kernels.narrow_storage import narrow_storage
from polygrad.codegen.kernels.polyphase import split_into_phases
from polygrad.codegen.kernels.relayout import relayout
from polygrad.codegen.kernels.scatter import scatter
from polygrad.codegen.kernels.separate_offsets import separate_offsets
from polygrad.codegen.kernels.split_k import split_k
from polygrad.codegen.kernels.split_ranges import split_ranges
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


@dataclass(frozen=True, slots=True)
class KernelContext:
    """What kernels are made for. `results`: the nodes whose buffers are read when all have run."""

    target: Target
    optimized: bool
    results: frozenset[UOp]


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
    """One transformation of all kernels of a graph. `applies`: whether those of a context go through it."""

    name: str
    run: Callable[[list[KernelCall], KernelContext], list[KernelCall]]
    applies: Callable[[KernelContext], bool] = _optimized


KERNEL_PASSES = (
    # dtypes that no machine has
    KernelPass("store-fp8-as-bits", lambda ks, c: _each(ks, store_as_bits), _always),
    # kernels that become one
    KernelPass("compute-at", lambda ks, c: compute_at(ks, set(c.results), c.target), _for_caches),
    # comparisons with all positions that become writes at positions
    KernelPass("index-put", lambda ks, c: index_put(ks, c.target)),
    KernelPass("scatter", lambda ks, c: scatter(ks, c.target)),
    # sums in another order, or in parts
    KernelPass("interchange", lambda ks, c: interchange(ks), _for_caches),
    KernelPass("polyphase", lambda ks, c: split_into_phases(ks)),
    KernelPass("relayout", lambda ks, c: relayout(ks, c.target), _for_caches),
    KernelPass("split-k", lambda ks, c: split_k(ks, c.target), _for_workgroups),
    KernelPass("split-ranges", lambda ks, c: _each(ks, split_ranges)),
    # memory
    KernelPass("narrow-storage", lambda ks, c: narrow_storage(ks, set(c.results), c.target), _for_workgroups),
    KernelPass(
        "separate-offsets", lambda ks, c: separate_offsets(ks, max(ALIGN, c.target.alignment)), _always
    ),
)


def kernels_of(sink: UOp, target: Target, optimized: bool) -> Schedule:
    """The schedule of a normalised graph for a machine, whose kernels are ready to be lowered."""
    limits = target.workgroups
    scans = CORES if limits is None or limits.software else GPU
    plan = schedule(sink, optimized, target.max_buffers, limits is not None, scans)
    context = KernelContext(target, optimized, frozenset(plan.roots))
    *_, (_, calls) = steps(plan.calls, context)
    return replace(plan, calls=tuple(calls))


def steps(
    calls: Sequence[KernelCall], context: KernelContext
) -> Iterator[tuple[KernelPass, Sequence[KernelCall]]]:
    """Each pass that applies, and the kernels after it.

    DEBUG=3 shows which passes changed kernels, DEBUG=4 the kernels that each made; SPEC=1 checks these
    against uop/spec.py. Raises ArgumentError for a name in SKIP_PASSES that is none of a pass's, or of one
    that programs cannot do without.
    """
    skipped = _skipped_passes()
    for p in KERNEL_PASSES:
        if p.name in skipped or not p.applies(context):
            continue
        before, calls = calls, p.run(list(calls), context)
        _check_and_show(p.name, before, calls)
        yield p, calls


def _skipped_passes() -> frozenset[str]:
    skipped = frozenset(name.strip() for name in env_text("SKIP_PASSES").split(",")) - {""}
    optional = [p.name for p in KERNEL_PASSES if p.applies is not _always]
    for name in skipped.difference(optional):
        raise ArgumentError(
            f"environment variable SKIP_PASSES: {name!r} is no pass that can be left out: use some of "
            f"{', '.join(optional)}"
        )
    return skipped


def _check_and_show(name: str, before: Sequence[KernelCall], after: Sequence[KernelCall]) -> None:
    level, checking = debug_level(), env_int("SPEC", 0)
    if level < 3 and not checking:
        return
    asts_before = {call.ast for call in before}
    new_asts = dict.fromkeys(call.ast for call in after if call.ast not in asts_before)
    if level >= 3 and new_asts:
        print(
            f"# {name}: {len(before)} kernels, now {len(after)}, {len(new_asts)} of them new", file=sys.stderr
        )
    for ast in new_asts:
        if level >= 4:
            print(f"# kernel after {name}\n{render(ast)}", file=sys.stderr)
        if checking:
            verify(ast.toposort(), "kernel")


def _each(calls: list[KernelCall], change: Callable[[UOp], UOp]) -> list[KernelCall]:
    return [replace(call, ast=change(call.ast)) for call in calls]
