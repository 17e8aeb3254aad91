"""Quantisation: linear, by tensor, axis or block; and products of quantised operands."""

from __future__ import annotations

from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.errors import OnnxError
from polygrad.helpers import ceildiv
from polygrad.onnx.elements import ELEMENTS, Element, element_of
from polygrad.onnx.integer_products import integer_conv, integer_matmul, zero_of
from polygrad.onnx.op_table import Known, Quantizable, op
from polygrad.onnx.ops.casting_ops import converted
from polygrad.onnx.ops.convolution_ops import windows_of, with_bias
from polygrad.onnx.rounding import rounded_to_even
from polygrad.onnx.values import (
    Dequantized,
    Narrow,
    Scaled,
    Value,
    element_of_value,
    floats_of,
    held,
    tensor_of,
)
from polygrad.tensor.tensor import Tensor

_UINT8 = ELEMENTS[2]
_MOST_CODES = (1 << 16) - 1  # that a type has, which are saturated before they are rounded


def _plain(x: Value, device: str | None) -> Tensor:
    """The numbers of a value of any element type; those that the host knows on `device`."""
    return x.tensor if isinstance(x, Narrow) else tensor_of(x, device)


def _spread(scale: Tensor, shape: tuple[Any, ...], axis: int, block_size: int) -> Tensor:
    """A scale or zero point in a shape that broadcasts: of the tensor, of an axis, or of blocks along it."""
    if not scale.ndim or (scale.numel() == 1 and scale.ndim < 2):
        return scale.reshape(())
    at = axis + len(shape) if axis < 0 else axis
    if (scale.ndim == 1 and len(shape) != 1) or (scale.ndim == 1 and not block_size):
        return scale.reshape([-1 if i == at else 1 for i in range(len(shape))])
    if scale.ndim != len(shape):
        raise OnnxError(f"expected a scale of 1 axis or of {len(shape)}, got shape {scale.shape}")
    size = block_size or ceildiv(shape[at], scale.shape[at])
    whole = scale.repeat_interleave(size, at)
    return whole.shrink([(0, n) if i == at else None for i, n in enumerate(shape)])


def quantized(
    x: Tensor, scale: Tensor | None, zero: Tensor | None, to: Element, saturate: bool = True
) -> Tensor | Narrow:
    """x / scale, rounded to even, plus zero, saturated to the type. Not a number becomes any code."""
    y = x if scale is None else x / scale
    if to.dtype.is_float:
        return converted(y if zero is None else y + zero.cast(y.dtype), to, saturate)
    low, high = to.limits
    if y.dtype is dtypes.float64 or high - low > _MOST_CODES:
        y = y.round() if zero is None else y.round() + zero.cast(y.dtype)
        return held(y.clamp(low, high), to)
    y = y.cast(dtypes.float32)
    if zero is None:
        return held(rounded_to_even(y.clamp(low, high)), to)
    offset = zero.cast(dtypes.float32)
    least, greatest = low - offset, high - offset
    saturated = (y > least).where(y, least)  # one operation, unlike a maximum that keeps what is no number
    saturated = (saturated < greatest).where(saturated, greatest)
    return held(rounded_to_even(saturated) + zero.cast(dtypes.int32), to)


@op("QuantizeLinear", 10, 13, 19, 21, 23, 24, 25, 28)
def quantize_linear(
    x: Quantizable,
    scale: Value,
    zero: Known = None,
    *,
    axis: int = 1,
    saturate: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
) -> Value:
    to = element_of(output_dtype, "output_dtype") if output_dtype else _UINT8
    to = to if zero is None else element_of_value(zero)
    numbers = floats_of(x)
    by = _plain(scale, numbers.device)
    kind = element_of(precision, "precision").dtype if precision else by.dtype
    kind = kind if kind.is_float else dtypes.float32
    by = _spread(by, numbers.shape, axis, block_size).cast(kind)
    offset = (
        None
        if zero is None
        else _spread(_plain(zero, numbers.device).cast(dtypes.float32), numbers.shape, axis, block_size)
    )
    if isinstance(x, Scaled) and by.numel() == 1 and kind is dtypes.float32:
        return quantized(x.by(by), None, offset, to, bool(saturate))
    return quantized(numbers.cast(kind), by, offset, to, bool(saturate))


@op("DequantizeLinear", 10, 13, 19, 21, 23, 24, 25, 28)
def dequantize_linear(
    x: Value,
    scale: Value,
    zero: Known = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    device: str | None,
) -> Value:
    by = _plain(scale, device)
    numbers = _plain(x, device)
    to = element_of(output_dtype, "output_dtype").dtype if output_dtype else by.dtype
    wide: DType = dtypes.float32 if numbers.dtype.is_float else dtypes.int32
    out = numbers.cast(wide)
    if zero is not None:
        out = out - _spread(_plain(zero, device).cast(wide), numbers.shape, axis, block_size)
    factor = _spread(
        by.cast(dtypes.float32) if by.dtype.itemsize < 4 else by, numbers.shape, axis, block_size
    )
    result = (out.cast(factor.dtype) * factor).cast(to)
    if isinstance(x, Narrow) or block_size or by.ndim > 1:
        return result
    if numbers.dtype not in (dtypes.int8, dtypes.uint8) or not by.dtype is to is dtypes.float32:
        return result
    return Dequantized(result, numbers, by, zero, axis % max(numbers.ndim, 1))


@op("DynamicQuantizeLinear", 11)
def dynamic_quantize_linear(x: Tensor) -> tuple[Value, Tensor, Tensor]:
    """To uint8, by the range of the elements, which is made to contain 0."""
    low, high = x.min().minimum(0), x.max().maximum(0)
    scale = (high - low) / 255.0
    scale = scale.eq(0).where(1.0, scale) if x.numel() else scale
    zero = (low.neg() / scale).clamp(0, 255).round()
    return quantized(x, scale, zero, _UINT8), scale, zero.cast(dtypes.uint8)


# --- products


def _rows(x: Tensor) -> Tensor:
    """A number for each row of a matrix, as a column."""
    return x.unsqueeze(-1) if x.ndim == 1 and x.numel() > 1 else x.reshape(()) if x.numel() == 1 else x


@op("QLinearMatMul", 10, 21)
def qlinear_matmul(
    a: Tensor,
    a_scale: Tensor,
    a_zero: Known,
    b: Tensor,
    b_scale: Tensor,
    b_zero: Known,
    y_scale: Tensor,
    y_zero: Known,
) -> Value:
    x_zero = zero_of(a_zero, a.device)
    x_zero = x_zero if isinstance(x_zero, int) else _rows(x_zero)
    total = integer_matmul(a, b, x_zero, zero_of(b_zero, b.device))
    scale = (_rows(a_scale).float() * b_scale.float()) / _rows(y_scale).float()
    out = total.cast(dtypes.float32) * scale
    to = element_of_value(y_zero)
    offset = _rows(tensor_of(y_zero, a.device))
    return quantized(out, None, offset, to)


@op("ConvInteger", 10)
def conv_integer(
    x: Tensor,
    w: Tensor,
    x_zero: Known = None,
    w_zero: Known = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    steps, spread, pairs = windows_of(x, w, auto_pad, dilations, pads, strides)
    zeros = zero_of(x_zero, x.device), zero_of(w_zero, w.device)
    return integer_conv(x, w, *zeros, pairs=pairs, groups=group, strides=steps, dilations=spread)


@op("QLinearConv", 10)
def qlinear_conv(
    x: Tensor,
    x_scale: Tensor,
    x_zero: Known,
    w: Tensor,
    w_scale: Tensor,
    w_zero: Known,
    y_scale: Tensor,
    y_zero: Known,
    bias: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Value:
    """Scale and zero point of w are one number, or one for each output channel. The bias is in int32."""
    total = conv_integer(
        x, w, x_zero, w_zero, auto_pad=auto_pad, dilations=dilations, group=group, kernel_shape=kernel_shape,
        pads=pads, strides=strides,
    )  # fmt: skip
    column = (-1, *[1] * (x.ndim - 2))
    total = with_bias(total, bias)
    scale = x_scale.reshape(()) * (w_scale.reshape(column) if w_scale.numel() > 1 else w_scale.reshape(()))
    out = total.cast(dtypes.float32) * (scale / y_scale.reshape(()))
    to = element_of_value(y_zero)
    return quantized(out, None, tensor_of(y_zero, x.device).reshape(()), to)
