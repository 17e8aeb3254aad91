"""Convolutions and transposed convolutions over one, two and three axes.

Images are (batch, channels, *spatial). An image without its batch axis gives a result without one, as in
torch.
"""

from __future__ import annotations

import math
from typing import Any

from polygrad.errors import ArgumentError, ShapeError
from polygrad.helpers import prod
from polygrad.nn.layer import Layer
from polygrad.nn.parameter import parameter
from polygrad.tensor.core.base import DTypeLike
from polygrad.tensor.tensor import Tensor


def _each(what: str, value: Any, dims: int, least: int) -> tuple[int, ...]:
    """An int, or one for each of `dims` axes, as a tuple. Raises ArgumentError."""
    values = (value,) * dims if isinstance(value, int) else tuple(value)
    if len(values) != dims or not all(isinstance(n, int) and n >= least for n in values):
        raise ArgumentError(f"{what}: expected an int of at least {least}, or {dims} of them, got {value!r}")
    return values


class _Convolution(Layer):
    """The base of convolutions. `_dims`: the number of spatial axes; None: as many as `kernel_size` has."""

    _dims: int | None = None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: Any,
        padding: Any,
        dilation: Any,
        groups: int,
        bias: bool,
        dtype: DTypeLike | None,
        transposed: bool = False,
    ) -> None:
        name = type(self).__name__
        dims = self._dims or (2 if isinstance(kernel_size, int) else len(kernel_size))
        self.kernel_size = _each(f"{name} kernel_size", kernel_size, dims, 1)
        for channel_name, n in (("in_channels", in_channels), ("out_channels", out_channels)):
            if groups < 1 or n < 1 or n % groups:
                raise ArgumentError(f"{name}: expected {channel_name} in {groups} equal groups, got {n}")
        _each(f"{name} stride", stride, dims, 1)
        _each(f"{name} dilation", dilation, dims, 1)
        self.stride, self.dilation, self.groups = stride, dilation, groups
        self.padding = _padding(name, padding, self.kernel_size, stride, dilation)
        outer, inner = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        shape = (outer, inner // groups, *self.kernel_size)
        bound = 1 / math.sqrt(prod(shape[1:]))
        self.weight = parameter(Tensor.uniform(*shape, low=-bound, high=bound), dtype)
        self.bias = parameter(Tensor.uniform(out_channels, low=-bound, high=bound), dtype) if bias else None

    def _add_batch_axis(self, x: Tensor) -> Tensor:
        """`x` with a batch axis. Raises ShapeError for another number of axes."""
        dims = len(self.kernel_size)
        if x.ndim not in (dims + 1, dims + 2):
            raise ShapeError(
                f"{type(self).__name__}: expected (batch, channels, *spatial) or (channels, *spatial) with "
                f"{dims} spatial axes, got shape {x.shape}"
            )
        return x if x.ndim == dims + 2 else x.unsqueeze(0)


def _padding(name: str, padding: Any, kernel: tuple[int, ...], stride: Any, dilation: Any) -> int | list[int]:
    if not isinstance(padding, str):
        sizes = [padding] if isinstance(padding, int) else list(padding)
        if any(not isinstance(p, int) or p < 0 for p in sizes):
            raise ArgumentError(f"{name} padding: expected ints of at least 0, got {padding!r}")
        return padding if isinstance(padding, int) else sizes
    if padding == "valid":
        return 0
    strides = (stride,) if isinstance(stride, int) else tuple(stride)
    if padding != "same" or any(s != 1 for s in strides):
        raise ArgumentError(f"{name}: expected padding 'same' (with stride 1) or 'valid', got {padding!r}")
    out: list[int] = []
    for d, k in zip(_each(name, dilation, len(kernel), 1)[::-1], kernel[::-1], strict=True):
        total = d * (k - 1)  # axes are in the order of torch's `pad`, the last one first
        out += [total // 2, total - total // 2]
    return out


class Conv2d(_Convolution):
    """conv2d with weight (out, in/groups, *kernel) and bias (out,); `padding` may be 'same' or 'valid'.

    As many spatial axes as `kernel_size` has ints; an int is two. Both start uniform in ±1/sqrt(fan in).
    Raises ArgumentError for invalid sizes.

    >>> nn.Conv2d(3, 16, 3, padding='same')(Tensor.rand(2, 3, 8, 8)).shape
    (2, 16, 8, 8)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: Any = 1,
        padding: int | tuple[int, ...] | str = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, dtype
        )

    def __call__(self, x: Tensor) -> Tensor:
        """(n, in, *spatial), or (in, *spatial), convolved. Raises ShapeError."""
        out = self._add_batch_axis(x).conv2d(
            self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding
        )
        return out if x.ndim == out.ndim else out.squeeze(0)


class Conv1d(Conv2d):
    """Conv2d over one axis: (n, in, length) to (n, out, new length); weight (out, in/groups, kernel).

    >>> nn.Conv1d(3, 16, 5)(Tensor.rand(2, 3, 20)).shape
    (2, 16, 16)
    """

    _dims = 1


class Conv3d(Conv2d):
    """Conv2d over three axes: (n, in, d, h, w); weight (out, in/groups, kd, kh, kw).

    >>> nn.Conv3d(3, 4, 2)(Tensor.rand(1, 3, 5, 5, 5)).shape
    (1, 4, 4, 4, 4)
    """

    _dims = 3


class ConvTranspose2d(_Convolution):
    """The transpose (gradient) of Conv2d, which makes images larger: weight (in, out/groups, *kernel).

    The new size of each spatial axis is (size - 1) * stride - 2 * padding + dilation * (kernel - 1) +
    output_padding + 1. Raises ArgumentError, also for an output_padding that is smaller than neither stride
    nor dilation.

    >>> nn.ConvTranspose2d(3, 16, 2, stride=2)(Tensor.rand(2, 3, 8, 8)).shape
    (2, 16, 16, 16)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: Any = 1,
        padding: int | tuple[int, ...] | str = 0,
        output_padding: int | tuple[int, ...] = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: DTypeLike | None = None,
    ) -> None:
        name = type(self).__name__
        if isinstance(padding, str):
            raise ArgumentError(f"{name}: expected padding in ints, got {padding!r}")
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, dtype, True
        )
        dims = len(self.kernel_size)
        limits = zip(_each(name, stride, dims, 1), _each(name, dilation, dims, 1), strict=True)
        extra = _each(f"{name} output_padding", output_padding, dims, 0)
        if any(n >= max(s, d) for n, (s, d) in zip(extra, limits, strict=True)):
            raise ArgumentError(
                f"{name}: expected output_padding under stride {stride} or dilation {dilation}, got "
                f"{output_padding}"
            )
        self.output_padding = output_padding

    def __call__(self, x: Tensor) -> Tensor:
        """(n, in, *spatial), or (in, *spatial), to as many out channels. Raises ShapeError."""
        image = self._add_batch_axis(x)
        if image.shape[1] != self.weight.shape[0]:
            raise ShapeError(
                f"{type(self).__name__}: expected {self.weight.shape[0]} channels, got shape {x.shape}"
            )
        out = image.conv_transpose2d(
            self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding, self.output_padding
        )
        return out if x.ndim == out.ndim else out.squeeze(0)


class ConvTranspose1d(ConvTranspose2d):
    """ConvTranspose2d over one axis: (n, in, length); weight (in, out/groups, kernel).

    >>> nn.ConvTranspose1d(3, 16, 2, stride=2)(Tensor.rand(2, 3, 8)).shape
    (2, 16, 16)
    """

    _dims = 1


class ConvTranspose3d(ConvTranspose2d):
    """ConvTranspose2d over three axes: (n, in, d, h, w); weight (in, out/groups, kd, kh, kw).

    >>> nn.ConvTranspose3d(3, 4, 2, stride=2)(Tensor.rand(1, 3, 4, 4, 4)).shape
    (1, 4, 8, 8, 8)
    """

    _dims = 3
