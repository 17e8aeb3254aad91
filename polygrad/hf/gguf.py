"""GGUF files as models: their metadata as a configuration, and their tensors under a family's own names.

ggml's `docs/gguf.md` and llama.cpp's converter define the names of keys and tensors. Three things differ from
the original checkpoints: rows of Llama's queries and keys are permuted, Gemma's norms have 1 added, and the
factors of long contexts are tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.errors import ModelError
from polygrad.hf.gguf_parts import read_parts
from polygrad.hf.gguf_tensors import StoredTensor
from polygrad.models.fields import Fields
from polygrad.models.names import Names
from polygrad.nn.gguf import Blocks

Shape = tuple[int, ...]
# Tensors that are part of the configuration.
TABLES = ("rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight")
_LARGEST_TABLE = 1 << 16  # numbers of a table of rotary factors


class GGUFCheckpoint:
    """The tensors of a GGUF file. `row_pairs`: for the tensors, by how their names end, whose rows are pairs
    in the file and halves here, the heads that they have. `offset_norms`: norms have 1 added. `is_mapped`:
    see `StoredTensor`."""

    def __init__(self, where: str, tensors: Mapping[str, Blocks], is_mapped: bool = False) -> None:
        self.where, self._tensors, self._is_mapped = where, dict(tensors), is_mapped
        self.shapes: dict[str, Shape] = {name: t.shape for name, t in tensors.items()}
        self.row_pairs: dict[str, int] = {}
        self.offset_norms = False

    def put(self, name: str, data: Any) -> None:
        """Set the elements of a tensor: see `Blocks`."""
        self._tensors[name] = replace(self._tensors[name], data=data)

    def parts(self, name: str) -> list[str]:
        """See `polygrad.hf.checkpoint.Checkpoint`."""
        return [name]

    def make_rows(self, end: str) -> None:
        """Vectors whose names end so are matrices of one row from now on."""
        for name, blocks in self._tensors.items():
            if name.endswith(end) and len(blocks.shape) == 1:
                self._tensors[name] = replace(blocks, shape=(1, *blocks.shape))
                self.shapes[name] = (1, *blocks.shape)

    def dtype(self, name: str) -> DType:
        """The dtype in the file; of blocks that of their numbers."""
        return self._tensors[name].encoding.dtype or dtypes.float32

    def stored(self, name: str) -> tuple[str, int]:
        """How the file has the tensor: the name of its encoding, and its bytes."""
        tensor = self._tensors[name]
        return tensor.encoding.name, len(tensor.data)

    def read(self, name: str, device: str | None) -> StoredTensor:
        """The tensor, which is not read yet."""
        entry = self._tensors[name]
        heads = next((n for end, n in self.row_pairs.items() if name.endswith(end)), 0)
        is_norm = entry.encoding.dtype is not None and name.endswith("norm.weight")
        added = int(self.offset_norms and is_norm)
        return StoredTensor(entry, device, 0 if added else heads, added, self._is_mapped)

    def numbers(self, name: str) -> list[float]:
        """A short tensor of floats."""
        blocks = self._tensors[name]
        if blocks.encoding.dtype is not dtypes.float32 or not 0 < blocks.shape[0] <= _LARGEST_TABLE:
            raise ModelError(f"{self.where}: {name}: expected some float32, got {blocks.encoding.name}")
        return [float(x) for x in blocks.data.cast("f")]


@dataclass(frozen=True)
class GGUFModel:
    """A GGUF file: its configuration as a config.json has it, its tensors, what they are called, and all
    metadata, of which some describe the tokenizer."""

    config: Fields
    checkpoint: GGUFCheckpoint
    names: Names
    metadata: Mapping[str, Any]


def open_gguf(parts: Mapping[str, memoryview], is_mapped: bool = False) -> GGUFModel:
    """A GGUF file, or all parts of one in order: their bytes by their names. `is_mapped`: see `StoredTensor`.
    Raises ModelError."""
    return gguf_model(*read_parts(parts), is_mapped)


def gguf_model(
    where: str, metadata: dict[str, Any], tensors: Mapping[str, Blocks], is_mapped: bool = False
) -> GGUFModel:
    """A GGUF file, read as `read_parts` does. The elements of tensors may come later, except for those in
    TABLES. Raises ModelError."""
    fields = Fields(metadata, where)
    family = fields.choice("general.architecture", _FAMILIES)
    checkpoint = GGUFCheckpoint(where, tensors, is_mapped)
    reader = _MetadataReader(fields, family, checkpoint)
    config, names = _FAMILIES[family](reader)
    for table in TABLES:  # they are part of the configuration now
        checkpoint.shapes.pop(table, None)
    for entry in ("bos", "eos"):
        token = fields.integer(f"tokenizer.ggml.{entry}_token_id", None, least=0)
        if token is not None:
            config[f"{entry}_token_id"] = token
    return GGUFModel(Fields(config, where), checkpoint, names, metadata)


@dataclass(frozen=True)
class _MetadataReader:
    """Entries of a family: `integer("block_count")` is that of `llama.block_count`."""

    fields: Fields
    family: str
    checkpoint: GGUFCheckpoint

    def integer(self, name: str, *default: Any) -> Any:
        return self.fields.integer(f"{self.family}.{name}", *default)

    def number(self, name: str, *default: Any) -> Any:
        """A float32 of the file as the shortest Python float that rounds to it."""
        value = self.fields.number(f"{self.family}.{name}", *default)
        return value if value is None else float(f"{value:.7g}")

    def refuse(self, name: str, expected: str) -> ModelError:
        return self.fields.refuse(f"{self.family}.{name}", expected)

    def has(self, tensor: str) -> bool:
        return tensor in self.checkpoint.shapes

    @property
    def vocabulary(self) -> int:
        """Rows of the embedding."""
        shape = self.checkpoint.shapes.get("token_embd.weight", ())
        if len(shape) != 2:
            raise ModelError(
                f"{self.fields.where}: token_embd.weight: expected a matrix, got {shape or 'none'}"
            )
        return shape[0]


_DECODER = (
    ("model.layers.{}", "blk.{}"),
    ("model.embed_tokens", "token_embd"),
    ("model.norm", "output_norm"),
    ("lm_head", "output"),
    *((f"self_attn.{part}_proj", f"attn_{part}") for part in ("q", "k", "v")),
    *((f"self_attn.{part}_norm", f"attn_{part}_norm") for part in ("q", "k")),
    ("self_attn.o_proj", "attn_output"),
    ("input_layernorm", "attn_norm"),
)
_GATED = tuple((f"mlp.{part}_proj", f"ffn_{part}") for part in ("gate", "up", "down"))
_EXPERTS = (
    ("mlp.router", "ffn_gate_inp"),
    *((f"mlp.{part}_proj", f"ffn_{part}_exps.weight") for part in ("gate", "up", "down")),
)
_PRE_NORM = (("post_attention_layernorm", "ffn_norm"),)
_SANDWICH = (
    ("post_attention_layernorm", "post_attention_norm"),
    ("pre_feedforward_layernorm", "ffn_norm"),
    ("post_feedforward_layernorm", "post_ffw_norm"),
)


def _decoder(reader: _MetadataReader, architecture: str, model_type: str) -> dict[str, Any]:
    """The common part of configurations of Llama's kind."""
    hidden, heads = reader.integer("embedding_length"), reader.integer("attention.head_count")
    if "attention.key_length" not in reader.fields and hidden % heads:
        raise reader.refuse("attention.head_count", f"a divisor of embedding_length, {hidden}")
    size = reader.integer("attention.key_length", hidden // heads)
    if reader.integer("attention.value_length", size) != size:
        raise reader.refuse("attention.value_length", f"that of keys, {size}")
    return {
        "architectures": [architecture],
        "model_type": model_type,
        "vocab_size": reader.vocabulary,
        "hidden_size": hidden,
        "intermediate_size": reader.integer("feed_forward_length"),
        "num_hidden_layers": reader.integer("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": reader.integer("attention.head_count_kv", heads),
        "head_dim": size,
        "max_position_embeddings": reader.integer("context_length"),
        "rms_norm_eps": reader.number("attention.layer_norm_rms_epsilon"),
        "tie_word_embeddings": not reader.has("output.weight"),
        "rope_parameters": _rope(reader, size),
    }


def _rope(reader: _MetadataReader, size: int) -> dict[str, Any]:
    """The rotary embedding, as `polygrad.models.rotary` reads it."""
    out: dict[str, Any] = {"rope_type": "default", "rope_theta": reader.number("rope.freq_base", 10000.0)}
    rotated_size = reader.integer("rope.dimension_count", size)
    if rotated_size != size:
        out["partial_rotary_factor"] = rotated_size / size
    entry = f"{reader.family}.rope.scaling.type"
    scaling = reader.fields.choice(entry, ("none", "linear", "yarn", "longrope"), "none")
    original = reader.integer("rope.scaling.original_context_length", reader.integer("context_length"))
    if reader.has("rope_freqs.weight"):  # as Llama 3: what each frequency is divided by
        factors = reader.checkpoint.numbers("rope_freqs.weight")
        tables = {"short_factor": factors, "long_factor": factors}
        return out | tables | {"rope_type": "longrope", "attention_factor": 1.0,
                               "original_max_position_embeddings": original}  # fmt: skip
    if reader.has("rope_factors_long.weight"):
        for kind in ("short", "long"):
            out[f"{kind}_factor"] = reader.checkpoint.numbers(f"rope_factors_{kind}.weight")
        scale = reader.number("rope.scaling.attn_factor", None)
        out |= {} if scale is None else {"attention_factor": scale}
        return out | {"rope_type": "longrope", "original_max_position_embeddings": original}
    if scaling in ("linear", "yarn"):
        out |= {"rope_type": scaling, "factor": reader.number("rope.scaling.factor")}
    if scaling == "yarn":
        out["original_max_position_embeddings"] = original
    return out


Model = tuple[dict[str, Any], Names]


def _llama(reader: _MetadataReader) -> Model:
    """Llama and Mistral, and with experts Mixtral."""
    config = _decoder(reader, "LlamaForCausalLM", "llama")
    heads, groups = config["num_attention_heads"], config["num_key_value_heads"]
    for end, n in (("attn_q", heads), ("attn_k", groups)):
        reader.checkpoint.row_pairs |= {f".{end}.weight": n, f".{end}.bias": n}
    config["attention_bias"] = reader.has("blk.0.attn_q.bias")
    config["mlp_bias"] = reader.has("blk.0.ffn_down.bias")
    if not reader.integer("expert_count", 0, 0):
        return config, Names(renames=(*_DECODER, *_PRE_NORM, *_GATED))
    config |= {
        "architectures": ["MixtralForCausalLM"],
        "model_type": "mixtral",
        "num_local_experts": reader.integer("expert_count"),
        "num_experts_per_tok": reader.integer("expert_used_count"),
    }
    return config, Names(renames=(*_DECODER, *_PRE_NORM, *_EXPERTS))


def _qwen2(reader: _MetadataReader) -> Model:
    return _decoder(reader, "Qwen2ForCausalLM", "qwen2"), Names(renames=(*_DECODER, *_PRE_NORM, *_GATED))


def _qwen2_experts(reader: _MetadataReader) -> Model:
    """Beside the experts each token goes through one that all share, behind a gate: a row of numbers, which
    files have as a vector."""
    config = _decoder(reader, "Qwen2MoeForCausalLM", "qwen2_moe")
    reader.checkpoint.make_rows(".ffn_gate_inp_shexp.weight")
    experts = {
        "num_experts": reader.integer("expert_count"),
        "num_experts_per_tok": reader.integer("expert_used_count"),
        "moe_intermediate_size": reader.integer("expert_feed_forward_length"),
        "shared_expert_intermediate_size": reader.integer("expert_shared_feed_forward_length"),
        "norm_topk_prob": False,
    }
    renames = (
        *_DECODER,
        *_PRE_NORM,
        *((ours.replace("mlp.", "mlp.experts."), theirs) for ours, theirs in _EXPERTS),
        *((f"mlp.shared_expert.{part}_proj", f"ffn_{part}_shexp") for part in ("gate", "up", "down")),
        ("mlp.shared_expert_gate", "ffn_gate_inp_shexp"),
    )
    return config | experts, Names(renames=renames)


def _qwen3(reader: _MetadataReader) -> Model:
    return _decoder(reader, "Qwen3ForCausalLM", "qwen3"), Names(renames=(*_DECODER, *_PRE_NORM, *_GATED))


def _qwen3_experts(reader: _MetadataReader) -> Model:
    experts = {
        "num_experts": reader.integer("expert_count"),
        "num_experts_per_tok": reader.integer("expert_used_count"),
        "moe_intermediate_size": reader.integer("expert_feed_forward_length"),
        "norm_topk_prob": True,
    }
    config = _decoder(reader, "Qwen3MoeForCausalLM", "qwen3_moe")
    return config | experts, Names(renames=(*_DECODER, *_PRE_NORM, *_EXPERTS))


def _gemma(reader: _MetadataReader) -> Model:
    reader.checkpoint.offset_norms = True
    config = _decoder(reader, "GemmaForCausalLM", "gemma") | {"hidden_act": "gelu_pytorch_tanh"}
    return config, Names(renames=(*_DECODER, *_PRE_NORM, *_GATED))


def _later_gemma(reader: _MetadataReader, architecture: str, model_type: str, largest: int) -> Model:
    """`largest`: how many layers the largest model has, whose scores are scaled in another way."""
    reader.checkpoint.offset_norms = True
    config = _decoder(reader, architecture, model_type)
    is_largest = config["num_hidden_layers"] == largest
    scale = config["hidden_size"] // config["num_attention_heads"] if is_largest else config["head_dim"]
    config |= {
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": scale,
        "sliding_window": reader.integer("attention.sliding_window", 4096),
        "attn_logit_softcapping": reader.number("attn_logit_softcapping", None),
        "final_logit_softcapping": reader.number("final_logit_softcapping", None),
    }
    return config, Names(renames=(*_DECODER, *_SANDWICH, *_GATED))


def _gemma2(reader: _MetadataReader) -> Model:
    return _later_gemma(reader, "Gemma2ForCausalLM", "gemma2", largest=46)


def _gemma3(reader: _MetadataReader) -> Model:
    """Layers that see a window have a rotary table of their own."""
    config, names = _later_gemma(reader, "Gemma3ForCausalLM", "gemma3_text", largest=62)
    pattern = reader.integer("attention.sliding_window_pattern", 6)
    layers = range(config["num_hidden_layers"])
    kinds = ["full_attention" if (i + 1) % pattern == 0 else "sliding_attention" for i in layers]
    local = {"rope_type": "default", "rope_theta": reader.number("rope.freq_base_swa", 10000.0)}
    rope = {"full_attention": config["rope_parameters"], "sliding_attention": local}
    return config | {"layer_types": kinds, "rope_parameters": rope}, names


def _phi3(reader: _MetadataReader) -> Model:
    config = _decoder(reader, "Phi3ForCausalLM", "phi3")
    config["sliding_window"] = reader.integer("attention.sliding_window", None)
    config["original_max_position_embeddings"] = reader.integer(
        "rope.scaling.original_context_length", config["max_position_embeddings"]
    )
    fused_names = (("attn_qkv", ("q_proj", "k_proj", "v_proj")), ("ffn_up", ("gate_proj", "up_proj")))
    renames = (*_DECODER, *_PRE_NORM, *_GATED, ("self_attn.attn_qkv", "attn_qkv"), ("mlp.ffn_up", "ffn_up"))
    return config, Names(renames=renames, joined=fused_names)


def _gpt2(reader: _MetadataReader) -> Model:
    config = {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": reader.vocabulary,
        "n_embd": reader.integer("embedding_length"),
        "n_head": reader.integer("attention.head_count"),
        "n_layer": reader.integer("block_count"),
        "n_positions": reader.integer("context_length"),
        "n_inner": reader.integer("feed_forward_length"),
        "layer_norm_epsilon": reader.number("attention.layer_norm_epsilon"),
        "tie_word_embeddings": not reader.has("output.weight"),
    }
    renames = (
        ("h.{}", "blk.{}"),
        ("wte", "token_embd"),
        ("wpe", "position_embd"),
        ("ln_f", "output_norm"),
        ("lm_head", "output"),
        ("ln_1", "attn_norm"),
        ("ln_2", "ffn_norm"),
        ("attn.attn_qkv", "attn_qkv"),
        ("attn.o_proj", "attn_output"),
        *_GATED,
    )
    return config, Names(renames=renames, joined=(("attn_qkv", ("q_proj", "k_proj", "v_proj")),))


def _bert(reader: _MetadataReader) -> Model:
    """BERT without a pooler: how vectors of tokens become that of a text is in `pooling_type`."""
    if reader.has("blk.0.attn_qkv.weight") or reader.has("blk.0.ffn_gate.weight"):
        raise reader.refuse("block_count", "layers of BERT, with q, k and v apart and no gates")
    types = reader.checkpoint.shapes.get("token_types.weight", (2,))[0]
    config = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "add_pooling_layer": False,
        "vocab_size": reader.vocabulary,
        "type_vocab_size": types,
        "hidden_size": reader.integer("embedding_length"),
        "intermediate_size": reader.integer("feed_forward_length"),
        "num_hidden_layers": reader.integer("block_count"),
        "num_attention_heads": reader.integer("attention.head_count"),
        "max_position_embeddings": reader.integer("context_length"),
        "layer_norm_eps": reader.number("attention.layer_norm_epsilon"),
    }
    token = reader.fields.integer("tokenizer.ggml.padding_token_id", None, least=0)
    renames = (
        ("layers.{}.norm", "layers.{}.layer_output_norm"),
        ("layers.{}", "blk.{}"),
        *((f"attention.{part}_proj", f"attn_{part}") for part in ("q", "k", "v")),
        ("attention.o_proj", "attn_output"),
        ("attention_norm", "attn_output_norm"),
        *((f"feed_forward.{part}_proj", f"ffn_{part}") for part in ("up", "down")),
        ("embeddings.words", "token_embd"),
        ("embeddings.positions", "position_embd"),
        ("embeddings.types", "token_types"),
        ("embeddings.norm", "token_embd_norm"),
    )
    return config | ({} if token is None else {"pad_token_id": token}), Names(renames=renames)


_FAMILIES: dict[str, Callable[[_MetadataReader], Model]] = {
    "bert": _bert,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "gpt2": _gpt2,
    "llama": _llama,
    "phi3": _phi3,
    "qwen2": _qwen2,
    "qwen2moe": _qwen2_experts,
    "qwen3": _qwen3,
    "qwen3moe": _qwen3_experts,
}
