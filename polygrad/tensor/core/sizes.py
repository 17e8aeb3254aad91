"""Decisions that depend on symbolic sizes: whether an index is in range, where a slice ends.

A condition may hold for all values within the Variables' bounds. Else the values that they are bound to
decide, and if the call is being captured, the decision becomes a *guard* (as in torch.compile): a replay with
values that decide otherwise is refused. Conditions on ints need no guard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from polygrad.dtype import dtypes
from polygrad.engine.recording import watch
from polygrad.errors import ArgumentError, AxisError, ShapeError
from polygrad.uop.alu import evaluate
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.shapes import Shape, Sint
from polygrad.uop.sizes import canonical, canonical_shape


def value_with(size: Sint, values: Mapping[str, int] | None = None) -> int:
    """A size as a number: Variables have the values that they are bound to, unbound ones those in `values`.

    Raises ArgumentError for a Variable without a value.
    """
    if isinstance(size, int):
        return size
    variable_values: dict[UOp, int] = {}
    for node in size.toposort():
        if node.op is Ops.CONST:
            variable_values[node] = node.arg
        elif node.op is Ops.DEFINE_VAR:
            if values is not None and node.arg.name in values:
                variable_values[node] = values[node.arg.name]
        elif node.op is Ops.BIND:
            variable_values[node] = node.src[1].arg
        else:
            missing = [s for s in node.src if s not in variable_values]
            if missing:
                raise _not_bound(missing[0], size)
            variable_values[node] = int(
                evaluate(node.op, node.src[-1].dtype, [variable_values[s] for s in node.src])
            )
    if size not in variable_values:
        raise _not_bound(size, size)
    return variable_values[size]


def _not_bound(variable: UOp, size: Sint) -> ArgumentError:
    return ArgumentError(
        f"Variable {variable}: expected a bound one, as the operation depends on the value of {size}: use "
        ".bind(value)"
    )


def is_negative(size: Sint) -> bool:
    """Whether a size is below 0, now. Raises ArgumentError when it depends on an unbound Variable."""
    if size.__class__ is int:  # nearly all are
        return bool(size < 0)
    size = canonical(size)
    if isinstance(size, int):
        return size < 0
    if size.vmin >= 0 or size.vmax < 0:
        return bool(size.vmax < 0)
    decided = value_with(size) < 0
    if watch.recording is not None:
        watch.recording.guards[unbound_size(size)] = decided
    return decided


def unbound_size(size: UOp) -> UOp:
    """A size with its Variables unbound."""
    return size.substitute({n: n.src[0] for n in size.toposort() if n.op is Ops.BIND})


def fits(size: Sint, limit: Sint) -> bool:
    """Whether size <= limit, now."""
    return not is_negative(limit - size)


def equal(a: Sint, b: Sint) -> bool:
    """Whether two sizes have the same value, now."""
    return fits(a, b) and fits(b, a)


def smaller(a: Sint, b: Sint) -> Sint:
    """The lesser of two sizes, with the present values of their Variables."""
    return a if fits(a, b) else b


def larger(a: Sint, b: Sint) -> Sint:
    """The greater of two sizes, with the present values of their Variables."""
    return a if fits(b, a) else b


def args_of(first: Any, other_args: tuple[Any, ...]) -> tuple[Any, ...]:
    """`f(2, 3)` and `f((2, 3))` alike."""
    return (first, *other_args) if other_args or not isinstance(first, (tuple, list)) else tuple(first)


def python_number(x: Any) -> Any:
    """A number of numpy's as Python's, and everything else as it is: for counts, which may be either."""
    if isinstance(x, (int, float, UOp)) or hasattr(x, "uop") or getattr(x, "shape", None) != ():
        return x
    return x.item()


def each_of(x: Any, n: int) -> tuple[Any, ...]:
    """A number for each of n axes, or the numbers of a sequence."""
    x = python_number(x)
    return (x,) * n if isinstance(x, int) else tuple([python_number(v) for v in x])


def is_size(x: Any) -> bool:
    """Whether `x` can be a size: an int, or a symbolic integer."""
    return isinstance(x, int) or (isinstance(x, UOp) and x.dtype is dtypes.index)


def as_sizes(shape: Sequence[Any]) -> tuple[Any, ...]:
    """Integers of any kind as ints, and everything else as it is."""
    if all(s.__class__ is int for s in shape):
        return tuple(shape)
    return tuple(
        [s if isinstance(s, (int, UOp)) else s.__index__() if hasattr(s, "__index__") else s for s in shape]
    )


def check_shape(shape: Sequence[Any], subject: str) -> Shape:
    """`shape` as a tuple of canonical sizes. Raises ShapeError, ArgumentError for an unbound Variable that
    decides whether a size is negative.
    """
    if all(s.__class__ is int and s >= 0 for s in shape):
        return tuple(shape)
    out = as_sizes(shape)
    for s in out:
        if not is_size(s) or is_negative(s):
            raise ShapeError(f"{subject}: expected sizes of at least 0, got {out}")
    return canonical_shape(out)


def same_size(a: Sint, b: Sint) -> bool:
    """Whether two sizes are equal for all values of their Variables."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    a, b = canonical(a), canonical(b)
    return a is b or (isinstance(a, int) and a == b)


def fixed_size(size: Any, what: str) -> int:
    if not isinstance(size, int):
        raise AxisError(f"{what}: expected an axis of a fixed size, got {size}")
    return size
