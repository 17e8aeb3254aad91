"""Range analysis: the least and greatest value of an integer or bool node, from the bounds of its sources.

A node's bounds are computed once, when it is made, so nothing recurses. `index` arithmetic does not overflow.
For any other dtype, a result that may leave the dtype's range may wrap, so it has the dtype's bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from polygrad.dtype import DType
from polygrad.uop.ops import Ops

Bounds = tuple[Any, Any]


class HasBounds(Protocol):
    """A node, of which this module uses the bounds alone."""

    @property
    def bounds(self) -> Bounds | None: ...


def bounds_of(op: Ops, dtype: DType, src: tuple[HasBounds, ...], arg: Any) -> Bounds:
    """The bounds of UOp(op, dtype, src, arg), whose dtype is an integer or bool."""
    if op is Ops.CONST:
        return arg, arg
    if op is Ops.DEFINE_VAR:
        return arg.lo, arg.hi
    if op is Ops.RANGE or op is Ops.SPECIAL:
        size = src[0].bounds  # None for a float, which the spec refuses
        return (dtype.min, dtype.max) if size is None else (0, max(size[1] - 1, 0))
    if op is Ops.ARANGE:
        return 0, max((arg if isinstance(arg, int) else arg.bounds[1]) - 1, 0)
    if op in _PASS_THROUGH:
        return src[0].bounds or (dtype.min, dtype.max)
    rule: Any = _RULES.get(op)
    if rule is None:
        return dtype.min, dtype.max
    if len(src) == 2:
        a, b = src[0].bounds, src[1].bounds
        if a is None or b is None:
            return dtype.min, dtype.max
        lo, hi = rule(a, b)
    else:
        sources = [s.bounds for s in src]
        if None in sources:
            return dtype.min, dtype.max
        lo, hi = rule(*sources)
    if lo < dtype.min or hi > dtype.max:
        return dtype.min, dtype.max
    return (bool(lo), bool(hi)) if dtype.is_bool else (int(lo), int(hi))


_PASS_THROUGH = frozenset({Ops.CONTIGUOUS, Ops.DETACH, Ops.COPY, Ops.RESHAPE, Ops.PERMUTE, Ops.EXPAND,
                           Ops.SHRINK, Ops.FLIP, Ops.SHEAR, Ops.BIND})  # fmt: skip


def _mul(a: Bounds, b: Bounds) -> Bounds:
    corners = (a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1])
    return min(corners), max(corners)


def _idiv(a: Bounds, b: Bounds) -> Bounds:
    if b[0] <= 0 <= b[1]:
        top = max(abs(a[0]), abs(a[1]))
        return -top, top  # x // 0 is 0
    corners = (a[0] // b[0], a[0] // b[1], a[1] // b[0], a[1] // b[1])
    return min(corners), max(corners)


def _mod(a: Bounds, b: Bounds) -> Bounds:
    if b[0] == b[1] and b[0] > 0 and a[0] // b[0] == a[1] // b[0]:
        return a[0] % b[0], a[1] % b[0]
    if b[0] > 0:
        return 0, min(b[1] - 1, a[1]) if a[0] >= 0 else b[1] - 1
    return min(b[0] + 1, 0), max(b[1] - 1, 0)


def _shl(a: Bounds, b: Bounds) -> Bounds:
    if b[0] < 0 or b[1] > 63:
        return -(1 << 80), 1 << 80
    return _mul(a, (1 << b[0], 1 << b[1]))


def _shr(a: Bounds, b: Bounds) -> Bounds:
    if b[0] < 0 or b[1] > 63:
        return min(a[0], 0), max(a[1], 0)
    return min(a[0] >> b[0], a[0] >> b[1]), max(a[1] >> b[0], a[1] >> b[1])


def _and(a: Bounds, b: Bounds) -> Bounds:
    if a[1] is True or a[1] is False:
        return a[0] and b[0], a[1] and b[1]
    if a[0] >= 0 and b[0] >= 0:
        return 0, min(a[1], b[1])
    if b[0] >= 0:
        return 0, b[1]
    if a[0] >= 0:
        return 0, a[1]
    return -(1 << 80), 1 << 80


def _or(a: Bounds, b: Bounds) -> Bounds:
    if a[1] is True or a[1] is False:
        return a[0] or b[0], a[1] or b[1]
    if a[0] >= 0 and b[0] >= 0:
        return max(a[0], b[0]), (1 << max(a[1].bit_length(), b[1].bit_length())) - 1
    return -(1 << 80), 1 << 80


def _xor(a: Bounds, b: Bounds) -> Bounds:
    if a[0] >= 0 and b[0] >= 0:
        return 0, (1 << max(int(a[1]).bit_length(), int(b[1]).bit_length())) - 1
    return -(1 << 80), 1 << 80


def _eq(a: Bounds, b: Bounds) -> Bounds:
    return a[0] == a[1] == b[0] == b[1], not (a[1] < b[0] or b[1] < a[0])


def _ne(a: Bounds, b: Bounds) -> Bounds:
    lo, hi = _eq(a, b)
    return not hi, not lo


_RULES: dict[Ops, Callable[..., Bounds]] = {
    Ops.ADD: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    Ops.SUB: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    Ops.MUL: _mul,
    Ops.NEG: lambda a: (-a[1], -a[0]),
    Ops.IDIV: _idiv,
    Ops.MOD: _mod,
    Ops.SHL: _shl,
    Ops.SHR: _shr,
    Ops.MAX: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    Ops.AND: _and,
    Ops.OR: _or,
    Ops.XOR: _xor,
    Ops.CMPLT: lambda a, b: (a[1] < b[0], a[0] < b[1]),
    Ops.CMPNE: _ne,
    Ops.CMPEQ: _eq,
    Ops.WHERE: lambda c, a, b: (
        (a[0], a[1]) if c[0] else (b[0], b[1]) if not c[1] else (min(a[0], b[0]), max(a[1], b[1]))
    ),
    Ops.CAST: lambda a: a,
}
