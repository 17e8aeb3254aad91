"""Quantised ops of onnxruntime, of the domain com.microsoft, computed on dequantised numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polygrad.dtype import dtypes
from polygrad.errors import OnnxError
from polygrad.onnx.elements import ELEMENTS
from polygrad.onnx.integer_products import integer_matmul, zero_of
from polygrad.onnx.op_table import Known, op
from polygrad.onnx.ops.contrib_ops import DOMAIN, refuse
from polygrad.onnx.ops.indexing_ops import from_zero
from polygrad.onnx.ops.linalg_ops import matmul_integer
from polygrad.onnx.ops.pooling_ops import average_pool
from polygrad.onnx.ops.quantization_ops import (
    dequantize_linear,
    dynamic_quantize_linear,
    quantize_linear,
    quantized,
)
from polygrad.onnx.values import Narrow, Value, element_of_value, tensor_of
from polygrad.tensor.tensor import Tensor

op("QuantizeLinear", 1, domain=DOMAIN)(quantize_linear)
op("DequantizeLinear", 1, domain=DOMAIN)(dequantize_linear)


def _numbers(x: Tensor, scale: Tensor, zero: Tensor | None) -> Tensor:
    """Dequantise integers; scale and zero point belong to the whole tensor."""
    out = x.cast(dtypes.float32)
    out = out if zero is None else out - zero.cast(dtypes.float32).reshape(())
    return out * scale.reshape(())


def _result(x: Tensor, scale: Tensor, zero: Tensor | None) -> Value:
    to = ELEMENTS[2] if zero is None else element_of_value(zero)
    offset = None if zero is None else zero.cast(dtypes.float32).reshape(())
    return quantized(x, scale.reshape(()), offset, to)


# --- elementwise


def _binary(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Value]:
    def apply(
        a: Tensor,
        a_scale: Tensor,
        a_zero: Tensor | None,
        b: Tensor,
        b_scale: Tensor,
        b_zero: Tensor | None,
        scale: Tensor,
        zero: Tensor | None = None,
    ) -> Value:
        return _result(function(_numbers(a, a_scale, a_zero), _numbers(b, b_scale, b_zero)), scale, zero)

    return apply


op("QLinearAdd", 1, domain=DOMAIN)(_binary(Tensor.add))
op("QLinearMul", 1, domain=DOMAIN)(_binary(Tensor.mul))


@op("QLinearSigmoid", 1, domain=DOMAIN)
def qlinear_sigmoid(
    x: Tensor, x_scale: Tensor, x_zero: Tensor | None, scale: Tensor, zero: Tensor | None = None
) -> Value:
    return _result(_numbers(x, x_scale, x_zero).sigmoid(), scale, zero)


@op("QLinearLeakyRelu", 1, domain=DOMAIN)
def qlinear_leaky_relu(
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor | None,
    scale: Tensor,
    zero: Tensor | None = None,
    *,
    alpha: float = 0.01,
) -> Value:
    return _result(_numbers(x, x_scale, x_zero).leaky_relu(alpha), scale, zero)


@op("QLinearWhere", 1, domain=DOMAIN)
def qlinear_where(
    condition: Tensor,
    a: Tensor,
    a_scale: Tensor,
    a_zero: Tensor,
    b: Tensor,
    b_scale: Tensor,
    b_zero: Tensor,
    scale: Tensor,
    zero: Tensor,
) -> Value:
    return _result(condition.where(_numbers(a, a_scale, a_zero), _numbers(b, b_scale, b_zero)), scale, zero)


@op("QLinearConcat", 1, domain=DOMAIN)
def qlinear_concat(scale: Tensor, zero: Tensor, *xs: Tensor, axis: int) -> Value:
    """Each of xs is followed by its scale and zero point."""
    parts = [_numbers(*xs[i : i + 3]) for i in range(0, len(xs), 3)]
    return _result(parts[0].cat(*parts[1:], dim=axis), scale, zero)


# --- reductions and pooling


@op("QLinearSoftmax", 1, domain=DOMAIN)
def qlinear_softmax(
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor | None,
    scale: Tensor,
    zero: Tensor,
    *,
    axis: int = -1,
    opset: int,
) -> Value:
    """Before opset 13, all axes from `axis` on are one."""
    numbers = _numbers(x, x_scale, x_zero)
    if opset < 13:
        numbers = numbers.flatten(x._axis(axis))
    out = numbers.softmax(-1 if opset < 13 else axis)
    return _result(out.reshape(x.shape), scale, zero)


@op("QLinearReduceMean", 1, domain=DOMAIN)
def qlinear_reduce_mean(
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor | None,
    scale: Tensor,
    zero: Tensor | None = None,
    *,
    axes: list[int],
    keepdims: int,
) -> Value:
    return _result(_numbers(x, x_scale, x_zero).mean(tuple(axes), bool(keepdims)), scale, zero)


def _channels_first(x: Tensor) -> Tensor:
    return x.permute(0, x.ndim - 1, *range(1, x.ndim - 1))


def _channels_last(x: Tensor) -> Tensor:
    return x.permute(0, *range(2, x.ndim), 1)


@op("QLinearGlobalAveragePool", 1, domain=DOMAIN)
def qlinear_global_average_pool(
    x: Tensor, x_scale: Tensor, x_zero: Tensor, scale: Tensor, zero: Tensor, *, channels_last: int = 0
) -> Value:
    axes = tuple(range(1, x.ndim - 1) if channels_last else range(2, x.ndim))
    return _result(_numbers(x, x_scale, x_zero).mean(axes, keepdim=True), scale, zero)


@op("QLinearAveragePool", 1, domain=DOMAIN)
def qlinear_average_pool(
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor | None,
    scale: Tensor,
    zero: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    channels_last: int = 0,
    count_include_pad: int = 0,
    kernel_shape: list[int],
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Value:
    numbers = _numbers(x, x_scale, x_zero)
    out = average_pool(
        _channels_first(numbers) if channels_last else numbers,
        kernel_shape=kernel_shape,
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        pads=pads,
        strides=strides,
    )
    return _result(_channels_last(out) if channels_last else out, scale, zero)


# --- products


@op("QGemm", 1, domain=DOMAIN)
def q_gemm(
    a: Tensor,
    a_scale: Tensor,
    a_zero: Known,
    b: Tensor,
    b_scale: Tensor,
    b_zero: Known,
    c: Tensor | None = None,
    scale: Tensor | None = None,
    zero: Tensor | None = None,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Value:
    """c is in int32, by the scale of the product. Without a scale of the result it is in floats."""
    x, y = a.T if transA else a, b.T if transB else b
    total = integer_matmul(x, y, zero_of(a_zero, a.device), zero_of(b_zero, b.device))
    total = total if c is None else total + c
    out = total.cast(dtypes.float32) * (a_scale.reshape(()) * b_scale * alpha)
    return out if scale is None else _result(out, scale, zero)


@op("MatMulIntegerToFloat", 1, domain=DOMAIN)
def matmul_integer_to_float(
    a: Tensor,
    b: Tensor,
    a_scale: Tensor,
    b_scale: Tensor,
    a_zero: Known = None,
    b_zero: Known = None,
    bias: Tensor | None = None,
) -> Tensor:
    out = matmul_integer(a, b, a_zero, b_zero).cast(a_scale.dtype) * (a_scale.reshape(()) * b_scale)
    return out if bias is None else out + bias


@op("DynamicQuantizeMatMul", 1, domain=DOMAIN)
def dynamic_quantize_matmul(
    a: Tensor, b: Tensor, b_scale: Tensor, b_zero: Known = None, bias: Tensor | None = None
) -> Tensor:
    x, scale, zero = dynamic_quantize_linear(a)
    assert isinstance(x, Tensor)  # uint8 is a dtype
    return matmul_integer_to_float(x, b, scale, b_scale, zero, b_zero, bias)


# --- weights in blocks of few bits


def unpack(codes: Tensor, bits: int) -> Tensor:
    """Bytes as numbers of 2, 4 or 8 bits along the last axis; the first number is in the low bits."""
    if bits not in (2, 4, 8):
        raise OnnxError(f"expected 2, 4 or 8 bits, got {bits}")
    if bits == 8:
        return codes
    mask = (1 << bits) - 1
    parts = [codes.rshift(shift).bitwise_and(mask) for shift in range(0, 8, bits)]
    return parts[0].stack(*parts[1:], dim=-1).flatten(-2)


@op("MatMulNBits", 1, domain=DOMAIN)
def matmul_nbits(
    a: Tensor,
    b: Tensor,
    scales: Tensor,
    zeros: Tensor | None = None,
    groups: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    K: int,
    N: int,
    accuracy_level: int = 0,
    bits: int = 4,
    block_size: int,
    weight_prepacked: int = 0,
) -> Tensor:
    """a @ b.T, whose rows are blocks of `block_size` numbers with a scale and a zero point each."""
    refuse("MatMulNBits with weight_prepacked", weight_prepacked)
    blocks = -(-K // block_size)
    codes = unpack(b.reshape(N, blocks, -1), bits).cast(scales.dtype)
    factors = scales.reshape(N, blocks)
    offsets: Any = float(1 << (bits - 1))
    if zeros is not None and zeros.dtype is dtypes.uint8:
        offsets = unpack(zeros.reshape(N, -1), bits)[:, :blocks].cast(scales.dtype)
    elif zeros is not None:
        offsets = zeros.reshape(N, blocks)
    if groups is None:
        offsets = offsets.unsqueeze(-1) if isinstance(offsets, Tensor) else offsets
        w = ((codes - offsets) * factors.unsqueeze(-1)).reshape(N, -1)[:, :K]
    else:
        places = groups[:K]
        offsets = offsets[:, places] if isinstance(offsets, Tensor) else offsets
        w = (codes.reshape(N, -1)[:, :K] - offsets) * factors[:, places]
    out = a.dot(w.T.cast(a.dtype))
    return out if bias is None else out + bias


@op("GatherBlockQuantized", 1, domain=DOMAIN)
def gather_block_quantized(
    data: Value,
    indices: Tensor,
    scales: Tensor,
    zeros: Value = None,
    *,
    bits: int = 4,
    block_size: int = 128,
    gather_axis: int = 0,
    quantize_axis: int = 1,
    device: str | None,
) -> Tensor:
    """Rows of a quantised table; a table of uint8 holds numbers of `bits` bits along its last axis."""
    table = _table(data, bits, device)
    at = quantize_axis % table.ndim
    offsets = 0 if element_of_value(data).name != "uint8" else 1 << (bits - 1)
    wide = scales.repeat_interleave(block_size, at).shrink(
        [(0, n) if i == at else None for i, n in enumerate(table.shape)]
    )
    zero: Any = offsets
    if zeros is not None:
        whole = _table(zeros, bits, device)[tuple(slice(0, n) for n in scales.shape)].repeat_interleave(
            block_size, at
        )
        zero = whole.shrink([(0, n) if i == at else None for i, n in enumerate(table.shape)]).cast(
            scales.dtype
        )
    axis = gather_axis % table.ndim
    numbers = (table.cast(scales.dtype) - zero) * wide
    return numbers[(slice(None),) * axis + (from_zero(indices, table.shape[axis]),)]


def _table(x: Value, bits: int, device: str | None) -> Tensor:
    if isinstance(x, Narrow):
        return x.tensor
    tensor = tensor_of(x, device)
    return unpack(tensor, bits) if tensor.dtype is dtypes.uint8 else tensor
