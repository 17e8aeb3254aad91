"""GGUF files of small random models, written by the package of ggml's authors as its converter does."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import safetensors.numpy
import torch
import transformers

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

_BASE = {
    "vocab_size": 128,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
# By name: transformers' class, ggml's architecture, and what the configuration has beside _BASE.
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "llama": ("Llama", "llama", {}),
    "llama tied, biases, llama3 positions": (
        "Llama",
        "llama",
        {
            "tie_word_embeddings": True,
            "attention_bias": True,
            "mlp_bias": True,
            "head_dim": 32,
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
        "llama",
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}},
    ),
    "llama, yarn positions": (
        "Llama",
        "llama",
        {
            "rope_parameters": {
                "rope_type": "yarn",
                "rope_theta": 10000.0,
                "factor": 4.0,
                "original_max_position_embeddings": 32,
            }
        },
    ),
    "mixtral": (
        "Mixtral",
        "llama",
        {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": None},
    ),
    "qwen2": ("Qwen2", "qwen2", {}),
    "qwen2 experts": (
        "Qwen2Moe",
        "qwen2moe",
        {
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 32,
            "shared_expert_intermediate_size": 64,
        },
    ),
    "qwen3": ("Qwen3", "qwen3", {"head_dim": 32}),
    "qwen3 experts": (
        "Qwen3Moe",
        "qwen3moe",
        {
            "head_dim": 32,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 32,
            "norm_topk_prob": True,
        },
    ),
    "gemma": ("Gemma", "gemma", {"head_dim": 32}),
    "gemma2": ("Gemma2", "gemma2", {"head_dim": 32, "sliding_window": 6, "query_pre_attn_scalar": 32}),
    "gemma3": (
        "Gemma3",
        "gemma3",
        {"num_hidden_layers": 7, "head_dim": 32, "sliding_window": 6, "query_pre_attn_scalar": 32},
    ),
    "phi3": ("Phi3", "phi3", {"sliding_window": 9}),
    "phi3, long": (
        "Phi3",
        "phi3",
        {
            "original_max_position_embeddings": 16,
            "rope_parameters": {
                "rope_type": "longrope",
                "partial_rotary_factor": 0.5,
                "rope_theta": 10000.0,
                "original_max_position_embeddings": 16,
                "short_factor": [1.0, 1.1, 1.2, 1.3],
                "long_factor": [1.5, 3.0, 4.0, 5.0],
            },
        },
    ),
    "gpt2": ("GPT2", "gpt2", {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128}),
}


@functools.cache
def _model(name: str) -> Any:
    family, _, changes = MODELS[name]
    config_class = "Gemma3TextConfig" if family == "Gemma3" else f"{family}Config"
    head = "GPT2LMHeadModel" if family == "GPT2" else f"{family}ForCausalLM"
    base = {k: v for k, v in _BASE.items() if family != "GPT2" or k in ("vocab_size", "pad_token_id")}
    config = getattr(transformers, config_class)(**{**base, **changes})
    torch.manual_seed(0)
    model = getattr(transformers, head)(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn_like(p) * 0.15 if p.ndim > 1 else p + torch.randn_like(p) * 0.1)
    model.tie_weights()
    return model


@functools.cache
def files(name: str, kind: str, tensors_per_file: int = 0) -> tuple[str, str]:
    """A GGUF file whose matrices are of a kind, and the folder of a checkpoint in float32 with the same
    numbers. `tensors_per_file`: 0 for one file; the first of several is given."""
    family, arch, _ = MODELS[name]
    model, folder = _model(name), Path(tempfile.mkdtemp())
    model.save_pretrained(folder)
    state = safetensors.numpy.load_file(folder / "model.safetensors")
    writer = gguf.GGUFWriter(folder / "model.gguf", arch, split_max_tensors=tensors_per_file)
    _write_metadata(writer, model.config.to_dict(), family, arch)
    _write_tokenizer(writer)
    names = gguf.get_tensor_name_map(_arch(arch), model.config.num_hidden_layers)
    arrays: dict[str, np.ndarray] = {}
    for key, value in state.items():
        if family == "GPT2" and key.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
            value = np.ascontiguousarray(value.T)
        if family.startswith("Gemma") and key.endswith("norm.weight"):
            value = value + 1
        arrays[key] = value[0] if key.endswith("shared_expert_gate.weight") else value
    for key, value in _stacked(arrays).items():
        heads = _heads_of_pairs(model.config, arch, key)
        blocks, floats = _stored(_pairs(value, heads) if heads else value, kind)
        if floats is not None:
            floats = _pairs_back(floats, heads) if heads else floats
        _write_tensor(writer, names, key, blocks, kind if floats is not None else None)
        if floats is not None:
            _put_back(state, key, floats, family)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    safetensors.numpy.save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    return str(sorted(folder.glob("*.gguf"))[0]), str(folder)


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "\u2581the", "\u2581cat", "\u2581sat", "s"]


@functools.cache
def encoder(pooling: str, kind: str = "F32") -> tuple[str, Any]:
    """A GGUF file of a BERT as its converter writes it, and transformers' model without a pooler."""
    config = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=40,
    )
    torch.manual_seed(0)
    model = transformers.BertModel(config, add_pooling_layer=False).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn_like(p) * 0.15 if p.ndim > 1 else p + torch.randn_like(p) * 0.1)
    path = Path(tempfile.mkdtemp()) / "model.gguf"
    writer = gguf.GGUFWriter(path, "bert")
    writer.add_embedding_length(64)
    writer.add_block_count(2)
    writer.add_head_count(4)
    writer.add_context_length(40)
    writer.add_feed_forward_length(96)
    writer.add_layer_norm_eps(config.layer_norm_eps)
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType[pooling])
    writer.add_token_type_count(2)
    writer.add_tokenizer_model("bert")
    writer.add_token_list(WORDS)
    writer.add_token_types([3] * 5 + [1] * (len(WORDS) - 5))
    # "seperator" is the format's spelling
    for number, name in enumerate(("padding", "unknown", "cls", "seperator", "mask")):
        writer.add_uint32(f"tokenizer.ggml.{name}_token_id", number)
    names = gguf.get_tensor_name_map(_arch("bert"), 2)
    with torch.no_grad():
        for key, value in model.named_parameters():
            is_matrix = value.ndim == 2 and ".layer." in key
            blocks, floats = _stored(value.numpy(), kind if is_matrix else "F32")
            if floats is not None:
                value.copy_(torch.from_numpy(floats))
            _write_tensor(writer, names, key, blocks, kind if floats is not None else None)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return str(path), model


# A byte-level BPE of 128 tokens: three that are special, letters, and words.
TOKENS = ["<pad>", "<s>", "</s>", *(chr(i) for i in range(33, 127)), "\u0120"]
MERGES = ["h e", "l l", "he ll", "hell o", "\u0120 w", "o r", "\u0120w or", "\u0120wor l", "\u0120worl d"]
TOKENS += [merge.replace(" ", "") for merge in MERGES]
TOKENS += [f"<unused{i}>" for i in range(128 - len(TOKENS))]


def _write_tokenizer(writer: Any) -> None:
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(TOKENS)
    writer.add_token_types([3, 3, 3] + [1] * (len(TOKENS) - 3))
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(0)


def _arch(name: str) -> Any:
    return next(a for a, text in gguf.MODEL_ARCH_NAMES.items() if text == name)


def _stacked(state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Experts' weights as one tensor, as the converter writes them."""
    out: dict[str, np.ndarray] = {}
    groups: dict[str, list[tuple[int, np.ndarray]]] = {}
    for key, value in state.items():
        stem, separator, suffix = key.partition(".experts.")
        if not separator:
            out[key] = value
            continue
        index, _, part = suffix.partition(".")
        groups.setdefault(f"{stem}.experts.{part}", []).append((int(index), value))
    for key, parts in groups.items():
        out[key] = np.stack([value for _, value in sorted(parts, key=lambda p: p[0])])
    return out


def _heads_of_pairs(config: Any, arch: str, key: str) -> int:
    """How many heads a tensor has whose rows the converter reorders; 0 for others."""
    if arch != "llama":
        return 0
    if "q_proj" in key:
        return int(config.num_attention_heads)
    return int(config.num_key_value_heads) if "k_proj" in key else 0


def _pairs(x: np.ndarray, heads: int) -> np.ndarray:
    return x.reshape(heads, 2, len(x) // heads // 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def _pairs_back(x: np.ndarray, heads: int) -> np.ndarray:
    return x.reshape(heads, len(x) // heads // 2, 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def _stored(value: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray | None]:
    """What the file has, and the numbers that it stands for, if others than `value`."""
    if value.ndim < 2 or kind == "F32":
        return value.astype(np.float32), None
    type_ = gguf.GGMLQuantizationType[kind]
    if kind == "F16":
        halves = value.astype(np.float16)
        return halves, halves.astype(np.float32)
    blocks = gguf.quants.quantize(value, type_)
    return blocks, gguf.quants.dequantize(blocks, type_)


def _write_tensor(writer: Any, names: Any, key: str, blocks: np.ndarray, kind: str | None) -> None:
    stem, _, suffix = key.rpartition(".")
    full_name = names.get_name(stem, try_suffixes=()) or names.get_name(key.replace(".weight", ""))
    assert full_name is not None, key
    is_blocks = kind not in (None, "F16", "F32")
    writer.add_tensor(
        f"{full_name}.{suffix}", blocks, raw_dtype=gguf.GGMLQuantizationType[kind] if is_blocks else None
    )


def _put_back(state: dict[str, np.ndarray], key: str, floats: np.ndarray, family: str) -> None:
    if family == "GPT2" and key.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
        floats = np.ascontiguousarray(floats.T)
    if ".experts." not in key:
        state[key] = floats
        return
    stem, _, part = key.partition(".experts.")
    for i, expert in enumerate(floats):
        state[f"{stem}.experts.{i}.{part}"] = np.ascontiguousarray(expert)


def _write_metadata(writer: Any, config: dict[str, Any], family: str, arch: str) -> None:
    if family == "GPT2":
        writer.add_embedding_length(config["n_embd"])
        writer.add_block_count(config["n_layer"])
        writer.add_head_count(config["n_head"])
        writer.add_context_length(config["n_positions"])
        writer.add_feed_forward_length(4 * config["n_embd"])
        writer.add_layer_norm_eps(config["layer_norm_epsilon"])
        return
    heads = config["num_attention_heads"]
    size = config.get("head_dim") or config["hidden_size"] // heads
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    if size != config["hidden_size"] // heads:
        writer.add_key_length(size)
        writer.add_value_length(size)
    rope = config["rope_parameters"]
    rope = rope.get("full_attention", rope)
    writer.add_rope_freq_base(rope["rope_theta"])
    if rope["rope_type"] in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(rope["rope_type"]))
        writer.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] == "yarn":
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if rope["rope_type"] == "llama3":
        writer.add_tensor("rope_freqs.weight", _llama3_factors(rope, size))
    if arch == "phi3":
        writer.add_rope_dimension_count(int(size * rope.get("partial_rotary_factor", 1.0)))
        writer.add_rope_scaling_orig_ctx_len(rope.get("original_max_position_embeddings", 128))
        writer.add_sliding_window(config["sliding_window"] or 128)
    if rope["rope_type"] == "longrope":
        scale = max(config["max_position_embeddings"] / rope["original_max_position_embeddings"], 1.0)
        original = rope["original_max_position_embeddings"]
        writer.add_rope_scaling_attn_factors(float(np.sqrt(1 + np.log(scale) / np.log(original))))
        for kind in ("short", "long"):
            writer.add_tensor(f"rope_factors_{kind}.weight", np.array(rope[f"{kind}_factor"], np.float32))
    if arch in ("gemma2", "gemma3"):
        writer.add_sliding_window(config["sliding_window"])
    if arch == "gemma2":
        writer.add_attn_logit_softcapping(config["attn_logit_softcapping"])
        writer.add_final_logit_softcapping(config["final_logit_softcapping"])
    count = config.get("num_local_experts") or config.get("num_experts")
    if count:
        writer.add_expert_count(count)
        writer.add_expert_used_count(config["num_experts_per_tok"])
    if arch in ("qwen2moe", "qwen3moe"):
        writer.add_expert_feed_forward_length(config["moe_intermediate_size"])
    if arch == "qwen2moe":
        writer.add_expert_shared_feed_forward_length(config["shared_expert_intermediate_size"])


def _llama3_factors(rope: dict[str, Any], size: int) -> np.ndarray:
    """What each frequency is divided by, as the converter computes it."""
    out = []
    low = rope["original_max_position_embeddings"] / rope["low_freq_factor"]
    high = rope["original_max_position_embeddings"] / rope["high_freq_factor"]
    for i in range(0, size, 2):
        wave = 2 * np.pi * rope["rope_theta"] ** (i / size)
        if wave < high:
            out.append(1.0)
        elif wave > low:
            out.append(rope["factor"])
        else:
            smooth = (rope["original_max_position_embeddings"] / wave - rope["low_freq_factor"]) / (
                rope["high_freq_factor"] - rope["low_freq_factor"]
            )
            out.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return np.array(out, np.float32)


# Where each block of a kind has its halves.
_HALVES = {"Q2_K": (80, 82), "Q3_K": (108,), "Q6_K": (208,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q4_1": (0, 2),
           "Q5_1": (0, 2), "Q4_0": (0,), "Q5_0": (0,), "Q8_0": (0,), "IQ4_NL": (0,)}  # fmt: skip


def random_blocks(kind: str, rows: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    """Blocks of a kind, whose bytes are random and whose halves make numbers of about 0.1."""
    type_ = gguf.GGMLQuantizationType[kind]
    numbers, nbytes = gguf.GGML_QUANT_SIZES[type_]
    blocks = rng.integers(0, 256, (rows, columns // numbers, nbytes)).astype(np.uint8)
    for at in _HALVES[kind]:
        halves = (rng.standard_normal((rows, columns // numbers, 1)) / 1000).astype(np.float16)
        blocks[..., at : at + 2] = halves.view(np.uint8)
    return blocks.reshape(rows, -1)
