"""ONNX models for bindings in other languages: `polygrad/bridge.py` calls these functions as `$onnx.NAME`.

Ports are plain data, outputs come in their order, and errors begin with the file's name.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import PurePosixPath
from typing import Any

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError, CaptureError, DTypeError, OnnxError, ShapeError
from polygrad.helpers import prod
from polygrad.onnx.arriving import ArrivingModel
from polygrad.onnx.elements import element_name
from polygrad.onnx.instance import Instance
from polygrad.onnx.ports import Port
from polygrad.onnx.proto import Graph, Node, SparseData, TensorData
from polygrad.runtime.program import MAGIC
from polygrad.tensor.tensor import Tensor

_OF_THE_FILE = (OnnxError, ArgumentError, ShapeError, DTypeError, CaptureError)
_OTHER = {
    MAGIC: "an exported step: `load` of polygrad/runtime runs it, without Python",
    b"GGUF": "a GGUF file",
    b"PK\x03\x04": "a zip file",
}
_HEAD = 9  # bytes that say what a file is


@contextmanager
def in_file(name: str) -> Iterator[None]:
    """Errors of the file, its nodes and its inputs begin with the file's name."""
    try:
        yield
    except _OF_THE_FILE as e:
        raise type(e)(f"{name}: {e}") from e


class Loading:
    """An ONNX model on its way, in files that are fed as `ArrivingModel` says. Errors begin with `name`, the
    name of its file."""

    def __init__(self, name: str, device: str | None = None, requires_grad: bool = False) -> None:
        self.name, self._requires_grad = name, requires_grad
        self._arriving = ArrivingModel(device)
        self._head = b""

    def begin(self, file: int, size: int | None) -> None:
        """The next bytes of a file, which has `size` bytes, if that is known, are its first ones."""
        with in_file(self.name):
            self._arriving.begin(file, size)

    def feed(self, file: int, piece: bytes) -> bool:
        """Take the next bytes of a file; True, as its other bytes are wanted, too."""
        with in_file(self.name):
            if file == 0 and len(self._head) < _HEAD:
                self._head += piece[:_HEAD]
                _check_kind(self._head)
            self._arriving.feed(file, piece)
        return True

    def external(self) -> list[str]:
        """The names of the files with its initializers, which are to be fed after its own."""
        with in_file(self.name):
            return [_check_location(location) for location in self._arriving.external()]

    def instance(self) -> Instance:
        """The model in Python, all bytes of which are there."""
        with in_file(self.name):
            return self._arriving.finish(self._requires_grad)

    def finish(self) -> Model:
        """The model, all bytes of which are there."""
        return Model(self.instance(), self.name)


def piece(data: bytes) -> bytes:
    """Bytes of a file, for `Loading.feed`: questions have no bytes as arguments."""
    return data


def _check_kind(head: bytes) -> None:
    """Raises OnnxError for a file that begins as one of another kind does."""
    other = next((text for start, text in _OTHER.items() if head.startswith(start)), None)
    if other is None and len(head) > 8 and head[8:9] == b"{" and head[7] == 0:
        other = "a safetensors file: `state.safeLoad` reads its tensors"
    if other is not None:
        raise OnnxError(f"load: expected an ONNX model, got {other}")


def _check_location(location: str) -> str:
    """The name of a file beside a model, which is about to be fetched. Raises OnnxError."""
    parts = PurePosixPath(location).parts
    if not parts or parts[0] == "/" or ".." in parts or any(c in location for c in "\\:?#%\0"):
        raise OnnxError(f"load: external data {location[:200]!r} is not a file inside of the model's folder")
    return location


class Model:
    """A model from `load` or `capture`. `inputs`, `outputs`, `ops`, `parameters` are plain data."""

    def __init__(
        self,
        instance: Instance,
        file: str,
        forward: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> None:
        self._instance, self.file = instance, file
        self._forward = forward or instance.forward
        self._ports = {port.name: port for port in instance.inputs}
        self.inputs = [_plain(port) for port in instance.inputs]
        self.outputs = [_plain(port) for port in instance.outputs]
        self.ops = instance.ops
        self.parameters = list(instance.parameters)

    def forward(self, given: Mapping[str, Any]) -> list[Any]:
        """The outputs in order. A tuple stands for elements that take the shape of their input."""
        with in_file(self.file):
            return list(self._forward(self._inputs(given)).values())

    def profile(self, given: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """`Instance.profile` as plain data."""
        with in_file(self.file):
            return asdict(self._instance.profile(self._inputs(given), seconds=seconds))

    @property
    def graph(self) -> dict[str, Any]:
        """The nodes of the main graph, and its initializers."""
        graph = self._instance.model.graph
        return {
            "nodes": [_plain_node(node) for node in graph.nodes],
            "initializers": [
                {"name": t.name, "element": element_name(_values(t).element), "shape": list(t.shape)}
                for t in graph.initializers
            ],
        }

    def capture(self, bounds: Mapping[str, Any]) -> Model:
        """The same model, captured for all sizes within `bounds`."""
        with in_file(self.file):
            return Model(self._instance, self.file, self._instance.capture(**_pairs(bounds)))

    def export(self, bounds: Mapping[str, Any]) -> bytes:
        """The bytes of a .pgrd file."""
        with in_file(self.file), tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.pgrd")
            self._instance.export(path, **_pairs(bounds))
            with open(path, "rb") as f:
                return f.read()

    def tensors(self) -> list[Tensor]:
        """The parameters, in the order of their names."""
        return list(self._instance.parameters.values())

    def _inputs(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {n: self._shape(n, x[0]) if isinstance(x, tuple) else x for n, x in given.items()}

    def _shape(self, name: str, elements: Any) -> Any:
        """Elements without a shape, in the shape of their input. Raises ShapeError, DTypeError."""
        port = self._ports.get(name)
        if port is None or port.shape is None:
            return elements  # `forward` reports an unknown name; an unknown shape fits any rank
        count = len(elements)
        known_product = prod([n for n in port.shape if isinstance(n, int)])
        unknown_count = len(port.shape) - sum(isinstance(n, int) for n in port.shape)
        if unknown_count > 1 or (
            count % known_product if unknown_count and known_product else count != known_product
        ):
            sizes = ", ".join("?" if n is None else str(n) for n in port.shape)
            advice = ": give { data, shape }" if unknown_count > 1 else ""
            raise ShapeError(f"forward: input {name!r} has shape ({sizes}), got {count} elements{advice}")
        shape = [n if isinstance(n, int) else count // (known_product or 1) for n in port.shape]
        if isinstance(elements, list):
            return elements[0] if not shape else elements if len(shape) == 1 else _nest(elements, shape)
        if port.dtype is dtypes.bool and elements.dtype is dtypes.uint8:
            elements = elements.ne(0)
        return elements.reshape(shape)


def _nest(elements: list[Any], shape: Sequence[int]) -> list[Any]:
    for size in reversed(shape[1:]):
        elements = [elements[i : i + size] for i in range(0, len(elements), size)]
    return elements


def _pairs(bounds: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(b) if isinstance(b, list) else b for name, b in bounds.items()}


def _values(tensor: TensorData | SparseData) -> TensorData:
    return tensor.values if isinstance(tensor, SparseData) else tensor


def _plain_node(node: Node) -> dict[str, Any]:
    return {
        "name": node.name,
        "op": f"{node.domain}.{node.op}" if node.domain else node.op,
        "inputs": node.inputs,
        "outputs": node.outputs,
        "attributes": {name: _plain_attribute(value) for name, value in node.attributes.items()},
    }


def _plain_attribute(value: Any) -> Any:
    """Numbers, text and lists of them unchanged; other values as descriptions."""
    if isinstance(value, list):
        return [_plain_attribute(x) for x in value]
    if isinstance(value, (TensorData, SparseData)):
        sizes = ", ".join(map(str, value.shape))
        return f"{element_name(_values(value).element)} ({sizes})"
    if isinstance(value, Graph):
        return f"a graph of {len(value.nodes)} nodes"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # infinities and NaN, which JSON cannot represent
    return value if isinstance(value, (int, float, str)) else str(value)


def _plain(port: Port) -> dict[str, Any]:
    inner = None if port.inner is None else _plain(port.inner)
    return {
        "name": port.name,
        "kind": port.kind,
        "dtype": None if port.dtype is None else str(port.dtype),
        "element": element_name(port.element) if port.element else None,
        "shape": None if port.shape is None else list(port.shape),
        "inner": inner,
    }
