"""Products and convolutions of quantised numbers, as products of their integers.

    sum(a_scale * (a - a_zero) * b_scale * (b - b_zero))
        = a_scale * b_scale * (sum(a * b) - a_zero * sum(b) - b_zero * sum(a) + terms * a_zero * b_zero)

The sums are of integers of 8 bits, in int32: they are exact, and machines multiply four at once (Ops.DOT).
The one rounding is where the total meets the scales. The float form on the left rounds each product and each
partial sum, so the two differ in the last bits. onnxruntime does the same with QDQ models.

The scale of the left operand, or of an image, is of the whole tensor; that of the right one, or of a
kernel, may be of each column, or output channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from polygrad.dtype import dtypes
from polygrad.helpers import prod
from polygrad.onnx.channels_last import Pairs, convolution
from polygrad.onnx.values import Constant, Dequantized, Scaled, Value, tensor_of
from polygrad.tensor.tensor import Tensor

Zero: TypeAlias = int | Tensor  # known on the host, or in int32
_LARGEST = 255 * 255  # of a product of two integers without their zero points
MOST_TERMS = (1 << 31) // _LARGEST  # of a sum that fits int32
_EXACT_IN_FLOATS = (1 << 24) // _LARGEST  # of a sum all of whose parts are integers that float32 has


def zero_of(value: Value, device: str | None) -> Zero:
    """A zero point; an int where all its elements are known to be the same, else a Tensor on `device`, with
    no axes if it has one element. None is 0."""
    if value is None:
        return 0
    if isinstance(value, Constant) and len(set(value.numbers)) == 1:
        return int(value.numbers[0])
    zero = tensor_of(value, device).cast(dtypes.int32)
    return zero.reshape(()) if zero.numel() == 1 else zero


def _is_zero(zero: Zero) -> bool:
    return isinstance(zero, int) and zero == 0


def integer_matmul(a: Tensor, b: Tensor, a_zero: Zero, b_zero: Zero) -> Tensor:
    """(a - a_zero) @ (b - b_zero) in int32. A zero point is a number, or has one for each row of a, as a
    column, or for each column of b, as a row. An operand of one axis is a row on the left, and a column on
    the right."""
    x, y = a.cast(dtypes.int32), b.cast(dtypes.int32)
    x, y = x.unsqueeze(0) if a.ndim == 1 else x, y.unsqueeze(-1) if b.ndim == 1 else y
    out = x.dot(y)
    if not _is_zero(a_zero):
        out = out - a_zero * y.sum(-2, keepdim=True)
    if not _is_zero(b_zero):
        out = out - x.sum(-1, keepdim=True) * b_zero
        if not _is_zero(a_zero):
            out = out + a_zero * b_zero * a.shape[-1]
    out = out.squeeze(-1) if b.ndim == 1 else out
    return out.squeeze(-1 if b.ndim == 1 else -2) if a.ndim == 1 else out


def integer_conv(
    x: Tensor,
    w: Tensor,
    x_zero: Zero,
    w_zero: Zero,
    *,
    pairs: Pairs,
    groups: int,
    strides: Sequence[int],
    dilations: Sequence[int],
) -> Tensor:
    """The convolution of x - x_zero and w - w_zero in int32; padding is 0. x_zero is a number, w_zero too or
    a vector of output channels. `pairs`: (before, after) of each spatial axis."""
    padded = _padded(x, x_zero, [(0, 0), (0, 0), *pairs])
    steps, spread = list(strides), list(dilations)
    column = (-1, *[1] * (x.ndim - 2))
    out = convolution(
        padded, w, dtypes.int32, pairs=[(0, 0)] * len(pairs), groups=groups,
        strides=steps, dilations=spread,
    )  # fmt: skip
    if not _is_zero(x_zero):
        sums = w.cast(dtypes.int32).sum(tuple(range(1, w.ndim)))
        out = out - (sums * x_zero).reshape(column)
    if not _is_zero(w_zero):
        by_group = padded.cast(dtypes.int32).reshape(x.shape[0], groups, w.shape[1], *padded.shape[2:]).sum(2)
        ones = Tensor.ones(groups, 1, *w.shape[2:], dtype=dtypes.int32, device=x.device)
        sums = by_group.conv2d(ones, groups=groups, stride=steps, dilation=spread).repeat_interleave(
            w.shape[0] // groups, 1
        )
        zeros = w_zero if isinstance(w_zero, int) else w_zero.reshape(column)
        out = out - sums * zeros
        if not _is_zero(x_zero):
            out = out + zeros * x_zero * prod(w.shape[1:])
    return out


def _padded(x: Tensor, fill: Zero, pairs: Pairs) -> Tensor:
    """Integers with a zero point around them."""
    if not any(n for pair in pairs for n in pair):
        return x
    if isinstance(fill, int):
        return x.pad(pairs, value=fill)
    is_element = Tensor.ones(x.shape, dtype=dtypes.bool, device=x.device).pad(pairs)
    return is_element.where(x.pad(pairs), fill.reshape(()).cast(x.dtype))


# --- of what DequantizeLinear gives


def dequantized_matmul(a: Dequantized, b: Dequantized) -> Scaled | None:
    """a @ b in floats, by a product of integers; None where it cannot be."""
    x, y = a.codes, b.codes
    if not x.ndim or not y.ndim or not _fits(x.shape[-1]) or not a.is_uniform:
        return None
    if not b.is_uniform and (y.ndim < 2 or b.axis != y.ndim - 1):
        return None
    scale = a.scale.reshape(()) * (b.scale.reshape(()) if b.is_uniform else b.scale)
    return Scaled.of(integer_matmul(x, y, zero_of(a.zero, x.device), zero_of(b.zero, y.device)), scale)


def dequantized_conv(
    x: Dequantized,
    w: Dequantized,
    *,
    pairs: Pairs,
    groups: int,
    strides: Sequence[int],
    dilations: Sequence[int],
) -> Scaled | None:
    """The convolution in floats, by one of integers; None where it cannot be.

    Of few terms, as those of one channel are, float32 has all sums exactly, and no words of four are there.
    """
    terms = prod(w.codes.shape[1:])
    if not _fits(terms) or not x.is_uniform or not (w.is_uniform or w.axis == 0):
        return None
    column = (-1, *[1] * (x.codes.ndim - 2))
    scale = x.scale.reshape(()) * (w.scale.reshape(()) if w.is_uniform else w.scale.reshape(column))
    x_zero, w_zero = zero_of(x.zero, x.codes.device), zero_of(w.zero, w.codes.device)
    if w.codes.shape[1] == 1 and terms <= _EXACT_IN_FLOATS:
        by_channel = w_zero if isinstance(w_zero, int) else w_zero.reshape(-1, *[1] * (x.codes.ndim - 1))
        image, kernel = (_floats(codes, zero) for codes, zero in ((x.codes, x_zero), (w.codes, by_channel)))
        total = convolution(
            image, kernel, dtypes.float32, pairs=pairs, groups=groups, strides=strides, dilations=dilations
        )
        return Scaled.of(total, scale)
    total = integer_conv(
        x.codes, w.codes, x_zero, w_zero, pairs=pairs, groups=groups, strides=strides, dilations=dilations
    )
    return Scaled.of(total, scale)


def _fits(terms: Any) -> bool:
    return isinstance(terms, int) and terms <= MOST_TERMS


def _floats(codes: Tensor, zero: Zero) -> Tensor:
    out = codes.cast(dtypes.int32)
    return (out if _is_zero(zero) else out - zero).cast(dtypes.float32)
