"""The suites' forward programs as ONNX models: `python -m bench.onnx_models FILE KIND SIZES`.

Inputs are named in0, in1, ... and hold what `uniform` makes of seeds 1, 2, ...; parameters are initializers,
so that the runtime may rearrange them once; the output is named out. Layout as an exporter would write it.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import numpy as np
import onnx

from bench import onnx_ops
from bench.libraries import shapes
from bench.onnx_graph import Graph


def matmul(m: int, k: int, n: int) -> Any:
    graph = Graph()
    graph.op("MatMul", "in0", "in1", name="out")
    return graph.model({"in0": ("float32", (m, k)), "in1": ("float32", (k, n))})


def hundred() -> Any:
    graph = Graph()
    w = graph.parameter(2, (8, 8), shapes.HUNDRED_SCALE)
    x = "in0"
    for _ in range(shapes.HUNDRED - 1):
        x = graph.op("MatMul", x, w)
    graph.op("MatMul", x, w, name="out")
    return graph.model({"in0": ("float32", (8, 8))})


def softmax(rows: int, columns: int) -> Any:
    graph = Graph()
    graph.op("Softmax", "in0", name="out", axis=-1)
    return graph.model({"in0": ("float32", (rows, columns))})


def gelu(rows: int, columns: int) -> Any:
    graph = Graph()
    graph.op("Gelu", "in0", name="out", approximate="tanh")
    return graph.model({"in0": ("float32", (rows, columns))})


def layernorm(rows: int, columns: int) -> Any:
    graph = Graph()
    weight, bias = graph.parameter(2, (columns,), 1.0), graph.parameter(3, (columns,), 1.0)
    graph.op("LayerNormalization", "in0", weight, bias, name="out", axis=-1, epsilon=1e-5)
    return graph.model({"in0": ("float32", (rows, columns))})


def block_forward() -> Any:
    graph = Graph()
    p = {name: graph.parameter(seed, shape, scale) for name, seed, shape, scale in shapes.BLOCK}
    length, width, heads = shapes.LENGTH, shapes.WIDTH, shapes.HEADS
    head = width // heads
    op, constant = graph.op, graph.constant

    def normalized(x: str, name: str) -> str:
        return op("LayerNormalization", x, p[f"{name}_w"], p[f"{name}_b"], axis=-1, epsilon=1e-5)

    def linear(x: str, name: str) -> str:
        return op("Add", op("MatMul", x, p[f"{name}_w"]), p[f"{name}_b"])

    def split(x: str, i: int) -> str:
        ends = [constant(np.array([v], np.int64)) for v in (i * width, (i + 1) * width, 2)]
        part = op("Slice", x, *ends)
        shape = constant(np.array([1, length, heads, head], np.int64))
        return op("Transpose", op("Reshape", part, shape), perm=[0, 2, 1, 3])

    qkv = linear(normalized("in0", "ln1"), "qkv")
    q, k, v = (split(qkv, i) for i in range(3))
    scores = op("MatMul", q, op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = op("Mul", scores, constant(np.float32(1 / math.sqrt(head))))
    mask = constant(np.triu(np.full((1, 1, length, length), -1e9, np.float32), 1))
    values = op("MatMul", op("Softmax", op("Add", scores, mask), axis=-1), v)
    shape = constant(np.array([1, length, width], np.int64))
    values = op("Reshape", op("Transpose", values, perm=[0, 2, 1, 3]), shape)
    x = op("Add", "in0", linear(values, "out"))
    up = op("Gelu", linear(normalized(x, "ln2"), "up"), approximate="tanh")
    op("Add", x, linear(up, "down"), name="out")
    return graph.model({"in0": ("float32", (1, length, width))})


KINDS = {
    "matmul": matmul,
    "hundred": hundred,
    "softmax": softmax,
    "gelu": gelu,
    "layernorm": layernorm,
    "block-forward": block_forward,
    "operation": onnx_ops.make,
}


def main(path: str, kind: str, sizes: str) -> None:
    model = KINDS[kind](**json.loads(sizes))
    onnx.checker.check_model(model)
    onnx.save(model, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
