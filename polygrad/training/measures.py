"""Losses and metrics: functions of a prediction and targets, or the names of some."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError, ShapeError
from polygrad.tensor.tensor import Tensor

Measure: TypeAlias = Callable[..., Tensor]


def _check_same_shape(name: str, prediction: Tensor, target: Tensor) -> None:
    """Raises ShapeError for a prediction and a target that would silently be broadcast."""
    if prediction.shape != target.shape:
        raise ShapeError(f"{name}: expected targets of shape {prediction.shape}, got {target.shape}")


def _mse(prediction: Tensor, target: Tensor) -> Tensor:
    _check_same_shape("mse", prediction, target)
    return prediction.mse_loss(target)


def _mae(prediction: Tensor, target: Tensor) -> Tensor:
    _check_same_shape("mae", prediction, target)
    return prediction.l1_loss(target)


def _huber(prediction: Tensor, target: Tensor) -> Tensor:
    _check_same_shape("huber", prediction, target)
    return prediction.huber_loss(target)


def _cross_entropy(prediction: Tensor, target: Tensor) -> Tensor:
    return prediction.cross_entropy(target)


def _binary_cross_entropy(prediction: Tensor, target: Tensor) -> Tensor:
    _check_same_shape("binary_cross_entropy", prediction, target)
    return prediction.binary_crossentropy_logits(target.cast(prediction.dtype))


def _accuracy(prediction: Tensor, target: Tensor) -> Tensor:
    """The part of the rows whose largest score is that of the target, an index; for targets 0 and 1 of the
    prediction's shape, the part of the scores that are on their target's side of 0."""
    if prediction.shape == target.shape:
        return ((prediction > 0) == (target > 0.5)).cast(dtypes.float32).mean()
    has_classes = prediction.ndim > 1 and prediction.shape[1] != 1
    best = prediction.argmax(1) if has_classes else prediction
    _check_same_shape("accuracy", best, target)
    return (best == target).cast(dtypes.float32).mean()


LOSSES: dict[str, Measure] = {
    "binary_cross_entropy": _binary_cross_entropy,
    "cross_entropy": _cross_entropy,
    "huber": _huber,
    "mae": _mae,
    "mse": _mse,
}
METRICS: dict[str, Measure] = {"accuracy": _accuracy, "mae": _mae, "mse": _mse}


def loss_of(loss: str | Measure) -> Measure:
    """The function that `loss` is or names. Raises ArgumentError."""
    return _find(loss, LOSSES, "loss")


def metrics_of(metrics: Mapping[str, str | Measure] | Sequence[str]) -> dict[str, Measure]:
    """Functions by name. Raises ArgumentError."""
    if isinstance(metrics, str) or not isinstance(metrics, (Mapping, Sequence)):
        raise ArgumentError(f"metrics: expected a list of names, or functions by name, got {metrics!r}")
    items: Any = metrics.items() if isinstance(metrics, Mapping) else [(name, name) for name in metrics]
    out = {name: _find(x, METRICS, f"metrics: {name}") for name, x in items}
    if "loss" in out:
        raise ArgumentError("metrics: expected names other than loss, which is always measured")
    return out


def _find(value: Any, named: Mapping[str, Measure], what: str) -> Measure:
    if callable(value):
        measure: Measure = value
    elif isinstance(value, str) and value in named:
        measure = named[value]
    else:
        raise ArgumentError(f"{what}: expected a function or one of {', '.join(named)}, got {value!r}")
    return measure
