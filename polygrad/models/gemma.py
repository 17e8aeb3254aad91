"""Gemma 1 to 3 (Gemma Team, 2024 and 2025): Llama's parts, with normalisations around each part, scaled
embeddings, and layers that see a window between layers that see all."""

from __future__ import annotations

import math
from dataclasses import replace

from polygrad import nn
from polygrad.models.activations import activation
from polygrad.models.architecture import Architecture
from polygrad.models.attention import CausalSelfAttention, ForwardContext
from polygrad.models.feed_forward import GatedFeedForward
from polygrad.models.fields import Fields
from polygrad.models.llama import ROTATION, Decoder, DecoderConfig, read_config
from polygrad.models.rotary import rotary
from polygrad.nn.layer import Layer
from polygrad.tensor.tensor import Tensor

_WINDOWED = "sliding_attention"
_FULL = "full_attention"


class OffsetRMSNorm(nn.RMSNorm):
    """RMSNorm whose checkpoints store the weight minus 1."""

    def __call__(self, x: Tensor) -> Tensor:
        wide = x.float()
        out = wide * (wide.square().mean(-1, keepdim=True) + self.eps).rsqrt()
        assert self.weight is not None
        return (out * (self.weight.float() + 1)).cast(x.dtype)


class SandwichLayer(Layer):
    """Attention and a feed-forward part; a normalisation before and behind each."""

    def __init__(self, config: DecoderConfig, index: int) -> None:
        hidden, eps = config.hidden, config.eps
        self.input_layernorm = config.norm(hidden, eps)
        self.post_attention_layernorm = config.norm(hidden, eps)
        self.pre_feedforward_layernorm = config.norm(hidden, eps)
        self.post_feedforward_layernorm = config.norm(hidden, eps)
        self.self_attn = CausalSelfAttention(config.attention[index], index)
        self.mlp = config.feed_forward(index)

    def __call__(self, x: Tensor, step: ForwardContext) -> Tensor:
        x = x + self.post_attention_layernorm(self.self_attn(self.input_layernorm(x), step))
        return x + self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(x)))


class Gemma(Decoder):
    """Gemma: a Decoder whose embeddings are scaled and whose scores may be capped."""

    def __init__(self, config: DecoderConfig, softcap: float | None = None) -> None:
        super().__init__(config)
        self.softcap, self.scale = softcap, math.sqrt(config.hidden)

    def hidden_states(self, tokens: Tensor, positions: Tensor, step: ForwardContext) -> list[Tensor]:
        x = self.model.embed_tokens(tokens).float() * self.scale
        states = self.run_layers(self.model.layers, x, step)
        return [*states[:-1], self.model.norm(states[-1])]

    def logits(self, hidden: Tensor) -> Tensor:
        scores = super().logits(hidden)
        return scores if self.softcap is None else (scores / self.softcap).tanh() * self.softcap


def gemma_config(config: Fields) -> DecoderConfig:
    """The common part of the configurations of all generations."""
    # GemmaConfig has hidden_act, its successors hidden_activation
    name = "hidden_activation" if "hidden_activation" in config else "hidden_act"
    act = activation(config, name, "gelu_pytorch_tanh")
    decoder_config = read_config(Fields({"hidden_act": "gelu", **config.values}, config.where))
    inner = config.integer("intermediate_size")
    return replace(
        decoder_config,
        max_length=config.integer("max_position_embeddings", 8192),
        is_tied=config.flag("tie_word_embeddings", True),
        feed_forward=lambda _: GatedFeedForward(decoder_config.hidden, inner, act),
        norm=OffsetRMSNorm,
    )


def _gemma1(config: Fields) -> Gemma:
    return Gemma(gemma_config(config))


def _layer_types(config: Fields, layers: int, pattern: int) -> list[str]:
    """The kind of each layer: all but each `pattern`-th see a window, unless the configuration says
    otherwise."""
    usual = [_FULL if (i + 1) % pattern == 0 else _WINDOWED for i in range(layers)]
    kinds = config.items("layer_types", str, usual)
    if len(kinds) != layers or not {*kinds} <= {_FULL, _WINDOWED}:
        raise config.refuse("layer_types", f"{layers} of {_FULL} and {_WINDOWED}")
    return kinds


def _gemma2(config: Fields) -> Gemma:
    decoder_config = gemma_config(config)
    window = config.integer("sliding_window", 4096)
    kinds = _layer_types(config, len(decoder_config.attention), 2)
    scale = config.number("query_pre_attn_scalar", 256.0) ** -0.5
    softcap = config.number("attn_logit_softcapping", None)
    attention = tuple(
        replace(a, window=window if kind == _WINDOWED else None, scale=scale, softcap=softcap)
        for a, kind in zip(decoder_config.attention, kinds)
    )
    decoder_config = replace(decoder_config, attention=attention, layer=SandwichLayer)
    return Gemma(decoder_config, config.number("final_logit_softcapping", None))


def _gemma3(config: Fields) -> Gemma:
    """Queries and keys are normalised; the two kinds of layers have rotary tables of their own."""
    decoder_config = gemma_config(config)
    window = config.integer("sliding_window", 4096)
    kinds = _layer_types(
        config,
        len(decoder_config.attention),
        config.integer("_sliding_window_pattern", config.integer("sliding_window_pattern", 6)),
    )
    scale = config.number("query_pre_attn_scalar", 256.0) ** -0.5
    attention = tuple(
        replace(
            a,
            window=window if kind == _WINDOWED else None,
            rotation=_WINDOWED if kind == _WINDOWED else ROTATION,
            scale=scale,
            norm_eps=decoder_config.eps,
            norm=OffsetRMSNorm,
        )
        for a, kind in zip(decoder_config.attention, kinds)
    )
    size = decoder_config.attention[0].head_size
    # older files: rope_theta and rope_scaling are those of the layers that see all
    local = (
        config
        if "rope_parameters" in config
        else Fields({"rope_theta": config.number("rope_local_base_freq", 10000.0)}, config.where)
    )
    rotaries = {
        ROTATION: rotary(config, size, 1e6, _FULL),
        _WINDOWED: rotary(local, size, 1e4, _WINDOWED),
    }
    decoder_config = replace(decoder_config, attention=attention, rotaries=rotaries, layer=SandwichLayer)
    return Gemma(decoder_config, config.number("final_logit_softcapping", None))


ARCHITECTURES = (
    Architecture("GemmaForCausalLM", "causal-lm", _gemma1),
    Architecture("Gemma2ForCausalLM", "causal-lm", _gemma2),
    Architecture("Gemma3ForCausalLM", "causal-lm", _gemma3),
)
