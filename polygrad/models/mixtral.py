"""Mixtral (Jiang et al., 2024): Mistral's layers with experts in the place of the feed-forward part."""

from __future__ import annotations

from dataclasses import replace

from polygrad.models.activations import activation
from polygrad.models.architecture import Architecture
from polygrad.models.feed_forward import Experts
from polygrad.models.fields import Fields
from polygrad.models.llama import Decoder, DecoderConfig
from polygrad.models.mistral import mistral_config
from polygrad.models.names import Names


def mixtral_config(config: Fields) -> DecoderConfig:
    """Mixtral's configuration."""
    decoder_config = mistral_config(config)
    inner, act = config.integer("intermediate_size"), activation(config, "hidden_act", "silu")
    count, per_token = config.integer("num_local_experts"), config.integer("num_experts_per_tok")
    if per_token > count:
        raise config.refuse("num_experts_per_tok", f"at most num_local_experts, {count}")
    return replace(
        decoder_config,
        feed_forward=lambda _: Experts(decoder_config.hidden, inner, act, count, per_token, renormalize=True),
    )


_NAMES = Names(
    stacked=tuple(
        (f"mlp.{ours}", f"mlp.experts.{{}}.{theirs}.weight")
        for ours, theirs in (("gate_proj", "w1"), ("up_proj", "w3"), ("down_proj", "w2"))
    ),
    renames=(("mlp.router", "mlp.gate"), ("layers.{}.mlp", "layers.{}.block_sparse_moe")),
)

ARCHITECTURES = (
    Architecture("MixtralForCausalLM", "causal-lm", lambda config: Decoder(mixtral_config(config)), _NAMES),
)
