"""Schedules for tests of kernels: reductions are fused into their readers, and no other pass runs."""

from __future__ import annotations

from dataclasses import replace

from polygrad.codegen.kernels.fuse import each_pair, propose_fuse
from polygrad.codegen.kernels.kernel_opt import KernelContext
from polygrad.codegen.kernels.passes import carry_out
from polygrad.codegen.target import Target
from polygrad.schedule import schedule as module
from polygrad.schedule.schedule import Schedule
from polygrad.schedule.split_scan import CORES, SideBySide
from polygrad.uop.node import UOp


def schedule(
    sink: UOp, optimized: bool = False, max_buffers: int = 0, grid: bool = False, scans: SideBySide = CORES
) -> Schedule:
    """`polygrad.schedule.schedule.schedule`, and the pass `fuse-reductions` if `optimized`."""
    plan = module.schedule(sink, optimized, max_buffers, grid, scans)
    target = Target("test", max_buffers=max_buffers)
    context = KernelContext(target, optimized, frozenset(plan.roots), plan.apart)
    calls = list(plan.calls)
    if optimized:
        calls, _ = carry_out(each_pair(propose_fuse), calls, context)
    return replace(plan, calls=tuple(calls))
