"""A graph of ONNX that is being written: nodes, initializers, sizes. `export_ops.py` has the ops."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.errors import OnnxError
from polygrad.onnx import proto_writer
from polygrad.onnx.elements import element_of_dtype
from polygrad.onnx.proto_writer import External, GraphText, TensorMessage
from polygrad.tensor.core.convert import pack
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.shapes import Shape, Sint
from polygrad.uop.sizes import SIZES

OPSET, IR_VERSION = 21, 10
_LEAST_EXTERNAL = 1024  # bytes of an initializer that goes to a file of its own
# Ops that came later, with the opset and the IR version that they need.
_NEWER = {"BitCast": (26, 13)}


@dataclass(frozen=True, slots=True)
class _Node:
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]


class GraphWriter:
    """`node` adds a node and gives the name of its output; the same node is not added again."""

    def __init__(self, path: str | None = None) -> None:
        """`path`: of the file that larger initializers go beside; None: they stay in the graph."""
        self._nodes: list[_Node] = []
        self._initializers: dict[str, tuple[DType, Sequence[int], bytes | memoryview]] = {}
        self._inputs: list[bytes] = []
        self._outputs: dict[str, bytes] = {}
        self._names: set[str] = set()
        self._made: dict[Any, str] = {}
        self._reshaped: dict[str, str] = {}  # by output of a Reshape, its input
        self._variables: dict[str, tuple[str, int]] = {}
        self._external = None if path is None else f"{path}.data"
        self._written = 0

    def own_name(self, base: str) -> str:
        """An unused name."""
        name, same = base, 1
        while name in self._names or not name:
            same += 1
            name = f"{base}_{same}"
        self._names.add(name)
        return name

    # --- nodes

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        key = (
            op,
            inputs,
            tuple([(k, tuple(v) if isinstance(v, list) else v) for k, v in attributes.items()]),
        )
        if key not in self._made:
            self._made[key] = self._add(op, inputs, attributes)
        return self._made[key]

    def _add(self, op: str, inputs: Sequence[str], attributes: Mapping[str, Any]) -> str:
        output = self.own_name(f"{op.lower()}_{len(self._nodes)}")
        self._nodes.append(_Node(op, tuple(inputs), (output,), attributes))
        return output

    def second_output(self, op: str, inputs: Sequence[str], attributes: Mapping[str, Any]) -> str:
        """The second output of a node with two outputs."""
        names = [self.own_name(f"{op.lower()}_{len(self._nodes)}") for _ in range(2)]
        self._nodes.append(_Node(op, tuple(inputs), tuple(names), attributes))
        return names[1]

    def output(self, name: str, value: str, dtype: DType, shape: Shape) -> None:
        """`value` becomes the graph's output `name`."""
        self._nodes.append(_Node("Identity", (value,), (name,), {}))
        self._outputs[name] = _info(name, dtype, shape)

    def input(self, name: str, dtype: DType, shape: Shape) -> None:
        """An input of the graph. Its symbolic sizes can be used from now on."""
        self._inputs.append(_info(name, dtype, shape))
        for axis, n in enumerate(shape):
            if isinstance(n, UOp) and n.op is Ops.DEFINE_VAR:
                self._variables.setdefault(n.arg.name, (name, axis))

    # --- constants

    def initializer(self, name: str, dtype: DType, shape: Sequence[int], raw: bytes | memoryview) -> str:
        name = self.own_name(name)
        self._initializers[name] = (dtype, shape, raw)
        return name

    def constant(self, dtype: DType, shape: tuple[int, ...], numbers: Sequence[Any]) -> str:
        """Numbers that are not weights, as a Constant node, so that tools that train the file do not change
        them."""
        return self.constant_of(dtype, shape, bytes(pack(list(numbers), dtype)))

    def constant_of(self, dtype: DType, shape: Sequence[int], raw: bytes | memoryview) -> str:
        """A Constant node with these bytes."""
        return self.node("Constant", value=TensorMessage(proto_writer.tensor("", _number(dtype), shape, raw)))

    def scalar(self, dtype: DType, number: Any) -> str:
        return self.constant(dtype, (), [number])

    def ints(self, numbers: Sequence[int]) -> str:
        return self.constant(dtypes.int64, (len(numbers),), numbers)

    # --- sizes

    def sizes(self, shape: Sequence[Sint]) -> str:
        """Sizes as a vector of int64: a constant, or computed from the shapes of inputs."""
        if all(isinstance(n, int) for n in shape):
            return self.ints([int(n) for n in shape])
        return self.node("Concat", *[self._vector(n) for n in shape], axis=0)

    def size(self, n: Sint) -> str:
        """A size as a scalar of int64."""
        if isinstance(n, int):
            return self.scalar(dtypes.int64, n)
        return self.node("Squeeze", self._vector(n), self.ints([0]))

    def _vector(self, n: Sint) -> str:
        """A size as a vector of one int64."""
        if isinstance(n, int):
            return self.ints([n])
        names: dict[UOp, str] = {}
        for node in n.toposort(lambda node: node.op is not Ops.BIND):
            if node.op in (Ops.BIND, Ops.DEFINE_VAR):
                names[node] = self._variable(node.src[0] if node.op is Ops.BIND else node)
            elif node.op is Ops.CONST:
                names[node] = self.ints([node.arg])
            elif node.op in SIZES:
                names[node] = _SIZE_OPS[node.op](self, *[names[s] for s in node.src])
            else:
                raise OnnxError(f"save: a size computed by {node.op} cannot be written")
        return names[n]

    def _variable(self, variable: UOp) -> str:
        name = variable.arg.name
        if name not in self._variables:
            raise OnnxError(f"save: no input has an axis of the size {name!r}: make it a size of an input")
        source, axis = self._variables[name]
        return self.node("Shape", source, start=axis, end=axis + 1)

    # --- used by several ops

    def reshape(self, x: str, old: Shape, new: Shape) -> str:
        if old == new:
            return x
        source = self._reshaped.get(x, x)
        allowzero = {"allowzero": 1} if 0 in new else {}
        out = self.node("Reshape", source, self.sizes(new), **allowzero)
        self._reshaped[out] = source
        return out

    def transpose(self, x: str, order: Sequence[int]) -> str:
        return x if list(order) == list(range(len(order))) else self.node("Transpose", x, perm=list(order))

    def cast(self, x: str, dtype: DType) -> str:
        return self.node("Cast", x, to=_number(dtype))

    # --- the file

    def model(self) -> bytes:
        """The bytes of the file, without nodes that no output needs. Writes the file of external data."""
        needed = set(self._outputs)
        nodes = []
        for n in reversed(self._nodes):
            if not needed.isdisjoint(n.outputs):
                nodes.append(n)
                needed.update(n.inputs)
        nodes.reverse()
        text = GraphText(inputs=self._inputs, outputs=list(self._outputs.values()))
        text.nodes = [
            proto_writer.node(n.op, n.inputs, n.outputs, n.outputs[-1], n.attributes) for n in nodes
        ]
        text.initializers = [self._tensor(name) for name in self._initializers if name in needed]
        newer = [_NEWER.get(n.op, (OPSET, IR_VERSION)) for n in nodes]
        opset, ir_version = max([(OPSET, IR_VERSION), *newer])
        return proto_writer.model(text.message("polygrad"), opset, ir_version)

    def _tensor(self, name: str) -> bytes:
        dtype, shape, raw = self._initializers[name]
        stored: bytes | memoryview | External = raw
        if self._external is not None and len(raw) > _LEAST_EXTERNAL:
            with open(self._external, "ab" if self._written else "wb") as file:
                file.write(raw)
            stored = External(os.path.basename(self._external), self._written, len(raw))
            self._written += len(raw)
        return proto_writer.tensor(name, _number(dtype), shape, stored)


_SIZE_OPS: dict[Ops, Callable[..., str]] = {
    Ops.ADD: lambda g, a, b: g.node("Add", a, b),
    Ops.MUL: lambda g, a, b: g.node("Mul", a, b),
    Ops.MAX: lambda g, a, b: g.node("Max", a, b),
    Ops.MOD: lambda g, a, b: g.node("Mod", a, b),
    Ops.IDIV: lambda g, a, b: g.node("Div", g.node("Sub", a, g.node("Mod", a, b)), b),
}


def _number(dtype: DType) -> int:
    return element_of_dtype(dtype).number


def plain_shape(shape: Shape) -> Shape:
    """A shape with its Variables unbound."""
    return tuple([n if isinstance(n, int) else n.substitute(_bindings(n)) for n in shape])


def _bindings(n: UOp) -> dict[UOp, UOp]:
    return {s: s.src[0] for s in n.toposort() if s.op is Ops.BIND}


def _info(name: str, dtype: DType, shape: Shape) -> bytes:
    named = [
        n if isinstance(n, int) else n.arg.name if n.op is Ops.DEFINE_VAR else "" for n in plain_shape(shape)
    ]
    return proto_writer.value_info(name, _number(dtype), named)
