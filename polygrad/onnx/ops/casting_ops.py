"""Conversions between element types, those that are no dtype included: rounding to few bits, by bits."""

from __future__ import annotations

import math

from polygrad.dtype import dtypes
from polygrad.errors import OnnxError
from polygrad.onnx.elements import ELEMENTS, STRING, Element, FloatFormat, decoder, element_of
from polygrad.onnx.op_table import op
from polygrad.onnx.values import (
    Narrow,
    Strings,
    Value,
    describe,
    element_of_value,
    held,
    numbers_of,
    shape_of,
    tensor_of,
)
from polygrad.tensor.tensor import Tensor

_F32_BIAS, _F32_FRACTION = 127, 23


def converted(x: Tensor, to: Element, saturate: bool = True, round_mode: str = "up") -> Tensor | Narrow:
    """Numbers as elements of another type, as Cast has it. Raises OnnxError."""
    if to.format is not None:
        wide = x.cast(dtypes.float32)
        if to.format.fraction_bits == 0:
            return Narrow(_to_power(wide, to.format, saturate, round_mode), to)
        return Narrow(rounded_to(wide, to.format, saturate), to)
    if to.dtype in dtypes.fp8s:
        return (x if x.dtype.is_float else x.cast(dtypes.float32)).cast(to.dtype, saturate=saturate)
    if to.bits < 8:
        low, high = to.limits  # the low bits are kept
        code = x.cast(dtypes.int32) & (high - low)
        return Narrow((code > high).where(code - (high - low + 1), code).cast(to.dtype), to)
    if x.dtype.is_float and to.dtype.is_bool:
        return x.ne(0)
    if x.dtype.is_float and to.dtype.is_int and to.dtype.itemsize < 4:  # as C++ and numpy have it: by int32
        return x.cast(dtypes.int32).cast(to.dtype)
    return x.cast(to.dtype)


def rounded_to(x: Tensor, fmt: FloatFormat, saturate: bool) -> Tensor:
    """float32 rounded to nearest even in a smaller format, still as float32."""
    exponent = ((x.bitcast(dtypes.int32) >> _F32_FRACTION) & 255) - _F32_BIAS
    step = exponent.maximum(1 - fmt.bias) - fmt.fraction_bits
    unit = ((step + _F32_BIAS).clamp(1, 254) << _F32_FRACTION).bitcast(dtypes.float32)
    out = (x / unit).round() * unit
    has_nan = fmt.negative_zero_is_nan
    beyond = fmt.largest if saturate or not has_nan else math.nan
    out = (out.abs() > fmt.largest).where((x < 0).where(-beyond, beyond), out)
    if has_nan:
        out = out.eq(0).where(0.0, out)
        return x.isnan().where(math.nan, out)
    return x.isnan().where(-0.0, out)  # the format has no NaN; ml_dtypes gives -0


def _to_power(x: Tensor, fmt: FloatFormat, saturate: bool, round_mode: str) -> Tensor:
    """A power of 2, the format of scales: float8e8m0."""
    bits = x.bitcast(dtypes.int32)
    exponent, fraction = (bits >> _F32_FRACTION) & 255, bits & ((1 << _F32_FRACTION) - 1)
    half = 1 << (_F32_FRACTION - 1)
    if round_mode == "up":
        grow = fraction > 0
    elif round_mode == "nearest":
        grow = fraction >= half
    elif round_mode == "down":
        grow = fraction < 0
    else:
        raise OnnxError(f"expected round_mode up, down or nearest, got {round_mode!r}")
    code = exponent + grow.cast(dtypes.int32)
    # 2^-127 is no normal float32: its bits are the fraction 1/2
    value = (
        code.eq(0)
        .where(1 << (_F32_FRACTION - 1), code.clamp(0, 254) << _F32_FRACTION)
        .bitcast(dtypes.float32)
    )
    if not saturate:
        value = ((code > 254) | bits.eq(0)).where(math.nan, value)
    return x.isnan().where(math.nan, value)


def cast_value(x: Value, to: int, device: str | None, saturate: int = 1, round_mode: str = "up") -> Value:
    """A value as elements of the type with the number `to`, on `device` if the host knows it. Raises
    OnnxError."""
    if to == STRING:
        return _to_strings(x)
    element = element_of(to, "to")
    if isinstance(x, Strings):
        numbers = [_number(text) for text in x.texts]
        wide = dtypes.float64 if element.dtype.is_float else dtypes.int64
        flat = Tensor([int(n) if wide is dtypes.int64 else n for n in numbers], device, wide)
        return converted(flat.reshape(x.shape), element, bool(saturate), round_mode)
    if element_of_value(x) is element:
        return x
    tensor = x.tensor if isinstance(x, Narrow) else tensor_of(x, device)
    return converted(tensor, element, bool(saturate), round_mode)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise OnnxError(f"expected text of a number, got {text[:40]!r}") from None


def _to_strings(x: Value) -> Strings:
    if isinstance(x, Strings):
        return x
    element = element_of_value(x)
    texts = [_text(n, element) for n in numbers_of(x)]
    return Strings(shape_of(x), texts)


def _text(n: float | int | bool, element: Element) -> str:
    """A number in the fewest digits that distinguish it from its neighbours."""
    if not isinstance(n, float) or element.dtype.itemsize > 4:
        return str(n)
    if n != n or math.isinf(n):
        return str(n)
    digits = next(d for d in range(1, 18) if _same(float(f"{n:.{d}g}"), n, element))
    return repr(float(f"{n:.{digits}g}"))


def _same(a: float, b: float, element: Element) -> bool:
    return Tensor([a], dtype=element.dtype, device="INTERP").tolist()[0] == b


@op("Cast", 6, 9, 13, 19, 21, 23, 24, 25, 28)
def cast(x: Value, *, to: int, saturate: int = 1, round_mode: str = "up", device: str | None) -> Value:
    return cast_value(x, to, device, saturate, round_mode)


@op("Cast", 1)
def cast_1(x: Value, *, to: str, device: str | None) -> Value:
    """`to` is the name of a type."""
    numbers = {"string": STRING, **{element.name: n for n, element in ELEMENTS.items()}}
    if to.lower() not in numbers:
        raise OnnxError(f"expected the name of a type, got to={to!r}")
    return cast_value(x, numbers[to.lower()], device)


@op("CastLike", 15, 19, 21, 23, 24, 25)
def cast_like(
    x: Value, like: Value, *, saturate: int = 1, round_mode: str = "up", device: str | None
) -> Value:
    if isinstance(like, Strings):
        return _to_strings(x)
    return cast_value(x, element_of_value(like).number, device, saturate, round_mode)


@op("BitCast", 26)
def bitcast(x: Value, *, to: int, device: str | None) -> Value:
    element, own = element_of(to, "to"), element_of_value(x)
    if element.bits != own.bits:
        raise OnnxError(f"expected a type of {own.bits} bits, got {element.name}, for {describe(x)}")
    if element.is_native and own.is_native:
        tensor = tensor_of(x, device)
        if own.dtype.is_bool or element.dtype.is_bool:
            return tensor.cast(dtypes.uint8).bitcast(element.dtype) if own.dtype.is_bool else tensor.ne(0)
        return tensor.bitcast(element.dtype)
    codes = _codes(x, own, device)
    if element.is_native:
        return codes.cast(dtypes.uint8).bitcast(element.dtype)
    table = Tensor(list(map(decoder(element), range(1 << element.bits))), device, element.dtype)
    return held(table[codes.cast(dtypes.int32)], element)


def _codes(x: Value, own: Element, device: str | None) -> Tensor:
    """The bits of elements of 8 bits or less, as numbers; a Constant is put on `device`."""
    if own.is_native:
        return tensor_of(x, device).bitcast(dtypes.uint8)
    tensor = x.tensor if isinstance(x, Narrow) else tensor_of(x, device)
    if own.format is None:
        return tensor.cast(dtypes.int32) & ((1 << own.bits) - 1)
    table = Tensor(list(map(decoder(own), range(1 << own.bits))), device)
    same = tensor.unsqueeze(-1).bitcast(dtypes.int32).eq(table.bitcast(dtypes.int32))
    return same.cast(dtypes.int32).argmax(-1)
