"""An ONNX graph in the making."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper, shape_inference

from bench.libraries.inputs import uniform

OPSET, IR_VERSION = 20, 10
Value = tuple[str, tuple[int, ...]]  # dtype, shape
TYPES = {
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
    "float16": TensorProto.FLOAT16,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
}


class Graph:
    """Nodes in order; every method returns the name of its result."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []

    def op(self, op: str, *inputs: str, name: str = "", more: tuple[str, ...] = (), **attributes: Any) -> str:
        """`more`: the names of its further results."""
        name = name or f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name, *more], **attributes))
        return name

    def constant(self, value: Any) -> str:
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def parameter(self, seed: int, shape: tuple[int, ...], scale: float) -> str:
        return self.constant(uniform(seed, *shape) * np.float32(scale))

    def model(self, inputs: dict[str, Value]) -> Any:
        """Of these inputs, by name; its node named out gives the output."""
        graph = helper.make_graph(
            self.nodes,
            "bench",
            [
                helper.make_tensor_value_info(name, TYPES[dtype], shape)
                for name, (dtype, shape) in inputs.items()
            ],
            [helper.make_empty_tensor_value_info("out")],
            self.initializers,
        )
        opsets = [helper.make_opsetid("", OPSET)]
        return shape_inference.infer_shapes(
            helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION), strict_mode=True
        )
