"""ONNX's messages as bytes (`onnx.proto`), the counterpart of `proto.py`. Knows no Tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from polygrad.onnx.wire_writer import data, float32, floats, integer, integers, text

PRODUCER = "polygrad"
_EXTERNAL = 1  # of a TensorProto's data_location


@dataclass(frozen=True, slots=True)
class External:
    """Where the elements of a tensor are in a file beside the model's."""

    location: str
    offset: int
    length: int


class TensorMessage(bytes):
    """A TensorProto as an attribute; other bytes are a GraphProto."""


@dataclass(slots=True)
class GraphText:
    """The parts of a graph, each a message."""

    nodes: list[bytes] = field(default_factory=list)
    initializers: list[bytes] = field(default_factory=list)
    inputs: list[bytes] = field(default_factory=list)
    outputs: list[bytes] = field(default_factory=list)

    def message(self, name: str) -> bytes:
        parts = [data(1, n) for n in self.nodes]
        parts.append(text(2, name))
        parts += [data(5, t) for t in self.initializers]
        parts += [data(11, v) for v in self.inputs]
        parts += [data(12, v) for v in self.outputs]
        return b"".join(parts)


def tensor(name: str, element: int, shape: Iterable[int], raw: bytes | memoryview | External) -> bytes:
    """A TensorProto. `raw`: its elements, little-endian, or where they are."""
    parts = [integers(1, shape), integer(2, element), text(8, name)]
    if isinstance(raw, External):
        entries = {"location": raw.location, "offset": str(raw.offset), "length": str(raw.length)}
        parts += [data(13, text(1, key) + text(2, value)) for key, value in entries.items()]
        parts.append(integer(14, _EXTERNAL))
    else:
        parts.append(data(9, raw))
    return b"".join(parts)


def node(
    op: str, inputs: Iterable[str], outputs: Iterable[str], name: str, attributes: Mapping[str, Any]
) -> bytes:
    """A NodeProto. Attributes are ints, floats, text, lists, graphs or tensors."""
    parts = [text(1, x) for x in inputs]
    parts += [text(2, y) for y in outputs]
    parts += [text(3, name), text(4, op)]
    parts += [data(5, _attribute(key, value)) for key, value in attributes.items()]
    return b"".join(parts)


def _attribute(name: str, value: Any) -> bytes:
    """An AttributeProto: its name, its value in the field of its type, and the type."""
    if isinstance(value, float):
        return text(1, name) + float32(2, value) + integer(20, 1)
    if isinstance(value, int):
        return text(1, name) + integer(3, value) + integer(20, 2)
    if isinstance(value, str):
        return text(1, name) + text(4, value) + integer(20, 3)
    if isinstance(value, TensorMessage):
        return text(1, name) + data(5, value) + integer(20, 4)
    if isinstance(value, bytes):
        return text(1, name) + data(6, value) + integer(20, 5)
    if value and isinstance(value[0], float):
        return text(1, name) + floats(7, value) + integer(20, 6)
    return text(1, name) + integers(8, value) + integer(20, 7)


def value_info(name: str, element: int, shape: Iterable[int | str]) -> bytes:
    """A ValueInfoProto of a tensor. A size is a number, a name, or '' where it is not known."""
    dims = b"".join(data(1, integer(1, n) if isinstance(n, int) else text(2, n) if n else b"") for n in shape)
    return text(1, name) + data(2, data(1, integer(1, element) + data(2, dims)))


def model(graph: bytes, opset: int, ir_version: int) -> bytes:
    """A ModelProto."""
    imported = text(1, "") + integer(2, opset)
    return integer(1, ir_version) + text(2, PRODUCER) + data(7, graph) + data(8, imported)
