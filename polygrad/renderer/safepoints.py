"""Where a kernel looks whether it is to stop: safepoints, as virtual machines call them.

A long kernel comes to one at the start of every so many rounds of a loop: of the innermost that run for
milliseconds, else of the outermost, so that the hottest loops have none. Where it finds that it is to stop it
returns, and what it has not written yet is never written. Short kernels have none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from polygrad.codegen.opts.tile import is_tile
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.shapes import sint_max

# In values computed, each an instruction or a few: a nanosecond or less.
_LONGEST = 1 << 22  # the most work of a loop without a safepoint
_SHORTEST = 1 << 17  # the least work of an outermost loop with one
_INTERVAL = 1 << 14  # of work between two safepoints, at least


@dataclass(slots=True)
class _Loop:
    node: UOp
    work: int = 0  # of a round
    has_safepoint: bool = False  # in a loop inside


def safepoints(linear: Sequence[UOp], values_of: Callable[[UOp], int]) -> dict[UOp, int]:
    """The loops (RANGEs) that have a safepoint, and every how many rounds they come to it, a power of 2.

    `values_of(node)`: how many values a node computes.
    """
    found: dict[UOp, int] = {}
    open_ = [_Loop(UOp.sink())]
    for node in linear:
        if node.op is Ops.RANGE and not is_tile(node):
            open_.append(_Loop(node))
        elif node.op is Ops.END:
            loop = open_.pop()
            rounds = max(int(sint_max(loop.node.src[0])), 0)
            least = _SHORTEST if len(open_) == 1 else _LONGEST
            if not loop.has_safepoint and loop.work * rounds >= least and rounds > 1:
                found[loop.node] = 1 << max((_INTERVAL // max(loop.work, 1)).bit_length() - 1, 0)
                loop.has_safepoint = True
            open_[-1].work += loop.work * rounds
            open_[-1].has_safepoint |= loop.has_safepoint
        else:
            open_[-1].work += values_of(node)
    return found
