"""FOR nodes: values that a fixed number of trips through one body makes of others.

A graph of steps that are alike is thereby as long as one of them, however many they are: to build, to
schedule, to compile. Nothing flows back through one: what is made of it has a gradient of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from polygrad.dtype import DType
from polygrad.errors import InternalError
from polygrad.uop.args import For, Param
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.shapes import Shape, max_numel


def placeholder(slot: int, shape: Shape, dtype: DType) -> UOp:
    """What stands for operand number `slot` in a graph that is not carried out where it is made."""
    pointer = UOp(Ops.PARAM, dtype, (), Param(slot, max_numel(shape)))
    return UOp(Ops.RESHAPE, dtype, (pointer,), shape)


def placeholders(body: UOp) -> dict[int, UOp]:
    """The placeholders of a body, by slot."""
    nodes = [n for n in body.toposort() if n.src and n.src[0].op is Ops.PARAM]
    return {n.src[0].arg.slot: n for n in nodes}


def for_loop(trips: int, body: Sequence[UOp], operands: Sequence[UOp]) -> list[UOp]:
    """What the first of `operands` become when `body` is carried out `trips` times (at least once): in it,
    `placeholder(i, ...)` is operand i, and `body[i]` what that is after the trip, of its shape and dtype."""
    results = [b.contiguous() for b in body]
    if len(set(results)) < len(results):
        raise InternalError("for_loop: expected values that are each something else after a trip")
    sink = UOp.sink(*results)
    src = tuple([x if x.base.op in STORED else x.contiguous() for x in operands])
    return [UOp(Ops.FOR, b.dtype, src, For(trips, sink, i)) for i, b in enumerate(body)]


STORED = frozenset({Ops.BUFFER, Ops.AFTER, Ops.CONTIGUOUS, Ops.FOR})  # what a FOR reads
