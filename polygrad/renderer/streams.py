"""Which loads of a linear kernel are prefetched: those that stream a large buffer of narrow numbers.

A loop that converts each number on its way has few loads in flight: what a processor looks ahead is full of
conversions, and what it fetches by itself comes too late. So the loop asks for memory some kilobytes ahead.
Numbers as wide as a lane need no requests: there they cost more than they save.
"""

from __future__ import annotations

from collections.abc import Sequence

from polygrad.codegen.opts.tile import is_tile
from polygrad.codegen.target import Target
from polygrad.uop.args import AddrSpace, AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

AHEAD = 8 << 10  # bytes: measured, from 4 to 16 KB are as good


def streamed_loads(linear: Sequence[UOp], lanes: int, target: Target) -> frozenset[UOp]:
    """The loads of neighbouring lanes inside of a sum's loop that no loop reads again, of buffers that the
    second cache does not hold, and whose vectors are narrower than a register."""
    loads = set()
    loops: list[UOp] = []
    for node in linear:
        if node.op is Ops.RANGE and not is_tile(node):
            loops.append(node)
        elif node.op is Ops.END:
            loops.remove(node.src[1])
        elif node.op is Ops.LOAD and loops and loops[-1].arg.kind is AxisKind.REDUCE:
            if _is_streamed(node.src[0], lanes, loops, target):
                loads.add(node)
    return frozenset(loads)


def _is_streamed(index: UOp, lanes: int, loops: Sequence[UOp], target: Target) -> bool:
    buffer, position = index.src[0], index.src[1]
    if buffer.op is not Ops.PARAM or buffer.arg.space is not AddrSpace.GLOBAL or len(index.src) > 2:
        return False
    if buffer.arg.size * buffer.dtype.itemsize < target.cache[1]:
        return False
    steps = {step for r, step in (index.arg.steps if index.arg else ()) if r.arg.kind is AxisKind.LANE}
    is_narrow = lanes * buffer.dtype.itemsize < target.simd_bytes
    return steps == {1} and is_narrow and position.ranges.issuperset(loops)
