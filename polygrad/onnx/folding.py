"""Nodes whose inputs are all constants, computed on the host: the arithmetic of shapes.

Nodes whose op is not in this table, or whose values are larger, are computed with Tensors. Sizes may be
symbolic.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from polygrad.dtype import dtypes, rounded
from polygrad.helpers import prod
from polygrad.onnx.elements import ELEMENTS
from polygrad.onnx.proto import Node
from polygrad.onnx.values import Constant, Value
from polygrad.uop.node import UOp

_LARGEST = 1024  # elements
_FOLDS: dict[str, Callable[..., Constant | None]] = {}


def fold(node: Node, inputs: list[Value], attributes: dict[str, Any]) -> Constant | None:
    """The output of a node, if it is computed on the host, else None."""
    if node.domain or node.op not in _FOLDS or len(node.outputs) != 1:
        return None
    if not inputs or any(not isinstance(x, Constant) and x is not None for x in inputs):
        return None
    if sum(len(x.numbers) for x in inputs if isinstance(x, Constant)) > _LARGEST:
        return None
    return _FOLDS[node.op](*inputs, **attributes)


def _fold(*names: str) -> Callable[[Callable[..., Constant | None]], Callable[..., Constant | None]]:
    def register(function: Callable[..., Constant | None]) -> Callable[..., Constant | None]:
        _FOLDS.update(dict.fromkeys(names, function))
        return function

    return register


# --- elementwise


def _broadcast(*operands: Constant) -> tuple[tuple[int, ...], list[list[Any]]]:
    """The common shape, and the numbers of each operand in it."""
    rank = max(len(x.shape) for x in operands)
    shapes = [(1,) * (rank - len(x.shape)) + x.shape for x in operands]
    shape = tuple([max(sizes) if 0 not in sizes else 0 for sizes in zip(*shapes)])
    if any(n not in (1, size) for own in shapes for n, size in zip(own, shape)):
        raise ValueError(f"expected shapes that broadcast, got {[x.shape for x in operands]}")
    return shape, [_spread(x.numbers, own, shape) for x, own in zip(operands, shapes)]


def _spread(numbers: list[Any], own: tuple[int, ...], shape: tuple[int, ...]) -> list[Any]:
    if own == shape:
        return numbers
    steps, step = [], 1
    for n in reversed(own):
        steps.append(step if n > 1 else 0)
        step *= n
    ranges = [range(n) for n in shape]
    return [numbers[sum(map(operator.mul, at, reversed(steps)))] for at in itertools.product(*ranges)]


def _elementwise(function: Callable[..., Any], is_test: bool = False) -> Callable[..., Constant | None]:
    def apply(*operands: Constant, **legacy: Any) -> Constant | None:
        dtype = operands[-1].dtype
        if legacy or (is_test and any(isinstance(n, UOp) for x in operands for n in x.numbers)):
            return None
        shape, columns = _broadcast(*operands)
        out = [function(*row) for row in zip(*columns)]
        if is_test:
            return Constant(dtypes.bool, shape, out)
        return Constant(dtype, shape, [_as(dtype, x) for x in out])

    return apply


def _as(dtype: Any, x: Any) -> Any:
    """A number as `dtype` holds it."""
    if isinstance(x, UOp):
        return x
    return rounded(dtype, x) if dtype.is_float else dtype.cast(x)


def _divide(a: Any, b: Any) -> Any:
    """Integers are divided towards 0."""
    if isinstance(a, float):
        return a / b if b else math.copysign(math.inf, a) * math.copysign(1.0, b) if a else math.nan
    if isinstance(a, UOp) or isinstance(b, UOp):
        return a // b
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "Div": _divide,
    "Neg": operator.neg,
    "Floor": lambda x: float(math.floor(x)) if math.isfinite(x) else x,
    "Ceil": lambda x: float(math.ceil(x)) if math.isfinite(x) else x,
    "Identity": lambda x: x,
    "And": operator.and_,
    "Or": operator.or_,
    "Where": lambda condition, a, b: a if condition else b,
}
_TESTS: dict[str, Callable[..., Any]] = {
    "Equal": operator.eq,
    "Greater": operator.gt,
    "Less": operator.lt,
    "GreaterOrEqual": operator.ge,
    "LessOrEqual": operator.le,
    "Not": operator.not_,
}
_FOLDS.update({name: _elementwise(function) for name, function in _ARITHMETIC.items()})
_FOLDS.update({name: _elementwise(function, is_test=True) for name, function in _TESTS.items()})


def _extreme(function: Callable[..., Any]) -> Callable[..., Constant | None]:
    def apply(*operands: Constant, **legacy: Any) -> Constant | None:
        if legacy or any(isinstance(n, UOp) or n != n for x in operands for n in x.numbers):
            return None
        shape, columns = _broadcast(*operands)
        return Constant(operands[0].dtype, shape, [function(row) for row in zip(*columns)])

    return apply


_FOLDS["Min"], _FOLDS["Max"] = _extreme(min), _extreme(max)


@_fold("Mod")
def _mod(a: Constant, b: Constant, *, fmod: int = 0) -> Constant | None:
    if fmod or a.dtype.is_float or 0 in b.numbers:
        return None
    return _elementwise(operator.mod)(a, b)


@_fold("Cast")
def _cast(x: Constant, *, to: int, saturate: int = 1, round_mode: str = "up") -> Constant | None:
    element = ELEMENTS.get(to)
    if element is None or not element.is_native or element.dtype in dtypes.fp8s:
        return None
    symbolic = any(isinstance(n, UOp) for n in x.numbers)
    if symbolic and not element.dtype.is_int:
        return None
    if x.dtype.is_float and not element.dtype.is_float:
        if any(not math.isfinite(n) or not element.dtype.min <= n <= element.dtype.max for n in x.numbers):
            return None
    return Constant(element.dtype, x.shape, [_as(element.dtype, n) for n in x.numbers])


# --- shapes


@_fold("Reshape")
def _reshape(x: Constant, shape: Constant, *, allowzero: int = 0) -> Constant | None:
    if any(isinstance(n, UOp) for n in shape.numbers):
        return None
    sizes = [x.shape[i] if n == 0 and not allowzero else n for i, n in enumerate(shape.numbers)]
    if sizes.count(-1) == 1:
        known_product = -prod(sizes)
        sizes[sizes.index(-1)] = len(x.numbers) // known_product if known_product else 0
    if any(n < 0 for n in sizes) or prod(sizes) != len(x.numbers):
        return None
    return Constant(x.dtype, tuple(sizes), x.numbers)


@_fold("Squeeze")
def _squeeze(x: Constant, given: Constant | None = None, *, axes: Sequence[int] = ()) -> Constant | None:
    named = [a % max(len(x.shape), 1) for a in (given.numbers if given else axes)]
    chosen = named or [i for i, n in enumerate(x.shape) if n == 1]
    if any(x.shape[i] != 1 for i in chosen):
        return None
    return Constant(x.dtype, tuple([n for i, n in enumerate(x.shape) if i not in chosen]), x.numbers)


@_fold("Unsqueeze")
def _unsqueeze(x: Constant, given: Constant | None = None, *, axes: Sequence[int] = ()) -> Constant | None:
    named = list(given.numbers if given else axes)
    rank = len(x.shape) + len(named)
    chosen = {a % rank for a in named}
    if len(chosen) != len(named):
        return None
    sizes = iter(x.shape)
    return Constant(x.dtype, tuple([1 if i in chosen else next(sizes) for i in range(rank)]), x.numbers)


@_fold("Concat")
def _concat(*xs: Constant, axis: int = 1) -> Constant | None:
    if any(len(x.shape) != 1 for x in xs):
        return None
    return Constant(xs[0].dtype, (sum(x.shape[0] for x in xs),), [n for x in xs for n in x.numbers])


@_fold("Gather")
def _gather(x: Constant, indices: Constant, *, axis: int = 0) -> Constant | None:
    if len(x.shape) != 1 or any(isinstance(i, UOp) for i in indices.numbers):
        return None
    return Constant(x.dtype, indices.shape, [x.numbers[i] for i in indices.numbers])


@_fold("Slice")
def _slice(
    x: Constant,
    begin: Constant | None = None,
    end: Constant | None = None,
    given: Constant | None = None,
    by: Constant | None = None,
    *,
    starts: Sequence[int] = (),
    ends: Sequence[int] = (),
    axes: Sequence[int] = (),
) -> Constant | None:
    low, high = (begin.numbers if begin else starts), (end.numbers if end else ends)
    chosen = given.numbers if given else axes or range(len(low))
    steps = by.numbers if by else [1] * len(low)
    if any(isinstance(n, UOp) for n in (*low, *high, *steps)):
        return None
    places = [list(range(n)) for n in x.shape]
    for axis, first, last, step in zip(chosen, low, high, steps):
        n = x.shape[axis]
        places[axis] = list(range(n))[first : None if step < 0 and last < -n else last : step]
    return _take(x, places)


def _take(x: Constant, places: list[list[int]]) -> Constant:
    """The elements at these places of each axis."""
    steps = [prod(x.shape[i + 1 :]) for i in range(len(x.shape))]
    numbers = [x.numbers[sum(map(operator.mul, at, steps))] for at in itertools.product(*places)]
    return Constant(x.dtype, tuple(map(len, places)), numbers)


@_fold("Transpose")
def _transpose(x: Constant, *, perm: Sequence[int] | None = None) -> Constant | None:
    order = tuple(range(len(x.shape)))[::-1] if perm is None else tuple(perm)
    if sorted(order) != list(range(len(x.shape))):
        return None
    steps = [prod(x.shape[a + 1 :]) for a in order]
    shape = tuple([x.shape[a] for a in order])
    ranges = [range(n) for n in shape]
    numbers = [x.numbers[sum(map(operator.mul, at, steps))] for at in itertools.product(*ranges)]
    return Constant(x.dtype, shape, numbers)


@_fold("Expand")
def _expand(x: Constant, shape: Constant) -> Constant | None:
    if any(isinstance(n, UOp) for n in shape.numbers) or prod(shape.numbers) > _LARGEST:
        return None
    like = Constant(x.dtype, tuple(shape.numbers), [0] * prod(shape.numbers))
    whole, (numbers, _) = _broadcast(x, like)
    return Constant(x.dtype, whole, numbers)


@_fold("ReduceProd")
def _reduce_prod(
    x: Constant, given: Constant | None = None, *, axes: Sequence[int] = (), keepdims: int = 1,
    noop_with_empty_axes: int = 0,
) -> Constant | None:  # fmt: skip
    if len(x.shape) != 1 or x.dtype.is_float or noop_with_empty_axes:
        return None
    return Constant(x.dtype, (1,) if keepdims else (), [prod(x.numbers)])


@_fold("ConstantOfShape")
def _constant_of_shape(shape: Constant, *, value: Constant | None = None) -> Constant | None:
    if any(isinstance(n, UOp) for n in shape.numbers) or prod(shape.numbers) > _LARGEST:
        return None
    if value is None or not isinstance(value, Constant) or value.dtype.is_float:
        return None
    return Constant(value.dtype, tuple(shape.numbers), value.numbers * prod(shape.numbers))


@_fold("Range")
def _range(start: Constant, limit: Constant, delta: Constant, *, stash_type: int = 1) -> Constant | None:
    bounds = [start.numbers[0], limit.numbers[0], delta.numbers[0]]
    if start.dtype.is_float or any(isinstance(n, UOp) for n in bounds) or len(range(*bounds)) > _LARGEST:
        return None
    return Constant.of(list(range(*bounds)), start.dtype)
