"""Language models of known shapes with random weights, as GGUF files.

`python -m bench.gguf_files PATH SHAPE [FORMAT]` writes one.
The weights are float32; `bench.libraries.with_llama` makes the files of other formats of this one. What is
written here in another format has all matrices in it, also the embedding of tokens. The vocabulary is made
up: bytes, and then names without meaning. Runs in the peers' environment.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import gguf
import gguf.quants
import numpy as np

DEVIATION = 0.02  # of weights, as models of GPT-2's kind start


@dataclass(frozen=True)
class Shape:
    """The sizes of a decoder. `family`: what ggml calls its architecture."""

    family: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    inner: int
    context: int
    vocabulary: int


SHAPES = {
    "gpt2": Shape("gpt2", 768, 12, 12, 12, 3072, 1024, 50257),
    "qwen2": Shape("qwen2", 896, 24, 14, 2, 4864, 8192, 151936),
    "small-gpt2": Shape("gpt2", 512, 6, 8, 8, 2048, 1024, 16384),
    "small-qwen2": Shape("qwen2", 512, 6, 8, 2, 1536, 1024, 16384),
    "long-qwen2": Shape("qwen2", 512, 6, 8, 2, 1536, 4096, 16384),
    "tiny": Shape("qwen2", 256, 2, 4, 2, 512, 128, 512),
}


def tensors(shape: Shape) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names and shapes, as llama.cpp wants them; a matrix is (outputs, inputs)."""
    hidden, inner, kv = shape.hidden, shape.inner, shape.hidden // shape.heads * shape.kv_heads
    is_gpt2 = shape.family == "gpt2"
    yield "token_embd.weight", (shape.vocabulary, hidden)
    if is_gpt2:
        yield "position_embd.weight", (shape.context, hidden)
    projections = {"q": hidden, "k": kv, "v": kv}
    if is_gpt2:
        projections = {"qkv": hidden + 2 * kv}
    matrices = {
        **{f"attn_{name}": (rows, hidden) for name, rows in projections.items()},
        "attn_output": (hidden, hidden),
        **({} if is_gpt2 else {"ffn_gate": (inner, hidden)}),
        "ffn_up": (inner, hidden),
        "ffn_down": (hidden, inner),
    }
    biased = {f"attn_{name}" for name in projections} if not is_gpt2 else set(matrices)
    for i in range(shape.layers):
        for norm in ("attn_norm", "ffn_norm"):
            yield f"blk.{i}.{norm}.weight", (hidden,)
            if is_gpt2:
                yield f"blk.{i}.{norm}.bias", (hidden,)
        for name, size in matrices.items():
            yield f"blk.{i}.{name}.weight", size
            if name in biased:
                yield f"blk.{i}.{name}.bias", size[:1]
    yield "output_norm.weight", (hidden,)
    if is_gpt2:
        yield "output_norm.bias", (hidden,)


def values(name: str, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Random numbers; of the weights of norms around 1."""
    out = rng.standard_normal(size, np.float32) * np.float32(DEVIATION)
    return out + np.float32(1) if name.endswith("norm.weight") else out


def write(path: Path, shape: Shape, format_: str = "F32") -> None:
    """The whole file, at once: one that is there is whole."""
    kind = gguf.GGMLQuantizationType[format_]
    unfinished = path.with_suffix(".unfinished")
    writer = gguf.GGUFWriter(unfinished, shape.family)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.hidden)
    writer.add_block_count(shape.layers)
    writer.add_head_count(shape.heads)
    writer.add_feed_forward_length(shape.inner)
    if shape.family == "gpt2":
        writer.add_layer_norm_eps(1e-5)
    else:
        writer.add_head_count_kv(shape.kv_heads)
        writer.add_layer_norm_rms_eps(1e-6)
        writer.add_rope_freq_base(1e6)
    letters = [chr(c if 33 <= c <= 126 or 161 <= c <= 172 or c >= 174 else 256 + c) for c in range(256)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([*letters, "ab", *(f"t{i}" for i in range(257, shape.vocabulary))])
    writer.add_token_types([gguf.TokenType.NORMAL] * shape.vocabulary)
    writer.add_token_merges(["a b"])
    writer.add_eos_token_id(0)
    writer.add_bos_token_id(0)
    rng = np.random.default_rng(0)
    for name, size in tensors(shape):
        data = values(name, size, rng)
        if format_ == "F32" or len(size) == 1 or name == "position_embd.weight":
            writer.add_tensor(name, data)
        else:
            writer.add_tensor(name, gguf.quants.quantize(data, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    unfinished.replace(path)


if __name__ == "__main__":
    write(Path(sys.argv[1]), SHAPES[sys.argv[2]], *sys.argv[3:])
