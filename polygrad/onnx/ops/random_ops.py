"""Random numbers, of our own generator: `Tensor.manual_seed` is their seed, the attribute `seed` is not."""

from __future__ import annotations

from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.onnx.elements import element_of
from polygrad.onnx.op_table import op
from polygrad.onnx.values import Value, element_of_value, shape_of
from polygrad.tensor.tensor import Tensor


def _normal(shape: Any, dtype: DType, mean: float, scale: float, device: str | None) -> Tensor:
    return Tensor.normal(*shape, mean=mean, std=scale, device=device).cast(dtype)


def _uniform(shape: Any, dtype: DType, low: float, high: float, device: str | None) -> Tensor:
    return Tensor.uniform(*shape, low=low, high=high, device=device).cast(dtype)


def _kind(dtype: int | None, like: Value) -> DType:
    return element_of_value(like).dtype if dtype is None else element_of(dtype, "dtype").dtype


@op("RandomNormal", 1, 22)
def random_normal(
    *,
    dtype: int = 1,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
    shape: list[int],
    device: str | None,
) -> Tensor:
    return _normal(shape, element_of(dtype, "dtype").dtype, mean, scale, device)


@op("RandomNormalLike", 1, 22)
def random_normal_like(
    x: Value,
    *,
    dtype: int | None = None,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
    device: str | None,
) -> Tensor:
    return _normal(shape_of(x), _kind(dtype, x), mean, scale, device)


@op("RandomUniform", 1, 22)
def random_uniform(
    *,
    dtype: int = 1,
    high: float = 1.0,
    low: float = 0.0,
    seed: float | None = None,
    shape: list[int],
    device: str | None,
) -> Tensor:
    return _uniform(shape, element_of(dtype, "dtype").dtype, low, high, device)


@op("RandomUniformLike", 1, 22)
def random_uniform_like(
    x: Value,
    *,
    dtype: int | None = None,
    high: float = 1.0,
    low: float = 0.0,
    seed: float | None = None,
    device: str | None,
) -> Tensor:
    return _uniform(shape_of(x), _kind(dtype, x), low, high, device)


@op("Bernoulli", 15, 22)
def bernoulli(x: Tensor, *, dtype: int | None = None, seed: float | None = None) -> Tensor:
    draws = Tensor.rand(*x.shape, dtype=dtypes.float32, device=x.device)
    return (draws < x).cast(_kind(dtype, x))


@op("Multinomial", 7, 22)
def multinomial(x: Tensor, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None) -> Tensor:
    """Classes by their unnormalised log-probabilities."""
    weights = (x - x.max(-1, keepdim=True)).exp()
    return weights.multinomial(sample_size, replacement=True).cast(element_of(dtype, "dtype").dtype)
