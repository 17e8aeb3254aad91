"""A direct evaluation of scalar nodes on Python values: what the tests hold rewriting and bounds against."""

from __future__ import annotations

from typing import Any

from polygrad.uop.alu import convert, evaluate, reinterpret
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def value_of(x: UOp, values: dict[UOp, Any]) -> Any:
    """The value of `x` where `values` gives its leaves (RANGEs, variables, PARAM loads)."""
    done = dict(values)
    for node in x.toposort(lambda n: n not in values):
        if node in done:
            continue
        if node.op is Ops.CONST:
            done[node] = node.arg
            continue
        operands = [done[s] for s in node.src]
        if node.op is Ops.CAST:
            done[node] = convert(operands[0], node.src[0].dtype, node.dtype)
        elif node.op is Ops.BITCAST:
            done[node] = reinterpret(operands[0], node.src[0].dtype, node.dtype)
        else:
            done[node] = evaluate(node.op, node.src[-1].dtype, operands)
    return done[x]


def leaves(x: UOp) -> list[UOp]:
    return [n for n in x.toposort() if n.op in (Ops.RANGE, Ops.DEFINE_VAR, Ops.LOAD)]
