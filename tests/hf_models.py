"""Small random models of the families that predict the next token, saved by transformers and loaded here."""

from __future__ import annotations

import functools
import tempfile
from typing import Any

import numpy as np
import torch
import transformers

from polygrad import hf

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

_BASE = {
    "vocab_size": 99,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_ROPE = {"rope_theta": 10000.0}
_EXPERTS = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 24}

# By name: the architecture, and what its configuration has beside or instead of _BASE.
DECODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {}),
    "llama tied, biases, llama3 positions": (
        "Llama",
        {
            "tie_word_embeddings": True,
            "attention_bias": True,
            "mlp_bias": True,
            "head_dim": 12,
            "rope_parameters": {
                "rope_type": "llama3",
                "rope_theta": 500000.0,
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 64,
            },
        },
    ),
    "llama, linear positions": (
        "Llama",
        {"rope_parameters": {"rope_type": "linear", "factor": 2.0, **_ROPE}},
    ),
    "llama, yarn positions": (
        "Llama",
        {
            "rope_parameters": {
                "rope_type": "yarn",
                "factor": 4.0,
                "original_max_position_embeddings": 32,
                **_ROPE,
            }
        },
    ),
    "llama, dynamic positions": (
        "Llama",
        {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, **_ROPE}},
    ),
    "mistral": ("Mistral", {"sliding_window": 7}),
    "qwen2": ("Qwen2", {}),
    "qwen2, windows": ("Qwen2", {"use_sliding_window": True, "sliding_window": 6, "max_window_layers": 1}),
    "qwen3": ("Qwen3", {"head_dim": 16}),
    "qwen2 experts": ("Qwen2Moe", {**_EXPERTS, "shared_expert_intermediate_size": 20}),
    "qwen3 experts": ("Qwen3Moe", {**_EXPERTS, "head_dim": 16, "norm_topk_prob": True}),
    "mixtral": ("Mixtral", {"num_local_experts": 4, "num_experts_per_tok": 2}),
    "phi3": ("Phi3", {"sliding_window": 9}),
    "phi3, long": (
        "Phi3",
        {
            "original_max_position_embeddings": 16,
            "rope_parameters": {
                "rope_type": "longrope",
                "partial_rotary_factor": 0.5,
                "original_max_position_embeddings": 16,
                "short_factor": [1.0, 1.1],
                "long_factor": [1.5, 3.0],
                **_ROPE,
            },
        },
    ),
    "smollm3": ("SmolLM3", {"num_hidden_layers": 5}),
    "gpt2": ("GPT2", {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 128}),
    "gemma": ("Gemma", {"head_dim": 16}),
    "gemma2": ("Gemma2", {"head_dim": 16, "sliding_window": 6, "query_pre_attn_scalar": 20}),
    "gemma3": (
        "Gemma3",
        {"num_hidden_layers": 7, "head_dim": 16, "sliding_window": 6, "query_pre_attn_scalar": 20},
    ),
}


@functools.cache
def reference(name: str) -> tuple[Any, str]:
    """transformers' model of a name, with random weights that tell its parts apart, and the folder that it
    was saved to."""
    family, changes = DECODERS[name]
    config_class = "Gemma3TextConfig" if family == "Gemma3" else f"{family}Config"
    head = "GPT2LMHeadModel" if family == "GPT2" else f"{family}ForCausalLM"
    base = {k: v for k, v in _BASE.items() if family != "GPT2" or k in ("vocab_size", "pad_token_id")}
    config = getattr(transformers, config_class)(**{**base, **changes})
    config.eos_token_id = None
    torch.manual_seed(0)
    model = getattr(transformers, head)(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn_like(p) * 0.15 if p.ndim > 1 else p + torch.randn_like(p) * 0.1)
    model.tie_weights()
    folder = tempfile.mkdtemp()
    model.save_pretrained(folder)
    return model, folder


def ours(name: str, **options: Any) -> Any:
    """The same model, loaded here."""
    return hf.load_hf(reference(name)[1], **options)


def token_ids(*shape: int, seed: int = 0) -> np.ndarray:
    """Random tokens that are not special."""
    return np.random.default_rng(seed).integers(3, 99, shape)


def greedy(name: str, prompt: list[int], count: int) -> list[int]:
    """What transformers' model writes behind a prompt."""
    model, _ = reference(name)
    out = model.generate(
        torch.tensor([prompt]), max_new_tokens=count, do_sample=False, eos_token_id=None, pad_token_id=0
    )
    return out[0, len(prompt) :].tolist()


def worst(got: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, of the largest number."""
    return float(abs(got - expected).max() / abs(expected).max())
