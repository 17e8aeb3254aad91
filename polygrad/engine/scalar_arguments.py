"""Scalar arguments: constants that change from run to run become arguments, so that nothing is compiled
again.

The first graph of a structure is compiled with its constants in the kernels, where they cost nothing. When a
graph of the same structure has another constant, a Program is made that loads this constant from memory. Its
results have the same bits, so only constants that the algebra has no rule for may become arguments. 0, 1, 2
and the like stay constants, as do constants of which masks, shapes or indices may be computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from polygrad.dtype import dtypes
from polygrad.engine.pending import PendingGraph
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops

_STRUCTURAL = frozenset({0.0, 1.0, -1.0, 2.0, -2.0, 0.5, math.inf, -math.inf})
_FLOAT_USES = frozenset({Ops.ADD, Ops.MUL, Ops.MAX, Ops.WHERE}) | GroupOp.Comparison
_INTEGER_USES = _FLOAT_USES | {Ops.AND, Ops.OR, Ops.XOR}


class Family:
    """The graphs that differ only in their constants. `constants`: of the graph that was compiled last.
    `varying`: the numbers of the constants that are arguments.
    """

    __slots__ = ("constants", "varying")

    def __init__(self) -> None:
        self.constants: tuple[UOp, ...] | None = None
        self.varying: tuple[int, ...] = ()

    def arguments(self, constants: list[UOp]) -> tuple[int, ...]:
        """The numbers of the constants of a graph that are arguments: those that vary and are not
        structural."""
        return tuple([i for i in self.varying if not is_structural(constants[i])])

    def compare(self, pending: PendingGraph, roots: Iterable[UOp]) -> None:
        """Add to `varying` the constants that differ from those of the last graph, if they may be
        arguments."""
        constants, self.constants = self.constants, tuple(pending.constants)
        if constants is None:
            return
        changed = [
            i
            for i, (a, b) in enumerate(zip(constants, self.constants, strict=True))
            if a is not b and i not in self.varying and not is_structural(a) and not is_structural(b)
        ]
        if changed:
            allowed = replaceable_constants(pending, roots)
            self.varying = tuple(
                sorted({*self.varying, *[i for i in changed if self.constants[i] in allowed]})
            )


def is_structural(constant: UOp) -> bool:
    """Whether the algebra has rules for this value."""
    value = constant.arg
    return constant.dtype.is_bool or value != value or value in _STRUCTURAL


def replaceable_constants(pending: PendingGraph, roots: Iterable[UOp]) -> set[UOp]:
    """The constants of a graph that may become arguments without a change of any bit of the results."""
    order = list(pending.order)
    users: dict[UOp, list[UOp]] = {n: [] for n in order}
    fixed: set[UOp] = set()  # expressions of constants, which the compiler computes
    for node in order:
        if node.value is None and node.op is not Ops.BUFFER:
            if fixed.issuperset(node.src):
                fixed.add(node)
            for s in node.src:
                if s in users:
                    users[s].append(node)
    has_arange = any(n.op is Ops.ARANGE for n in order)
    out = set(pending.constants).difference(roots)
    for c in pending.constants:
        uses = _INTEGER_USES if c.dtype.is_int else _FLOAT_USES
        if c.dtype.is_bool or c.dtype is dtypes.index or (c.dtype.is_int and has_arange) or not users[c]:
            out.discard(c)
        for user in users[c]:
            others = [s for s in user.src if s is not c]
            if user.op not in uses or not others or not fixed.isdisjoint(others):
                out.discard(c)
    return out
