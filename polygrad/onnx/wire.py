"""Protobuf's wire format: tags, varints, fixed-size numbers and spans of bytes (protobuf.dev, "Encoding").
 Knows no messages of ONNX. Nothing is copied: a message is a span of the file, read when it is asked for.
Every length is checked against the span that holds it, so what is read is bounded by the size of the file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from polygrad.errors import OnnxError

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_KINDS = {VARINT: "a varint", FIXED64: "8 bytes", LENGTH: "a length and bytes", FIXED32: "4 bytes"}
_VARINT_BYTES = 10  # of 64 bits
_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes `start` to `end` of a file: a message, text, packed numbers, or the bits of one number."""

    file: memoryview
    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start

    @property
    def bytes(self) -> memoryview:
        return self.file[self.start : self.end]

    def text(self, what: str) -> str:
        """UTF-8 text. Raises OnnxError."""
        try:
            return str(self.bytes, "utf-8")
        except UnicodeDecodeError:
            raise OnnxError(f"ONNX file at byte {self.start}: {what} is not UTF-8 text") from None

    def fields(self) -> Iterator[tuple[int, int, int | Span]]:
        """The fields of a message, in order: number, kind, and value: an int for a VARINT, else a Span.

        Raises OnnxError when the bytes are no message.
        """
        at = self.start
        while at < self.end:
            begin = at
            tag, at = self._varint(at)
            number, kind = tag >> 3, tag & 7
            if not number or kind not in _KINDS:
                raise OnnxError(f"ONNX file at byte {begin}: tag {tag} is not a field of a message")
            if kind == VARINT:
                value, at = self._varint(at)
                yield number, kind, value
                continue
            size = 8 if kind == FIXED64 else 4
            if kind == LENGTH:
                size, at = self._varint(at)
            if size > self.end - at:
                raise OnnxError(
                    f"ONNX file at byte {begin}: field {number} has {size} bytes, its message has "
                    f"{self.end - at} left"
                )
            yield number, kind, Span(self.file, at, at + size)
            at += size

    def varints(self) -> Iterator[int]:
        """Packed varints, unsigned. Raises OnnxError."""
        at = self.start
        while at < self.end:
            value, at = self._varint(at)
            yield value

    def _varint(self, at: int) -> tuple[int, int]:
        """The unsigned number at byte `at`, and where it ends."""
        value = 0
        for i in range(_VARINT_BYTES):
            if at + i >= self.end:
                raise OnnxError(f"ONNX file at byte {at}: a number that does not end")
            byte = self.file[at + i]
            value |= (byte & 0x7F) << 7 * i
            if byte < 0x80:
                return value & _MASK, at + i + 1
        raise OnnxError(f"ONNX file at byte {at}: a number of more than {_VARINT_BYTES} bytes")

    def numbers(self, code: str) -> list[float]:
        """Packed numbers of a fixed size, by their struct code. Raises OnnxError."""
        size = struct.calcsize(code)
        if len(self) % size:
            raise OnnxError(f"ONNX file at byte {self.start}: {len(self)} bytes are no numbers of {size}")
        return list(struct.unpack(f"<{len(self) // size}{code}", self.bytes))


def signed(value: int) -> int:
    """A varint as an int64."""
    return value - (1 << 64) if value >> 63 else value


def expect_kind(kind: int, wanted: int, what: str, value: int | Span) -> None:
    """Raises OnnxError for a field of another kind than `wanted`."""
    if kind != wanted:
        where = f" at byte {value.start}" if isinstance(value, Span) else ""
        raise OnnxError(f"ONNX file{where}: {what} is {_KINDS[kind]}, expected {_KINDS[wanted]}")
