"""Qwen 2 and 3 (Yang et al., 2024 and 2025): Llama's layers; queries, keys and values have biases in the
second generation, queries and keys a normalisation in the third. Both exist with experts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from polygrad import nn
from polygrad.models.activations import activation
from polygrad.models.architecture import Architecture
from polygrad.models.feed_forward import Activation, Experts, GatedFeedForward
from polygrad.models.fields import Fields
from polygrad.models.llama import (
    CLASSIFIER_NAMES,
    Decoder,
    DecoderConfig,
    read_config,
    with_attention,
    with_windows,
)
from polygrad.models.names import Names
from polygrad.models.text_classification import classifier
from polygrad.nn.layer import Layer
from polygrad.tensor.tensor import Tensor


def qwen2_config(config: Fields) -> DecoderConfig:
    """Qwen2's configuration."""
    return _windows(config, with_attention(read_config(config), qkv_bias=True, out_bias=False))


def qwen3_config(config: Fields) -> DecoderConfig:
    """Qwen3's configuration."""
    decoder_config = read_config(config)
    return _windows(config, with_attention(decoder_config, norm_eps=decoder_config.eps))


def _windows(config: Fields, decoder_config: DecoderConfig) -> DecoderConfig:
    if not config.flag("use_sliding_window", False):
        return decoder_config
    window, first = config.integer("sliding_window", None), config.integer("max_window_layers", 28, least=0)
    layers = range(len(decoder_config.attention))
    if "layer_types" in config:
        kinds = config.items("layer_types", str)
        return with_windows(
            decoder_config, [window if kind == "sliding_attention" else None for kind in kinds]
        )
    return with_windows(decoder_config, [window if i >= first else None for i in layers])


class SharedExperts(Layer):
    """Experts, and a feed-forward part that all tokens go through, behind a gate of its own."""

    def __init__(self, experts: Experts, hidden: int, inner: int, act: Activation) -> None:
        self.experts = experts
        self.shared_expert = GatedFeedForward(hidden, inner, act)
        self.shared_expert_gate = nn.Linear(hidden, 1, bias=False)

    def __call__(self, x: Tensor) -> Tensor:
        return self.experts(x) + self.shared_expert_gate(x).sigmoid() * self.shared_expert(x)


def with_experts(config: Fields, decoder_config: DecoderConfig, shared: bool) -> DecoderConfig:
    """`decoder_config` with experts in the layers that have some."""
    act = activation(config, "hidden_act", "silu")
    inner = config.integer("moe_intermediate_size")
    # transformers 5 writes num_local_experts, older files have num_experts
    count = config.integer("num_local_experts", config.integer("num_experts", 60))
    per_token, every = config.integer("num_experts_per_tok"), config.integer("decoder_sparse_step", 1)
    dense = set(config.items("mlp_only_layers", int, []))
    renormalize = config.flag("norm_topk_prob", False)
    if per_token > count:
        raise config.refuse("num_experts_per_tok", f"at most the number of experts, {count}")

    def feed_forward(index: int) -> Any:
        if index in dense or (index + 1) % every:
            return decoder_config.feed_forward(index)
        experts = Experts(decoder_config.hidden, inner, act, count, per_token, renormalize)
        if not shared:
            return experts
        return SharedExperts(
            experts, decoder_config.hidden, config.integer("shared_expert_intermediate_size"), act
        )

    return replace(decoder_config, feed_forward=feed_forward)


_STACKED = tuple(
    (f"experts.{name}", f"experts.{{}}.{name}.weight") for name in ("gate_proj", "up_proj", "down_proj")
)
_QWEN2_MOE = Names(
    stacked=_STACKED, renames=(("mlp.experts.router", "mlp.gate"), ("mlp.experts.experts", "mlp.experts"))
)
_QWEN3_MOE = Names(
    stacked=tuple((f"mlp.{ours.removeprefix('experts.')}", f"mlp.{theirs}") for ours, theirs in _STACKED),
    renames=(("mlp.router", "mlp.gate"),),
)

ARCHITECTURES = (
    Architecture("Qwen2ForCausalLM", "causal-lm", lambda config: Decoder(qwen2_config(config))),
    Architecture(
        "Qwen2ForSequenceClassification",
        "text-classification",
        classifier(lambda config: Decoder(qwen2_config(config)), "hidden_size"),
        CLASSIFIER_NAMES,
    ),
    Architecture(
        "Qwen3ForSequenceClassification",
        "text-classification",
        classifier(lambda config: Decoder(qwen3_config(config)), "hidden_size"),
        CLASSIFIER_NAMES,
    ),
    Architecture("Qwen3ForCausalLM", "causal-lm", lambda config: Decoder(qwen3_config(config))),
    Architecture(
        "Qwen2MoeForCausalLM",
        "causal-lm",
        lambda config: Decoder(with_experts(config, qwen2_config(config), shared=True)),
        _QWEN2_MOE,
    ),
    Architecture(
        "Qwen3MoeForCausalLM",
        "causal-lm",
        lambda config: Decoder(with_experts(config, qwen3_config(config), shared=False)),
        _QWEN3_MOE,
    ),
)
