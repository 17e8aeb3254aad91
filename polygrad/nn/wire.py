"""Protobuf's wire format: tags, varints, fixed-size numbers and spans of bytes (protobuf.dev, "Encoding").
 Knows no messages: ONNX's and sentencepiece's are read with it. Nothing is copied: a message is a span of the
file, read when it is asked for. Every length is checked against the span that holds it, so what is read is
bounded by the size of the file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from polygrad.errors import OnnxError, PolygradError

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
KINDS = {VARINT: "a varint", FIXED64: "8 bytes", LENGTH: "a length and bytes", FIXED32: "4 bytes"}
VARINT_BYTES = 10  # of 64 bits
_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class FileFormat:
    """What errors say of a file: what it is, and their class."""

    name: str
    error: type[PolygradError]


ONNX = FileFormat("ONNX file", OnnxError)


@dataclass(slots=True, eq=False)  # not frozen: a file has thousands, and each would take three times as long
class Span:
    """Bytes `start` to `end` of `file`: a message, text, packed numbers, or the bits of one number.

    `base`: where `file` begins in the whole file, if it is a part of one."""

    file: memoryview
    start: int
    end: int
    format: FileFormat = ONNX
    base: int = 0

    def __len__(self) -> int:
        return self.end - self.start

    @property
    def bytes(self) -> memoryview:
        return self.file[self.start : self.end]

    @property
    def place(self) -> int:
        """The position of the first byte in the whole file."""
        return self.base + self.start

    def _error(self, at: int, what: str) -> PolygradError:
        return self.format.error(f"{self.format.name} at byte {self.base + at}: {what}")

    def text(self, what: str) -> str:
        """UTF-8 text. Raises the format's error."""
        try:
            return str(self.bytes, "utf-8")
        except UnicodeDecodeError:
            raise self._error(self.start, f"{what} is not UTF-8 text") from None

    def fields(self) -> Iterator[tuple[int, int, int | Span]]:
        """The fields of a message, in order: number, kind, and value: an int for a VARINT, else a Span.

        Raises the format's error when the bytes are no message.
        """
        file, at, end, form, base = self.file, self.start, self.end, self.format, self.base
        while at < end:
            begin = at
            tag = file[at]
            if tag < 0x80:
                at += 1
            else:
                tag, at = self._varint(at)
            number, kind = tag >> 3, tag & 7
            if not number or kind not in KINDS:
                raise self._error(begin, f"tag {tag} is not a field of a message")
            if kind == VARINT:
                value, at = self._varint(at)
                yield number, kind, value
                continue
            size = 8 if kind == FIXED64 else 4
            if kind == LENGTH:
                size, at = self._varint(at)
            if size > end - at:
                raise self._error(begin, f"field {number} has {size} bytes, its message has {end - at} left")
            yield number, kind, Span(file, at, at + size, form, base)
            at += size

    def varints(self) -> Iterator[int]:
        """Packed varints, unsigned. Raises the format's error."""
        at = self.start
        while at < self.end:
            value, at = self._varint(at)
            yield value

    def _varint(self, at: int) -> tuple[int, int]:
        """The unsigned number at byte `at`, and where it ends."""
        if at < self.end and self.file[at] < 0x80:
            return self.file[at], at + 1
        value = 0
        for i in range(VARINT_BYTES):
            if at + i >= self.end:
                raise self._error(at, "a number that does not end")
            byte = self.file[at + i]
            value |= (byte & 0x7F) << 7 * i
            if byte < 0x80:
                return value & _MASK, at + i + 1
        raise self._error(at, f"a number of more than {VARINT_BYTES} bytes")

    def numbers(self, code: str) -> list[float]:
        """Packed numbers of a fixed size, by their struct code. Raises the format's error."""
        size = struct.calcsize(code)
        if len(self) % size:
            raise self._error(self.start, f"{len(self)} bytes are no numbers of {size}")
        return list(struct.unpack(f"<{len(self) // size}{code}", self.bytes))


def signed(value: int) -> int:
    """A varint as an int64."""
    return value - (1 << 64) if value >> 63 else value


def expect_kind(kind: int, expected: int, what: str, value: int | Span, format: FileFormat = ONNX) -> None:
    """Raises the format's error for a field of another kind than `wanted`."""
    if kind != expected:
        location = f" at byte {value.place}" if isinstance(value, Span) else ""
        raise format.error(f"{format.name}{location}: {what} is {KINDS[kind]}, expected {KINDS[expected]}")
