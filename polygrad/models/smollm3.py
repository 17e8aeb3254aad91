"""SmolLM3 (Hugging Face, 2025): Llama's layers, every fourth of which has no positions. SmolLM 1 and 2 are
Llamas by name, too."""

from __future__ import annotations

from dataclasses import replace

from polygrad.models.architecture import Architecture
from polygrad.models.fields import Fields
from polygrad.models.llama import ROTATION, Decoder, DecoderConfig, read_config


def smollm3_config(config: Fields) -> DecoderConfig:
    """SmolLM3's configuration: `no_rope_layers` has 1 for layers that do rotate."""
    decoder_config = read_config(config)
    layers = len(decoder_config.attention)
    every = config.integer("no_rope_layer_interval", 4)
    rotates = config.items("no_rope_layers", int, [int((i + 1) % every != 0) for i in range(layers)])
    if len(rotates) != layers:
        raise config.refuse("no_rope_layers", f"{layers} numbers, one for each layer")
    pairs = zip(decoder_config.attention, rotates)
    return replace(
        decoder_config,
        attention=tuple(replace(a, rotation=ROTATION if is_turned else None) for a, is_turned in pairs),
    )


ARCHITECTURES = (
    Architecture("SmolLM3ForCausalLM", "causal-lm", lambda config: Decoder(smollm3_config(config))),
)
