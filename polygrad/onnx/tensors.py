"""Reads the elements of a TensorData as bytes: from the message, packed fields, or an external file.

Files of external data are read only within the model's folder, after links are resolved.
"""

from __future__ import annotations

import array
import math
import os
from collections.abc import Mapping
from pathlib import Path

from polygrad.dtype import dtypes
from polygrad.errors import OnnxError
from polygrad.helpers import ceildiv
from polygrad.nn.files import file_bytes
from polygrad.nn.wire import Span, signed
from polygrad.onnx.elements import STRING, Element, decoder, element_name, element_of
from polygrad.onnx.proto import (
    DOUBLE_DATA,
    FLOAT_DATA,
    INT32_DATA,
    INT64_DATA,
    UINT64_DATA,
    Arrived,
    TensorData,
)
from polygrad.tensor.core.convert import pack
from polygrad.tensor.tensor import Tensor

# Where elements that are not raw bytes are, and the bytes that each of the numbers there has.
_FIELDS = {
    FLOAT_DATA: ("f", ("float",)),
    DOUBLE_DATA: ("d", ("double",)),
    INT64_DATA: ("q", ("int64",)),
    UINT64_DATA: ("Q", ("uint32", "uint64")),
}
_FIELD_OF = {name: number for number, (_, names) in _FIELDS.items() for name in names}

MOST_SHARED = 16  # the limit of the tensors' total size, in multiples of the size of external files


class Files:
    """Files of external data beside a model: the folder, and what was read, once each.

    `folder` is None for a model that came as bytes: then there are those of `contents` alone, by their names.
    What tensors take of a file is counted: a small file that a million of them share would fill the memory.
    """

    def __init__(
        self, folder: str | os.PathLike[str] | None, contents: Mapping[str, memoryview] | None = None
    ) -> None:
        self._folder = None if folder is None else Path(folder).resolve()
        self._contents = dict(contents or {})
        self._read: dict[Path, memoryview] = {}
        self._taken = 0

    def bytes_of(self, location: str, what: str) -> memoryview:
        """The bytes of the file `location`. Raises OnnxError for one that is not inside of the folder."""
        if location in self._contents:
            return self._contents[location]
        if self._folder is None:
            raise OnnxError(
                f"{what}: its elements are in the file {location!r}: load the model by its path, or say "
                "folder= or files="
            )
        try:
            path = (self._folder / location).resolve(strict=True)
            is_inside = path.is_relative_to(self._folder) and path.is_file() and os.stat(path).st_nlink == 1
        except (OSError, ValueError, RuntimeError) as e:
            raise OnnxError(f"{what}: cannot read its external data {location[:200]!r}: {e}") from e
        if not location or os.path.isabs(location) or not is_inside:
            raise OnnxError(
                f"{what}: external data {location[:200]!r} is not a file inside of the model's folder "
                "without hard links elsewhere"
            )
        if path not in self._read:
            self._read[path] = file_bytes(path, f"{what}: external data", mapped=True)
        return self._read[path]

    def take(self, nbytes: int, what: str) -> None:
        """Count bytes that a tensor takes. Raises OnnxError for many more than the files have."""
        self._taken += nbytes
        if self._taken > MOST_SHARED * sum(map(len, [*self._read.values(), *self._contents.values()])):
            raise OnnxError(f"{what}: tensors take the external data more than {MOST_SHARED} times")


def elements_of(tensor: TensorData, files: Files) -> tuple[Element, memoryview | Tensor]:
    """The element type of `tensor`, and its elements: bytes of the dtype that holds them, or a Tensor of them
    that is on its device already.

    Raises OnnxError when there are not as many elements as the shape says.
    """
    what = f"tensor {tensor.name!r}"
    element = element_of(tensor.element, what)
    stored = _stored(tensor, element, files, what)
    count = math.prod(tensor.shape)
    bits = 8 if element.bits == 6 else element.bits
    if len(stored) != ceildiv(count * bits, 8):
        raise OnnxError(
            f"{what}: {ceildiv(count * bits, 8)} bytes expected for shape {tensor.shape} of {element.name}, "
            f"got {len(stored)}"
        )
    if isinstance(stored, Arrived):
        if stored.data.dtype is not element.dtype:
            raise OnnxError(f"{what}: its element type was given after its elements")
        return element, stored.data
    if element.is_native:
        return element, _normal_bools(stored) if element.dtype.is_bool else stored
    return element, pack(list(map(decoder(element), _codes(stored, bits, count))), element.dtype)


def strings_of(tensor: TensorData) -> list[str]:
    """The elements of a tensor of text. Raises OnnxError."""
    if tensor.element != STRING or len(tensor.strings) != math.prod(tensor.shape):
        raise OnnxError(
            f"tensor {tensor.name!r}: {math.prod(tensor.shape)} strings expected, got {len(tensor.strings)}"
            f" of type {element_name(tensor.element)}"
        )
    return tensor.strings


def _stored(tensor: TensorData, element: Element, files: Files, what: str) -> memoryview | Arrived:
    """The bytes of the elements as a file holds them: little-endian, small integers packed; or a Tensor of
    them."""
    if tensor.external is not None:
        return _external(tensor.external, files, what)
    if isinstance(tensor.raw, Arrived):
        return tensor.raw if isinstance(tensor.raw.data, Tensor) else memoryview(tensor.raw.data)
    if tensor.raw is not None:
        return tensor.raw.bytes
    number = _FIELD_OF.get(element.name, INT32_DATA)
    if number == INT32_DATA:
        size = 4 if element is element_of(6, what) else ceildiv(element.bits, 8)
        mask = (1 << 8 * size) - 1
        return memoryview(
            b"".join((n & mask).to_bytes(size, "little") for n in _integers(tensor.typed.get(number, [])))
        )
    code, _ = _FIELDS[number]
    values = tensor.typed.get(number, [])
    if code in "fd":
        if any(isinstance(v, int) for v in values):
            raise OnnxError(f"{what}: its field {number} holds integers")
        return memoryview(b"".join(v.bytes for v in values if isinstance(v, Span)))
    integers = _integers(values)
    if element.dtype is dtypes.uint32:
        return memoryview(array.array("I", [n & 0xFFFFFFFF for n in integers])).cast("B")
    if code == "Q":
        return memoryview(array.array("Q", [n & ((1 << 64) - 1) for n in integers])).cast("B")
    return memoryview(array.array("q", integers)).cast("B")


def _integers(values: list[Span | int]) -> list[int]:
    out: list[int] = []
    for v in values:
        out.extend([signed(v)] if isinstance(v, int) else map(signed, v.varints()))
    return out


def place_of(entries: dict[str, str], what: str) -> tuple[int, int | None]:
    """Where a tensor's external data begins in its file, and how many bytes it has, if that is said. Raises
    OnnxError."""
    try:
        start, length = int(entries.get("offset") or 0), entries.get("length")
        nbytes = int(length) if length else None
    except ValueError:
        raise OnnxError(f"{what}: external data with an offset or length that is no number") from None
    if start < 0 or (nbytes or 0) < 0:
        raise OnnxError(f"{what}: external data from byte {start}, {nbytes} bytes")
    return start, nbytes


def check_place(what: str, start: int, nbytes: int, size: int) -> None:
    """Raises OnnxError for external data that is not within a file of `size` bytes."""
    if start + nbytes > size:
        raise OnnxError(f"{what}: external data from byte {start}, {nbytes} bytes: its file has {size}")


def _external(entries: dict[str, str], files: Files, what: str) -> memoryview:
    data = files.bytes_of(entries.get("location", ""), what)
    start, length = place_of(entries, what)
    nbytes = max(len(data) - start, 0) if length is None else length
    check_place(what, start, nbytes, len(data))
    files.take(nbytes, what)
    return data[start : start + nbytes]


def _normal_bools(stored: memoryview) -> memoryview:
    """Bytes that are 0 or 1, as a bool is."""
    return memoryview(bytes(map(bool, stored))) if any(b > 1 for b in set(stored)) else stored


def _codes(stored: memoryview, bits: int, count: int) -> list[int]:
    """Numbers of 2, 4 or 8 bits, of which the first is in the low bits of the first byte."""
    if bits == 8:
        return list(stored)
    mask = (1 << bits) - 1
    return [b >> shift & mask for b in stored for shift in range(0, 8, bits)][:count]
