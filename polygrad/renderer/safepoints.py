"""Safepoints, as virtual machines have them: places where a kernel checks whether it was asked to stop.

A safepoint is at the start of a loop's body. The innermost loops that run for milliseconds have one, else the
outermost loop, so that the hottest loops have none. A loop of short rounds is divided into blocks, and the
loop over the blocks has it (`emit.py`). A kernel that was asked to stop returns there, without the rest of
its stores. Short kernels have no safepoints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from polygrad.codegen.opts.tile import is_tile
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.shapes import sint_max

# In computed values. Each is one instruction or a few: a nanosecond or less.
_MAX_WORK = 1 << 22  # of a loop without a safepoint
_MIN_WORK = 1 << 17  # of an outermost loop with a safepoint
_MIN_INTERVAL = 1 << 14  # between two safepoints


@dataclass(slots=True)
class _Loop:
    node: UOp
    work: int = 0  # of one round
    has_safepoint: bool = False  # in this loop or an inner one


def safepoints(linear: Sequence[UOp], values_of: Callable[[UOp], int]) -> dict[UOp, int]:
    """The loops (RANGEs) that have a safepoint, with its interval in rounds, a power of 2.

    `values_of(node)`: the number of values that a node computes.
    """
    intervals: dict[UOp, int] = {}
    open_ = [_Loop(UOp.sink())]
    for node in linear:
        if node.op is Ops.RANGE and not is_tile(node):
            open_.append(_Loop(node))
        elif node.op is Ops.END:
            loop = open_.pop()
            rounds = max(int(sint_max(loop.node.src[0])), 0)
            threshold = _MIN_WORK if len(open_) == 1 else _MAX_WORK
            if not loop.has_safepoint and loop.work * rounds >= threshold and rounds > 1:
                intervals[loop.node] = 1 << max((_MIN_INTERVAL // max(loop.work, 1)).bit_length() - 1, 0)
                loop.has_safepoint = True
            open_[-1].work += loop.work * rounds
            open_[-1].has_safepoint |= loop.has_safepoint
        else:
            open_[-1].work += values_of(node)
    return intervals
