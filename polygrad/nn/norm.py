"""Normalisation layers. Statistics of 16-bit floats are computed in float32."""

from __future__ import annotations

from collections.abc import Sequence

from polygrad.dtype import dtypes, promote, sum_dtype
from polygrad.errors import ArgumentError, ShapeError
from polygrad.nn.layer import Layer
from polygrad.nn.parameter import parameter
from polygrad.tensor.core.base import DTypeLike
from polygrad.tensor.tensor import Tensor


class BatchNorm(Layer):
    """Batch normalisation over every axis but 1, with running statistics when not `Tensor.training`.

    The statistics never get a gradient, so an optimizer does not change them, even after `requires_grad_()`
    on everything that `nn.state.get_parameters` finds. 16-bit floats are normalised in float32; the result
    has the dtype that x and weight promote to.

    >>> nn.BatchNorm(3)(Tensor.rand(2, 3, 8, 8)).shape
    (2, 3, 8, 8)
    """

    def __init__(
        self,
        sz: int,
        eps: float = 1e-05,
        affine: bool = True,
        track_running_stats: bool = True,
        momentum: float = 0.1,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.eps, self.track_running_stats, self.momentum = eps, track_running_stats, momentum
        self.weight = parameter(Tensor.ones(sz), dtype) if affine else None
        self.bias = parameter(Tensor.zeros(sz), dtype) if affine else None
        self.num_batches_tracked = Tensor.zeros(dtype=dtypes.int64, requires_grad=False)
        if track_running_stats:
            self.running_mean = Tensor.zeros(sz, requires_grad=False)
            self.running_var = Tensor.ones(sz, requires_grad=False)

    def __call__(self, x: Tensor) -> Tensor:
        wide = x.cast(sum_dtype(x.dtype))
        if self.track_running_stats and not Tensor.training:
            mean, var = self.running_mean.detach(), self.running_var.detach()
            out = wide.batchnorm(self.weight, self.bias, mean, (var + self.eps).rsqrt())
        else:
            mean, var, n = self._moments(wide)
            if self.track_running_stats and Tensor.training:
                self._update_statistics(mean, var, n)
            out = self._normalize(wide, mean, (var + self.eps).rsqrt())
        return out.cast(x.dtype if self.weight is None else promote(x.dtype, self.weight.dtype))

    def _update_statistics(self, mean: Tensor, var: Tensor, n: int) -> None:
        """The running statistics after a batch with `n` elements of each channel."""
        keep, new = 1 - self.momentum, self.momentum
        with Tensor.no_grad():
            self.running_mean.assign(self.running_mean * keep + mean * new)
            self.running_var.assign(self.running_var * keep + var * (new * n / max(n - 1, 1)))
            self.num_batches_tracked.assign(self.num_batches_tracked + 1)

    def _normalize(self, x: Tensor, mean: Tensor, inverse_std: Tensor) -> Tensor:
        """`x` normalised by its own statistics, with weight and bias."""
        axes = tuple([i for i in range(x.ndim) if i != 1])
        vectors = [mean, inverse_std, *_affine(self)]
        mean, inverse_std, *affine = [_column(t, x.ndim) for t in vectors]
        return x._standardize(mean, inverse_std, axes, *affine)

    def _moments(self, x: Tensor) -> tuple[Tensor, Tensor, int]:
        """The mean and the biased variance of each channel, and of how many elements."""
        axes = [i for i in range(x.ndim) if i != 1]
        mean = x.mean(axes)
        return mean, (x - _column(mean, x.ndim)).square().mean(axes), x.numel() // x.shape[1]


BatchNorm2d = BatchNorm3d = BatchNorm


class LayerNorm(Layer):
    """Layer normalisation over the last axes, of shape `normalized_shape`, then weight and bias.

    >>> [round(x, 4) for x in nn.LayerNorm(3)(Tensor([1.0, 2.0, 3.0])).tolist()]
    [-1.2247, 0.0, 1.2247]
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-05,
        elementwise_affine: bool = True,
        dtype: DTypeLike | None = None,
    ) -> None:
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape, self.eps = shape, eps
        self.axis = tuple(range(-len(shape), 0))
        self.weight = parameter(Tensor.ones(*shape), dtype) if elementwise_affine else None
        self.bias = parameter(Tensor.zeros(*shape), dtype) if elementwise_affine else None

    def __call__(self, x: Tensor) -> Tensor:
        """Raises ShapeError unless the last axes of `x` are those of the layer."""
        _need_last(type(self).__name__, x, self.normalized_shape)
        out = x.layernorm(self.axis, self.eps)
        out = out if self.weight is None else out * self.weight
        return out if self.bias is None else out + self.bias


class LayerNorm2d(LayerNorm):
    """Layer normalisation over the channels (axis 1) of images (n, channels, h, w).

    >>> nn.LayerNorm2d(3)(Tensor.rand(2, 3, 8, 8)).shape
    (2, 3, 8, 8)
    """

    def __init__(
        self,
        normalized_shape: int,
        eps: float = 1e-05,
        elementwise_affine: bool = True,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine, dtype)

    def __call__(self, x: Tensor) -> Tensor:
        """Raises ShapeError for other axes or another number of channels."""
        if x.ndim != 4:
            raise ShapeError(f"LayerNorm2d: expected shape (n, channels, h, w), got {x.shape}")
        return super().__call__(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class RMSNorm(Layer):
    """x / sqrt(mean(x²) + eps) over the last axes, of shape `dim` (an int: one axis), times weight.

    Computed in float32 (Zhang and Sennrich, 2019).

    >>> [round(x, 4) for x in nn.RMSNorm(2)(Tensor([3.0, 4.0])).tolist()]
    [0.8485, 1.1314]
    """

    def __init__(
        self,
        dim: int | Sequence[int],
        eps: float = 1e-06,
        elementwise_affine: bool = True,
        dtype: DTypeLike | None = None,
    ) -> None:
        shape = (dim,) if isinstance(dim, int) else tuple(dim)
        self.normalized_shape, self.eps = shape, eps
        self.weight = parameter(Tensor.ones(*shape), dtype) if elementwise_affine else None

    def __call__(self, x: Tensor) -> Tensor:
        """Raises ShapeError unless the last axes of `x` are those of the layer."""
        _need_last("RMSNorm", x, self.normalized_shape)
        wide = x.cast(sum_dtype(x.dtype))
        axes = tuple(range(-len(self.normalized_shape), 0))
        out = (wide * (wide.square().mean(axes, keepdim=True) + self.eps).rsqrt()).cast(x.dtype)
        return out if self.weight is None else out * self.weight


class GroupNorm(Layer):
    """Normalisation of `num_groups` groups of the channels (axis 1), then weight and bias per channel.

    Raises ArgumentError unless the channels divide into that many groups.

    >>> nn.GroupNorm(2, 4)(Tensor.rand(2, 4, 8, 8)).shape
    (2, 4, 8, 8)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-05,
        affine: bool = True,
        dtype: DTypeLike | None = None,
    ) -> None:
        if num_groups < 1 or num_channels % num_groups:
            raise ArgumentError(
                f"{type(self).__name__}: expected {num_channels} channels in equal groups, got {num_groups}"
            )
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = parameter(Tensor.ones(num_channels), dtype) if affine else None
        self.bias = parameter(Tensor.zeros(num_channels), dtype) if affine else None

    def __call__(self, x: Tensor) -> Tensor:
        """(n, channels, ...) normalised. Raises ShapeError."""
        if x.ndim < 2 or x.shape[1] != self.num_channels:
            raise ShapeError(
                f"{type(self).__name__}: expected shape (n, {self.num_channels}, ...), got {x.shape}"
            )
        size = self.num_channels // self.num_groups
        groups = x._in_accumulation_dtype().reshape(x.shape[0], self.num_groups, size, -1)
        affine = [t.reshape(1, self.num_groups, size, 1) for t in _affine(self)]
        out = groups._layernorm((2, 3), self.eps, *affine).reshape(x.shape)
        return out.cast(x.dtype if self.weight is None else promote(x.dtype, self.weight.dtype))


class InstanceNorm(GroupNorm):
    """Normalisation of each channel of each image by itself.

    >>> nn.InstanceNorm(3)(Tensor.rand(2, 3, 8, 8)).shape
    (2, 3, 8, 8)
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-05,
        affine: bool = True,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(num_features, num_features, eps, affine, dtype)


def _affine(layer: BatchNorm | GroupNorm) -> list[Tensor]:
    """The weight and the bias of a layer that has them."""
    return [] if layer.weight is None or layer.bias is None else [layer.weight, layer.bias]


def _column(x: Tensor, ndim: int) -> Tensor:
    """A vector of channels, shaped to broadcast along axis 1 of `ndim`."""
    return x.reshape(1, -1, *[1] * (ndim - 2))


def _need_last(name: str, x: Tensor, shape: tuple[int, ...]) -> None:
    if x.shape[-len(shape) :] != shape:
        raise ShapeError(f"{name}: expected last axes {shape}, got shape {x.shape}")
