"""Attention."""

from __future__ import annotations

import math
from typing import Self

from polygrad.dtype import dtypes, promote, sum_dtype
from polygrad.errors import ArgumentError
from polygrad.tensor.random import RandomMixin
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


class AttentionMixin(RandomMixin):
    """Attention."""

    __slots__ = ()

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
        columns up to i. `enable_gqa`: keys and values are repeated along axis -3 to match. Raises
        ArgumentError, ShapeError.
        """
        if is_causal and attn_mask is not None:
            raise ArgumentError("scaled_dot_product_attention: expected is_causal or attn_mask, got both")
        if enable_gqa:
            key = key.repeat_interleave(self.shape[-3] // key.shape[-3], -3)
            value = value.repeat_interleave(self.shape[-3] // value.shape[-3], -3)
        wide = sum_dtype(promote(self.dtype, key.dtype))
        scores = self.dot(key.transpose(-2, -1), dtype=wide) * (1.0 / math.sqrt(self.shape[-1]))
        if is_causal:
            rows, columns = scores.shape[-2:]
            i = self._of(UOp(Ops.ARANGE, dtypes.int32, (), rows).reshape((rows, 1)))
            j = self._of(UOp(Ops.ARANGE, dtypes.int32, (), columns).reshape((1, columns)))
            scores = (i < j).where(-math.inf, scores)
        elif attn_mask is not None:
            scores = attn_mask.where(scores, -math.inf) if attn_mask.dtype.is_bool else scores + attn_mask
        return scores.softmax(-1).cast_like(self).dropout(dropout_p).dot(value)
