"""Llama 1 to 3 (Touvron et al., 2023), and the base of families with the same structure.

A layer normalises, attends with rotary positions, normalises again, and has a gated feed-forward part.
Families differ in data: biases, windows, norms of queries and keys, experts (`DecoderConfig`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from polygrad import nn
from polygrad.models.activations import activation
from polygrad.models.architecture import Architecture
from polygrad.models.attention import AttentionConfig, CausalSelfAttention, ForwardContext
from polygrad.models.causal_lm import CausalLM
from polygrad.models.dropout import dropout
from polygrad.models.feed_forward import GatedFeedForward
from polygrad.models.fields import Fields
from polygrad.models.names import Names
from polygrad.models.rotary import Rotary, rotary
from polygrad.models.text_classification import classifier
from polygrad.nn.layer import Layer
from polygrad.nn.packed import linear
from polygrad.tensor.tensor import Tensor

ROTATION = "full"  # the one table of most families


@dataclass(frozen=True)
class DecoderConfig:
    """The structure of a decoder of this kind.

    `attention`: of each layer. `feed_forward`: makes the feed-forward part of a layer, by its number.
    `rotaries`: tables by the names that the layers' attention has. `is_tied`: scores are products with the
    embeddings. `norm`, `layer`: classes; None: `DecoderLayer`.
    """

    vocabulary: int
    hidden: int
    max_length: int
    eps: float
    is_tied: bool
    attention: tuple[AttentionConfig, ...]
    feed_forward: Callable[[int], Any]
    rotaries: dict[str, Rotary]
    norm: Any = nn.RMSNorm
    layer: Any = None


class DecoderLayer(Layer):
    """Attention and a feed-forward part, each behind a normalisation and with its input added."""

    def __init__(self, config: DecoderConfig, index: int) -> None:
        self.input_layernorm = config.norm(config.hidden, config.eps)
        self.self_attn = CausalSelfAttention(config.attention[index], index)
        self.post_attention_layernorm = config.norm(config.hidden, config.eps)
        self.mlp = config.feed_forward(index)

    def __call__(self, x: Tensor, step: ForwardContext) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), step)
        return x + self.mlp(self.post_attention_layernorm(x))


class DecoderTrunk(Layer):
    """Embeddings, layers and a last normalisation."""

    def __init__(self, config: DecoderConfig) -> None:
        self.embed_tokens = nn.Embedding(config.vocabulary, config.hidden)
        layer = config.layer or DecoderLayer
        self.layers = [layer(config, i) for i in range(len(config.attention))]
        self.norm = config.norm(config.hidden, config.eps)


class Decoder(CausalLM):
    """A decoder with the structure `config`."""

    def __init__(self, config: DecoderConfig) -> None:
        first = config.attention[0]
        self.vocabulary, self.max_length = config.vocabulary, config.max_length
        self.rotaries = config.rotaries
        self.cache_shape = (len(config.attention), first.kv_heads, first.head_size)
        self.model = DecoderTrunk(config)
        self.lm_head = None if config.is_tied else nn.Linear(config.hidden, config.vocabulary, bias=False)

    def hidden_states(self, tokens: Tensor, positions: Tensor, step: ForwardContext) -> list[Tensor]:
        states = self.run_layers(self.model.layers, self.model.embed_tokens(tokens).float(), step)
        return [*states[:-1], self.model.norm(states[-1])]

    def logits(self, hidden: Tensor) -> Tensor:
        if self.lm_head is not None:
            return self.lm_head(hidden)
        return linear(hidden, self.model.embed_tokens.weight)


def read_config(config: Fields) -> DecoderConfig:
    """Read Llama's configuration; other families `replace` what differs."""
    hidden, heads = config.integer("hidden_size"), config.integer("num_attention_heads")
    kv_heads = config.integer("num_key_value_heads", heads)
    if heads % kv_heads:
        raise config.refuse("num_key_value_heads", f"a divisor of num_attention_heads, {heads}")
    if "head_dim" not in config and hidden % heads:
        raise config.refuse("num_attention_heads", f"a divisor of hidden_size, {hidden}")
    head_size = config.integer("head_dim", hidden // heads)
    bias = config.flag("attention_bias", False)
    attention = AttentionConfig(
        hidden, heads, kv_heads, head_size, bias, bias, rotation=ROTATION, dropout=dropout(config)
    )
    act = activation(config, "hidden_act", "silu")
    inner, mlp_bias = config.integer("intermediate_size"), config.flag("mlp_bias", False)
    return DecoderConfig(
        vocabulary=config.integer("vocab_size"),
        hidden=hidden,
        max_length=config.integer("max_position_embeddings", 2048),
        eps=config.number("rms_norm_eps", 1e-6),
        is_tied=config.flag("tie_word_embeddings", False),
        attention=(attention,) * config.count("num_hidden_layers"),
        feed_forward=lambda _: GatedFeedForward(hidden, inner, act, mlp_bias),
        rotaries={ROTATION: rotary(config, head_size)},
    )


def with_attention(config: DecoderConfig, **changes: Any) -> DecoderConfig:
    """`config` with the attention of all layers changed."""
    return replace(config, attention=tuple(replace(a, **changes) for a in config.attention))


def with_windows(config: DecoderConfig, windows: list[int | None]) -> DecoderConfig:
    """`config` with a window (or None) for each layer."""
    pairs = zip(config.attention, windows, strict=True)
    return replace(config, attention=tuple(replace(a, window=w) for a, w in pairs))


CLASSIFIER_NAMES = Names(renames=(("trunk.model", "model"),))

ARCHITECTURES = (
    Architecture("LlamaForCausalLM", "causal-lm", lambda config: Decoder(read_config(config))),
    Architecture(
        "LlamaForSequenceClassification",
        "text-classification",
        classifier(lambda config: Decoder(read_config(config)), "hidden_size"),
        CLASSIFIER_NAMES,
    ),
)
