"""FOR nodes: loops with a fixed trip count over graphs.

A graph of many equal steps is thereby as long as one step: to build, to schedule and to compile. FOR nodes
have no gradient: an operation that is made of them has a gradient of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from polygrad.dtype import DType
from polygrad.errors import InternalError
from polygrad.uop.args import Param
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.shapes import Shape, max_numel


class For(NamedTuple):
    """The argument of FOR: repeat `body` `trips` times. `body` is a SINK of the values after a trip; the node
    is number `result` of them. In the body, source i of the node is PARAM i under a RESHAPE."""

    trips: int
    body: UOp
    result: int


def placeholder(slot: int, shape: Shape, dtype: DType) -> UOp:
    """A node that stands for operand number `slot` in the body of a loop."""
    pointer = UOp(Ops.PARAM, dtype, (), Param(slot, max_numel(shape)))
    return UOp(Ops.RESHAPE, dtype, (pointer,), shape)


def placeholders(body: UOp) -> dict[int, UOp]:
    """The placeholders of a body, by slot."""
    nodes = [n for n in body.toposort() if n.src and n.src[0].op is Ops.PARAM]
    return {n.src[0].arg.slot: n for n in nodes}


def for_loop(trips: int, body: Sequence[UOp], operands: Sequence[UOp]) -> list[UOp]:
    """Repeat `body` `trips` times (at least once); the final values of the first `len(body)` operands. In the
    body `placeholder(i, ...)` is operand i, and `body[i]`, of its shape and dtype, is its value after a
    trip."""
    results = [b.contiguous() for b in body]
    if len(set(results)) < len(results):
        raise InternalError("for_loop: two values are the same node after a trip")
    sink = UOp.sink(*results)
    src = tuple([x if x.base.op in STORED else x.contiguous() for x in operands])
    return [UOp(Ops.FOR, b.dtype, src, For(trips, sink, i)) for i, b in enumerate(body)]


STORED = frozenset({Ops.BUFFER, Ops.AFTER, Ops.CONTIGUOUS, Ops.FOR})  # what a FOR reads
