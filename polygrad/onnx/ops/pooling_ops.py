"""Pooling over windows, and over all of an image."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from polygrad.dtype import dtypes
from polygrad.errors import OnnxError
from polygrad.helpers import ceildiv, prod
from polygrad.onnx.channels_last import store_image
from polygrad.onnx.op_table import Ints, op
from polygrad.onnx.ops.convolution_ops import flat, pairs_of
from polygrad.tensor.tensor import Tensor


def _geometry(
    x: Tensor,
    kernel: Sequence[int],
    strides: list[int] | None,
    dilations: list[int] | None,
    pads: list[int] | None,
    auto_pad: str,
) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    """Strides, dilations and pads of each spatial axis."""
    dims = len(kernel)
    if dims != x.ndim - 2:
        raise OnnxError(f"expected a kernel of {x.ndim - 2} sizes for shape {x.shape}, got {list(kernel)}")
    steps, spread = strides or [1] * dims, dilations or [1] * dims
    return steps, spread, pairs_of(x.shape[2:], kernel, steps, spread, pads, auto_pad)


def _reached(
    x: Tensor, kernel: Sequence[int], spread: Sequence[int], pairs: Sequence[tuple[int, int]]
) -> tuple[int, ...]:
    """The kernel, cut to the size of the padded image. With ceil_mode a first window may reach beyond the
    image, where nothing is counted: some exporters write a pooling of all positions with a kernel of any
    size."""
    sizes = zip(kernel, spread, x.shape[2:], pairs)
    return tuple(
        [k if d > 1 or not isinstance(n, int) else min(k, n + lo + hi) for k, d, n, (lo, hi) in sizes]
    )


@op("MaxPool", 8, 10, 11, 12, 22)
def max_pool(
    x: Tensor,
    *,
    kernel_shape: list[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: list[int] | None = None,
    pads: list[int] | None = None,
    storage_order: int = 0,
    strides: list[int] | None = None,
    outputs: int,
) -> tuple[Tensor, ...]:
    """Positions count over the whole tensor, column by column if `storage_order` is set."""
    steps, spread, pairs = _geometry(x, kernel_shape, strides, dilations, pads, auto_pad)
    if prod(kernel_shape) > prod(steps):  # windows overlap: what computes x is not repeated
        x = store_image(x)
    kernel = _reached(x, kernel_shape, spread, pairs) if ceil_mode else tuple(kernel_shape)
    options = (kernel, tuple(steps), tuple(spread), flat(pairs), bool(ceil_mode))
    if outputs < 2:
        return (x.max_pool2d(*options),)
    top, places = x.max_pool2d(*options, return_indices=True)
    sizes = x.shape[2:]
    places = places.cast(dtypes.int64)
    if storage_order:
        at, factor, column = places, 1, places * 0
        digits = []
        for n in reversed(sizes):
            digits.append(at % n)
            at = at // n
        for n, digit in zip(sizes, reversed(digits)):
            column, factor = column + digit * factor, factor * n
        places = column
    images = Tensor.arange(prod(x.shape[:2]), dtype=dtypes.int64) * prod(sizes)
    return top, places + images.reshape(*x.shape[:2], *[1] * len(sizes))


@op("MaxPool", 1)
def max_pool_1(
    x: Tensor,
    *,
    kernel_shape: list[int],
    auto_pad: str = "NOTSET",
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    return max_pool(
        x, kernel_shape=kernel_shape, auto_pad=auto_pad, pads=pads, strides=strides, outputs=1
    )[0]  # fmt: skip


@op("AveragePool", 7, 10, 11, 19, 22)
def average_pool(
    x: Tensor,
    *,
    kernel_shape: list[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    steps, spread, pairs = _geometry(x, kernel_shape, strides, dilations, pads, auto_pad)
    kernel = _reached(x, kernel_shape, spread, pairs) if ceil_mode else tuple(kernel_shape)
    return x.avg_pool2d(
        kernel,
        tuple(steps),
        tuple(spread),
        flat(pairs),
        bool(ceil_mode),
        bool(count_include_pad),
    )


@op("AveragePool", 1)
def average_pool_1(
    x: Tensor,
    *,
    kernel_shape: list[int],
    auto_pad: str = "NOTSET",
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    return average_pool(
        x, kernel_shape=kernel_shape, auto_pad=auto_pad, pads=pads, strides=strides, count_include_pad=1
    )


@op("LpPool", 2, 11, 18, 22)
def lp_pool(
    x: Tensor,
    *,
    kernel_shape: list[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: list[int] | None = None,
    p: int = 2,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    steps, spread, pairs = _geometry(x, kernel_shape, strides, dilations, pads, auto_pad)
    padded = x.abs().pow(p).pad([None, None, *pairs])
    if ceil_mode:  # a last partial window counts, unless it is all padding
        more = [_missing(n, k, s, d) for n, k, s, d in zip(padded.shape[2:], kernel_shape, steps, spread)]
        padded = padded.pad([None, None, *[(0, n) for n in more]])
    windows = padded.pool(tuple(kernel_shape), tuple(steps), tuple(spread))
    return windows.sum(tuple(range(-len(kernel_shape), 0))).pow(1.0 / p).cast(x.dtype)


def _missing(n: int, k: int, stride: int, dilation: int) -> int:
    span = (k - 1) * dilation + 1
    count = ceildiv(n - span, stride) + 1
    count -= (count - 1) * stride >= n
    return max((count - 1) * stride + span - n, 0)


@op("LpPool", 1)
def lp_pool_1(
    x: Tensor,
    *,
    kernel_shape: list[int],
    auto_pad: str = "NOTSET",
    p: float = 2.0,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    return lp_pool(x, kernel_shape=kernel_shape, auto_pad=auto_pad, p=int(p), pads=pads, strides=strides)


# --- whole images


def _global(function: Callable[[Tensor, tuple[int, ...]], Tensor]) -> Callable[..., Tensor]:
    def apply(x: Tensor) -> Tensor:
        return function(x, tuple(range(2, x.ndim)))

    return apply


op("GlobalAveragePool", 1, 22)(_global(lambda x, axes: x.mean(axes, keepdim=True)))
op("GlobalMaxPool", 1, 22)(_global(lambda x, axes: x.max(axes, keepdim=True)))


@op("GlobalLpPool", 1, 2, 22)
def global_lp_pool(x: Tensor, *, p: float = 2) -> Tensor:
    return x.norm(float(p), tuple(range(2, x.ndim)), keepdim=True)


@op("MaxUnpool", 9, 11, 22)
def max_unpool(
    x: Tensor,
    indices: Tensor,
    output_shape: Ints | None = None,
    *,
    kernel_shape: list[int],
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    """The elements of x at `indices`, which count over the pooling's input, and zeros elsewhere."""
    dims = len(kernel_shape)
    steps, edges = strides or [1] * dims, pads or [0] * (2 * dims)
    sizes = [
        (n - 1) * s + k - edges[i] - edges[i + dims]
        for i, (n, s, k) in enumerate(zip(x.shape[2:], steps, kernel_shape))
    ]
    inferred = (*x.shape[:2], *sizes)
    out = Tensor.zeros(prod(inferred), dtype=x.dtype)
    out = out.scatter(0, indices.flatten(), x.flatten()).reshape(inferred)
    return out if output_shape is None else out.pad([(0, n - m) for n, m in zip(output_shape, inferred)])
