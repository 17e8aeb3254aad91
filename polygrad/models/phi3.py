"""Phi-3 and Phi-4-mini (Abdin et al., 2024): Llama's layers, with joined projections in the checkpoint."""

from __future__ import annotations

from polygrad.models.architecture import Architecture
from polygrad.models.llama import Decoder
from polygrad.models.mistral import mistral_config
from polygrad.models.names import Names

_NAMES = Names(
    joined=(("qkv_proj", ("q_proj", "k_proj", "v_proj")), ("gate_up_proj", ("gate_proj", "up_proj")))
)

ARCHITECTURES = (
    Architecture("Phi3ForCausalLM", "causal-lm", lambda config: Decoder(mistral_config(config)), _NAMES),
)
