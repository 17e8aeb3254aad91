"""Describes an ONNX file, and lists its unsupported ops, without reading tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from polygrad.errors import OnnxError
from polygrad.helpers import ceildiv, prod
from polygrad.nn.files import file_bytes
from polygrad.onnx import ops
from polygrad.onnx.elements import ELEMENTS, element_name
from polygrad.onnx.graph_program import all_nodes, missing_ops, op_counts
from polygrad.onnx.ports import Port, port_of
from polygrad.onnx.proto import Graph, Model, SparseData, TensorData, read_model

assert ops.__all__  # their import fills the table of ops


@dataclass(frozen=True, slots=True)
class ElementCount:
    """The number of initializers of an element type, their elements, and their bytes in the file."""

    element: str
    tensors: int
    elements: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a file says: `inputs` without those that an initializer fills; `ops` by 'domain.Op'.

    `missing`: a line for each op that does not exist here; `problem`: why the file cannot be loaded
    otherwise, or ''. `external`: the names of the files that hold initializers.
    """

    ir_version: int
    producer: str
    opsets: dict[str, int]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    ops: dict[str, int]
    functions: int
    initializers: tuple[ElementCount, ...]
    external: tuple[str, ...]
    missing: tuple[str, ...]
    problem: str

    @property
    def runs(self) -> bool:
        """Whether `load` takes the file, if its tensors are whole."""
        return not self.missing and not self.problem


def inspect(data: Any) -> Inspection:
    """What the ONNX file `data` says: a path, bytes, a buffer, or a Tensor of bytes.

    Raises OnnxError for a damaged file, ArgumentError for a path that cannot be read.
    """
    model = read_model(file_bytes(data, "onnx.inspect"))
    problem, missing = "", []
    try:
        missing = missing_ops(model)
    except OnnxError as e:
        problem = str(e)
    tensors = list(initializers(model))
    initialized = {t.name for t in model.graph.initializers}
    return Inspection(
        model.ir_version,
        model.producer,
        model.opsets,
        tuple(port_of(x) for x in model.graph.inputs if x.name not in initialized),
        tuple(port_of(x) for x in model.graph.outputs),
        op_counts(model),
        len(model.functions),
        tuple(_counts(tensors)),
        tuple(dict.fromkeys(t.external.get("location", "") for t in tensors if t.external is not None)),
        tuple(missing),
        problem,
    )


def initializers(model: Model) -> Iterator[TensorData]:
    """The initializers of the graph and of the graphs in its nodes; of sparse ones what they hold."""
    graphs = [model.graph]
    for node in all_nodes([*model.graph.nodes, *(n for f in model.functions.values() for n in f.nodes)]):
        for value in node.attributes.values():
            graphs += [g for g in (value if isinstance(value, list) else [value]) if isinstance(g, Graph)]
    for graph in graphs:
        for tensor in graph.initializers:
            yield tensor.values if isinstance(tensor, SparseData) else tensor


def _counts(tensors: Iterable[TensorData]) -> Iterator[ElementCount]:
    by_element: dict[int, list[TensorData]] = {}
    for tensor in tensors:
        by_element.setdefault(tensor.element, []).append(tensor)
    for number, same in sorted(by_element.items()):
        sizes = [prod(t.shape) for t in same]
        bits = ELEMENTS[number].bits if number in ELEMENTS else 0
        nbytes = sum(ceildiv(n * bits, 8) for n in sizes)
        yield ElementCount(element_name(number), len(same), sum(sizes), nbytes)
