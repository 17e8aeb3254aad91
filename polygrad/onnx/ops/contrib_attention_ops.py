"""Attention of onnxruntime, of the domain com.microsoft, with packed weights, masks of several forms, and
caches.
"""

from __future__ import annotations

import math

from polygrad.dtype import dtypes
from polygrad.errors import OnnxError
from polygrad.onnx.op_table import Int, op
from polygrad.onnx.ops.attention_ops import frontier, heads_of, merge_heads, rotate
from polygrad.onnx.ops.contrib_ops import DOMAIN, refuse
from polygrad.onnx.ops.indexing_ops import tensor_scatter
from polygrad.tensor.tensor import Tensor


def _padding(mask: Tensor, batch: int, columns: int) -> Tensor:
    """Whether a column may be seen, (batch, 1, rows or 1, columns), by a mask in any of its forms.

    (batch,): lengths; (2 * batch,): ends, then starts; else 0 or 1 for (batch, columns), (batch, rows,
    columns) or (batch, 1, most, most).
    """
    if mask.ndim == 1:
        j = Tensor.arange(columns)
        ends = mask[:batch].cast(dtypes.int32).reshape(-1, 1, 1, 1)
        if mask.shape[0] == batch:
            return j < ends
        if mask.shape[0] != 2 * batch:
            raise OnnxError(f"expected a mask of {batch} lengths, or starts and ends, got shape {mask.shape}")
        return (j < ends) & (j >= mask[batch:].cast(dtypes.int32).reshape(-1, 1, 1, 1))
    if mask.ndim == 4:
        return mask[:, :, :, :columns].ne(0)
    return mask.ne(0).reshape(mask.shape[0], 1, *([1] if mask.ndim == 2 else []), *mask.shape[1:])


def _attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float,
    mask: Tensor | None,
    bias: Tensor | None,
    is_causal: bool,
    filtered: float,
) -> tuple[Tensor, Tensor]:
    """The values (batch, heads, rows, size) and the scores. Scores that `mask` hides get `filtered` added."""
    scores = q.dot(k.transpose(-2, -1)) * (scale or 1.0 / math.sqrt(q.shape[3]))
    rows, columns = scores.shape[2:]
    if mask is not None:
        seen = _padding(mask, q.shape[0], columns)
        if mask.ndim == 4:
            seen = seen[:, :, columns - rows : columns]
        scores = scores + seen.where(0.0, filtered)
    if bias is not None:
        scores = scores + bias
    if is_causal:
        scores = frontier(rows, columns, columns - rows, None, 0).where(scores, -math.inf)
    return scores.softmax(-1).cast(v.dtype).dot(v), scores


def _attend_packed(
    qkv: Tensor,
    heads: int,
    sizes: list[int] | None,
    mask: Tensor | None,
    past: Tensor | None,
    bias: Tensor | None,
    scale: float,
    is_causal: bool,
    filtered: float,
) -> tuple[Tensor, Tensor]:
    """Attention of projected queries, keys and values in one tensor; the cache has keys and values in one."""
    widths = sizes or [qkv.shape[2] // 3] * 3
    q, k, v = (heads_of(x, heads) for x in qkv.split(tuple(widths), 2))
    if past is not None:
        k, v = past[0].cat(k, dim=2), past[1].cat(v, dim=2)
    out, _ = _attend(q, k, v, scale, mask, bias, is_causal, filtered)
    return merge_heads(out), k.stack(v) if k.shape == v.shape else k.unsqueeze(0)


@op("Attention", 1, domain=DOMAIN)
def attention(
    x: Tensor,
    weights: Tensor,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    past: Tensor | None = None,
    attention_bias: Tensor | None = None,
    *,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    past_present_share_buffer: int = 0,
    qkv_hidden_sizes: list[int] | None = None,
    rotary_embedding_dim: int = 0,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> tuple[Tensor, Tensor]:
    refuse("Attention with do_rotary or a shared buffer", do_rotary or past_present_share_buffer)
    qkv = x.dot(weights) if bias is None else x.dot(weights) + bias
    return _attend_packed(
        qkv, num_heads, qkv_hidden_sizes, mask, past, attention_bias, scale, bool(unidirectional),
        mask_filter_value,
    )  # fmt: skip


@op("QAttention", 1, domain=DOMAIN)
def q_attention(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    x_scale: Tensor,
    w_scale: Tensor,
    mask: Tensor | None = None,
    x_zero: Tensor | None = None,
    w_zero: Tensor | None = None,
    past: Tensor | None = None,
    *,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    past_present_share_buffer: int = 0,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> tuple[Tensor, Tensor]:
    """Attention whose projection is of 8-bit integers."""
    refuse("QAttention with do_rotary or a shared buffer", do_rotary or past_present_share_buffer)
    a, b = x.cast(dtypes.int32), weight.cast(dtypes.int32)
    a = a if x_zero is None else a - x_zero.cast(dtypes.int32).reshape(())
    b = b if w_zero is None else b - w_zero.cast(dtypes.int32)
    qkv = a.dot(b).cast(bias.dtype) * (x_scale.reshape(()) * w_scale) + bias
    return _attend_packed(
        qkv, num_heads, None, mask, past, None, scale, bool(unidirectional), mask_filter_value
    )


@op("MultiHeadAttention", 1, domain=DOMAIN)
def multi_head_attention(
    q: Tensor,
    k: Tensor | None = None,
    v: Tensor | None = None,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    attention_bias: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    *,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Queries may also hold keys and values (batch, rows, heads, 3, size), or keys values (..., heads, 2,
    size)."""
    if k is None:
        q, k, v = (q.select(3, i).flatten(2) for i in range(3))
    elif k.ndim == 5:
        k, v = k.select(3, 0).flatten(2), k.select(3, 1).flatten(2)
    assert v is not None
    if bias is not None:
        own_k = k.shape[2] if k.ndim == 3 else k.shape[1] * k.shape[3]
        own_v = bias.shape[0] - q.shape[2] - own_k
        parts = bias.split((q.shape[2], own_k, own_v), 0)
        q = q + parts[0]
        k, v = (x + b if x.ndim == 3 else x for x, b in ((k, parts[1]), (v, parts[2])))
    q, k, v = (heads_of(x, num_heads) for x in (q, k, v))
    if past_key is not None and past_value is not None:
        k, v = past_key.cat(k, dim=2), past_value.cat(v, dim=2)
    out, scores = _attend(q, k, v, scale, mask, attention_bias, bool(unidirectional), mask_filter_value)
    return merge_heads(out), k, v, scores


@op("RotaryEmbedding", 1, domain=DOMAIN)
def rotary_embedding(
    x: Tensor,
    positions: Tensor,
    cos: Tensor,
    sin: Tensor,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Tensor:
    """`positions`: of each token, or of the first token alone."""
    heads = num_heads or (x.shape[2] // (2 * cos.shape[1]) if x.ndim == 3 else x.shape[1])
    split = heads_of(x, heads)
    if positions.numel() == 1:
        positions = positions.reshape(1, 1) + Tensor.arange(split.shape[2], dtype=positions.dtype)
    out = rotate(split, cos[positions], sin[positions], bool(interleaved), rotary_embedding_dim)
    return merge_heads(out) if x.ndim == 3 else out


@op("GroupQueryAttention", 1, domain=DOMAIN)
def group_query_attention(
    q: Tensor,
    k: Tensor | None,
    v: Tensor | None,
    past_key: Tensor | None,
    past_value: Tensor | None,
    last: Tensor,
    total: Int,
    cos: Tensor | None = None,
    sin: Tensor | None = None,
    positions: Tensor | None = None,
    attention_bias: Tensor | None = None,
    sink: Tensor | None = None,
    *,
    causal: int = 1,
    do_rotary: int = 0,
    k_quant_type: str = "NONE",
    kv_cache_bit_width: int = 0,
    kv_num_heads: int,
    local_window_size: int = -1,
    num_heads: int,
    qk_output: int = 0,
    rotary_interleaved: int = 0,
    scale: float = 0.0,
    smooth_softmax: int = 0,
    softcap: float = 0.0,
    v_quant_type: str = "NONE",
) -> tuple[Tensor, Tensor, Tensor]:
    """Attention over a cache. New tokens are written to it behind the tokens that each row has.

    `last`: the position of the last token of each row, `total`: the greatest count of tokens. Without a key,
    q holds keys and values behind the queries.
    """
    refuse("GroupQueryAttention with a quantised cache", kv_cache_bit_width or k_quant_type != "NONE")
    refuse("GroupQueryAttention with qk_output or without causal", qk_output or not causal)
    if k is None or v is None:
        size = q.shape[2] // (num_heads + 2 * kv_num_heads)
        q, k, v = q.split((num_heads * size, kv_num_heads * size, kv_num_heads * size), 2)
    q, k, v = heads_of(q, num_heads), heads_of(k, kv_num_heads), heads_of(v, kv_num_heads)
    rows = q.shape[2]
    # a prompt starts every row anew
    starts = last.cast(dtypes.int64).flatten() + (1 - rows)
    starts = starts * 0 if rows == total else starts
    if do_rotary:
        if cos is None or sin is None:
            raise OnnxError("do_rotary without cos_cache and sin_cache")
        at = (
            starts.reshape(-1, 1) + Tensor.arange(rows, dtype=dtypes.int64)
            if positions is None
            else positions
        )
        dim = 2 * cos.shape[1]
        q, k = (rotate(x, cos[at], sin[at], bool(rotary_interleaved), dim) for x in (q, k))
    keys, values = (
        _append_to_cache(past_key, k, starts, total),
        _append_to_cache(past_value, v, starts, total),
    )
    group = num_heads // kv_num_heads
    seen_k, seen_v = (x[:, :, :total].repeat_interleave(group, 1) for x in (keys, values))
    scores = q.dot(seen_k.transpose(-2, -1)) * (scale or 1.0 / math.sqrt(q.shape[3]))
    if softcap:
        scores = (scores / softcap).tanh() * softcap
    if attention_bias is not None:
        scores = scores + attention_bias
    low = local_window_size - 1 if local_window_size > 0 else None
    scores = frontier(rows, total, starts, low, 0).where(scores, -math.inf)
    if sink is not None or smooth_softmax:
        column = Tensor.zeros(num_heads, dtype=scores.dtype) if sink is None else sink.cast(scores.dtype)
        column = column.reshape(1, -1, 1, 1).expand(scores.shape[0], -1, rows, 1)
        weights = scores.cat(column, dim=-1).softmax(-1)[..., :total]
    else:
        weights = scores.softmax(-1)
    return merge_heads(weights.cast(v.dtype).dot(seen_v)), keys, values


def _append_to_cache(past: Tensor | None, new: Tensor, starts: Tensor, total: int) -> Tensor:
    """A cache (batch, heads, at least total, size) with `new` written from `starts` on."""
    if past is None:
        past = Tensor.zeros(*new.shape[:2], 0, new.shape[3], dtype=new.dtype)
    size = max(past.shape[2], total)
    return tensor_scatter(past.pad([None, None, (0, size - past.shape[2]), None]), new, starts, axis=2)
