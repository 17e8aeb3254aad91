"""Layers: objects with Tensors as attributes that are called on Tensors.

No base class: `nn.state` finds the Tensors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from polygrad.dtype import dtypes, promote, sum_dtype
from polygrad.errors import ArgumentError
from polygrad.helpers import prod
from polygrad.tensor.tensor import Tensor


class Linear:
    """x @ weightᵀ + bias: (..., in_features) to (..., out_features).

    Both start uniform in ±1/sqrt(in_features).
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        bound = 1 / math.sqrt(in_features)
        self.weight = Tensor.uniform(out_features, in_features, low=-bound, high=bound)
        self.bias = Tensor.uniform(out_features, low=-bound, high=bound) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        return x.linear(self.weight.transpose(), self.bias)


class Conv2d:
    """conv2d with weight (out, in/groups, *kernel) and bias (out,); `padding` may be 'same' or 'valid'."""

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
    ) -> None:
        self.kernel_size = (kernel_size, kernel_size) if isinstance(kernel_size, int) else tuple(kernel_size)
        self.stride, self.dilation, self.groups = stride, dilation, groups
        self.padding = self._padding(padding)
        bound = 1 / math.sqrt(in_channels * prod(self.kernel_size) // groups)
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = Tensor.uniform(*shape, low=-bound, high=bound)
        self.bias = Tensor.uniform(out_channels, low=-bound, high=bound) if bias else None

    def _padding(self, padding: int | Sequence[int] | str) -> int | list[int]:
        if not isinstance(padding, str):
            return padding if isinstance(padding, int) else list(padding)
        if padding == "valid":
            return 0
        if padding != "same" or self.stride != 1:
            raise ArgumentError(
                f"Conv2d: expected padding 'same' (with stride 1) or 'valid', got {padding!r}"
            )
        dilations = (
            (self.dilation,) * len(self.kernel_size) if isinstance(self.dilation, int) else self.dilation
        )
        out: list[int] = []
        for d, k in zip(reversed(dilations), reversed(self.kernel_size), strict=True):  # the last axis first
            total = d * (k - 1)
            out += [total // 2, total - total // 2]
        return out

    def __call__(self, x: Tensor) -> Tensor:
        return x.conv2d(self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding)


class BatchNorm:
    """Batch normalisation over every axis but 1, with running statistics when not `Tensor.training`.

    16-bit floats are normalised in float32; the result has the dtype of x and weight together.
    """

    def __init__(
        self,
        sz: int,
        eps: float = 1e-05,
        affine: bool = True,
        track_running_stats: bool = True,
        momentum: float = 0.1,
    ) -> None:
        self.eps, self.track_running_stats, self.momentum = eps, track_running_stats, momentum
        self.weight = Tensor.ones(sz) if affine else None
        self.bias = Tensor.zeros(sz) if affine else None
        self.num_batches_tracked = Tensor.zeros(dtype=dtypes.int64, requires_grad=False)
        if track_running_stats:
            self.running_mean = Tensor.zeros(sz, requires_grad=False)
            self.running_var = Tensor.ones(sz, requires_grad=False)

    def __call__(self, x: Tensor) -> Tensor:
        wide = x.cast(sum_dtype(x.dtype))
        mean, var = self._statistics(wide)
        out = wide.batchnorm(self.weight, self.bias, mean, (var + self.eps).rsqrt())
        return out.cast(x.dtype if self.weight is None else promote(x.dtype, self.weight.dtype))

    def _statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if self.track_running_stats and not Tensor.training:
            return self.running_mean, self.running_var
        axes = [i for i in range(x.ndim) if i != 1]
        column = [1, x.shape[1], *[1] * (x.ndim - 2)]
        mean = x.mean(axes)
        var = (x - mean.reshape(column)).square().mean(axes)
        if self.track_running_stats and Tensor.training:
            n = x.numel() // x.shape[1]
            keep, new = 1 - self.momentum, self.momentum
            self.running_mean.assign(self.running_mean * keep + mean.detach() * new)
            self.running_var.assign(self.running_var * keep + var.detach() * (new * n / max(n - 1, 1)))
            self.num_batches_tracked.assign(self.num_batches_tracked + 1)
        return mean, var


BatchNorm2d = BatchNorm3d = BatchNorm


class LayerNorm:
    """Layer normalisation over the last axes, of shape `normalized_shape`, then weight and bias."""

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float = 1e-05, elementwise_affine: bool = True
    ) -> None:
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape, self.eps = shape, eps
        self.axis = tuple(range(-len(shape), 0))
        self.weight = Tensor.ones(*shape) if elementwise_affine else None
        self.bias = Tensor.zeros(*shape) if elementwise_affine else None

    def __call__(self, x: Tensor) -> Tensor:
        if x.shape[-len(self.normalized_shape) :] != self.normalized_shape:
            raise ArgumentError(f"LayerNorm: expected last axes {self.normalized_shape}, got shape {x.shape}")
        out = x.layernorm(self.axis, self.eps)
        return out if self.weight is None or self.bias is None else out * self.weight + self.bias


class RMSNorm:
    """x / sqrt(mean(x²) + eps) over the last axis, times weight. Computed in float32."""

    def __init__(self, dim: int, eps: float = 1e-06, elementwise_affine: bool = True) -> None:
        self.eps = eps
        self.weight = Tensor.ones(dim) if elementwise_affine else None

    def __call__(self, x: Tensor) -> Tensor:
        wide = x.float()
        out = (wide * (wide.square().mean(-1, keepdim=True) + self.eps).rsqrt()).cast(x.dtype)
        return out if self.weight is None else out * self.weight


class GroupNorm:
    """Normalisation of `num_groups` groups of the channels (axis 1), then weight and bias per channel."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-05, affine: bool = True) -> None:
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = Tensor.ones(num_channels) if affine else None
        self.bias = Tensor.zeros(num_channels) if affine else None

    def __call__(self, x: Tensor) -> Tensor:
        out = x.reshape(x.shape[0], self.num_groups, -1).layernorm(-1, self.eps).reshape(x.shape)
        if self.weight is None or self.bias is None:
            return out
        column = [1, -1, *[1] * (x.ndim - 2)]
        return out * self.weight.reshape(column) + self.bias.reshape(column)


class InstanceNorm(GroupNorm):
    """Normalisation of each channel of each image by itself."""

    def __init__(self, num_features: int, eps: float = 1e-05, affine: bool = True) -> None:
        super().__init__(num_features, num_features, eps, affine)


class Embedding:
    """Rows of a table by integer: (...) to (..., embed_size)."""

    def __init__(self, vocab_size: int, embed_size: int) -> None:
        self.vocab_sz, self.embed_sz = vocab_size, embed_size
        self.weight = Tensor.glorot_uniform(vocab_size, embed_size)

    def __call__(self, idx: Tensor) -> Tensor:
        return self.weight[idx]
