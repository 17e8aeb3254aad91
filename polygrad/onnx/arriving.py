"""An ONNX model whose files arrive in pieces, as a download does.

Large initializers go to the device while they arrive, so they are nowhere else: those in the model's file as
well as those in files of external data, which come after it. The rest of a file is kept until `finish`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from polygrad.errors import OnnxError
from polygrad.helpers import ceildiv, prod
from polygrad.nn.files import TensorInPieces
from polygrad.nn.wire import LENGTH, VARINT
from polygrad.nn.wire_stream import Reading, WireStream
from polygrad.onnx.elements import ELEMENTS
from polygrad.onnx.inspection import initializers
from polygrad.onnx.instance import Instance
from polygrad.onnx.proto import Arrived, Fields, Model, TensorData, model_of, tensor_of
from polygrad.onnx.tensors import MOST_SHARED, Files, check_place, place_of

LEAST_STREAMED = 1 << 16  # bytes of a tensor that goes to the device while it arrives
_GRAPH, _INITIALIZER, _RAW = 7, 5, 9  # fields of a model, a graph, a tensor


class _Elements:
    """The elements of a tensor on their way: to the device where they are many and need no conversion, else
    to bytes."""

    def __init__(self, tensor: TensorData, nbytes: int, device: str | None) -> None:
        self.nbytes = self.missing = nbytes
        element = ELEMENTS.get(tensor.element)
        self._target: TensorInPieces | bytearray = bytearray()
        if element is None or not element.is_native or element.dtype.is_bool or nbytes < LEAST_STREAMED:
            return
        if nbytes == prod(tensor.shape) * element.dtype.itemsize:
            self._target = TensorInPieces(element.dtype, prod(tensor.shape), device)

    def write(self, piece: bytes | memoryview) -> None:
        """Take the next bytes."""
        self.missing -= len(piece)
        if isinstance(self._target, bytearray):
            self._target += piece
        else:
            self._target.write(memoryview(piece))

    def arrived(self) -> Arrived:
        """The elements, none of which is missing."""
        whole = self._target
        return Arrived(whole if isinstance(whole, bytearray) else whole.tensor(), self.nbytes)


class _ModelFile:
    """The file of the model itself."""

    def __init__(self, size: int | None, device: str | None) -> None:
        self._stream, self._device = WireStream(size), device
        self._fields, self._is_read = Fields("model"), False
        self._reading: Iterator[None] = self._model()

    def feed(self, piece: bytes) -> None:
        """Take the next bytes. Raises OnnxError for damaged ones."""
        self._stream.put(piece)
        next(self._reading, None)

    def finish(self) -> Model:
        """The model, all bytes of which are there."""
        stream = self._stream
        stream.close()
        next(self._reading, None)
        if not self._is_read or stream.ready:
            raise OnnxError(f"ONNX file: expected {stream.size} bytes of a model, got others")
        return model_of(self._fields)

    def _model(self) -> Reading[None]:
        stream = self._stream
        while (yield from stream.is_before(stream.size)):
            number, kind, size = yield from stream.head(stream.size)
            is_graph = number == _GRAPH and kind == LENGTH
            value = yield from self._graph(stream.at + size) if is_graph else self._value(kind, size)
            self._fields.add(number, kind, value)
        self._is_read = True

    def _graph(self, end: int) -> Reading[Fields]:
        fields, stream = Fields("graph"), self._stream
        while (yield from stream.is_before(end)):
            number, kind, size = yield from stream.head(end)
            is_large = number == _INITIALIZER and kind == LENGTH and size >= LEAST_STREAMED
            value = yield from self._tensor(stream.at + size) if is_large else self._value(kind, size)
            fields.add(number, kind, value)
        return fields

    def _tensor(self, end: int) -> Reading[Fields]:
        fields, stream = Fields("tensor"), self._stream
        while (yield from stream.is_before(end)):
            number, kind, size = yield from stream.head(end)
            is_raw = number == _RAW and kind == LENGTH
            value = yield from self._raw(fields, size) if is_raw else self._value(kind, size)
            fields.add(number, kind, value)
        return fields

    def _raw(self, fields: Fields, size: int) -> Reading[Arrived]:
        """The elements of a tensor whose fields before them are known; writers write them last."""
        elements = _Elements(tensor_of(fields), size, self._device)
        while elements.missing:
            elements.write((yield from self._stream.some(elements.missing)))
        return elements.arrived()

    def _value(self, kind: int, size: int) -> Reading[Any]:
        if kind == VARINT:
            return size
        return (yield from self._stream.span(size))


class _ExternalFile:
    """A file with elements of `tensors`."""

    def __init__(self, name: str, tensors: list[TensorData]) -> None:
        self._name, self._tensors = name, tensors
        self._at = 0
        self._waiting: list[tuple[int, int, TensorData, _Elements | None]] = []
        self._device: str | None = None

    def begin(self, size: int | None, device: str | None) -> None:
        """The next bytes are the first of the file, which has `size` bytes, if that is known. Raises
        OnnxError for tensors that it has no room for, or that take it many times."""
        self._device = device
        places = sorted([(*_place(t), t) for t in self._tensors], key=lambda place: place[:2])
        whole = max((start + nbytes for start, nbytes, _ in places), default=0)
        for start, nbytes, tensor in places:
            if size is not None:
                check_place(_named(tensor), start, nbytes, size)
        if sum(nbytes for _, nbytes, _ in places) > MOST_SHARED * whole:
            raise OnnxError(f"{self._name}: tensors take the external data more than {MOST_SHARED} times")
        self._waiting = [(start, nbytes, tensor, None) for start, nbytes, tensor in places]

    def feed(self, piece: bytes) -> None:
        """Take the next bytes."""
        begin, self._at = self._at, self._at + len(piece)
        view, waiting = memoryview(piece), []
        for i, (start, nbytes, tensor, elements) in enumerate(self._waiting):
            if start > self._at:
                waiting += self._waiting[i:]
                break
            elements = elements or _Elements(tensor, nbytes, self._device)
            elements.write(view[max(start - begin, 0) : max(start + nbytes - begin, 0)])
            if elements.missing:
                waiting.append((start, nbytes, tensor, elements))
            else:
                tensor.raw, tensor.external = elements.arrived(), None
        self._waiting = waiting

    def finish(self) -> None:
        """Raises OnnxError for a file that ended too early."""
        self.feed(b"")  # for tensors without elements
        for start, nbytes, tensor, _ in self._waiting:
            check_place(_named(tensor), start, nbytes, self._at)


def _place(tensor: TensorData) -> tuple[int, int]:
    """Where the elements of a tensor begin in its file, and how many bytes they have. Raises OnnxError."""
    start, nbytes = place_of(tensor.external or {}, _named(tensor))
    if nbytes is None:
        element = ELEMENTS.get(tensor.element)
        bits = 0 if element is None else 8 if element.bits == 6 else element.bits
        nbytes = ceildiv(prod(tensor.shape) * bits, 8)
    return start, nbytes


def _named(tensor: TensorData) -> str:
    """A tensor in an error."""
    return f"tensor {tensor.name!r}"


class ArrivingModel:
    """An ONNX model on its way. File 0 is the model, file i + 1 the one that `external()[i]` names: each is
    begun, then fed all its bytes, one file after the other. Raises OnnxError for damaged ones.

    >>> from polygrad.onnx.instance import EXAMPLE
    >>> arriving = ArrivingModel()
    >>> arriving.begin(0, len(EXAMPLE))
    >>> for i in range(0, len(EXAMPLE), 10):
    ...     arriving.feed(0, EXAMPLE[i : i + 10])
    >>> arriving.external()
    []
    >>> arriving.finish()(x=[1.0, -2.0])["y"].tolist()
    [1.0, 0.0]
    """

    def __init__(self, device: str | None = None) -> None:
        self._device = device
        self._file: _ModelFile | None = None
        self._model: Model | None = None
        self._external: dict[str, _ExternalFile] = {}

    def begin(self, file: int, size: int | None) -> None:
        """The next bytes of a file, which has `size` bytes, if that is known, are its first ones."""
        if file == 0:
            self._file = _ModelFile(size, self._device)
        else:
            self._other(file).begin(size, self._device)

    def feed(self, file: int, piece: bytes) -> None:
        """Take the next bytes of a file."""
        if file == 0:
            assert self._file is not None
            self._file.feed(piece)
        else:
            self._other(file).feed(piece)

    def external(self) -> list[str]:
        """The names of the files that hold initializers, once all of the model's file is there."""
        if self._model is None:
            assert self._file is not None
            self._model = self._file.finish()
            tensors: dict[str, list[TensorData]] = {}
            for tensor in initializers(self._model):
                if tensor.external is not None:
                    tensors.setdefault(tensor.external.get("location", ""), []).append(tensor)
            self._external = {name: _ExternalFile(name, members) for name, members in tensors.items()}
        return list(self._external)

    def finish(self, requires_grad: bool = False) -> Instance:
        """The model, all bytes of which are there. `requires_grad`: as of `load`."""
        self.external()
        for other in self._external.values():
            other.finish()
        assert self._model is not None
        return Instance(self._model, Files(None), self._device, requires_grad)

    def _other(self, file: int) -> _ExternalFile:
        return self._external[self.external()[file - 1]]
