"""Multi-head attention and the transformer block (Vaswani et al., 2017)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from polygrad.errors import ArgumentError, DTypeError, ShapeError
from polygrad.nn.dense import Linear
from polygrad.nn.layer import Layer
from polygrad.nn.norm import LayerNorm
from polygrad.nn.parameter import parameter
from polygrad.tensor.core.base import DTypeLike
from polygrad.tensor.tensor import Tensor


class MultiheadAttention(Layer):
    """Attention of `num_heads` heads, with torch.nn.MultiheadAttention's parameters and masks.

    query (length, n, embed_dim), key (keys, n, kdim) and value (keys, n, vdim) give (outputs, weights):
    outputs like the query, weights (n, length, keys). With `batch_first` n comes first; without a batch it is
    missing. If kdim and vdim equal embed_dim, `in_proj_weight` holds all three projections. `dropout`: of the
    weights, in training. Raises ArgumentError.

    >>> x = Tensor.rand(7, 2, 8)
    >>> outputs, weights = nn.MultiheadAttention(8, 2)(x, x, x)
    >>> outputs.shape, weights.shape
    ((7, 2, 8), (2, 7, 7))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        dtype: DTypeLike | None = None,
    ) -> None:
        if embed_dim < 1 or num_heads < 1 or embed_dim % num_heads:
            raise ArgumentError(
                f"MultiheadAttention: expected an embed_dim that num_heads divides, got {embed_dim} and "
                f"{num_heads}"
            )
        if not 0 <= dropout <= 1:
            raise ArgumentError(f"MultiheadAttention: expected dropout in 0..1, got {dropout}")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = (
            embed_dim,
            num_heads,
            dropout,
            batch_first,
        )
        sizes = (embed_dim, embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim)
        self.in_proj_weight: Tensor | None = None
        if sizes == (embed_dim,) * 3:
            self.in_proj_weight = parameter(Tensor.glorot_uniform(3 * embed_dim, embed_dim), dtype)
        else:
            self.q_proj_weight, self.k_proj_weight, self.v_proj_weight = (
                parameter(Tensor.glorot_uniform(embed_dim, n), dtype) for n in sizes
            )
        self.in_proj_bias = parameter(Tensor.zeros(3 * embed_dim), dtype) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias, dtype)
        if bias:
            self.out_proj.bias = parameter(Tensor.zeros(embed_dim), dtype)

    def __call__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """(outputs, weights). The weights are lazy, so they cost nothing unless they are used.

        key_padding_mask: (n, keys), bool: True is left out; or float, added to the scores.
        need_weights: if False, None is returned in the place of the weights.
        attn_mask: (length, keys) or (n * num_heads, length, keys), as key_padding_mask. Unlike
            `scaled_dot_product_attention`, True means not to attend: this is torch's convention.
        average_attn_weights: weights are the mean of the heads'; else (n, num_heads, length, keys).
        is_causal: row i attends to columns up to i; no attn_mask is needed.

        Raises ShapeError, DTypeError.
        """
        batched = query.ndim == 3
        if not query.ndim == key.ndim == value.ndim or query.ndim not in (2, 3):
            raise ShapeError(
                "MultiheadAttention: expected query, key and value with 3 axes, or 2 without a batch, got "
                f"shapes {query.shape}, {key.shape} and {value.shape}"
            )
        if not batched:
            inputs = [t.unsqueeze(0) for t in (query, key, value)]
        else:
            inputs = [t if self.batch_first else t.transpose(0, 1) for t in (query, key, value)]
        q, k, v = (self._heads(t, i) for i, t in enumerate(inputs))  # (n, heads, length, size)
        n, heads, length, size = q.shape
        keys = k.shape[2]
        mask = self._mask(attn_mask, (n, heads, length, keys), batched)
        if key_padding_mask is not None:
            padding = key_padding_mask if batched else key_padding_mask.unsqueeze(0)
            if padding.shape != (n, keys):
                raise ShapeError(
                    f"MultiheadAttention: expected a key_padding_mask of shape {(n, keys)}, got "
                    f"{padding.shape}"
                )
            additive_mask = _as_additive_mask(padding, q).reshape(n, 1, 1, keys)
            mask = additive_mask if mask is None else mask + additive_mask
        if is_causal:
            above = Tensor.full((length, keys), -math.inf, dtype=q.dtype, device=q.device).triu(1)
            mask = above if mask is None else mask + above
        out = q.scaled_dot_product_attention(k, v, attn_mask=mask, dropout_p=self.dropout)
        out = self.out_proj(out.transpose(1, 2).reshape(n, length, self.embed_dim))
        weights = None
        if need_weights:
            scores = q.dot(k.transpose(-2, -1)) * (1.0 / math.sqrt(size))
            weights = (scores if mask is None else scores + mask).softmax(-1)
            weights = weights.mean(1) if average_attn_weights else weights
        if not batched:
            return out.squeeze(0), None if weights is None else weights.squeeze(0)
        return out if self.batch_first else out.transpose(0, 1), weights

    def _heads(self, x: Tensor, i: int) -> Tensor:
        """Input number `i` (0: the query) projected, (n, heads, length, size)."""
        e = self.embed_dim
        if self.in_proj_weight is not None:
            weight = self.in_proj_weight[i * e : (i + 1) * e]
        else:
            weight = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)[i]
        if x.shape[-1] != weight.shape[1]:
            raise ShapeError(
                f"MultiheadAttention: expected {('query', 'key', 'value')[i]} of size {weight.shape[1]}, got "
                f"shape {x.shape}"
            )
        out = x.linear(
            weight.T, None if self.in_proj_bias is None else self.in_proj_bias[i * e : (i + 1) * e]
        )
        return out.reshape(*x.shape[:2], self.num_heads, e // self.num_heads).transpose(1, 2)

    def _mask(self, mask: Tensor | None, shape: tuple[Any, ...], batched: bool) -> Tensor | None:
        """An attn_mask in additive form, for scores of `shape`."""
        if mask is None:
            return None
        n, heads, length, keys = shape
        if mask.shape == (length, keys):
            return _as_additive_mask(mask, mask)
        if mask.shape == (n * heads, length, keys):
            return _as_additive_mask(mask, mask).reshape(shape)
        raise ShapeError(
            f"MultiheadAttention: expected an attn_mask of shape {(length, keys)} or "
            f"{(n * heads, length, keys)}, got {mask.shape}"
        )


def _as_additive_mask(mask: Tensor, like: Tensor) -> Tensor:
    """A mask in additive form: -infinity where a bool is True."""
    if mask.dtype.is_float:
        return mask
    if not mask.dtype.is_bool:
        raise DTypeError(f"MultiheadAttention: expected a mask of bools or floats, got {mask.dtype}")
    return mask.where(-math.inf, 0.0)


_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": Tensor.relu,
    "gelu": lambda x: x.gelu(approximate="none"),
    "gelu_tanh": Tensor.gelu,
    "silu": Tensor.silu,
}


class TransformerBlock(Layer):
    """Self-attention and two linear layers, each with a normalisation and a residual connection.

    x (n, length, embed_dim) to the same shape. Parameters are those of torch.nn.TransformerEncoderLayer(...,
    batch_first=True), by its names. `ff_dim`: between the linear layers, 4 * embed_dim unless given.
    `norm_first`: normalise the input of each part (Xiong et al., 2020), else the sum after the residual
    connection, as in the original. `activation`: 'relu', 'gelu', 'gelu_tanh', 'silu', or a function of a
    Tensor.

    Raises ArgumentError.

    >>> nn.TransformerBlock(8, 2)(Tensor.rand(2, 7, 8)).shape
    (2, 7, 8)
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        ff_dim: int | None = None,
        dropout: float = 0.0,
        activation: Any = "gelu",
        norm_first: bool = True,
        eps: float = 1e-05,
        bias: bool = True,
        dtype: DTypeLike | None = None,
    ) -> None:
        function = _ACTIVATIONS.get(activation) if isinstance(activation, str) else activation
        if not callable(function):
            raise ArgumentError(
                f"TransformerBlock: expected an activation of {', '.join(_ACTIVATIONS)}, or a function, got "
                f"{activation!r}"
            )
        hidden = 4 * embed_dim if ff_dim is None else ff_dim
        self.self_attn = MultiheadAttention(
            embed_dim, num_heads, dropout, bias, batch_first=True, dtype=dtype
        )
        self.linear1 = Linear(embed_dim, hidden, bias, dtype)
        self.linear2 = Linear(hidden, embed_dim, bias, dtype)
        self.norm1 = LayerNorm(embed_dim, eps, dtype=dtype)
        self.norm2 = LayerNorm(embed_dim, eps, dtype=dtype)
        if not bias:
            self.norm1.bias = self.norm2.bias = None
        self.dropout, self.norm_first, self.activation = dropout, norm_first, activation

    def __call__(
        self,
        x: Tensor,
        attn_mask: Tensor | None = None,
        key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Masks as in MultiheadAttention: True, or -infinity, is left out. Raises ShapeError, DTypeError."""

        def attend(x: Tensor) -> Tensor:
            out, _ = self.self_attn(x, x, x, key_padding_mask, False, attn_mask, is_causal=is_causal)
            return out.dropout(self.dropout)

        act = _ACTIVATIONS[self.activation] if isinstance(self.activation, str) else self.activation

        def feed_forward(x: Tensor) -> Tensor:
            return self.linear2(act(self.linear1(x)).dropout(self.dropout)).dropout(self.dropout)

        if self.norm_first:
            x = x + attend(self.norm1(x))
            return x + feed_forward(self.norm2(x))
        x = self.norm1(x + attend(x))
        return self.norm2(x + feed_forward(x))
