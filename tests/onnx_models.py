"""Small ONNX models, written by the package `onnx`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


def node_model(
    op: str,
    inputs: Sequence[Any],
    outputs: int = 1,
    attributes: dict[str, Any] | None = None,
    domain: str = "",
    opset: int = 21,
) -> tuple[bytes, list[str]]:
    """A model of one node, and the names of its inputs; an input that is None is left out."""
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    ports = [
        helper.make_tensor_value_info(
            n, helper.np_dtype_to_tensor_dtype(np.asarray(x).dtype), np.asarray(x).shape
        )
        for n, x in zip(names, inputs)
        if n
    ]
    ys = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, ys, name="the_node", domain=domain, **(attributes or {}))
    results = [onnx.ValueInfoProto(name=y) for y in ys]
    return model([node], ports, results, opset=opset), names


def model(
    nodes: Sequence[Any],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    initializers: Sequence[Any] = (),
    opset: int = 21,
    functions: Sequence[Any] = (),
    more: Sequence[Any] = (),
    **graph: Any,
) -> bytes:
    """A file. `inputs`, `outputs`: names of float values of unknown shape, or value infos."""
    infos = [
        [helper.make_tensor_value_info(x, FLOAT, None) if isinstance(x, str) else x for x in xs]
        for xs in (inputs, outputs)
    ]
    graph_proto = helper.make_graph(nodes, "graph", *infos, initializer=list(initializers), **graph)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1), *more]
    model_proto = helper.make_model(graph_proto, opset_imports=opsets, ir_version=10, functions=functions)
    return model_proto.SerializeToString()


def ints(name: str, values: Any) -> TensorProto:
    """An initializer of int64."""
    return numpy_helper.from_array(np.array(values, np.int64), name)


def attention(flat: bool = False) -> bytes:
    """Self-attention over (batch, length, 4), its mean over the length, and `flat`: (batch * length, 4)."""
    rng = np.random.default_rng(0)
    x = helper.make_tensor_value_info("x", FLOAT, ["batch", "length.1", 4])
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "length.1"])
    node = helper.make_node
    nodes = [
        node("Gather", ["table", "ids"], ["e"]),
        node("Add", ["x", "e"], ["h"]),
        node("MatMul", ["h", "w"], ["q"]),
        node("Transpose", ["q"], ["k"], perm=[0, 2, 1]),
        node("MatMul", ["q", "k"], ["s"]),
        node("Softmax", ["s"], ["p"], axis=-1),
        node("MatMul", ["p", "q"], ["o"]),
        node("ReduceMean", ["o", "ax1"], ["pool"], keepdims=0),
        node("Shape", ["x"], ["sh"]),
        node("Gather", ["sh", "zero"], ["n"], axis=0),
        node("Gather", ["sh", "one"], ["l"], axis=0),
        node("Mul", ["n", "l"], ["nl"]),
        node("Unsqueeze", ["nl", "ax0"], ["nl1"]),
        node("Concat", ["nl1", "rest"], ["shape"], axis=0),
        node("Reshape", ["o", "shape"], ["flat"]),
    ]
    weights = [
        numpy_helper.from_array(rng.normal(size=(4, 4)).astype(np.float32), "w"),
        numpy_helper.from_array(rng.normal(size=(7, 4)).astype(np.float32), "table"),
    ]
    numbers = [ints("zero", 0), ints("one", 1), ints("ax0", [0]), ints("ax1", [1]), ints("rest", [-1])]
    return model(nodes, [x, ids], ["o", "pool", *["flat"] * flat], weights + numbers)
