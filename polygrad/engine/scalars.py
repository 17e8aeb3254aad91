"""Scalars: constants that change from run to run become arguments, and nothing is compiled again.

The first graph of a structure is compiled with its constants in the kernels, where they cost nothing. When
the same structure comes with another constant somewhere, a Program is made that loads it there. Only where
that computes the same, to the bit: the algebra must have nothing to do with the constant but to leave it
alone. 0, 1, 2 and their like are no arguments, for the algebra has rules for them, nor is what a mask, a
shape or an index may be made of.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from polygrad.dtype import dtypes
from polygrad.engine.pending import Pending
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops

_STRUCTURAL = frozenset({0.0, 1.0, -1.0, 2.0, -2.0, 0.5, math.inf, -math.inf})
_FLOAT_USES = frozenset({Ops.ADD, Ops.MUL, Ops.MAX, Ops.WHERE}) | GroupOp.Comparison
_INTEGER_USES = _FLOAT_USES | {Ops.AND, Ops.OR, Ops.XOR}
_TRANSPARENT = GroupOp.Movement | {Ops.CAST, Ops.DETACH, Ops.NOOP, Ops.COPY, Ops.CONTIGUOUS, Ops.WHERE}


class Family:
    """The graphs that differ in their constants alone.

    `constants`: of the one that was compiled last; `varying`: which of them are arguments.
    """

    __slots__ = ("constants", "varying")

    def __init__(self) -> None:
        self.constants: tuple[UOp, ...] | None = None
        self.varying: tuple[int, ...] = ()

    def arguments(self, constants: list[UOp]) -> tuple[int, ...]:
        """Which constants of a graph of this family are arguments: those that vary and are not structural."""
        return tuple([i for i in self.varying if not is_structural(constants[i])])

    def compare(self, pending: Pending, roots: Iterable[UOp]) -> None:
        """Let constants vary in which a graph differs from the last one, where they may."""
        constants, self.constants = self.constants, tuple(pending.constants)
        if constants is None:
            return
        changed = [
            i
            for i, (a, b) in enumerate(zip(constants, self.constants, strict=True))
            if a is not b and i not in self.varying and not is_structural(a) and not is_structural(b)
        ]
        if changed:
            allowed = replaceable(pending, roots)
            self.varying = tuple(
                sorted({*self.varying, *[i for i in changed if self.constants[i] in allowed]})
            )


def is_structural(constant: UOp) -> bool:
    """Whether the algebra has rules for this very value."""
    value = constant.arg
    return constant.dtype.is_bool or value != value or value in _STRUCTURAL


def replaceable(pending: Pending, roots: Iterable[UOp]) -> set[UOp]:
    """The constants of a graph that may be values which are not known, with the same results to the bit."""
    order = list(pending.order)
    users: dict[UOp, list[UOp]] = {n: [] for n in order}
    for node in order:
        if node.value is None:
            for s in node.src:
                if s in users:
                    users[s].append(node)
    has_arange = any(n.op is Ops.ARANGE for n in order)
    scaled, rescaled, fixed = _scaled(order, users)
    out = set(pending.constants).difference(roots)
    for c in pending.constants:
        uses = _INTEGER_USES if c.dtype.is_int else _FLOAT_USES
        if c.dtype.is_bool or c.dtype is dtypes.index or (c.dtype.is_int and has_arange) or not users[c]:
            out.discard(c)
        for user in users[c]:
            others = [s for s in user.src if s is not c]
            if user.op not in uses or not others or not fixed.isdisjoint(others):
                out.discard(c)  # with other constants it is computed by the compiler
            elif (
                user.op is Ops.MUL
                and c.dtype.is_float
                and (user in rescaled or not scaled.isdisjoint(others))
            ):
                out.discard(c)  # (x*c)*d is x*(c*d)
    return out


def _scaled(order: list[UOp], users: dict[UOp, list[UOp]]) -> tuple[set[UOp], set[UOp], set[UOp]]:
    """The nodes that are a product with a constant, once movement and the like are gone; those of which such
    a product, or the reciprocal, is taken; and those that are made of constants alone."""
    fixed: set[UOp] = set()
    scaled: set[UOp] = set()
    scales: set[UOp] = set()
    repeated: dict[UOp, frozenset[int]] = {}  # axes along which all elements are the same
    for node in order:
        op, src = node.op, node.src
        if node.value is not None or op is Ops.BUFFER:
            continue
        if fixed.issuperset(src):
            fixed.add(node)
        repeated[node] = _repeated(node, repeated)
        if op is Ops.REDUCE_AXIS:
            is_scale = not repeated.get(src[0], frozenset()).isdisjoint(node.arg.axes)
        else:
            is_scale = (
                op is Ops.RECIPROCAL
                or op in GroupOp.Transcendental  # written out, they begin with one
                or (op is Ops.MUL and not fixed.isdisjoint(src) and not _is_negation(node))
                or (op is Ops.ADD and src[0] is src[1])
            )
        if is_scale:
            scales.add(node)
            if op is Ops.MUL or op is Ops.ADD or op is Ops.REDUCE_AXIS:
                scaled.add(node)
        if _is_transparent(node, fixed) or op is Ops.RECIPROCAL:
            if not scaled.isdisjoint(src):
                scaled.add(node)
    rescaled: set[UOp] = set()
    for node in reversed(order):
        for user in users[node]:
            if user in scales or (user in rescaled and _is_transparent(user, fixed)):
                rescaled.add(node)
    return scaled, rescaled, fixed


def _is_negation(node: UOp) -> bool:
    """Whether a product only changes the sign, which is exact wherever it is done."""
    return any(s.op is Ops.CONST and s.arg == -1 for s in node.src)


def _is_transparent(node: UOp, fixed: set[UOp]) -> bool:
    """Whether code generation may find the node to be one of its sources."""
    if node.op in (Ops.ADD, Ops.MUL, Ops.MAX):
        return any(s in fixed and (s.op is not Ops.CONST or is_structural(s)) for s in node.src)
    return node.op in _TRANSPARENT


def _repeated(node: UOp, known: dict[UOp, frozenset[int]]) -> frozenset[int]:
    """The axes along which the elements of a node are surely or possibly all the same."""
    op, src = node.op, node.src
    if not src:
        return frozenset()
    inner = known.get(src[0], frozenset())
    if op is Ops.EXPAND:
        sizes = zip(src[0].shape, node.shape, strict=True)
        return inner | {i for i, (a, b) in enumerate(sizes) if a is not b and a != b}
    if op is Ops.PERMUTE:
        return frozenset(i for i, axis in enumerate(node.arg) if axis in inner)
    if op in GroupOp.Movement:
        return frozenset(range(node.ndim)) if inner else inner
    if op is Ops.REDUCE_AXIS:
        return inner
    if op in GroupOp.Elementwise:
        of_sources = [known.get(s, frozenset()) for s in src if s.shape]
        return frozenset.intersection(*of_sources) if of_sources else frozenset()
    return inner
