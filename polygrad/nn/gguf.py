"""GGUF files as plain data: metadata, and tensors as blocks of bytes (ggml's `docs/gguf.md`). Knows no
Tensors.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.errors import ArgumentError
from polygrad.helpers import prod

_WHAT = "gguf_load"
_MAX_DEPTH = 4  # arrays of arrays
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_MOST_AXES = 8


@dataclass(frozen=True, slots=True)
class Encoding:
    """How elements are stored: `elements` of them in `nbytes` bytes. `dtype`: None if they are quantized."""

    name: str
    elements: int
    nbytes: int
    dtype: DType | None = None


ENCODINGS = {
    0: Encoding("F32", 1, 4, dtypes.float32),
    1: Encoding("F16", 1, 2, dtypes.float16),
    2: Encoding("Q4_0", 32, 18),
    3: Encoding("Q4_1", 32, 20),
    6: Encoding("Q5_0", 32, 22),
    7: Encoding("Q5_1", 32, 24),
    8: Encoding("Q8_0", 32, 34),
    10: Encoding("Q2_K", 256, 84),
    11: Encoding("Q3_K", 256, 110),
    12: Encoding("Q4_K", 256, 144),
    13: Encoding("Q5_K", 256, 176),
    14: Encoding("Q6_K", 256, 210),
    20: Encoding("IQ4_NL", 32, 18),
    24: Encoding("I8", 1, 1, dtypes.int8),
    25: Encoding("I16", 1, 2, dtypes.int16),
    26: Encoding("I32", 1, 4, dtypes.int32),
    27: Encoding("I64", 1, 8, dtypes.int64),
    28: Encoding("F64", 1, 8, dtypes.float64),
    30: Encoding("BF16", 1, 2, dtypes.bfloat16),
}


@dataclass(frozen=True, slots=True)
class Blocks:
    """A tensor: its shape in numpy's order, its encoding, and its bytes, or what a reader of the file has in
    their place: see `polygrad.nn.files.tensor_of_bytes`."""

    encoding: Encoding
    shape: tuple[int, ...]
    data: Any


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tensor is: its bytes are those from `start` to `end` of the file."""

    encoding: Encoding
    shape: tuple[int, ...]
    start: int
    end: int


class Incomplete(Exception):
    """The bytes that are there end before the header does."""


_LENGTH = struct.Struct("<Q")
_WINDOW = 1 << 20  # bytes


class _GGUFReader:
    """Reads `data`, the first bytes of a file of `size` bytes. Raises Incomplete beyond them."""

    def __init__(self, data: memoryview, size: int) -> None:
        self.data, self.size, self.at = data, size, 0

    def need(self, count: int, what: str) -> None:
        """Raises ArgumentError if the file ends before `count` bytes more, Incomplete if `data` does."""
        if count > self.size - self.at:
            refuse(f"{what} at byte {self.at} do not fit into a file of {self.size}")
        if count > len(self.data) - self.at:
            raise Incomplete

    def number(self, code: str) -> Any:
        size = struct.calcsize("<" + code)
        self.need(size, f"{size} bytes")
        (out,) = struct.unpack_from("<" + code, self.data, self.at)
        self.at += size
        return out

    def text(self) -> str:
        length = self.number("Q")
        self.need(length, f"{length} bytes of text")
        raw = self.data[self.at : self.at + length]
        self.at += length
        try:
            return str(raw, "utf-8")
        except UnicodeDecodeError:
            return str(refuse(f"the text {bytes(raw[:40])!r} is not UTF-8"))

    def texts(self, count: int) -> list[str]:
        """As many texts one after the other: vocabularies have some hundred thousand, so the loop is short,
        and over bytes, which are read faster than a view. `text` reads what is long or damaged."""
        out: list[str] = []
        while len(out) < count:
            before = len(out)
            self._add_texts(count, out)
            if len(out) == before:
                out.append(self.text())
        return out

    def _add_texts(self, count: int, out: list[str]) -> None:
        """Read texts until there are `count`, or one that is not whole within the next bytes, or damaged."""
        window = bytes(self.data[self.at : self.at + _WINDOW])
        at, size, unpack = 0, len(window), _LENGTH.unpack_from
        try:
            for _ in range(count - len(out)):
                start = at + _LENGTH.size
                end = start + unpack(window, at)[0]
                if end > size:
                    break
                out.append(window[start:end].decode())
                at = end
        except (struct.error, UnicodeDecodeError):  # the window ends here, or `text` says what is wrong
            pass
        self.at += at

    def value(self, kind: int, depth: int = 0) -> Any:
        if kind in _SCALARS:
            return self.number(_SCALARS[kind])
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            refuse(f"the value at byte {self.at} is of the unknown kind {kind}")
        if depth >= _MAX_DEPTH:
            refuse(f"the array at byte {self.at} has more than {_MAX_DEPTH} levels")
        inner, count = self.number("I"), self.number("Q")
        code = _SCALARS.get(inner)
        least = struct.calcsize("<" + code) if code else 8 if inner == _STRING else 12
        self.need(count * least, f"{count} values")
        if code:
            out = list(struct.unpack_from(f"<{count}{code}", self.data, self.at))
            self.at += count * least
            return out
        if inner == _STRING:
            return self.texts(count)
        return [self.value(inner, depth + 1) for _ in range(count)]


def refuse(problem: str) -> Any:
    """Raises ArgumentError."""
    raise ArgumentError(f"{_WHAT}: {problem}")


def read_gguf(raw: bytes | memoryview) -> tuple[dict[str, Any], dict[str, Blocks]]:
    """Metadata and tensors of a GGUF file of version 2 or 3. Raises ArgumentError when it is damaged."""
    data = memoryview(raw).cast("B")
    metadata, places = read_gguf_header(data, len(data))
    return metadata, {n: Blocks(p.encoding, p.shape, data[p.start : p.end]) for n, p in places.items()}


def read_gguf_header(raw: bytes | memoryview, size: int) -> tuple[dict[str, Any], dict[str, Place]]:
    """Metadata, and where the tensors are, of a GGUF file of `size` bytes that begins with `raw`. Raises
    Incomplete when more of it is needed, ArgumentError when it is damaged."""
    data = memoryview(raw).cast("B")
    r = _GGUFReader(data, size)
    if bytes(data[:4]) != b"GGUF"[: len(data)] or size < 4:
        refuse(f"the file begins with {bytes(data[:4])!r} instead of b'GGUF'")
    r.at = 4
    version = r.number("I")
    if version not in (2, 3):
        refuse(f"version {version} is not supported: expected 2 or 3, little-endian")
    tensors, pairs = r.number("Q"), r.number("Q")
    if tensors * 24 + pairs * 13 > size:
        refuse(f"{tensors} tensors and {pairs} values do not fit into a file of {size}")
    metadata: dict[str, Any] = {}
    for _ in range(pairs):
        key = r.text()
        if key in metadata:
            refuse(f"the key {key[:80]!r} occurs twice")
        metadata[key] = r.value(r.number("I"))
    infos = [_info(r) for _ in range(tensors)]
    return metadata, _place_tensors(size, r.at, metadata, infos)


@dataclass(frozen=True, slots=True)
class _Info:
    name: str
    encoding: Encoding
    shape: tuple[int, ...]
    nbytes: int
    offset: int


def _info(r: _GGUFReader) -> _Info:
    name = r.text()
    axes = r.number("I")
    if axes > _MOST_AXES:
        refuse(f"{name[:80]}: the tensor has {axes} axes, more than {_MOST_AXES}")
    shape = tuple(r.number("Q") for _ in range(axes))[::-1]
    kind, offset = r.number("I"), r.number("Q")
    encoding = ENCODINGS.get(kind)
    if encoding is None:
        names = ", ".join(e.name for e in ENCODINGS.values())
        return refuse(  # type: ignore[no-any-return]
            f"{name[:80]}: type {kind} is not supported: expected one of {names}"
        )
    if (shape[-1] if shape else 1) % encoding.elements:
        refuse(f"{name[:80]}: shape {shape}: rows are not a multiple of {encoding.elements} elements")
    return _Info(name, encoding, shape, prod(shape) // encoding.elements * encoding.nbytes, offset)


def _place_tensors(size: int, at: int, metadata: dict[str, Any], infos: list[_Info]) -> dict[str, Place]:
    """Where the tensors lie: at the end of the file, aligned and without overlap."""
    alignment = metadata.get("general.alignment", 32)
    if isinstance(alignment, bool) or not isinstance(alignment, int) or not 1 <= alignment <= 1 << 20:
        refuse(f"the alignment is {alignment!r:.40} instead of 1 to 1048576")
    start, end = -(-at // alignment) * alignment, 0
    out: dict[str, Place] = {}
    for i in sorted(infos, key=lambda i: i.offset):
        first = start + i.offset
        if i.offset % alignment or first + i.nbytes > size:
            is_aligned = i.offset % alignment == 0
            problem = f"do not fit into a file of {size}" if is_aligned else f"are not aligned to {alignment}"
            refuse(f"{i.name[:80]}: {i.nbytes} bytes at byte {first} {problem}")
        if i.name in out:
            refuse(f"the name {i.name[:80]!r} occurs twice")
        if first < end:
            refuse(f"{i.name[:80]}: the tensor at byte {first} overlaps another")
        end = first + i.nbytes
        out[i.name] = Place(i.encoding, i.shape, first, end)
    return {i.name: out[i.name] for i in infos}
