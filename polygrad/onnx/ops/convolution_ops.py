"""Convolutions and their transposes; columns back to images."""

from __future__ import annotations

from collections.abc import Sequence

from polygrad.dtype import dtypes
from polygrad.errors import OnnxError
from polygrad.helpers import ceildiv, prod
from polygrad.onnx.channels_last import convolution
from polygrad.onnx.integer_products import dequantized_conv
from polygrad.onnx.op_table import Ints, Quantizable, op
from polygrad.onnx.ops.vision_ops import linear_at
from polygrad.onnx.values import Dequantized, Scaled, floats_of
from polygrad.tensor.tensor import Tensor


def pairs_of(
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int] | None,
    auto_pad: str,
) -> list[tuple[int, int]]:
    """(before, after) of each spatial axis: `pads`, or by `auto_pad`. Raises OnnxError."""
    if auto_pad in ("NOTSET", ""):
        given = pads or [0] * (2 * len(kernel))
        if len(given) != 2 * len(kernel):
            raise OnnxError(f"expected {2 * len(kernel)} pads for {len(kernel)} spatial axes, got {given}")
        return list(zip(given[: len(kernel)], given[len(kernel) :]))
    if auto_pad == "VALID":
        return [(0, 0)] * len(kernel)
    if auto_pad not in ("SAME_UPPER", "SAME_LOWER"):
        raise OnnxError(f"expected auto_pad NOTSET, VALID, SAME_UPPER or SAME_LOWER, got {auto_pad!r}")
    out = []
    for n, k, s, d in zip(sizes, kernel, strides, dilations):
        total = max((ceildiv(n, s) - 1) * s + (k - 1) * d + 1 - n, 0)
        out.append(halves(total, auto_pad))
    return out


def halves(total: int, auto_pad: str) -> tuple[int, int]:
    """Padding in front and behind; the odd one is behind for SAME_UPPER."""
    small, large = total // 2, total - total // 2
    return (small, large) if auto_pad == "SAME_UPPER" else (large, small)


def flat(pairs: Sequence[tuple[int, int]]) -> list[int]:
    """Pairs as methods of Tensor take them: the last axis first."""
    return [n for pair in reversed(pairs) for n in pair]


@op("Conv", 1, 11, 22)
def conv(
    x: Quantizable,
    w: Quantizable,
    bias: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor | Scaled:
    """Of quantised operands by their integers (integer_products.py)."""
    image, weight = floats_of(x), floats_of(w)
    steps, spread, pairs = windows_of(image, weight, auto_pad, dilations, pads, strides)
    if isinstance(x, Dequantized) and isinstance(w, Dequantized):
        total = dequantized_conv(x, w, pairs=pairs, groups=group, strides=steps, dilations=spread)
        if total is not None:
            return total if bias is None else total.plus(_column(bias, total.tensor))
    out = convolution(image, weight, image.dtype, pairs=pairs, groups=group, strides=steps, dilations=spread)
    return with_bias(out, bias)


def with_bias(y: Tensor, bias: Tensor | None) -> Tensor:
    """y (n, channels, *spatial) and a number for each channel. Raises OnnxError."""
    return y if bias is None else y + _column(bias, y)


def _column(bias: Tensor, y: Tensor) -> Tensor:
    """A number for each channel of y (n, channels, *spatial), as it broadcasts. Raises OnnxError."""
    if bias.shape != (y.shape[1],):
        raise OnnxError(f"expected a bias of shape {(y.shape[1],)}, got {bias.shape}")
    return bias.reshape(-1, *[1] * (y.ndim - 2))


def windows_of(
    x: Tensor,
    w: Tensor,
    auto_pad: str,
    dilations: list[int] | None,
    pads: list[int] | None,
    strides: list[int] | None,
) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    """Strides, dilations and padding of the windows of a convolution."""
    kernel = w.shape[2:]
    steps, spread = strides or [1] * len(kernel), dilations or [1] * len(kernel)
    return steps, spread, pairs_of(x.shape[2:], kernel, steps, spread, pads, auto_pad)


@op("ConvTranspose", 1, 11, 22)
def conv_transpose(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    output_padding: list[int] | None = None,
    output_shape: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    kernel, sizes = w.shape[2:], x.shape[2:]
    dims = len(kernel)
    steps, spread, extra = strides or [1] * dims, dilations or [1] * dims, output_padding or [0] * dims
    whole = [(n - 1) * s + (k - 1) * d + 1 for n, k, s, d in zip(sizes, kernel, steps, spread)]
    if output_shape is None and auto_pad.startswith("SAME"):
        output_shape = [n * s for n, s in zip(sizes, steps)]
    if output_shape is not None:
        totals = [max(n + e - m, 0) for n, e, m in zip(whole, extra, output_shape[-dims:])]
        pairs = [halves(total, auto_pad) for total in totals]
        extra = [m - n + lo + hi for n, m, (lo, hi) in zip(whole, output_shape[-dims:], pairs)]
    else:
        pairs = pairs_of(sizes, kernel, steps, spread, pads, auto_pad)
    out = x.conv_transpose2d(w, None, group, steps, spread)
    out = out.pad([None, None, *[(-lo, e - hi) for (lo, hi), e in zip(pairs, extra)]])
    return with_bias(out, bias)


@op("Col2Im", 18)
def col2im(
    x: Tensor,
    image_shape: Ints,
    block_shape: Ints,
    *,
    dilations: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    """The sum of blocks at their places: a transposed convolution whose kernels pick one element each."""
    dims = len(image_shape)
    steps, spread = strides or [1] * dims, dilations or [1] * dims
    pairs = pairs_of(image_shape, block_shape, steps, spread, pads, "NOTSET")
    counts = [
        (n + lo + hi - (k - 1) * d - 1) // s + 1
        for n, k, s, d, (lo, hi) in zip(image_shape, block_shape, steps, spread, pairs)
    ]
    size = prod(block_shape)
    channels = x.shape[1] // size
    picks = Tensor.eye(size, dtype=x.dtype).reshape(size, 1, *block_shape).repeat(channels, 1, *[1] * dims)
    return conv_transpose(
        x.reshape(x.shape[0], x.shape[1], *counts),
        picks,
        dilations=spread,
        group=channels,
        pads=[lo for lo, _ in pairs] + [hi for _, hi in pairs],
        strides=steps,
        output_shape=None,
        output_padding=[
            n + lo + hi - (c - 1) * s - (k - 1) * d - 1
            for n, k, s, d, c, (lo, hi) in zip(image_shape, block_shape, steps, spread, counts, pairs)
        ],
    )


@op("DeformConv", 19, 22)
def deform_conv(
    x: Tensor,
    w: Tensor,
    offset: Tensor,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    offset_group: int = 1,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    """A convolution whose taps are moved by `offset`, and read between the elements (Dai et al., 2017)."""
    kernel, sizes, out = w.shape[2:], x.shape[2:], offset.shape[2:]
    dims, taps = len(kernel), prod(kernel)
    steps, spread = strides or [1] * dims, dilations or [1] * dims
    pairs = pairs_of(sizes, kernel, steps, spread, pads, "NOTSET")
    batch = x.shape[0] * offset_group
    offsets = offset.reshape(batch, *kernel, dims, *out)
    places = []
    for i, (s, d, (lo, _)) in enumerate(zip(steps, spread, pairs)):
        tap = Tensor.arange(kernel[i]).reshape([-1 if j == i else 1 for j in range(2 * dims)]) * d
        start = Tensor.arange(out[i]).reshape([-1 if j == dims + i else 1 for j in range(2 * dims)]) * s
        places.append(offsets.select(1 + dims, i) + (tap + start - lo).cast(x.dtype))
    read = linear_at(x.reshape(batch, -1, *sizes), places).reshape(x.shape[0], offset_group, -1, taps, *out)
    if mask is not None:
        read = read * mask.reshape(x.shape[0], offset_group, 1, taps, *out)
    read = read.reshape(x.shape[0], group, -1, prod(out))
    y = w.reshape(group, w.shape[0] // group, -1).dot(read).reshape(x.shape[0], w.shape[0], *out)
    return with_bias(y, bias)


@op("CausalConvWithState", 27)
def causal_conv_with_state(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    past: Tensor | None = None,
    *,
    activation: str = "none",
) -> tuple[Tensor, Tensor]:
    """A convolution of each channel by itself, over what came before; also what the next step needs of it."""
    if activation not in ("none", "silu", "swish"):
        raise OnnxError(f"expected activation none, silu or swish, got {activation!r}")
    kept = w.shape[2] - 1
    whole = x.pad([None, None, (kept, 0)]) if past is None else past.cat(x, dim=2)
    wide = whole.cast(dtypes.float32) if x.dtype.itemsize < 4 else whole
    y = wide.conv2d(w.cast(wide.dtype), None if bias is None else bias.cast(wide.dtype), groups=x.shape[1])
    y = y.cast(x.dtype) if activation == "none" else y.silu().cast(x.dtype)
    return y, whole.shrink([None, None, (whole.shape[2] - kept, whole.shape[2])])
