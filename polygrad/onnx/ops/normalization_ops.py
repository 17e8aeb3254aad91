"""Normalisation and dropout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polygrad.dtype import dtypes
from polygrad.onnx.elements import element_of
from polygrad.onnx.op_table import Float, op
from polygrad.onnx.values import Value, scalar_of
from polygrad.tensor.tensor import Tensor


def _column(x: Tensor, rank: int) -> Tensor:
    """A vector of channels, shaped to broadcast along axis 1."""
    return x.reshape(-1, *[1] * (rank - 2))


@op("BatchNormalization", 14, 15)
def batch_normalization(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    var: Tensor,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> tuple[Tensor, ...]:
    rank = x.ndim
    if not training_mode:
        factor = (var + epsilon).rsqrt() * scale.cast(var.dtype)
        y = (x - _column(mean, rank)) * _column(factor, rank) + _column(bias, rank)
        return (y.cast(x.dtype), mean, var)
    axes = (0, *range(2, rank))
    own_mean, own_var = x.mean(axes), x.var(axes, correction=0)
    y = (x - _column(own_mean, rank)) * _column((own_var + epsilon).rsqrt() * scale, rank) + _column(
        bias, rank
    )
    running = [old * momentum + new * (1.0 - momentum) for old, new in ((mean, own_mean), (var, own_var))]
    return (y.cast(x.dtype), *running)


@op("BatchNormalization", 7, 9)
def batch_normalization_7(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    var: Tensor,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    spatial: int = 1,
) -> tuple[Tensor, ...]:
    """With more than one output it is in training mode."""
    if not spatial:
        return ((x - mean) * (var + epsilon).rsqrt() * scale + bias,)
    return batch_normalization(x, scale, bias, mean, var, epsilon=epsilon, momentum=momentum)


@op("BatchNormalization", 1, 6)
def batch_normalization_1(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    var: Tensor,
    *,
    epsilon: float = 1e-5,
    is_test: int = 0,
    momentum: float = 0.9,
    spatial: int = 1,
    consumed_inputs: Any = None,
) -> tuple[Tensor, ...]:
    return batch_normalization_7(
        x, scale, bias, mean, var, epsilon=epsilon, momentum=momentum, spatial=spatial
    )


def _standardize(x: Tensor, axes: tuple[int, ...], epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    """x with mean 0 and variance 1, the mean, and one over the deviation."""
    mean = x.mean(axes, keepdim=True)
    inverse = ((x - mean).square().mean(axes, keepdim=True) + epsilon).rsqrt()
    return x.layernorm(axes, epsilon), mean, inverse


@op("InstanceNormalization", 1, 6, 22)
def instance_normalization(
    x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5, consumed_inputs: Any = None
) -> Tensor:
    y, _, _ = _standardize(x, tuple(range(2, x.ndim)), epsilon)
    return y * _column(scale, x.ndim) + _column(bias, x.ndim)


@op("LayerNormalization", 17)
def layer_normalization(
    x: Tensor,
    scale: Tensor,
    bias: Tensor | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> tuple[Tensor, Tensor, Tensor]:
    kind = element_of(stash_type, "stash_type").dtype
    wide = x.cast(kind) if x.dtype.itemsize < kind.itemsize else x
    y, mean, inverse = _standardize(wide, tuple(range(x._axis(axis), x.ndim)), epsilon)
    y = y.cast(x.dtype) * scale
    return y if bias is None else y + bias, mean.cast(kind), inverse.cast(kind)


@op("RMSNormalization", 23)
def rms_normalization(
    x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Tensor:
    kind = element_of(stash_type, "stash_type").dtype
    wide = x.cast(kind) if x.dtype.itemsize < kind.itemsize else x
    axes = tuple(range(x._axis(axis), x.ndim))
    y = wide * (wide.square().mean(axes, keepdim=True) + epsilon).rsqrt()
    return y.cast(x.dtype) * scale


def _by_group(x: Tensor, num_groups: int, epsilon: float) -> Tensor:
    parts = x.reshape(x.shape[0], num_groups, -1)
    return _standardize(parts, (2,), epsilon)[0].reshape(x.shape)


@op("GroupNormalization", 21)
def group_normalization(
    x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5, num_groups: int, stash_type: int = 1
) -> Tensor:
    kind = element_of(stash_type, "stash_type").dtype
    wide = x.cast(kind) if x.dtype.itemsize < kind.itemsize else x
    return _by_group(wide, num_groups, epsilon).cast(x.dtype) * _column(scale, x.ndim) + _column(bias, x.ndim)


@op("GroupNormalization", 18)
def group_normalization_18(
    x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5, num_groups: int
) -> Tensor:
    """Scale and bias are of groups, not of channels."""
    size = x.shape[1] // num_groups
    scale, bias = scale.repeat_interleave(size), bias.repeat_interleave(size)
    return group_normalization(x, scale, bias, epsilon=epsilon, num_groups=num_groups)


@op("LRN", 1, 13)
def lrn(x: Tensor, *, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0, size: int) -> Tensor:
    """Normalisation by the squares of the surrounding channels (Krizhevsky et al., 2012)."""
    channels = x.shape[1]
    before, after = min((size - 1) // 2, channels), min(size - 1 - (size - 1) // 2, channels)
    squares = x.square().pad([(before, after) if i == 1 else None for i in range(x.ndim)])
    total = squares.unfold(1, before + after + 1, 1).sum(-1)
    return x / (total * (alpha / size) + bias).pow(beta)


@op("LpNormalization", 1, 22)
def lp_normalization(x: Tensor, *, axis: int = -1, p: int = 2) -> Tensor:
    norm = x.norm(float(p), axis, keepdim=True)
    is_zero = norm.eq(0)
    return is_zero.where(0.0, x / is_zero.where(1.0, norm)).cast(x.dtype)


@op("MeanVarianceNormalization", 9, 13)
def mean_variance_normalization(x: Tensor, *, axes: Sequence[int] = (0, 2, 3)) -> Tensor:
    chosen = tuple(axes)
    centred = x - x.mean(chosen, keepdim=True)
    return centred / (centred.square().mean(chosen, keepdim=True).sqrt() + 1e-9)


# --- dropout


@op("Dropout", 12, 13, 22)
def dropout(
    x: Tensor, ratio: Float | None = None, training_mode: Value = None, *, seed: int | None = None
) -> tuple[Tensor, Tensor]:
    """In training mode, the mask uses our own random numbers, whose seed is `Tensor.manual_seed`, not
    `seed`."""
    share = 0.5 if ratio is None else ratio
    if training_mode is None or not scalar_of(training_mode) or not share:
        return x, Tensor.ones(x.shape, dtype=dtypes.bool)
    kept = (Tensor.rand(*x.shape, device=x.device, dtype=dtypes.float32) >= share).contiguous()
    return kept.where(x, 0) * (1.0 / (1.0 - share) if share < 1 else 0.0), kept


@op("Dropout", 7, 10)
def dropout_7(x: Tensor, *, ratio: float = 0.5) -> tuple[Tensor, Tensor]:
    return x, Tensor.ones(x.shape, dtype=dtypes.bool)


@op("Dropout", 1, 6)
def dropout_1(
    x: Tensor, *, ratio: float = 0.5, is_test: int = 0, consumed_inputs: Any = None
) -> tuple[Tensor, Tensor]:
    return x, Tensor.ones(x.shape, dtype=x.dtype)
