"""A model whose files of weights arrive in pieces, as a download or a stream does.

A piece goes straight to its tensor on the device. A weight gets its value as soon as all tensors are there
that it is read from, and these are dropped when no other weight needs them. So a model takes little more
memory than its weights, whatever is done to them on the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.engine.devices import Device
from polygrad.errors import ArgumentError, ModelError, OutOfMemoryError
from polygrad.hf.checkpoint import SafetensorsCheckpoint
from polygrad.hf.files import json_fields
from polygrad.hf.gguf import TABLES, gguf_model
from polygrad.hf.gguf_parts import join_parts
from polygrad.hf.instances import HFInstance
from polygrad.hf.load import LoadOptions, Prepared, prepare_gguf, prepare_instance
from polygrad.nn.files import TensorInPieces
from polygrad.nn.gguf import Blocks, Incomplete, Place, read_gguf_header
from polygrad.nn.safetensors import TensorEntry, TensorPlace, header_end, place_tensors, read_header

_UNKNOWN_SIZE = 1 << 62  # of a file whose length nobody tells: any header fits
_GGUF = b"GGUF"


@dataclass(frozen=True)
class _Segment:
    """Where a tensor is in its file; `dtype`: of its elements, uint8 for blocks of few bits."""

    name: str
    start: int
    end: int
    dtype: DType


class ArrivingFile:
    """A file of weights whose bytes come in order.

    `metadata`: of a GGUF file. `places`: where its tensors are, once the header is there. `wanted`: the
    tensors that are taken; None: all. `takes_tensors`: whether more than the header is read. Raises
    ModelError, which names the file, for a damaged one.
    """

    def __init__(self, name: str, device: str | None = None) -> None:
        self.name, self._device = name, device
        self._size: int | None = None
        self.metadata: dict[str, Any] | None = None
        self.places: Mapping[str, Place] | Mapping[str, TensorPlace] | None = None
        self.wanted: set[str] | None = None
        self.takes_tensors = True
        self._head = bytearray()
        self._next_try = 8
        self._segments: list[_Segment] = []
        self._at = 0
        self._current: TensorInPieces | bytearray | None = None

    @property
    def is_complete(self) -> bool:
        """Whether all tensors have come."""
        return self.places is not None and not self._segments

    def begin(self, size: int | None) -> None:
        """The next bytes are the first of the file, which has `size` bytes, if that is known. What is known
        of it stays known."""
        self._size, self._at, self._current, self._head = size, 0, None, bytearray()
        if self.places is not None:
            self._segments = _segments(self.places)

    def feed(self, piece: bytes) -> Iterator[tuple[str, Any]]:
        """Take the next bytes; gives the tensors that they complete, by name, as `put` of a checkpoint takes
        them."""
        if self.places is None:
            self._head += piece
            if not self._read_header():
                return
            piece, self._head = bytes(self._head), bytearray()
        if self.takes_tensors:
            yield from self._fill(memoryview(piece))

    def _read_header(self) -> bool:
        """Whether the header is there, which then is read."""
        if len(self._head) < self._next_try and len(self._head) != self._size:
            return False
        size = _UNKNOWN_SIZE if self._size is None else self._size
        try:
            if self._head[:4] == _GGUF:
                self.metadata, self.places = read_gguf_header(bytes(self._head), size)
            else:
                end = header_end(bytes(self._head[:8]), size)
                if len(self._head) < end:
                    self._next_try = end
                    return False
                start, header = read_header(self._head)
                places = place_tensors(start, header, _size_by(header, start) if self._size is None else size)
                self.places = places
        except Incomplete:
            self._next_try = 2 * len(
                self._head
            )  # so that reading it again takes no more than reading it once
            return False
        except ArgumentError as e:
            raise ModelError(f"{self.name}: {e}") from e
        self._segments = _segments(self.places)
        return True

    def _fill(self, piece: memoryview) -> Iterator[tuple[str, Any]]:
        while self._segments and (len(piece) or self._at == self._segments[0].end):
            segment = self._segments[0]
            if self._at < segment.start:
                skipped = min(segment.start - self._at, len(piece))
                piece, self._at = piece[skipped:], self._at + skipped
                continue
            part = piece[: segment.end - self._at]
            piece, self._at = piece[len(part) :], self._at + len(part)
            if self.wanted is None or segment.name in self.wanted:
                self._write(segment, part)
            if self._at == segment.end:
                self._segments.pop(0)
                complete, self._current = self._current, None
                if isinstance(complete, TensorInPieces):
                    yield segment.name, complete.tensor()
                elif complete is not None:
                    yield segment.name, memoryview(bytes(complete))
        self._at += len(piece)

    def _write(self, segment: _Segment, part: memoryview) -> None:
        if self._current is None:
            count = (segment.end - segment.start) // segment.dtype.itemsize
            is_table = segment.name in TABLES
            self._current = bytearray() if is_table else TensorInPieces(segment.dtype, count, self._device)
        if isinstance(self._current, bytearray):
            self._current += part
        else:
            self._current.write(part)


def _segments(places: Mapping[str, Place] | Mapping[str, TensorPlace]) -> list[_Segment]:
    """The tensors in the order of the file."""
    segments = []
    for name, place in places.items():
        dtype = (place.encoding.dtype or dtypes.uint8) if isinstance(place, Place) else place.dtype
        segments.append(_Segment(name, place.start, place.end, dtype))
    return sorted(segments, key=lambda s: (s.start, s.end))


def _size_by(header: Mapping[str, Any], start: int) -> int:
    """The length of a safetensors file by its header."""
    ends = [entry["data_offsets"][1] for entry in header.values() if "data_offsets" in entry]
    return start + max((end for end in ends if isinstance(end, int)), default=0)


class ArrivingModel:
    """A model of `files`, small files by name, and of weights in the files called `weights`: those of a
    safetensors checkpoint, or all parts of a GGUF file in order.

    With one file of weights, `feed` is given all its bytes, after `begin`. With several, it is first given
    the beginning of each, until it says that the header is there; then, after another `begin`, all bytes of
    each. `finish` gives the model. Raises ModelError, and OutOfMemoryError when the last header is there and
    the device has no room for the weights.

    >>> import json
    >>> from polygrad.hf.load import LoadOptions, from_config
    >>> from polygrad.nn.state import safe_save
    >>> config = {"architectures": ["LlamaForCausalLM"], "vocab_size": 10, "hidden_size": 8,
    ...           "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    >>> model = from_config(config)
    >>> weights = safe_save(model.architecture.names.to_file(model.weights()))
    >>> files = {"config.json": json.dumps(config).encode()}
    >>> arriving = ArrivingModel(files, ["model.safetensors"], LoadOptions())
    >>> arriving.begin(0, len(weights))
    >>> any([arriving.feed(0, weights[i : i + 100]) for i in range(0, len(weights), 100)])
    True
    >>> arriving.finish().generate([1, 2], max_new_tokens=3).tokens == model.generate(
    ...     [1, 2], max_new_tokens=3).tokens
    True
    """

    def __init__(self, files: Mapping[str, bytes], weights: Sequence[str], options: LoadOptions) -> None:
        if not weights:
            raise ArgumentError("weights: expected at least one file, got none")
        self._files, self._options = dict(files), options
        self._arriving = [ArrivingFile(name, options.device) for name in weights]
        self._prepared: Prepared | None = None
        self._checkpoint: Any = None
        self._arrived: dict[str, Any] = {}  # what came before the model could be prepared
        self._parts: dict[str, set[str]] = {}  # the tensors that each weight is read from
        self._missing: dict[str, set[str]] = {}  # those of them that have not come
        self._weights_of: dict[str, list[str]] = {}  # the weights that each tensor is for

    def feed(self, file: int, piece: bytes) -> bool:
        """Take the next bytes of a file of weights; whether its header is known."""
        arriving = self._arriving[file]
        for name, data in arriving.feed(piece):
            self._take(name, data)
        self._prepare()
        return arriving.places is not None

    def begin(self, file: int, size: int | None) -> None:
        """The next bytes of a file, which has `size` bytes, if that is known, are its first ones."""
        arriving = self._arriving[file]
        arriving.takes_tensors = len(self._arriving) == 1 or arriving.places is not None
        arriving.begin(size)

    def finish(self) -> HFInstance:
        """The model. Raises ModelError for a file that ended too early."""
        for file in self._arriving:
            if not file.is_complete:
                raise ModelError(f"{file.name}: the file is cut short: expected more bytes")
        assert self._prepared is not None
        return self._prepared[0]

    def _take(self, name: str, data: Any) -> None:
        if self._prepared is None:
            self._arrived[name] = data
            return
        if name not in self._weights_of:
            return
        self._checkpoint.put(name, data)
        for weight in self._weights_of[name]:
            self._missing[weight].discard(name)
        for weight in list(self._weights_of[name]):
            if not self._missing[weight]:
                self._read(weight)

    def _read(self, weight: str) -> None:
        """Read a weight, and drop the tensors that no other weight waits for."""
        assert self._prepared is not None
        self._prepared[1].read(weight)
        del self._missing[weight]
        for name in self._parts[weight]:
            self._weights_of[name].remove(weight)
            if not self._weights_of[name]:
                del self._weights_of[name]
                self._checkpoint.put(name, b"")

    def _prepare(self) -> None:
        """Make the model without its weights, once all is there that says what it is."""
        if self._prepared is not None or any(file.places is None for file in self._arriving):
            return
        if any(file.metadata is not None for file in self._arriving):
            tables = [t for file in self._arriving for t in file.places or () if t in TABLES]
            if any(table not in self._arrived for table in tables):
                return
            self._prepared = self._prepare_gguf()
        else:
            self._prepared = self._prepare_safetensors()
        _, reader = self._prepared
        for weight, source in reader.sources.items():
            parts = {part for n in source.names for part in reader.checkpoint.parts(n)}
            self._parts[weight], self._missing[weight] = parts, set(parts)
            for part in parts:
                self._weights_of.setdefault(part, []).append(weight)
        for file in self._arriving:
            file.wanted = set(self._weights_of)
        self._reserve()
        arrived, self._arrived = self._arrived, {}
        while arrived:
            self._take(*arrived.popitem())

    def _prepare_safetensors(self) -> Prepared:
        entries = {}
        for file in self._arriving:
            places: Any = file.places
            entries[file.name] = {n: TensorEntry(p.dtype, p.shape, b"") for n, p in places.items()}
        self._checkpoint = SafetensorsCheckpoint.of_entries(entries)
        config = json_fields(self._files, "config.json")
        return prepare_instance(config, self._files, self._checkpoint, None, self._options)

    def _prepare_gguf(self) -> Prepared:
        parts = {}
        for file in self._arriving:
            if file.metadata is None:
                raise ModelError(f"{file.name}: expected a GGUF file, as the other parts are")
            places: Any = file.places
            blocks = {
                n: Blocks(p.encoding, p.shape, self._arrived.get(n, b"") if n in TABLES else b"")
                for n, p in places.items()
            }
            parts[file.name] = (file.metadata, blocks)
        model = gguf_model(*join_parts(parts))
        self._checkpoint = model.checkpoint
        return prepare_gguf(model, self._files, self._options)

    def _reserve(self) -> None:
        """Raises OutOfMemoryError where the weights do not fit."""
        assert self._prepared is not None
        packed = {}
        for file in self._arriving:
            for name, place in (file.places or {}).items():
                if isinstance(place, Place) and place.encoding.dtype is None:
                    packed[name] = place.end - place.start
        sizes = self._prepared[1].sizes(packed)
        device = self._options.device or Device.DEFAULT
        try:
            Device[device].reserve(sizes)
        except OutOfMemoryError as e:
            raise OutOfMemoryError(
                f"{self._arriving[0].name}: the weights take {sum(sizes)} bytes, and device {device} has no "
                f"room for them: use a file in fewer bits, quantize it, or use another device ({e})"
            ) from e
