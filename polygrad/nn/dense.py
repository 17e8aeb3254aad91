"""Layers with one matrix: Linear, Bilinear, Embedding."""

from __future__ import annotations

import math
from typing import ClassVar

from polygrad.errors import ArgumentError, DTypeError, ShapeError
from polygrad.nn.layer import Layer
from polygrad.nn.packed import linear
from polygrad.nn.parameter import parameter
from polygrad.tensor.core.base import DTypeLike
from polygrad.tensor.core.index_checks import check_index
from polygrad.tensor.tensor import Tensor


class Linear(Layer):
    """x @ weightᵀ + bias: (..., in_features) to (..., out_features).

    weight (out, in) and bias (out,) start uniform in ±1/sqrt(in_features).

    >>> layer = nn.Linear(3, 5)
    >>> layer(Tensor.rand(2, 3)).shape, layer.weight.shape
    ((2, 5), (5, 3))
    """

    packable: ClassVar[tuple[str, ...]] = ("weight",)

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, dtype: DTypeLike | None = None
    ) -> None:
        bound = 1 / math.sqrt(in_features)
        self.weight = parameter(Tensor.uniform(out_features, in_features, low=-bound, high=bound), dtype)
        self.bias = parameter(Tensor.uniform(out_features, low=-bound, high=bound), dtype) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


class Bilinear(Layer):
    """x1ᵀ @ weight[k] @ x2 + bias[k] for each output feature k: (..., in1) and (..., in2) to (..., out).

    weight (out, in1, in2) and bias (out,) start uniform in ±1/sqrt(in1_features).

    >>> nn.Bilinear(3, 4, 5)(Tensor.rand(2, 3), Tensor.rand(2, 4)).shape
    (2, 5)
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        dtype: DTypeLike | None = None,
    ) -> None:
        if in1_features < 1:
            raise ArgumentError(f"Bilinear: expected in1_features of at least 1, got {in1_features}")
        bound = 1 / math.sqrt(in1_features)
        weight = Tensor.uniform(out_features, in1_features, in2_features, low=-bound, high=bound)
        self.weight = parameter(weight, dtype)
        self.bias = parameter(Tensor.uniform(out_features, low=-bound, high=bound), dtype) if bias else None

    def __call__(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Raises ShapeError unless all axes but the last are the same."""
        out, in1, in2 = self.weight.shape
        if (x1.shape[-1:], x2.shape[-1:], x1.shape[:-1]) != ((in1,), (in2,), x2.shape[:-1]):
            raise ShapeError(
                f"Bilinear: expected shapes (..., {in1}) and (..., {in2}), got {x1.shape} and {x2.shape}"
            )
        rows = x1.dot(self.weight.permute(1, 0, 2).reshape(in1, out * in2))  # x1ᵀ @ weight[k], for all k
        result = (rows.reshape(*x1.shape[:-1], out, in2) * x2.unsqueeze(-2)).sum(-1)
        return result if self.bias is None else result + self.bias


class Embedding(Layer):
    """Rows of a table by integer: (...) to (..., embed_size).

    The table starts uniform by Glorot, as tinygrad's; torch's starts with deviation 1.

    >>> nn.Embedding(100, 8)(Tensor([[1, 5, 7]])).shape
    (1, 3, 8)
    """

    packable: ClassVar[tuple[str, ...]] = ("weight",)

    def __init__(self, vocab_size: int, embed_size: int, dtype: DTypeLike | None = None) -> None:
        self.vocab_sz, self.embed_sz = vocab_size, embed_size
        self.weight = parameter(Tensor.glorot_uniform(vocab_size, embed_size), dtype)

    def __call__(self, idx: Tensor) -> Tensor:
        """Raises DTypeError unless `idx` is of integers, AxisError for integers out of range."""
        if not idx.dtype.is_int:
            raise DTypeError(f"Embedding: expected a tensor of integers, got {idx.dtype}")
        check_index("Embedding", idx, self.vocab_sz, f"{self.vocab_sz} rows", negative=True)
        return self.weight[idx]
