"""Normalisation, dropout and attention."""

from __future__ import annotations

import itertools
import math
from typing import Any, Self

from polygrad.dtype import dtypes, promote, sum_dtype
from polygrad.errors import ArgumentError, ShapeError
from polygrad.helpers import prod
from polygrad.tensor.activations import ActivationsMixin
from polygrad.tensor.linalg import LinalgMixin
from polygrad.tensor.random import RandomMixin
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

_CAUSAL_BLOCK = 256  # rows of the smallest block of causal attention
_MAX_CAUSAL_BLOCKS = 4


class NormalizationMixin(LinalgMixin, RandomMixin, ActivationsMixin):
    """Normalisation, dropout and attention."""

    __slots__ = ()

    def normalize(self, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Self:
        """self / max(its p-norm along `dim`, eps).

        >>> Tensor([[0.0, 4.0]]).normalize().tolist()
        [[0.0, 1.0]]
        """
        x = self._in_accumulation_dtype()
        if p == 0:
            return self._in_result_dtype(x / x.ne(0).sum(dim, keepdim=True).maximum(eps))
        total = x.abs().pow(p).sum(dim, keepdim=True)
        is_zero = total.eq(0.0)  # the root has no gradient there
        norm = is_zero.where(0.0, is_zero.where(1.0, total).pow(1 / p))
        return self._in_result_dtype(x / norm.maximum(eps))

    def layernorm(self, axis: int | tuple[int, ...] = -1, eps: float = 1e-05) -> Self:
        """self with mean 0 and variance 1 (biased) along `axis`.

        >>> Tensor([1.0, 3.0]).layernorm(eps=0.0).tolist()
        [-1.0, 1.0]
        """
        return self._in_result_dtype(self._in_accumulation_dtype()._layernorm(axis, eps))

    def _layernorm(self, axis: int | tuple[int, ...], eps: float, *affine: Self) -> Self:
        """`layernorm`; of `affine`, a weight and a bias that broadcast to self: times weight, plus bias."""
        mean = self._mean(axis, keepdim=True)
        inverse_std = ((self - mean).square()._mean(axis, keepdim=True) + eps).rsqrt()
        return self._standardize(mean, inverse_std, axis, *affine)

    def _standardize(self, mean: Self, inverse_std: Self, axis: int | tuple[int, ...], *affine: Self) -> Self:
        """(self - mean) * inverse_std, where these are self's along `axis`, of size 1 there. Of `affine`, a
        weight and a bias that broadcast to self: times weight, plus bias.

        All gradients are made of two sums, of the incoming gradient g and of g * (self - mean), over the axes
        that statistics, weight and bias share.
        """
        axes = self._axes(axis)
        out = (self - mean) * (inverse_std * affine[0] if affine else inverse_std)
        out = out + affine[1] if affine else out

        def backward(g: Self, _: Self, x: Self, mean: Self, inverse_std: Self, *affine: Self) -> list[Any]:
            centred = x - mean
            shared = [a for a in axes if not affine or affine[0].shape[a] == 1]
            sums, products = [t.sum(shared, keepdim=True) for t in (g, g * centred)]
            of_affine: list[Self] = []
            if affine:
                weight = affine[0]
                others = [a for a, size in enumerate(weight.shape) if size == 1]
                of_affine = [t.sum(others, keepdim=True) for t in (products * inverse_std, sums)]
                g, sums, products = [t * weight for t in (g, sums, products)]
            shift, slope = [
                t.sum(axes, keepdim=True)._divide_by_count(x._count(axes)) for t in (sums, products)
            ]
            return [
                (g - shift - centred * (slope * inverse_std.square())) * inverse_std,
                None,
                None,
                *of_affine,
            ]

        return out._with_backward([self, mean, inverse_std, *affine], backward)

    def batchnorm(
        self,
        weight: Self | None,
        bias: Self | None,
        mean: Self,
        invstd: Self,
        axis: int | tuple[int, ...] = 1,
    ) -> Self:
        """(self - mean) * invstd * weight + bias, each of them along `axis`.

        >>> Tensor([[1.0, 4.0]]).batchnorm(None, None, Tensor([0.0, 2.0]), Tensor([1.0, 0.5])).tolist()
        [[1.0, 1.0]]
        """
        axes = self._axes(axis)
        column = [s if i in axes else 1 for i, s in enumerate(self.shape)]
        x = self - mean.reshape(column)
        if weight is not None:
            x = x * weight.reshape(column)
        x = x * (invstd.reshape(column) if prod(invstd.shape) == prod(column) else invstd)
        return x if bias is None else x + bias.reshape(column)

    def dropout(self, p: float = 0.5) -> Self:
        """In training (`Tensor.train()`), zeros with probability `p`, the rest scaled by 1 / (1 - p).

        Raises ArgumentError.

        torch.nn.functional's is in training by default.

        >>> Tensor([1.0, 2.0]).dropout(0.5).tolist()
        [1.0, 2.0]
        """
        if not 0 <= p <= 1:
            raise ArgumentError(f"dropout: expected a probability p in 0..1, got {p}")
        if not self.training or p == 0:
            return self
        if p == 1:
            return self.zeros_like()
        keep_mask = self.rand(*self.shape, device=self._device, dtype=dtypes.float32, contiguous=False) >= p
        return keep_mask._of(keep_mask.uop.contiguous(), keep_mask._device).where(self, 0) * (1.0 / (1.0 - p))

    def alpha_dropout(self, p: float = 0.5) -> Self:
        """Dropout that keeps mean and variance behind `selu` (Klambauer et al., 2017): in training,
        elements become selu's least value with probability `p`, and all are scaled and shifted.

        Raises ArgumentError.

        >>> Tensor([1.0, 2.0]).alpha_dropout(0.5).tolist()
        [1.0, 2.0]
        """
        return self._alpha_dropout("alpha_dropout", p, self.shape)

    def feature_alpha_dropout(self, p: float = 0.5) -> Self:
        """`alpha_dropout` of whole channels: what axes 0 and 1 count. Raises ArgumentError, ShapeError.

        >>> Tensor([[1.0, 2.0]]).feature_alpha_dropout(0.5).tolist()
        [[1.0, 2.0]]
        """
        if self.ndim < 2:
            raise ShapeError(f"feature_alpha_dropout: expected (n, channels, ...), got shape {self.shape}")
        return self._alpha_dropout("feature_alpha_dropout", p, (*self.shape[:2], *[1] * (self.ndim - 2)))

    def _alpha_dropout(self, what: str, p: float, shape: tuple[Any, ...]) -> Self:
        if not 0 <= p <= 1:
            raise ArgumentError(f"{what}: expected a probability p in 0..1, got {p}")
        if not self.training or p == 0:
            return self
        if p == 1:
            return self * 0.0
        least = -1.7580993408473766  # selu's, of minus infinity
        scale = ((least * least * p + 1.0) * (1.0 - p)) ** -0.5
        keep_mask = self.rand(*shape, device=self._device, dtype=dtypes.float32, contiguous=False) >= p
        keep_mask = keep_mask._of(keep_mask.uop.contiguous(), keep_mask._device)
        return keep_mask.where(self, least) * scale - least * p * scale

    def scaled_dot_product_attention(
        self,
        key: Self,
        value: Self,
        attn_mask: Self | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        enable_gqa: bool = False,
    ) -> Self:
        """softmax(self @ keyᵀ / sqrt(d) + mask) @ value, over the last two axes.

        Shapes: self (..., L, d), key (..., S, d), value (..., S, v).

        `attn_mask`: bool (True attends) or float (added), broadcast to (..., L, S). `is_causal`: row i sees
        columns up to i, and most of the others are not computed. `enable_gqa`: keys and values are
        repeated along axis -3 to match. A row that attends to nothing is 0, as torch's (tinygrad's is NaN).
        Raises ArgumentError, ShapeError.

        >>> q = Tensor([[0.0, 0.0]])
        >>> q.scaled_dot_product_attention(Tensor.zeros(2, 2), Tensor([[1.0], [3.0]])).tolist()
        [[2.0]]
        """
        for name, tensor in (("self", self), ("key", key), ("value", value)):
            if tensor.ndim < 2:
                expected = "expected two axes or more"
                raise ShapeError(f"scaled_dot_product_attention: {name} has shape {tensor.shape}, {expected}")
        key_rows, value_rows = key.shape[-2], value.shape[-2]
        if isinstance(key_rows, int) and isinstance(value_rows, int) and key_rows != value_rows:
            raise ShapeError(
                f"scaled_dot_product_attention: value: expected {key_rows} rows, as key has, got {value_rows}"
            )
        if is_causal and attn_mask is not None:
            raise ArgumentError("scaled_dot_product_attention: expected is_causal or attn_mask, got both")
        if enable_gqa:
            key = key.repeat_interleave(self.shape[-3] // key.shape[-3], -3)
            value = value.repeat_interleave(self.shape[-3] // value.shape[-3], -3)
        if is_causal:
            return self._causal_attention(key, value, dropout_p)
        scores = self._attention_scores(key)
        if attn_mask is None:
            return scores.softmax(-1).cast_like(self).dropout(dropout_p).dot(value)
        scores = attn_mask.where(scores, -math.inf) if attn_mask.dtype.is_bool else scores + attn_mask
        is_empty = scores.max(-1, keepdim=True).eq(-math.inf)
        weights = is_empty.where(0.0, is_empty.where(0.0, scores).softmax(-1))
        return weights.cast_like(self).dropout(dropout_p).dot(value)

    def _attention_scores(self, key: Self) -> Self:
        """self @ keyᵀ / sqrt(d)"""
        result_dtype = promote(self.dtype, key.dtype)
        wide = sum_dtype(result_dtype)
        scores = self.dot(key.transpose(-2, -1), dtype=wide)
        if wide != result_dtype:
            # the gradient, an operand of products, is rounded like other values of this dtype
            scores = scores._with_backward([scores], lambda g, *_: g.cast(result_dtype).cast(wide))
        return scores * (1.0 / math.sqrt(self.shape[-1]))

    def _causal_attention(self, key: Self, value: Self, dropout_p: float) -> Self:
        """Attention in which row i sees columns up to i. Rows are divided into up to four blocks, for each of
        which only the columns up to its last row are computed: five eighths of all. More blocks save little,
        and each has kernels of its own."""
        rows, columns = self.shape[-2], key.shape[-2]
        is_static = isinstance(rows, int) and isinstance(columns, int)
        blocks = min(_MAX_CAUSAL_BLOCKS, rows // _CAUSAL_BLOCK) if is_static else 1
        if blocks <= 1:
            return self._attend_up_to(0, key, value, dropout_p)
        outs = []
        for start, stop in itertools.pairwise(rows * i // blocks for i in range(blocks + 1)):
            seen = min(stop, columns)
            block = self.narrow(-2, start, stop - start)
            k, v = (x.narrow(-2, 0, seen) for x in (key, value))
            outs.append(block._attend_up_to(start, k, v, dropout_p))
        return outs[0].cat(*outs[1:], dim=-2)

    def _attend_up_to(self, first_row: int, key: Self, value: Self, dropout_p: float) -> Self:
        """Causal attention of rows that begin at `first_row`."""
        rows, columns = self.shape[-2], key.shape[-2]
        i = self._of(UOp(Ops.ARANGE, dtypes.int32, (), rows).reshape((rows, 1)))
        j = self._of(UOp(Ops.ARANGE, dtypes.int32, (), columns).reshape((1, columns)))
        is_later = (i + first_row if first_row else i) < j
        weights = is_later.where(-math.inf, self._attention_scores(key)).softmax(-1)
        return weights.cast_like(self).dropout(dropout_p).dot(value)
