"""Mistral (Jiang et al., 2023): Llama's layers, which see a window of tokens."""

from __future__ import annotations

from polygrad.models.architecture import Architecture
from polygrad.models.fields import Fields
from polygrad.models.llama import Decoder, DecoderConfig, read_config, with_attention


def mistral_config(config: Fields) -> DecoderConfig:
    """Mistral's configuration."""
    return with_attention(read_config(config), window=config.integer("sliding_window", None))


ARCHITECTURES = (
    Architecture("MistralForCausalLM", "causal-lm", lambda config: Decoder(mistral_config(config))),
)
