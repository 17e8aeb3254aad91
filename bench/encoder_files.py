"""A text encoder of MiniLM's shape with random weights: `python -m bench.encoder_files FOLDER`.

config.json and model.safetensors are what transformers reads; model.onnx computes the same, and the vector of
each sentence. Runs in the peers' environment.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np
import onnx
from safetensors.numpy import save_file

from bench.minilm import CONFIG
from bench.onnx_graph import Graph

HIDDEN, HEADS, INNER, LAYERS = 384, 12, 1536, 6
DEVIATION = 0.02
Weights = dict[str, np.ndarray]


def weights() -> Weights:
    """By the names that transformers has for them; matrices are (outputs, inputs)."""
    rng = np.random.default_rng(0)
    out: Weights = {}

    def numbers(name: str, *shape: int) -> None:
        value = rng.standard_normal(shape, np.float32) * np.float32(DEVIATION)
        out[name] = value + np.float32(1) if name.endswith("LayerNorm.weight") else value

    def linear(name: str, inputs: int, outputs: int) -> None:
        numbers(f"{name}.weight", outputs, inputs)
        numbers(f"{name}.bias", outputs)

    def norm(name: str) -> None:
        numbers(f"{name}.LayerNorm.weight", HIDDEN)
        numbers(f"{name}.LayerNorm.bias", HIDDEN)

    for table, size in (("word", 30522), ("position", 512), ("token_type", 2)):
        numbers(f"embeddings.{table}_embeddings.weight", size, HIDDEN)
    norm("embeddings")
    for i in range(LAYERS):
        at = f"encoder.layer.{i}"
        for part in ("query", "key", "value"):
            linear(f"{at}.attention.self.{part}", HIDDEN, HIDDEN)
        linear(f"{at}.attention.output.dense", HIDDEN, HIDDEN)
        norm(f"{at}.attention.output")
        linear(f"{at}.intermediate.dense", HIDDEN, INNER)
        linear(f"{at}.output.dense", INNER, HIDDEN)
        norm(f"{at}.output")
    linear("pooler.dense", HIDDEN, HIDDEN)
    return out


def graph_of(w: Weights, sentences: int, tokens: int) -> onnx.ModelProto:
    """For int64 tokens named ids (sentences, tokens); `out` is (sentences, 384)."""
    graph = Graph()
    op, constant = graph.op, graph.constant

    def linear(x: str, name: str) -> str:
        product = op("MatMul", x, constant(w[f"{name}.weight"].T))
        return op("Add", product, constant(w[f"{name}.bias"]))

    def norm(x: str, name: str) -> str:
        parts = (constant(w[f"{name}.LayerNorm.{part}"]) for part in ("weight", "bias"))
        return op("LayerNormalization", x, *parts, axis=-1, epsilon=1e-12)

    apart = constant(np.array([sentences, tokens, HEADS, HIDDEN // HEADS], np.int64))
    joined = constant(np.array([sentences, tokens, HIDDEN], np.int64))
    scale = constant(np.float32(math.sqrt(HIDDEN // HEADS)))

    def heads(x: str, perm: list[int]) -> str:
        return op("Transpose", op("Reshape", x, apart), perm=perm)

    places = w["embeddings.position_embeddings.weight"][:tokens]
    x = op("Gather", constant(w["embeddings.word_embeddings.weight"]), "ids")
    x = op("Add", x, constant(places + w["embeddings.token_type_embeddings.weight"][0]))
    x = norm(x, "embeddings")
    for i in range(LAYERS):
        at = f"encoder.layer.{i}"
        q, k, v = (
            heads(linear(x, f"{at}.attention.self.{part}"), perm)
            for part, perm in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3]))
        )
        scores = op("Softmax", op("Div", op("MatMul", q, k), scale), axis=-1)
        seen = op("Reshape", op("Transpose", op("MatMul", scores, v), perm=[0, 2, 1, 3]), joined)
        x = norm(op("Add", linear(seen, f"{at}.attention.output.dense"), x), f"{at}.attention.output")
        inner = op("Gelu", linear(x, f"{at}.intermediate.dense"))
        x = norm(op("Add", linear(inner, f"{at}.output.dense"), x), f"{at}.output")
    mean = op("ReduceMean", x, constant(np.array([1], np.int64)), keepdims=0)
    op("LpNormalization", mean, name="out", axis=-1, p=2)
    return graph.model({"ids": ("int64", (sentences, tokens))})


def write(folder: Path, sentences: int, tokens: int) -> None:
    """The whole folder; the last file is there when all are."""
    folder.mkdir(exist_ok=True)
    made = weights()
    save_file(made, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(CONFIG))
    onnx.save(graph_of(made, sentences, tokens), folder / "model.onnx")


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
