"""T5 1.0 and 1.1 (Raffel et al., 2020): scores have a bias that depends on the distance between query and
key; there are no other positions and no other biases. The encoder can be used alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from polygrad import nn
from polygrad.models.activations import ACTIVATIONS
from polygrad.models.architecture import Architecture
from polygrad.models.attention import (
    AttentionConfig,
    CausalSelfAttention,
    CrossAttention,
    ForwardContext,
    SelfAttention,
)
from polygrad.models.dropout import dropout
from polygrad.models.encoder import features, whole_sequence
from polygrad.models.encoder_decoder import EncoderDecoder, EncoderMemory, read_tokens
from polygrad.models.feed_forward import Activation, FeedForward, GatedFeedForward
from polygrad.models.fields import Fields
from polygrad.models.names import Names
from polygrad.nn.layer import Layer
from polygrad.nn.packed import linear
from polygrad.tensor.tensor import Tensor

_UNBOUNDED = 1 << 30  # positions are relative: texts may be as long as memory allows
_MOST_BUCKETS = 1 << 16


@dataclass(frozen=True)
class _T5Config:
    """`buckets`, `farthest`: of distances; see `buckets_of_distances`."""

    attention: AttentionConfig
    layers: int
    decoder_layers: int
    inner: int
    act: Activation
    is_gated: bool
    eps: float
    buckets: int
    farthest: int
    dropout: float

    @property
    def hidden(self) -> int:
        return self.attention.hidden

    def norm(self) -> nn.RMSNorm:
        return nn.RMSNorm(self.hidden, self.eps)


def _read(config: Fields) -> _T5Config:
    hidden, heads = config.integer("d_model"), config.integer("num_heads")
    layers = config.count("num_layers")
    gate, _, act = config.text("feed_forward_proj", "relu").rpartition("-")
    if gate not in ("", "gated") or act not in ACTIVATIONS:
        names = ", ".join(sorted(ACTIVATIONS))
        raise config.refuse("feed_forward_proj", f"one of {names}, or gated- before it")
    dropped = dropout(config, "dropout_rate", 0.1)
    buckets = config.integer("relative_attention_num_buckets", 32, 4, _MOST_BUCKETS)
    farthest = config.integer("relative_attention_max_distance", 128, largest=_MOST_BUCKETS)
    if buckets % 4:
        raise config.refuse("relative_attention_num_buckets", "a multiple of 4")
    if farthest <= buckets // 2:
        raise config.refuse("relative_attention_max_distance", f"more than half the buckets, {buckets // 2}")
    return _T5Config(
        AttentionConfig(hidden, heads, heads, config.integer("d_kv", 64), scale=1.0, dropout=dropped),
        layers,
        config.count("num_decoder_layers", layers),
        config.integer("d_ff"),
        # version 1.1 was trained with the approximation, under this name
        ACTIVATIONS["gelu_new" if gate and act == "gelu" else act],
        bool(gate),
        config.number("layer_norm_epsilon", 1e-6),
        buckets,
        farthest,
        dropped,
    )


def buckets_of_distances(buckets: int, farthest: int) -> list[int]:
    """The bucket of each distance from 0 to `farthest`, which also stands for all greater distances. The
    first half of the buckets has one distance each, the others grow with the logarithm of the distance.

    >>> buckets_of_distances(8, 16)
    [0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 7]
    """
    exact = buckets // 2
    step = math.log(farthest / exact) / (buckets - exact)
    large = (min(exact + int(math.log(d / exact) / step), buckets - 1) for d in range(exact, farthest + 1))
    return [*range(exact), *large]


class RelativeBias(Layer):
    """The number that each head adds to the score of a query and a key, by the key's position relative to the
    query."""

    def __init__(self, config: _T5Config, is_causal: bool) -> None:
        self.weight = nn.Embedding(config.buckets, config.attention.heads).weight
        self.farthest = config.farthest
        if is_causal:  # keys after the query need no buckets
            before = buckets_of_distances(config.buckets, config.farthest)
            behind = [0] * config.farthest
        else:
            half = config.buckets // 2
            before = buckets_of_distances(half, config.farthest)
            behind = [half + bucket for bucket in before[1:]]
        self.bucket_of = (*before[::-1], *behind)  # by key - query + farthest

    def __call__(self, rows: Tensor, keys: Tensor) -> Tensor:
        """rows (queries,) or (batch, queries), keys (keys,): (batch or 1, heads, queries, keys)."""
        rows = rows.reshape(-1, rows.shape[-1], 1)
        at = (keys - rows).clamp(-self.farthest, self.farthest) + self.farthest
        by_offset = self.weight[Tensor(list(self.bucket_of), dtype="int32", device=rows.device)]
        return by_offset[at].permute(0, 3, 1, 2).float()


class T5Layer(Layer):
    """Attention, attention to the encoder's output in a decoder, and a feed-forward part, each behind a
    normalisation and with its input added."""

    def __init__(self, config: _T5Config, index: int, is_decoder: bool) -> None:
        attention = CausalSelfAttention if is_decoder else SelfAttention
        self.attention_norm = config.norm()
        self.attention = attention(config.attention, index)
        self.index = index
        if is_decoder:
            self.cross_norm = config.norm()
            self.cross_attention = CrossAttention(config.attention)
        self.feed_forward_norm = config.norm()
        sizes = (config.hidden, config.inner, config.act)
        self.dropout = config.dropout
        kind = GatedFeedForward if config.is_gated else FeedForward
        feed_forward = kind(*sizes, bias=False, dropout=self.dropout)
        self.gated_feed_forward = feed_forward if config.is_gated else None
        self.feed_forward = None if config.is_gated else feed_forward

    def __call__(
        self, x: Tensor, step: ForwardContext, bias: Tensor, memory: EncoderMemory | None = None
    ) -> Tensor:
        x = x + self.attention(self.attention_norm(x), step, bias).dropout(self.dropout)
        if memory is not None:
            key, value = memory.keys[self.index], memory.values[self.index]
            crossed = self.cross_attention(self.cross_norm(x), key, value, memory.mask)
            x = x + crossed.dropout(self.dropout)
        feed_forward = self.gated_feed_forward or self.feed_forward
        assert feed_forward is not None
        return x + feed_forward(self.feed_forward_norm(x)).dropout(self.dropout)


class T5Stack(Layer):
    """The layers of an encoder or of a decoder, and a last normalisation."""

    def __init__(self, config: _T5Config, is_decoder: bool) -> None:
        layers = config.decoder_layers if is_decoder else config.layers
        self.relative_bias = RelativeBias(config, is_decoder)
        self.layers = [T5Layer(config, i, is_decoder) for i in range(layers)]
        self.final_norm = config.norm()
        self.dropout = config.dropout

    def states(self, x: Tensor, step: ForwardContext, memory: EncoderMemory | None = None) -> list[Tensor]:
        """`x` (batch, length, hidden), and the output of each layer, the last one normalised."""
        bias = self.relative_bias(step.visibility.rows, step.visibility.keys)
        states = [x.dropout(self.dropout)]
        for layer in self.layers:
            states.append(layer(states[-1], step, bias, memory))
        return [*states[:-1], self.final_norm(states[-1]).dropout(self.dropout)]


class T5EncoderModel(Layer):
    """Hidden states of tokens."""

    def __init__(self, config: Fields) -> None:
        c = _read(config)
        self.shared = nn.Embedding(config.integer("vocab_size"), c.hidden)
        self.encoder = T5Stack(c, is_decoder=False)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, output_hidden_states: bool = False
    ) -> dict[str, Any]:
        """`last_hidden_state` (batch, length, hidden), and `hidden_states`, if asked for.

        input_ids: (batch, length); attention_mask: the same, 0 for padding. Raises ShapeError.
        """
        step = whole_sequence(input_ids, attention_mask)
        states = self.encoder.states(self.shared(input_ids).float(), step)
        return features(states, output_hidden_states)


class T5ForConditionalGeneration(EncoderDecoder):
    """A text for a text.

    >>> sizes = {"d_model": 8, "d_kv": 4, "d_ff": 16, "num_layers": 1, "num_heads": 2}
    >>> model = T5ForConditionalGeneration(Fields({**sizes, "vocab_size": 50}))
    >>> model.forward(Tensor([[2, 7, 3]]), decoder_input_ids=Tensor([[0, 4]]))["logits"].shape
    (1, 2, 50)
    """

    def __init__(self, config: Fields) -> None:
        c = _read(config)
        self.max_length = _UNBOUNDED
        self.cache_shape = (c.decoder_layers, c.attention.heads, c.attention.head_size)
        self.start_token, self.padding_token = read_tokens(config)
        self.vocabulary = config.integer("vocab_size")
        self.shared = nn.Embedding(self.vocabulary, c.hidden)
        self.encoder = T5Stack(c, is_decoder=False)
        self.decoder = T5Stack(c, is_decoder=True)
        # newer files say it in an entry of its own
        is_tied = config.flag("scale_decoder_outputs", config.flag("tie_word_embeddings", True))
        self.lm_head = None if is_tied else nn.Linear(c.hidden, self.vocabulary, bias=False)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool = False,
    ) -> dict[str, Any]:
        """`logits` (batch, decoder length, vocabulary), and more: see `EncoderDecoder.predict`.

        input_ids: (batch, length); decoder_input_ids: (batch, decoder length), made of `labels` unless given;
        masks: the same, 0 for padding. Raises ArgumentError, ShapeError.
        """
        return self.predict(
            input_ids, attention_mask, decoder_input_ids, decoder_attention_mask, labels, output_hidden_states
        )

    def encoder_states(self, inputs: Tensor, attention_mask: Tensor | None) -> list[Tensor]:
        step = whole_sequence(inputs, attention_mask)
        return self.encoder.states(self.shared(inputs).float(), step)

    def cross_attentions(self) -> list[CrossAttention]:
        return [layer.cross_attention for layer in self.decoder.layers]

    def decoder_states(
        self, tokens: Tensor, positions: Tensor, step: ForwardContext, memory: EncoderMemory
    ) -> list[Tensor]:
        return self.decoder.states(self.shared(tokens).float(), step, memory)

    def logits(self, hidden: Tensor) -> Tensor:
        if self.lm_head is not None:
            return self.lm_head(hidden)
        # tied embeddings are large, because they are not scaled as inputs
        return linear(hidden * hidden.shape[-1] ** -0.5, self.shared.weight)


def _stack_names(stack: str, feed_forward: int) -> tuple[tuple[str, str], ...]:
    """`feed_forward`: the number of the feed-forward part among the parts of a layer."""
    ours, theirs = f"{stack}.layers.{{}}", f"{stack}.block.{{}}.layer"
    parts = (("q_proj", "q"), ("k_proj", "k"), ("v_proj", "v"), ("o_proj", "o"))
    dense = f"{theirs}.{feed_forward}.DenseReluDense"
    return (
        *((f"{ours}.attention.{a}", f"{theirs}.0.SelfAttention.{b}") for a, b in parts),
        (f"{ours}.attention_norm", f"{theirs}.0.layer_norm"),
        *((f"{ours}.cross_attention.{a}", f"{theirs}.1.EncDecAttention.{b}") for a, b in parts),
        (f"{ours}.cross_norm", f"{theirs}.1.layer_norm"),
        (f"{ours}.feed_forward_norm", f"{theirs}.{feed_forward}.layer_norm"),
        (f"{ours}.feed_forward.up_proj", f"{dense}.wi"),
        (f"{ours}.feed_forward.down_proj", f"{dense}.wo"),
        (f"{ours}.gated_feed_forward.gate_proj", f"{dense}.wi_0"),
        (f"{ours}.gated_feed_forward.up_proj", f"{dense}.wi_1"),
        (f"{ours}.gated_feed_forward.down_proj", f"{dense}.wo"),
        (f"{stack}.relative_bias", f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias"),
        (f"{stack}.final_norm", f"{stack}.final_layer_norm"),
    )


_NAMES = Names(
    renames=(*_stack_names("encoder", 1), *_stack_names("decoder", 2)),
    # files of version 1.1 that were written after both had been made the same
    elsewhere=(("lm_head", "shared"),),
)

ARCHITECTURES = (
    Architecture("T5ForConditionalGeneration", "text-to-text", T5ForConditionalGeneration, _NAMES),
    Architecture("T5EncoderModel", "text-features", T5EncoderModel, _NAMES),
)
