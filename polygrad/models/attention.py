"""Attention with the variants that families of transformers use, over whole sequences or over a cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from polygrad import nn
from polygrad.models.rotary import Rotation
from polygrad.nn.layer import Layer
from polygrad.tensor.tensor import Tensor

# Replaces the scores of hidden keys. It is so low that their weights are 0, and finite, so that a row of
# padding without visible keys does not become NaN.
_HIDDEN_SCORE = -1e30
# From this number of query rows on, vectors along them are full on every machine.
_ROWS_OF_VECTORS = 16


@dataclass(frozen=True)
class Visibility:
    """Which keys a query sees.

    `rows`: the indices of the queries among the keys, int32 (queries,) or (batch, queries). `keys`: those of
    the keys, (keys,). `padding`: bool (batch, keys), True for tokens; None: there is no padding. `texts`:
    integers (batch, length), the number of the text that each token belongs to, where a row has several: a
    query sees the keys of its own text.
    """

    rows: Tensor
    keys: Tensor
    padding: Tensor | None = None
    texts: Tensor | None = None

    def mask(self, is_causal: bool, window: int | None = None, radius: int | None = None) -> Tensor | None:
        """True where a query sees a key, (batch or 1, 1, queries, keys); None: everywhere.

        `window`: a query sees as many keys, the last of which is its own. `radius`: it sees keys at most as
        far away, on both sides.
        """
        rows = self.rows.reshape(-1, 1, self.rows.shape[-1], 1)
        visible = None
        if is_causal:
            visible = _both(visible, self.keys <= rows)
        if window is not None:
            visible = _both(visible, self.keys > rows - window)
        if radius is not None:
            visible = _both(visible, (self.keys - rows).abs() <= radius)
        if self.padding is not None:
            batch, keys = self.padding.shape
            visible = _both(visible, self.padding.reshape(batch, 1, 1, keys))
        if self.texts is not None:
            batch, length = self.texts.shape
            same_text = self.texts.reshape(batch, 1, length, 1).eq(self.texts.reshape(batch, 1, 1, length))
            visible = _both(visible, same_text)
        return visible


def _both(a: Tensor | None, b: Tensor) -> Tensor:
    return b if a is None else a & b


class CacheView(Protocol):
    """The place where a call of a model stores its keys and values, and reads those of earlier calls."""

    def extend(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Append keys and values (batch, heads, length, size), and return all to attend to, (batch, heads,
        keys, size)."""
        ...


@dataclass(frozen=True)
class ForwardContext:
    """The data of one call of a model that every layer needs.

    `visibility`: which keys each query sees. `rotations`: the rotary embeddings at the queries' positions, by
    the names of their tables. `cache`: None if only the keys of this call are used.
    """

    visibility: Visibility
    rotations: dict[str, Rotation]
    cache: CacheView | None = None


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    bias: Tensor | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """softmax(query @ keyᵀ * scale + bias) @ value; (batch, heads, queries, size) to the same.

    key, value: (batch, groups, keys, size), each for heads / groups heads in a row. `mask`: bool (batch or 1,
    1, queries, keys), True is seen. `scale`: 1 / sqrt(size) unless given. `softcap`: c * tanh(score / c).
    `bias`: (batch or 1, heads, queries, keys). `dropout`: the part of the weights that is dropped in training
    mode.

    The heads of a group are rows of one product, so that its keys are read once.
    """
    batch, heads, queries, size = query.shape
    groups, keys = key.shape[1], key.shape[2]
    query = query * (size**-0.5 if scale is None else scale)
    rows = query.reshape(batch, groups, heads // groups * queries, size)
    if _goes_along_queries(rows.shape[2], keys):
        return _attend_along_queries(rows, key, value, queries, mask, softcap, bias, dropout)
    scores = rows.dot(key.transpose(-2, -1)).reshape(batch, heads, queries, keys)
    if softcap is not None:
        scores = (scores / softcap).tanh() * softcap
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = mask.where(scores, _HIDDEN_SCORE)
    weights = scores.softmax(-1)
    if dropout:
        weights = weights.dropout(dropout)
    weights = weights.reshape(batch, groups, heads // groups * queries, keys)
    return weights.dot(value).reshape(batch, heads, queries, value.shape[-1])


def _goes_along_queries(rows: Any, keys: Any) -> bool:
    """Whether scores are stored with adjacent queries. Vectors need an axis of constant size, and the number
    of keys of a cache is symbolic."""
    return isinstance(rows, int) and rows >= _ROWS_OF_VECTORS and not isinstance(keys, int)


def _attend_along_queries(
    rows: Tensor,
    key: Tensor,
    value: Tensor,
    queries: int,
    mask: Tensor | None,
    softcap: float | None,
    bias: Tensor | None,
    dropout: float,
) -> Tensor:
    """`attend`, with scores (batch, groups, keys, heads of a group, queries). `rows`: the scaled queries
    (batch, groups, heads of a group * queries, size)."""
    batch, groups, count = rows.shape[:3]
    keys, members = key.shape[2], count // queries
    columns = rows.transpose(-2, -1).contiguous()  # read again for each key
    scores = key.dot(columns).reshape(batch, groups, keys, members, queries)
    if softcap is not None:
        scores = (scores / softcap).tanh() * softcap
    if bias is not None:
        grouped_bias = bias.reshape(bias.shape[0], groups, members, queries, keys)
        scores = scores + grouped_bias.permute(0, 1, 4, 2, 3)
    if mask is not None:
        scores = mask.transpose(-2, -1).unsqueeze(-2).where(scores, _HIDDEN_SCORE)
    weights = scores.softmax(2)
    if dropout:
        weights = weights.dropout(dropout)
    weights = weights.reshape(batch, groups, keys, count).transpose(-2, -1)
    return weights.dot(value).reshape(batch, groups * members, queries, value.shape[-1])


def split_heads(x: Tensor, size: int) -> Tensor:
    """(batch, length, heads * size) as (batch, heads, length, size)."""
    return x.reshape(x.shape[0], x.shape[1], x.shape[2] // size, size).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """(batch, heads, length, size) as (batch, length, heads * size)."""
    batch, heads, length, size = x.shape
    return x.transpose(1, 2).reshape(batch, length, heads * size)


@dataclass(frozen=True)
class AttentionConfig:
    """The options of attention in which families differ.

    `hidden`: of the input. `heads`, `kv_heads`: of queries, and of keys and values. `head_size`: of each.
    `qkv_bias`, `out_bias`: of the projections; `key_bias`: of that of the keys, if it differs. `norm_eps`:
    queries and keys are normalised (RMSNorm) with it. `norm`: the class of that normalisation. `window`,
    `radius`, `softcap`, `scale`: see `Visibility.mask` and `attend`. `rotation`: the name of the table that
    turns queries and keys; None: none does. `dropout`: see `attend`.
    """

    hidden: int
    heads: int
    kv_heads: int
    head_size: int
    qkv_bias: bool = False
    out_bias: bool = False
    key_bias: bool | None = None
    norm_eps: float | None = None
    norm: Any = nn.RMSNorm
    window: int | None = None
    radius: int | None = None
    softcap: float | None = None
    scale: float | None = None
    rotation: str | None = None
    dropout: float = 0.0


class Projections(Layer):
    """The projections to queries, keys and values, and the output projection."""

    def __init__(self, config: AttentionConfig) -> None:
        c = self.config = config
        key_bias = c.qkv_bias if c.key_bias is None else c.key_bias
        self.q_proj = nn.Linear(c.hidden, c.heads * c.head_size, c.qkv_bias)
        self.k_proj = nn.Linear(c.hidden, c.kv_heads * c.head_size, key_bias)
        self.v_proj = nn.Linear(c.hidden, c.kv_heads * c.head_size, c.qkv_bias)
        self.o_proj = nn.Linear(c.heads * c.head_size, c.hidden, c.out_bias)
        if c.norm_eps is not None:
            self.q_norm = c.norm(c.head_size, c.norm_eps)
            self.k_norm = c.norm(c.head_size, c.norm_eps)


class SelfAttention(Projections):
    """Attention of each token to all tokens: x (batch, length, hidden) to the same shape.

    `index`: of the layer, by which it finds its keys and values in a cache.
    """

    is_causal = False

    def __init__(self, config: AttentionConfig, index: int = 0) -> None:
        super().__init__(config)
        self.index = index

    def __call__(self, x: Tensor, step: ForwardContext, bias: Tensor | None = None) -> Tensor:
        """`bias`: see `attend`."""
        c = self.config
        q, k, v = (split_heads(f(x), c.head_size) for f in (self.q_proj, self.k_proj, self.v_proj))
        if c.norm_eps is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        if c.rotation is not None:
            rotation = step.rotations[c.rotation]
            q, k = rotation.turn(q), rotation.turn(k)
        if step.cache is not None:
            k, v = step.cache.extend(self.index, k, v)
        mask = step.visibility.mask(self.is_causal, c.window, c.radius)
        return self.o_proj(join_heads(attend(q, k, v, mask, c.scale, c.softcap, bias, c.dropout)))


class CausalSelfAttention(SelfAttention):
    """Attention of each token to itself and those before it."""

    is_causal = True


class CrossAttention(Projections):
    """Attention of the tokens of one sequence to an encoder's output."""

    def keys_and_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Of the encoder's output (batch, keys, hidden): each (batch, heads, keys, size)."""
        size = self.config.head_size
        return split_heads(self.k_proj(memory), size), split_heads(self.v_proj(memory), size)

    def __call__(self, x: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        """x (batch, length, hidden) to the same shape; `mask`: see `attend`."""
        q = split_heads(self.q_proj(x), self.config.head_size)
        key, value = key.cast(q.dtype), value.cast(q.dtype)  # a memory may have 16 bits
        c = self.config
        return self.o_proj(join_heads(attend(q, key, value, mask, c.scale, dropout=c.dropout)))
