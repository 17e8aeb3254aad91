"""Attention, rotary embeddings, and linear attention."""

from __future__ import annotations

import math

from polygrad.dtype import dtypes
from polygrad.errors import OnnxError
from polygrad.onnx.elements import element_of
from polygrad.onnx.op_table import Body, op
from polygrad.onnx.values import tensor_of
from polygrad.tensor.tensor import Tensor


def heads_of(x: Tensor, count: int | None) -> Tensor:
    """(batch, length, heads * size) as (batch, heads, length, size); 4 axes stay."""
    if x.ndim == 4:
        return x
    if not count or x.shape[2] % count:
        raise OnnxError(f"expected a number of heads that divides {x.shape[2]}, got {count}")
    return x.reshape(x.shape[0], x.shape[1], count, -1).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """The inverse of `heads_of`."""
    return x.transpose(1, 2).flatten(2)


def frontier(rows: int, columns: int, offset: int | Tensor, low: int | None, high: int | None) -> Tensor:
    """Whether row i, at position i + offset, may see column j: j - position is in [-low, high]; None is no
    limit.

    `offset`: an int, or one for each of the batch; then the mask is (batch, 1, rows, columns).
    """
    i, j = Tensor.arange(rows).reshape(-1, 1), Tensor.arange(columns).reshape(1, -1)
    at = i + (offset if isinstance(offset, int) else offset.cast(dtypes.int32).reshape(-1, 1, 1, 1))
    is_seen = None
    for limit in ([] if high is None else [j <= at + high]) + ([] if low is None else [j >= at - low]):
        is_seen = limit if is_seen is None else is_seen & limit
    assert is_seen is not None
    return is_seen


def masked_softmax(scores: Tensor, bias: Tensor | None) -> Tensor:
    """The softmax of scores + bias; a row whose bias is minus infinity everywhere is 0."""
    if bias is None:
        return scores.softmax(-1)
    is_empty = bias.max(-1, keepdim=True).eq(-math.inf)
    return is_empty.where(0.0, is_empty.where(0.0, scores).softmax(-1))


@op("Attention", 23, 24, 25)
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    lengths: Tensor | None = None,
    *,
    is_causal: int = 0,
    kv_num_heads: int | None = None,
    left_window_size: int = -1,
    q_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0,
    right_window_size: int = -1,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    is_packed = q.ndim == 3
    q, k, v = heads_of(q, q_num_heads), heads_of(k, kv_num_heads), heads_of(v, kv_num_heads)
    if past_key is not None and past_value is not None:
        k, v = past_key.cat(k, dim=2), past_value.cat(v, dim=2)
    factor = math.sqrt(scale if scale is not None else 1.0 / math.sqrt(q.shape[3]))
    keys, values = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = (q * factor).dot((keys * factor).transpose(-2, -1))
    shown = [scores]
    if softcap:
        scores = (scores / softcap).tanh() * softcap
    shown.append(scores)
    rows, columns = scores.shape[2:]
    offset: int | Tensor = 0 if past_key is None else past_key.shape[2]
    if lengths is not None and past_key is None:
        offset = lengths - rows
    bias = _bias(mask, columns, q)
    high = 0 if is_causal else None
    if right_window_size >= 0:
        high = right_window_size if high is None else min(high, right_window_size)
    low = left_window_size if left_window_size >= 0 else None
    if low is not None or high is not None:
        bias = frontier(rows, columns, offset, low, high).where(0.0 if bias is None else bias, -math.inf)
    if lengths is not None:
        is_there = Tensor.arange(columns) < lengths.cast(dtypes.int32).reshape(-1, 1, 1, 1)
        bias = is_there.where(0.0 if bias is None else bias, -math.inf)
    if bias is not None:
        bias = bias.cast(scores.dtype)
        scores = scores + bias
    shown.append(scores)
    if softmax_precision is not None:
        scores = scores.cast(element_of(softmax_precision, "softmax_precision").dtype)
    weights = masked_softmax(scores, bias).cast(q.dtype)
    shown.append(weights)
    y = weights.dot(values)
    return merge_heads(y) if is_packed else y, k, v, shown[qk_matmul_output_mode].cast(q.dtype)


def _bias(mask: Tensor | None, columns: int, like: Tensor) -> Tensor | None:
    """A mask as a bias that is added to scores, for all columns."""
    if mask is None:
        return None
    added = mask.where(0.0, -math.inf) if mask.dtype.is_bool else mask
    missing = columns - mask.shape[-1]
    if missing > 0:
        added = added.pad([None] * (mask.ndim - 1) + [(0, missing)], value=-math.inf)
    return added.cast(like.dtype)


@op("FlexAttention", 1, domain="ai.onnx.preview")
def flex_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    prob_mod: Body | None = None,
    scale: float | None = None,
    score_mod: Body | None = None,
    softmax_precision: int | None = None,
    device: str | None,
) -> Tensor:
    """Attention with functions of the scores and of the weights (torch's flex_attention)."""
    factor = math.sqrt(scale if scale is not None else 1.0 / math.sqrt(q.shape[3]))
    keys, values = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    kind = dtypes.float64 if q.dtype is dtypes.float64 else dtypes.float32
    if softmax_precision is not None:
        kind = element_of(softmax_precision, "softmax_precision").dtype
    scores = (q * factor).dot((keys * factor).transpose(-2, -1)).cast(kind)
    if score_mod is not None:
        scores = tensor_of(score_mod(scores)[0], device)
    weights = scores.softmax(-1)
    if prob_mod is not None:
        weights = tensor_of(prob_mod(weights)[0], device)
    return weights.dot(values.cast(kind)).cast(v.dtype)


# --- positions


def rotate(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool, dim: int) -> Tensor:
    """x (batch, heads, length, size) with its first `dim` elements rotated in pairs (Su et al., 2021).

    cos, sin: (batch or 1, length, dim / 2). A pair is of neighbours if `interleaved`, else of the two halves.
    """
    size = dim or x.shape[-1]
    rotary_part, unchanged = x[..., :size], x[..., size:]
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    a, b = (
        (rotary_part[..., ::2], rotary_part[..., 1::2])
        if interleaved
        else rotary_part.split((size // 2, size // 2), -1)
    )
    real, imaginary = cos * a - sin * b, sin * a + cos * b
    turned = real.stack(imaginary, dim=-1).flatten(-2) if interleaved else real.cat(imaginary, dim=-1)
    return turned if size == x.shape[-1] else turned.cat(unchanged, dim=-1)


@op("RotaryEmbedding", 23)
def rotary_embedding(
    x: Tensor,
    cos: Tensor,
    sin: Tensor,
    positions: Tensor | None = None,
    *,
    interleaved: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Tensor:
    if positions is not None:
        cos, sin = cos[positions], sin[positions]
    out = rotate(heads_of(x, num_heads), cos, sin, bool(interleaved), rotary_embedding_dim)
    return merge_heads(out) if x.ndim == 3 else out


# --- linear attention


@op("LinearAttention", 27)
def linear_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    past: Tensor | None = None,
    decay: Tensor | None = None,
    beta: Tensor | None = None,
    *,
    chunk_size: int = 64,
    kv_num_heads: int,
    q_num_heads: int,
    scale: float = 0.0,
    update_rule: str = "gated_delta",
) -> tuple[Tensor, Tensor]:
    """A state (keys by values) that each token decays, corrects and reads (Yang et al., 2024), token by
    token.
    """
    if update_rule not in ("linear", "gated", "delta", "gated_delta"):
        raise OnnxError(f"expected update_rule linear, gated, delta or gated_delta, got {update_rule!r}")
    is_gated, corrects = update_rule.startswith("gated"), update_rule.endswith("delta")
    if is_gated != (decay is not None) or corrects != (beta is not None):
        raise OnnxError(f"expected decay and beta as update_rule {update_rule!r} needs them")
    queries, keys, values = (
        heads_of(x, n).float() for x, n in ((q, q_num_heads), (k, kv_num_heads), (v, kv_num_heads))
    )
    size, group = queries.shape[3], q_num_heads // kv_num_heads
    state = Tensor.zeros(q.shape[0], kv_num_heads, size, values.shape[3]) if past is None else past.float()
    factor = scale or 1.0 / math.sqrt(size)
    outputs = []
    for t in range(q.shape[1]):
        key, value = keys[:, :, t].unsqueeze(-1), values[:, :, t].unsqueeze(-2)
        if decay is not None:
            state = state * decay[:, t].float().reshape(q.shape[0], kv_num_heads, -1, 1).exp()
        if beta is not None:
            predicted = (state * key).sum(-2, keepdim=True)
            value = (value - predicted) * beta[:, t].float().reshape(q.shape[0], -1, 1, 1)
        state = (state + key * value).contiguous()
        shared_state = state.repeat_interleave(group, 1) if group > 1 else state
        outputs.append((queries[:, :, t].unsqueeze(-1) * shared_state).sum(-2) * factor)
    y = merge_heads(outputs[0].stack(*outputs[1:], dim=2)).cast(q.dtype)
    return y, state.cast(q.dtype if past is None else past.dtype)
