"""The kernels that a machine runs for a graph: those of its schedule, some of them joined, others divided.

Each pass takes and gives KernelCalls. Which there are, and in which order, is decided here.
"""

from __future__ import annotations

from dataclasses import replace

from polygrad.codegen.compute_at import compute_at
from polygrad.codegen.const_offsets import separate_offsets
from polygrad.codegen.fp8 import store_as_bits
from polygrad.codegen.index_put import index_put
from polygrad.codegen.interchange import interchange
from polygrad.codegen.narrow import narrow
from polygrad.codegen.polyphase import in_phases
from polygrad.codegen.relayout import relayout
from polygrad.codegen.scatter import scatter
from polygrad.codegen.split_k import split_k
from polygrad.codegen.target import Target
from polygrad.schedule.kernels import KernelCall
from polygrad.schedule.memory import ALIGN
from polygrad.schedule.schedule import Schedule, schedule
from polygrad.schedule.split_scan import CORES, GPU
from polygrad.uop.node import UOp


def arrange(sink: UOp, target: Target, optimized: bool) -> Schedule:
    """The schedule of a normalised graph for a machine, whose kernels are ready to be lowered."""
    limits = target.workgroups
    scans = CORES if limits is None or limits.software else GPU
    plan = schedule(sink, optimized, target.max_buffers, limits is not None, scans)
    calls = [replace(call, ast=store_as_bits(call.ast)) for call in plan.calls]
    if optimized:
        calls = _optimized(calls, set(plan.roots), target)
    return replace(plan, calls=tuple(separate_offsets(calls, max(ALIGN, target.alignment))))


def _optimized(calls: list[KernelCall], roots: set[UOp], target: Target) -> list[KernelCall]:
    if target.workgroups is None:  # what caches gain by
        calls = compute_at(calls, roots, target)
    calls = scatter(index_put(calls, target), target)
    if target.workgroups is None:
        return relayout(interchange(calls), target)
    return narrow(split_k(in_phases(calls), target), roots, target)
