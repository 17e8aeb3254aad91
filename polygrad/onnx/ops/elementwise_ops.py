"""Elementwise arithmetic, comparisons, logic and bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polygrad.dtype import dtypes
from polygrad.errors import OnnxError
from polygrad.onnx.op_table import op
from polygrad.onnx.ops.strings_ops import pairs_of_texts
from polygrad.onnx.values import Constant, Strings, Value, tensor_of
from polygrad.tensor.tensor import Tensor


def _unary(function: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    def apply(x: Tensor, *, consumed_inputs: Any = None) -> Tensor:
        return function(x).cast(x.dtype)

    return apply


# By op: its function and its versions.
_UNARY: dict[str, tuple[Callable[[Tensor], Tensor], tuple[int, ...]]] = {
    "Abs": (Tensor.abs, (1, 6, 13)),
    "Acos": (Tensor.acos, (7, 22)),
    "Acosh": (Tensor.acosh, (9, 22)),
    "Asin": (Tensor.asin, (7, 22)),
    "Asinh": (Tensor.asinh, (9, 22)),
    "Atan": (Tensor.atan, (7, 22)),
    "Atanh": (Tensor.atanh, (9, 22)),
    "BitwiseNot": (Tensor.bitwise_not, (18,)),
    "Ceil": (Tensor.ceil, (1, 6, 13)),
    "Cos": (Tensor.cos, (7, 22)),
    "Cosh": (Tensor.cosh, (9, 22)),
    "Det": (Tensor.det, (11, 22)),
    "Erf": (Tensor.erf, (9, 13)),
    "Exp": (Tensor.exp, (1, 6, 13)),
    "Floor": (Tensor.floor, (1, 6, 13)),
    "Log": (Tensor.log, (1, 6, 13)),
    "Neg": (Tensor.neg, (1, 6, 13)),
    "Not": (Tensor.logical_not, (1,)),
    "Reciprocal": (Tensor.reciprocal, (1, 6, 13)),
    "Round": (Tensor.round, (11, 22)),
    "Sign": (Tensor.sign, (9, 13)),
    "Sin": (Tensor.sin, (7, 22)),
    "Sinh": (Tensor.sinh, (9, 22)),
    "Sqrt": (Tensor.sqrt, (1, 6, 13)),
    "Tan": (Tensor.tan, (7, 22)),
    "Tanh": (Tensor.tanh, (1, 6, 13)),
}
for _name, (_function, _versions) in _UNARY.items():
    op(_name, *_versions)(_unary(_function))


# --- two operands


def _binary(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    def apply(a: Tensor, b: Tensor) -> Tensor:
        return function(a, b)

    return apply


def _binary_1(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """Before version 7 the second operand broadcasts only if `broadcast` is set, from `axis` on."""

    def apply(
        a: Tensor, b: Tensor, *, broadcast: int = 0, axis: int | None = None, consumed_inputs: Any = None
    ) -> Tensor:
        if broadcast and axis is not None:
            b = aligned(b, a.ndim, axis)
        return function(a, b)

    return apply


def aligned(x: Tensor, rank: int, axis: int) -> Tensor:
    """x with axes of size 1 behind it, so that it broadcasts from `axis` of a tensor of `rank` axes."""
    return x.reshape(*x.shape, *[1] * (rank - axis % rank - x.ndim))


def _divide(a: Tensor, b: Tensor) -> Tensor:
    """Integers are divided towards 0."""
    return a / b if a.dtype.is_float else a.div(b, rounding_mode="trunc").cast(a.dtype)


_BINARY: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], tuple[int, ...], tuple[int, ...]]] = {
    "Add": (Tensor.add, (7, 13, 14), (1, 6)),
    "And": (Tensor.logical_and, (7,), (1,)),
    "BitwiseAnd": (Tensor.bitwise_and, (18,), ()),
    "BitwiseOr": (Tensor.bitwise_or, (18,), ()),
    "BitwiseXor": (Tensor.bitwise_xor, (18,), ()),
    "Div": (_divide, (7, 13, 14), (1, 6)),
    "Equal": (Tensor.eq, (7, 11, 13), (1,)),
    "Greater": (Tensor.gt, (7, 9, 13), (1,)),
    "GreaterOrEqual": (Tensor.ge, (12, 16), ()),
    "Less": (Tensor.lt, (7, 9, 13), (1,)),
    "LessOrEqual": (Tensor.le, (12, 16), ()),
    "Mul": (Tensor.mul, (7, 13, 14), (1, 6)),
    "Or": (Tensor.logical_or, (7,), (1,)),
    "Sub": (Tensor.sub, (7, 13, 14), (1, 6)),
    "Xor": (Tensor.logical_xor, (7,), (1,)),
}
for _name, (_combine, _versions, _old) in _BINARY.items():
    op(_name, *_versions)(_binary(_combine))
    op(_name, *_old)(_binary_1(_combine))


@op("Equal", 19)
def equal(a: Value, b: Value, *, device: str | None) -> Value:
    if isinstance(a, Strings):
        shape, pairs = pairs_of_texts(a, b)
        return Constant(dtypes.bool, shape, [x == y for x, y in pairs])
    return tensor_of(a, device).eq(tensor_of(b, device))


@op("Pow", 7, 12, 13, 15)
def pow_(a: Tensor, b: Tensor) -> Tensor:
    if a.dtype.is_int and b.dtype.is_float:
        return a.cast(dtypes.float64 if a.dtype.itemsize > 2 else dtypes.float32).pow(b).cast(a.dtype)
    return a.pow(b).cast(a.dtype)


op("Pow", 1)(_binary_1(Tensor.pow))


@op("Mod", 10, 13, 28)
def mod(a: Tensor, b: Tensor, *, fmod: int = 0) -> Tensor:
    if fmod:
        return a.fmod(b)
    return a.mod(b)


@op("BitShift", 11, 28)
def bit_shift(a: Tensor, b: Tensor, *, direction: str) -> Tensor:
    """A shift by a negative number or by all bits leaves only the sign: -1 or 0."""
    is_whole = (b < 0) | (b >= a.dtype.bits)
    if direction == "LEFT":
        return is_whole.where(0, a.lshift(is_whole.where(0, b))).cast(a.dtype)
    if direction != "RIGHT":
        raise OnnxError(f"expected direction LEFT or RIGHT, got {direction!r}")
    shifted = a.rshift(is_whole.where(a.dtype.bits - 1, b))
    return shifted if not a.dtype.is_unsigned else is_whole.where(0, shifted).cast(a.dtype)


# --- any number of operands


def _reduce(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    def apply(*xs: Tensor, consumed_inputs: Any = None) -> Tensor:
        out = xs[0]
        for x in xs[1:]:
            out = function(out, x)
        return out

    return apply


op("Max", 1, 6, 8, 12, 13)(_reduce(Tensor.maximum))
op("Min", 1, 6, 8, 12, 13)(_reduce(Tensor.minimum))
op("Sum", 1, 6, 8, 13)(_reduce(Tensor.add))


@op("Mean", 1, 6, 8, 13)
def mean(*xs: Tensor, consumed_inputs: Any = None) -> Tensor:
    return _reduce(Tensor.add)(*xs) / len(xs)


@op("Where", 9, 16)
def where(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return condition.where(a, b)


# --- tests and limits

_LARGEST_FLOAT = 3.4028234663852886e38


@op("IsNaN", 9, 13, 20)
def is_nan(x: Tensor) -> Tensor:
    return x.isnan()


@op("IsInf", 10, 20)
def is_inf(x: Tensor, *, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
    return x.isinf(bool(detect_positive), bool(detect_negative))


@op("Clip", 11, 12, 13)
def clip(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    x = x if low is None else x.maximum(low)
    return x if high is None else x.minimum(high)


@op("Clip", 6)
def clip_6(x: Tensor, *, min: float = -_LARGEST_FLOAT, max: float = _LARGEST_FLOAT) -> Tensor:
    return x.clamp(min, max)


@op("Clip", 1)
def clip_1(
    x: Tensor, *, min: float | None = None, max: float | None = None, consumed_inputs: Any = None
) -> Tensor:
    return x.clamp(min, max)
