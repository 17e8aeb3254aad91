"""ONNX's messages as small dataclasses, read from the wire format (`onnx.proto` of ONNX 1.23, IR versions 1
to 14).
 Elements of tensors stay in the file until they are asked for (`tensors.py`). Fields that change nothing of
what a model computes (documentation, sharding, training) are skipped. Knows no Tensors and no ops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from polygrad.errors import OnnxError
from polygrad.nn.wire import FIXED32, LENGTH, VARINT, Span, expect_kind, signed

_DEEPEST = 32  # graphs inside of graphs, types inside of types
_MOST_AXES = 64


@dataclass(frozen=True, slots=True)
class Arrived:
    """Elements that were taken from a file while it arrived: bytes, or a Tensor of them on its device."""

    data: Any
    nbytes: int

    def __len__(self) -> int:
        return self.nbytes


@dataclass(slots=True)
class TensorData:
    """A tensor of a file. Its elements are in exactly one of the places `raw`, `typed`, `strings`,
    `external`.

    `raw`: bytes of the file, or what has become of them while the file arrived. `typed`: spans of packed
    numbers, or single numbers, by the number of their field.
    """

    name: str = ""
    element: int = 0
    shape: tuple[int, ...] = ()
    raw: Span | Arrived | None = None
    typed: dict[int, list[Span | int]] = field(default_factory=dict)
    strings: list[str] = field(default_factory=list)
    external: dict[str, str] | None = None


@dataclass(slots=True)
class SparseData:
    """A sparse tensor: 0 except for `values` at `indices`, which are positions in row-major order or rows of
    coordinates.
    """

    values: TensorData
    indices: TensorData
    shape: tuple[int, ...]

    @property
    def name(self) -> str:
        return self.values.name


@dataclass(frozen=True, slots=True)
class Type:
    """A type: `kind` is 'tensor', 'sequence', 'optional', 'sparse_tensor', 'map' or 'opaque'.

    Of tensors, `element` is the number of the element type, and `shape` is None where nothing is said; a size
    is an int, a name, or None. Of sequences and optionals, `inner` is what they hold.
    """

    kind: str
    element: int = 0
    shape: tuple[int | str | None, ...] | None = None
    inner: Type | None = None


@dataclass(frozen=True, slots=True)
class ValueInfo:
    """A named value and its type, None where nothing is said."""

    name: str
    type: Type | None


@dataclass(frozen=True, slots=True)
class Reference:
    """An attribute inside of a function that has the value of the attribute `name` of the function's call."""

    name: str


@dataclass(slots=True)
class Node:
    """An operation. Attributes are ints, floats, text, TensorData, SparseData, Graph, Type, lists,
    References.
    """

    op: str
    domain: str
    name: str
    overload: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]

    def __str__(self) -> str:
        kind = f"{self.domain}.{self.op}" if self.domain else self.op
        return f"node {self.name!r} ({kind})" if self.name else f"node of {self.outputs[:1]} ({kind})"


@dataclass(slots=True)
class Graph:
    """Nodes in an order in which they can run, with the values that they start from."""

    name: str
    nodes: list[Node]
    initializers: list[TensorData | SparseData]
    inputs: list[ValueInfo]
    outputs: list[ValueInfo]


@dataclass(slots=True)
class Function:
    """A function: the nodes that replace a node with this domain, op and overload."""

    name: str
    domain: str
    overload: str
    inputs: list[str]
    outputs: list[str]
    attributes: list[str]
    defaults: dict[str, Any]
    nodes: list[Node]
    opsets: dict[str, int]


@dataclass(slots=True)
class Model:
    """The contents of an ONNX file. `opsets`: the version of each domain; `metadata`: text by name."""

    ir_version: int
    producer: str
    opsets: dict[str, int]
    graph: Graph
    functions: dict[tuple[str, str, str], Function]
    metadata: dict[str, str]


def read_model(data: memoryview) -> Model:
    """The model in the bytes of an ONNX file. Raises OnnxError when they are damaged."""
    return model_of(Fields.of(Span(data, 0, len(data)), "model"))


def model_of(fields: Fields) -> Model:
    """The model with the fields of its message. The graph, and tensors in it, may be Fields, too. Raises
    OnnxError."""
    graphs = fields.messages(7)
    if not graphs:
        raise OnnxError("ONNX file: no graph: the file is empty, cut off, or not an ONNX model")
    functions: dict[tuple[str, str, str], Function] = {}
    for span in fields.spans(25):
        function = _function(span)
        key = (function.domain, function.name, function.overload)
        if key in functions:
            raise OnnxError(f"ONNX file: function {'.'.join(key[:2])} is defined twice")
        functions[key] = function
    return Model(
        fields.integer(1),
        fields.text(2),
        _opsets(fields.spans(8)),
        _graph(graphs[-1], 0),
        functions,
        _strings_by_name(fields.spans(14)),
    )


class Fields:
    """The fields of a message by number. Scalars are those that come last, as protobuf has it."""

    __slots__ = ("_values", "what")

    def __init__(self, what: str) -> None:
        self.what = what
        self._values: dict[int, list[tuple[int, Any]]] = {}

    @classmethod
    def of(cls, message: Span | Fields, what: str) -> Fields:
        """The fields of a message, which may be read already."""
        if isinstance(message, Fields):
            return message
        out = cls(what)
        for number, kind, value in message.fields():
            out.add(number, kind, value)
        return out

    def add(self, number: int, kind: int, value: int | Span | Fields | Arrived) -> None:
        """Add the next field."""
        self._values.setdefault(number, []).append((kind, value))

    def __contains__(self, number: int) -> bool:
        return number in self._values

    def messages(self, number: int) -> list[Any]:
        """Values with a length: Spans, and messages whose fields are read, as Fields."""
        values = self._values.get(number)
        if values is None:
            return []
        for kind, value in values:
            if kind != LENGTH:
                expect_kind(kind, LENGTH, f"field {number} of a {self.what}", value)
        return [value for _, value in values]

    def spans(self, number: int) -> list[Span]:
        return self.messages(number)

    def last(self, number: int) -> Span | None:
        spans = self.spans(number)
        return spans[-1] if spans else None

    def text(self, number: int) -> str:
        span = self.last(number)
        return "" if span is None else span.text(f"field {number} of a {self.what}")

    def texts(self, number: int) -> list[str]:
        return [span.text(f"field {number} of a {self.what}") for span in self.spans(number)]

    def integer(self, number: int) -> int:
        if number not in self._values:
            return 0
        kind, value = self._values[number][-1]
        expect_kind(kind, VARINT, f"field {number} of a {self.what}", value)
        assert isinstance(value, int)
        return signed(value)

    def integers(self, number: int) -> list[int]:
        """Repeated integers, packed or one by one."""
        out: list[int] = []
        for kind, value in self._values.get(number, ()):
            if isinstance(value, int):
                out.append(signed(value))
            else:
                expect_kind(kind, LENGTH, f"field {number} of a {self.what}", value)
                out.extend(map(signed, value.varints()))
        return out

    def floats(self, number: int) -> list[float]:
        """Repeated floats, packed or one by one."""
        out: list[float] = []
        for kind, value in self._values.get(number, ()):
            if kind not in (LENGTH, FIXED32):
                expect_kind(kind, FIXED32, f"field {number} of a {self.what}", value)
            assert isinstance(value, Span)
            out.extend(value.numbers("f"))
        return out

    def raw(self, number: int) -> list[Span | int]:
        return [value for _, value in self._values.get(number, ())]


# --- parts of a model


def _opsets(spans: list[Span]) -> dict[str, int]:
    out = {}
    for span in spans:
        fields = Fields.of(span, "opset import")
        out[domain_of(fields.text(1))] = fields.integer(2)
    return out


def domain_of(name: str) -> str:
    """The name of a domain; '' and 'ai.onnx' are the same one."""
    return "" if name == "ai.onnx" else name


def _strings_by_name(spans: list[Span]) -> dict[str, str]:
    pairs = [Fields.of(span, "entry") for span in spans]
    return {p.text(1): p.text(2) for p in pairs}


def _graph(message: Span | Fields, depth: int) -> Graph:
    if depth > _DEEPEST:
        assert isinstance(message, Span)
        raise OnnxError(f"ONNX file at byte {message.place}: graphs more than {_DEEPEST} deep in each other")
    fields = Fields.of(message, "graph")
    initializers: list[TensorData | SparseData] = [tensor_of(m) for m in fields.messages(5)]
    return Graph(
        fields.text(2),
        [_node(s, depth) for s in fields.spans(1)],
        initializers + [_sparse(s) for s in fields.spans(15)],
        [_value_info(s) for s in fields.spans(11)],
        [_value_info(s) for s in fields.spans(12)],
    )


def _function(span: Span) -> Function:
    fields = Fields.of(span, "function")
    return Function(
        fields.text(1),
        domain_of(fields.text(10)),
        fields.text(13),
        fields.texts(4),
        fields.texts(5),
        fields.texts(6),
        dict(_attribute(s, 0) for s in fields.spans(11)),
        [_node(s, 0) for s in fields.spans(7)],
        _opsets(fields.spans(9)),
    )


def _node(span: Span, depth: int) -> Node:
    fields = Fields.of(span, "node")
    node = Node(
        fields.text(4),
        domain_of(fields.text(7)),
        fields.text(3),
        fields.text(8),
        fields.texts(1),
        fields.texts(2),
        {},
    )
    if not node.op:
        raise OnnxError(f"ONNX file at byte {span.place}: node {node.name!r} has no op_type")
    for attribute in fields.spans(5):
        try:
            name, value = _attribute(attribute, depth)
        except OnnxError as e:
            raise OnnxError(f"{node}: {e}") from e
        if name in node.attributes:
            raise OnnxError(f"{node}: attribute {name!r} is given twice")
        node.attributes[name] = value
    return node


# --- attributes


def _attribute(span: Span, depth: int) -> tuple[str, Any]:
    fields = Fields.of(span, "attribute")
    name, kind = fields.text(1), fields.integer(20)
    if fields.text(21):
        return name, Reference(fields.text(21))
    if not kind:  # IR versions before 2 do not say it
        kind = next((k for k, (number, _) in _ATTRIBUTES.items() if number in fields), 0)
    if kind not in _ATTRIBUTES:
        raise OnnxError(f"attribute {name!r}: type {kind} is unknown")
    number, read = _ATTRIBUTES[kind]
    try:
        return name, read(fields, number, depth)
    except OnnxError as e:
        raise OnnxError(f"attribute {name!r}: {e}") from e


def _float(fields: Fields, number: int, depth: int) -> float:
    values = fields.floats(number)
    return values[-1] if values else 0.0


def _one(read: Callable[[Span, int], Any]) -> Callable[[Fields, int, int], Any]:
    def last(fields: Fields, number: int, depth: int) -> Any:
        span = fields.last(number)
        if span is None:
            raise OnnxError("it has no value")
        return read(span, depth)

    return last


def _many(read: Callable[[Span, int], Any]) -> Callable[[Fields, int, int], Any]:
    return lambda fields, number, depth: [read(span, depth) for span in fields.spans(number)]


def _read_tensor(span: Span, depth: int) -> TensorData:
    return tensor_of(span)


def _read_sparse(span: Span, depth: int) -> SparseData:
    return _sparse(span)


def _read_graph(span: Span, depth: int) -> Graph:
    return _graph(span, depth + 1)


def _read_type(span: Span, depth: int) -> Type | None:
    return _type(span, 0)


# AttributeType: the number of the field that holds the value, and how it is read
_ATTRIBUTES: dict[int, tuple[int, Callable[[Fields, int, int], Any]]] = {
    1: (2, _float),
    2: (3, lambda fields, number, depth: fields.integer(number)),
    3: (4, lambda fields, number, depth: fields.text(number)),
    4: (5, _one(_read_tensor)),
    5: (6, _one(_read_graph)),
    6: (7, lambda fields, number, depth: fields.floats(number)),
    7: (8, lambda fields, number, depth: fields.integers(number)),
    8: (9, lambda fields, number, depth: fields.texts(number)),
    9: (10, _many(_read_tensor)),
    10: (11, _many(_read_graph)),
    11: (22, _one(_read_sparse)),
    12: (23, _many(_read_sparse)),
    13: (14, _one(_read_type)),
    14: (15, _many(_read_type)),
}


# --- tensors and types

FLOAT_DATA, INT32_DATA, INT64_DATA, DOUBLE_DATA, UINT64_DATA = 4, 5, 7, 10, 11


def tensor_of(message: Span | Fields) -> TensorData:
    """The tensor of a message. Raises OnnxError."""
    fields = Fields.of(message, "tensor")
    name = fields.text(8)
    typed = {n: fields.raw(n) for n in (FLOAT_DATA, INT32_DATA, INT64_DATA, DOUBLE_DATA, UINT64_DATA)}
    if 3 in fields:
        raise OnnxError(f"tensor {name!r}: it is a segment of another: no writer makes them")
    return TensorData(
        name,
        fields.integer(2),
        _shape(fields.integers(1), f"tensor {name!r}"),
        fields.last(9),
        {n: values for n, values in typed.items() if values},
        fields.texts(6) if fields.integer(2) == 8 else [],
        _strings_by_name(fields.spans(13)) if fields.integer(14) == 1 else None,
    )


def _sparse(span: Span) -> SparseData:
    fields = Fields.of(span, "sparse tensor")
    values, indices = fields.last(1), fields.last(2)
    if values is None or indices is None:
        raise OnnxError(f"ONNX file at byte {span.place}: a sparse tensor without values or indices")
    data = tensor_of(values)
    return SparseData(data, tensor_of(indices), _shape(fields.integers(3), f"tensor {data.name!r}"))


def _shape(sizes: list[int], what: str) -> tuple[int, ...]:
    if len(sizes) > _MOST_AXES or any(n < 0 for n in sizes):
        raise OnnxError(f"{what}: expected up to {_MOST_AXES} sizes of at least 0, got {str(sizes)[:80]}")
    return tuple(sizes)


def _value_info(span: Span) -> ValueInfo:
    fields = Fields.of(span, "value")
    declared = fields.last(2)
    return ValueInfo(fields.text(1), None if declared is None else _type(declared, 0))


_TENSOR_TYPE, _SEQUENCE, _MAP, _OPAQUE, _SPARSE_TYPE, _OPTIONAL = 1, 4, 5, 7, 8, 9
_TYPE_KINDS = {
    _TENSOR_TYPE: "tensor", _SEQUENCE: "sequence", _MAP: "map", _OPAQUE: "opaque",
    _SPARSE_TYPE: "sparse_tensor", _OPTIONAL: "optional",
}  # fmt: skip


def _type(span: Span, depth: int) -> Type | None:
    if depth > _DEEPEST:
        raise OnnxError(f"ONNX file at byte {span.place}: types more than {_DEEPEST} deep in each other")
    fields = Fields.of(span, "type")
    number = next((n for n in _TYPE_KINDS if n in fields), 0)
    inner = fields.last(number) if number else None
    if inner is None:
        return None
    kind, parts = _TYPE_KINDS[number], Fields.of(inner, "type")
    if number in (_TENSOR_TYPE, _SPARSE_TYPE):
        shape = parts.last(2)
        return Type(kind, parts.integer(1), None if shape is None else _symbolic_shape(shape))
    if number in (_SEQUENCE, _OPTIONAL):
        held = parts.last(1)
        return Type(kind, inner=None if held is None else _type(held, depth + 1))
    return Type(kind)


def _symbolic_shape(span: Span) -> tuple[int | str | None, ...]:
    """A size that is negative or called '?', as some exporters write it, is unknown."""
    out: list[int | str | None] = []
    for dim in Fields.of(span, "shape").spans(1):
        fields = Fields.of(dim, "dimension")
        size, name = fields.integer(1), fields.text(2)
        out.append((size if size >= 0 else None) if 1 in fields else name if name not in ("", "?") else None)
    return tuple(out)
