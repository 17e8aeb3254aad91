"""The operations of the breadth suite as ONNX graphs, as an exporter would write them; opset 20.

What an operation names in `PARAMETERS` are initializers, which the runtime may rearrange once; its other
operands are inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.libraries.inputs import operand
from bench.onnx_graph import TYPES, Graph

EPSILON = 1e-5
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Operation:
    """The graph so far and its operands' names and shapes; an operation adds nodes and names its result."""

    graph: Graph
    names: list[str]
    shapes: list[Shape]
    attributes: dict[str, Any]

    def __call__(self, op: str, *inputs: str, **attributes: Any) -> str:
        return self.graph.op(op, *inputs, **attributes)

    def whole(self, *values: int) -> str:
        return self.graph.constant(np.array(values, np.int64))

    def number(self, value: float) -> str:
        return self.graph.constant(np.float32(value))

    @property
    def axes(self) -> str:
        axis = self.attributes["axis"]
        return self.whole(*(axis if isinstance(axis, list) else [axis]))


def make(op: str, operands: list[Any], attributes: dict[str, Any], gradients: list[int], check: str) -> Any:
    del check
    if gradients:
        raise NotImplementedError("onnxruntime-web has no gradients")
    graph, names, inputs = Graph(), [], {}
    for i, spec in enumerate(operands):
        if i in PARAMETERS.get(op, ()):
            names.append(graph.constant(operand(i + 1, spec)))
        else:
            names.append(f"in{i}")
            inputs[names[i]] = spec["dtype"], tuple(spec["shape"])
    o = Operation(graph, names, [tuple(x["shape"]) for x in operands], attributes)
    graph.op("Identity", OPERATIONS[op](o), name="out")
    return graph.model(inputs)


def matmul(o: Operation) -> str:
    ta, tb = (o.attributes.get(key, False) for key in ("ta", "tb"))
    if (ta or tb) and len(o.shapes[0]) == 2:
        return o("Gemm", *o.names, transA=int(ta), transB=int(tb))
    return o("MatMul", *(o("Transpose", x, perm=[0, 2, 1]) if t else x for x, t in zip(o.names, (ta, tb))))


def linear(o: Operation) -> str:
    y = o("Gemm", *o.names, transB=1)
    activation = o.attributes.get("activation")
    if activation == "gelu":
        return o("Gelu", y, approximate="tanh")
    return o("Relu", y) if activation else y


def conv(o: Operation, op: str = "Conv") -> str:
    rank = len(o.shapes[1]) - 2
    get = o.attributes.get
    return o(
        op,
        *o.names,
        strides=[get("stride", 1)] * rank,
        pads=[get("padding", 0)] * rank * 2,
        dilations=[get("dilation", 1)] * rank,
        group=get("groups", 1),
    )


def pool(o: Operation, op: str) -> str:
    get = o.attributes.get
    return o(
        op,
        *o.names,
        kernel_shape=[get("kernel")] * 2,
        strides=[get("stride")] * 2,
        pads=[get("padding", 0)] * 4,
    )


def attention(o: Operation) -> str:
    q, k, v = o.names
    length, head = o.shapes[0][-2:]
    scores = o("Mul", o("MatMul", q, o("Transpose", k, perm=[0, 1, 3, 2])), o.number(1 / math.sqrt(head)))
    if o.attributes.get("causal"):
        mask = np.triu(np.full((length, length), -1e9, np.float32), 1)
        scores = o("Add", scores, o.graph.constant(mask))
    return o("MatMul", o("Softmax", scores, axis=-1), v)


def centred(o: Operation, x: str, axes: str) -> tuple[str, str]:
    """x less its mean, and its variance."""
    y = o("Sub", x, o("ReduceMean", x, axes, keepdims=1))
    return y, o("ReduceMean", o("Mul", y, y), axes, keepdims=1)


def var(o: Operation) -> str:
    n = o.shapes[0][o.attributes["axis"]]
    _, variance = centred(o, o.names[0], o.axes)
    return o("Mul", o("Squeeze", variance, o.axes), o.number(n / (n - 1)))


def batch_norm(o: Operation) -> str:
    """Of the batch's own statistics: the runtime's BatchNormalization takes kept ones."""
    x, w, b = o.names
    y, variance = centred(o, x, o.whole(0, 2, 3))
    y = o("Div", y, o("Sqrt", o("Add", variance, o.number(EPSILON))))
    return o("Add", o("Mul", y, channels(o, w)), channels(o, b))


def channels(o: Operation, x: str) -> str:
    return o("Reshape", x, o.whole(-1, 1, 1))


def group_norm(o: Operation) -> str:
    x, w, b = o.names
    shape, groups = o.shapes[0], o.attributes["groups"]
    one, zero = (o.graph.constant(np.full(groups, value, np.float32)) for value in (1, 0))
    y = o("Reshape", x, o.whole(shape[0], groups, -1))
    y = o("Reshape", o("InstanceNormalization", y, one, zero, epsilon=EPSILON), o.whole(*shape))
    return o("Add", o("Mul", y, channels(o, w)), channels(o, b))


def rms_norm(o: Operation) -> str:
    x, w = o.names
    square = o("ReduceMean", o("Pow", x, o.number(2)), o.whole(-1), keepdims=1)
    return o("Mul", o("Div", x, o("Sqrt", o("Add", square, o.number(EPSILON)))), w)


def normalize_image(o: Operation) -> str:
    x = o("Cast", o("Transpose", o.names[0], perm=[0, 3, 1, 2]), to=TYPES["float32"])
    return o("Mul", o("Sub", o("Mul", x, o.number(1 / 255)), o.number(0.45)), o.number(1 / 0.225))


def strided(o: Operation) -> str:
    starts, steps = o.attributes["starts"], o.attributes["steps"]
    axes = range(len(starts))
    return o("Slice", o.names[0], *(o.whole(*numbers) for numbers in (starts, o.shapes[0], axes, steps)))


def flip(o: Operation) -> str:
    axes = o.attributes["axes"]
    first = np.iinfo(np.int64).min  # a Slice that goes down ends before it
    ends = ([-1] * len(axes), [first] * len(axes), axes, [-1] * len(axes))
    return o("Slice", o.names[0], *(o.whole(*numbers) for numbers in ends))


def pad(o: Operation) -> str:
    before, after = zip(*o.attributes["widths"], strict=True)
    return o("Pad", o.names[0], o.whole(*before, *after))


def resize(o: Operation) -> str:
    """At torch's positions."""
    size, linear = o.attributes["size"], o.attributes["mode"] == "linear"
    settings = {"coordinate_transformation_mode": "half_pixel" if linear else "asymmetric"}
    settings |= {"mode": "linear"} if linear else {"mode": "nearest", "nearest_mode": "floor"}
    return o("Resize", o.names[0], "", "", o.whole(*o.shapes[0][:2], size, size), **settings)


def largest(o: Operation, k: int, wanted: bool = True) -> str:
    """The k largest elements of the last axis, or the smallest."""
    name = f"sorted{len(o.graph.nodes)}"
    o.graph.op("TopK", o.names[0], o.whole(k), name=name, more=(f"{name}_at",), axis=-1, largest=int(wanted))
    return name


def sort(o: Operation) -> str:
    return largest(o, o.shapes[0][-1], False)


def argsort(o: Operation) -> str:
    return f"{sort(o)}_at"


def scatter_add(o: Operation) -> str:
    zeros = o.graph.constant(np.zeros(o.attributes["size"], np.float32))
    return o("ScatterElements", zeros, o.names[1], o.names[0], axis=0, reduction="add")


def quantize(o: Operation) -> str:
    return o("Cast", o("Round", o("Mul", o.names[0], o.number(64))), to=TYPES["int8"])


def chain(o: Operation) -> str:
    return o("Tanh", o("Log", o("Add", o("Sin", o("Exp", o.names[0])), o.number(2))))


def dropout(o: Operation) -> str:
    """A runtime that does not train leaves Dropout out."""
    kept = o("Less", o("RandomUniform", shape=list(o.shapes[0])), o.number(0.5))
    return o("Where", kept, o("Mul", o.names[0], o.number(2)), o.number(0))


def simple(op: str, **attributes: Any) -> Callable[[Operation], str]:
    """One node of all operands."""
    return lambda o: o(op, *o.names, **attributes)


def over_axis(op: str) -> Callable[[Operation], str]:
    return lambda o: o(op, *o.names, axis=o.attributes["axis"])


def reduction(op: str) -> Callable[[Operation], str]:
    return lambda o: o(op, *o.names, o.axes, keepdims=0)


OPERATIONS: dict[str, Callable[[Operation], str]] = {
    "matmul": matmul,
    "matmul_int8": simple("MatMulInteger"),
    "linear": linear,
    "conv": conv,
    "conv_transpose": lambda o: conv(o, "ConvTranspose"),
    "max_pool": lambda o: pool(o, "MaxPool"),
    "avg_pool": lambda o: pool(o, "AveragePool"),
    "attention": attention,
    "sum": reduction("ReduceSum"),
    "mean": reduction("ReduceMean"),
    "max": reduction("ReduceMax"),
    "argmax": lambda o: o("ArgMax", *o.names, axis=o.attributes["axis"], keepdims=0),
    "var": var,
    "logsumexp": reduction("ReduceLogSumExp"),
    "cumsum": lambda o: o("CumSum", *o.names, o.axes),
    "sort": sort,
    "argsort": argsort,
    "topk": lambda o: largest(o, o.attributes["k"]),
    "softmax": over_axis("Softmax"),
    "log_softmax": over_axis("LogSoftmax"),
    "batch_norm": batch_norm,
    "layer_norm": simple("LayerNormalization", axis=-1, epsilon=EPSILON),
    "group_norm": group_norm,
    "rms_norm": rms_norm,
    "permute": lambda o: o("Transpose", *o.names, perm=o.attributes["order"]),
    "cat": over_axis("Concat"),
    "strided": strided,
    "flip": flip,
    "pad": pad,
    "resize": resize,
    "normalize_image": normalize_image,
    "cast": lambda o: o("Cast", *o.names, to=TYPES[o.attributes["to"]]),
    "quantize": quantize,
    "where_less": lambda o: o("Where", o("Less", *o.names[:2]), *o.names[2:]),
    "add": simple("Add"),
    "erf": simple("Erf"),
    "chain": chain,
    "sigmoid": simple("Sigmoid"),
    "tanh": simple("Tanh"),
    "pow": simple("Pow"),
    "gelu": simple("Gelu", approximate="tanh"),
    "rand": lambda o: o("RandomUniform", shape=o.attributes["shape"]),
    "randn": lambda o: o("RandomNormal", shape=o.attributes["shape"]),
    "dropout": dropout,
    "take_rows": simple("Gather", axis=0),
    "gather": simple("GatherElements", axis=1),
    "scatter_add": scatter_add,
}
PARAMETERS = {
    **dict.fromkeys(("linear", "batch_norm", "layer_norm", "group_norm"), (1, 2)),
    **dict.fromkeys(("conv", "conv_transpose", "rms_norm"), (1,)),
    "take_rows": (0,),
}
