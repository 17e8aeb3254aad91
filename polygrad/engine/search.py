"""`BEAM=n`: beam searches of width n for the fastest KernelOpts of each new graph, and the fastest Opts of
each new kernel, timed on the device.

A search starts from what the heuristics choose, one of Opts also from none at all, and goes on from the n
fastest, one decision more, less or with other numbers at a time, until no step is faster. What it finds is
kept on disk, so a graph or a kernel is searched for once on a machine, until the code generator changes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from polygrad.codegen.kernels.kernel_opt import (
    Calls,
    KernelContext,
    KernelOpt,
    KernelOpts,
    Kind,
    Proposal,
    parse_kernel_opts,
    render_kernel_opts,
)
from polygrad.codegen.kernels.passes import steps
from polygrad.codegen.lower.passes import (
    UNOPTIMIZED,
    LoweringContext,
    lower,
    run_passes,
    signature,
)
from polygrad.codegen.lower.reductions import canonicalize
from polygrad.codegen.opts.heuristics import optimize
from polygrad.codegen.opts.opt import Opt, parse_opts, render_opts
from polygrad.codegen.opts.search_space import neighbours
from polygrad.engine.cache import DiskCache
from polygrad.engine.devices import Backend
from polygrad.engine.timing import time_kernel, time_program
from polygrad.errors import ArgumentError, CompileError, InternalError, OptError
from polygrad.helpers import debug_level
from polygrad.runtime.program import Program
from polygrad.schedule.kernel_info import rounds
from polygrad.schedule.schedule import Schedule
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.printer import render

_FASTER = 0.97  # of the time so far: a step that is worth it
_MAX_STEPS = 12
_MAX_ROUNDS = 64  # times those of the heuristics' kernels: kernels with more rounds of loops are not timed

Opts = tuple[Opt, ...]
_T = TypeVar("_T")


def _beam(
    start: Iterable[tuple[float, _T]], steps_of: Callable[[_T], Iterable[tuple[float, _T]]], width: int
) -> tuple[float, _T]:
    """The fastest state that a beam of this width finds, and its seconds. `steps_of`: the states one step
    from a state, with the seconds of each."""
    beam = sorted(start, key=lambda entry: entry[0])[:width]
    for _ in range(_MAX_STEPS):
        candidates = [entry for _, state in beam for entry in steps_of(state)]
        fastest = beam[0][0]
        beam = sorted([*beam, *candidates], key=lambda entry: entry[0])[:width]
        if beam[0][0] >= _FASTER * fastest:
            break
    return beam[0]


def _report(what: str, start: float, seconds: float, tried: int) -> None:
    if debug_level() >= 1:
        change = f"{start * 1e6:.1f} -> {seconds * 1e6:.1f} us"
        print(f"search: {change} with {what} of {tried}", file=sys.stderr)


# --- a kernel's Opts


def search(ast: UOp, device: str, backend: Backend, width: int) -> Opts | None:
    """The fastest Opts found for a kernel; None for the heuristics' own where kernels have Variables."""
    target = backend.target
    plain = lower(ast, target, optimized=False)
    if any(n.op is Ops.DEFINE_VAR for n in plain) or not target.simd_bytes:
        return None
    disk = DiskCache.default()
    key = DiskCache.key(target.key, f"beam {width}\n{signature(plain)}")
    entry = disk.get(key)
    if entry is not None and (opts := _read(entry)) is not None:
        return opts
    kernel = run_passes(ast, LoweringContext(target), through=UNOPTIMIZED)
    assert isinstance(kernel, UOp)
    fastest = _Beam(kernel, device, backend).search(width)
    disk.put(key, render_opts(fastest).encode())
    return fastest


def _read(kept: bytes) -> Opts | None:
    """Opts from the cache; None for anything else."""
    try:
        return parse_opts(kept.decode())
    except (ArgumentError, UnicodeDecodeError):
        return None


class _Beam:
    def __init__(self, kernel: UOp, device: str, backend: Backend) -> None:
        self.kernel, self.device, self.backend = kernel, device, backend
        self.times: dict[UOp, float] = {}  # seconds, by the kernel that Opts made

    def search(self, width: int) -> Opts:
        """The fastest sequence of Opts that a beam of this width finds."""
        steps = optimize(self.kernel, self.backend.target)
        start = self.time(steps[-1][1] if steps else self.kernel)
        opts = tuple(opt for opt, _ in steps)
        seconds, best = _beam([(start, opts), (self.time(self.kernel), ())], self._steps, width)
        _report(render_opts(best), start, seconds, len(self.times))
        return best

    def _steps(self, opts: Opts) -> Iterator[tuple[float, Opts]]:
        for sequence, kernel in neighbours(self.kernel, opts, self.backend.target):
            if kernel not in self.times:
                yield self.time(kernel), sequence

    def time(self, kernel: UOp) -> float:
        """The least seconds of some runs; infinite for a kernel that cannot be compiled, or run for lack of
        memory."""
        if kernel not in self.times:
            self.times[kernel] = _seconds(kernel, self.device, self.backend)
        return self.times[kernel]


def _seconds(kernel: UOp, device: str, backend: Backend) -> float:
    context = LoweringContext(backend.target)
    try:
        linear = run_passes(kernel, context, after="optimize")
        assert isinstance(linear, list)
        return time_kernel(linear, context, device, backend)
    except (CompileError, InternalError, OptError):  # OptError: more than a workgroup has
        return float("inf")


# --- a graph's KernelOpts

_Site = tuple[KernelOpt, tuple[UOp, ...]]  # a proposal without the numbers of its kernels, and these kernels
_Choices = dict[_Site, KernelOpt | None]  # what is done there, if it is not what the heuristics do

_SIZES = frozenset({Kind.COMPUTE_AT, Kind.SPLIT_REDUCE, Kind.INTERCHANGE})  # their last number is a size


def search_graph(
    plan: Schedule, context: KernelContext, backend: Backend, width: int, build: Callable[[Schedule], Program]
) -> KernelOpts | None:
    """The fastest KernelOpts found for the kernels of a graph, those of equal kernels changed together; None
    for the heuristics' own where kernels have Variables. `build`: makes the Program of a list of kernels."""
    asts = list(dict.fromkeys(call.ast for call in plan.calls))
    if any(ast.variables() for ast in asts) or not context.target.simd_bytes:
        return None
    disk = DiskCache.default()
    key = DiskCache.key(context.target.key, f"beam {width}\n{_describe(plan, asts)}")
    entry = disk.get(key)
    if entry is not None:
        try:
            return parse_kernel_opts(entry.decode())
        except (ArgumentError, UnicodeDecodeError):  # anything else than KernelOpts
            pass
    fastest = _GraphBeam(plan, replace(context, searching=True), backend, build).search(width)
    disk.put(key, render_kernel_opts(fastest).encode())
    return fastest


def _describe(plan: Schedule, asts: list[UOp]) -> str:
    """The kernels of a graph, and which of them read and write the same memory."""
    numbers: dict[UOp, int] = {}
    calls = [
        (asts.index(call.ast), *[numbers.setdefault(a, len(numbers)) for a in call.args])
        for call in plan.calls
    ]
    return "\n".join([*map(render, asts), str(calls), str([numbers.get(root) for root in plan.roots])])


class _GraphBeam:
    def __init__(
        self,
        plan: Schedule,
        context: KernelContext,
        backend: Backend,
        build: Callable[[Schedule], Program],
    ) -> None:
        self.plan, self.context, self.backend, self.build = plan, context, backend, build
        self.times: dict[KernelOpts, float] = {}  # seconds
        # for KernelOpts: the choices that led to them, and all choices
        self.made: dict[KernelOpts, tuple[_Choices, _Choices]] = {}
        self.max_rounds = 0

    def search(self, width: int) -> KernelOpts:
        """The fastest KernelOpts that a beam of this width finds."""
        heuristics, chosen, calls = self._decide({})
        if not chosen:
            return ()
        self.max_rounds = _MAX_ROUNDS * _rounds(calls)
        start = self._time(heuristics, {}, chosen, calls)
        seconds, best = _beam([(start, heuristics)], self._steps, width)
        _report(f"KERNEL_OPTS={render_kernel_opts(best)!r}", start, seconds, len(self.times))
        return best

    def _steps(self, opts: KernelOpts) -> Iterator[tuple[float, KernelOpts]]:
        choices, chosen = self.made[opts]
        for site, opt in chosen.items():
            for other in _others(site[0], opt):
                changed = {**choices, site: other}
                try:
                    kernel_opts, sites, calls = self._decide(changed)
                    if kernel_opts not in self.times and _rounds(calls) <= self.max_rounds:
                        yield self._time(kernel_opts, changed, sites, calls), kernel_opts
                except (CompileError, OptError):  # a size that does not fit
                    continue

    def _decide(self, choices: _Choices) -> tuple[KernelOpts, _Choices, Calls]:
        """The KernelOpts that some choices make, all choices, and the kernels. Raises OptError."""
        chosen: _Choices = {}

        def choose(calls: Calls, proposal: Proposal) -> KernelOpt | None:
            kernels = proposal.opt.kernels
            site = proposal.opt._replace(kernels=()), tuple(calls[k].ast for k in kernels)
            opt = chosen[site] = choices.get(site, site[0] if proposal.pays else None)
            return None if opt is None else opt._replace(kernels=kernels)

        taken_steps = list(steps(self.plan.calls, self.context, choose))
        return tuple(opt for step in taken_steps for opt in step.opts), chosen, taken_steps[-1].calls

    def _time(self, opts: KernelOpts, choices: _Choices, chosen: _Choices, calls: Calls) -> float:
        self.made[opts] = choices, chosen
        program = self.build(replace(self.plan, calls=tuple(calls)))
        self.times[opts] = time_program(program, self.backend.open())
        return self.times[opts]


def _rounds(calls: Calls) -> int:
    """How many rounds the innermost loops of kernels have. Without `scatter`, a histogram has one for each
    pair of an element and a bin."""
    return sum(max(rounds(n.ranges) for n in canonicalize(call.ast).toposort()) for call in calls)


def _others(opt: KernelOpt, chosen: KernelOpt | None) -> list[KernelOpt | None]:
    """The other decisions about a proposal than the chosen one."""
    if chosen is None:
        return [opt]
    sizes = chosen.numbers[-1:] if chosen.kind in _SIZES else ()
    scaled = [chosen._replace(numbers=(*chosen.numbers[:-1], n)) for s in sizes for n in (s // 2, s * 2) if n]
    return [None, *scaled]
