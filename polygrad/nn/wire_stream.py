"""Protobuf's wire format while its bytes arrive.

What reads it is a generator: it stops at a `yield` until more bytes are there. Lengths are checked as in
`wire.py`, with the same errors.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

from polygrad.errors import PolygradError
from polygrad.nn.wire import FIXED64, KINDS, LENGTH, ONNX, VARINT, VARINT_BYTES, FileFormat, Span

T = TypeVar("T")
Reading = Generator[None, None, T]


class WireStream:
    """The bytes of a file, in order. `at`: how many were taken. `size`: of the file, if that is known."""

    def __init__(self, size: int | None, format: FileFormat = ONNX) -> None:
        self.at, self.size = 0, size
        self._format = format
        self._bytes = bytearray()
        self._first = 0  # of `_bytes` that was not taken
        self._is_closed = False

    def put(self, piece: bytes | memoryview) -> None:
        """Add the next bytes."""
        del self._bytes[: self._first]
        self._first = 0
        self._bytes += piece

    def close(self) -> None:
        """There are no more bytes."""
        self._is_closed = True

    @property
    def ready(self) -> int:
        """How many bytes are there that were not taken."""
        return len(self._bytes) - self._first

    def error(self, at: int, what: str) -> PolygradError:
        return self._format.error(f"{self._format.name} at byte {at}: {what}")

    def is_before(self, end: int | None) -> Reading[bool]:
        """Whether bytes are left before byte `end`; None: the end of the file."""
        if end is not None:
            return self.at < end
        while not self.ready and not self._is_closed:
            yield
        return self.ready > 0

    def some(self, limit: int) -> Reading[bytes]:
        """The next bytes that are there: at least one, at most `limit`."""
        while not self.ready:
            if self._is_closed:
                raise self.error(self.at, f"the file ends, {limit} bytes before the end of a field")
            yield
        return self._take(min(limit, self.ready))

    def take(self, count: int) -> Reading[bytes]:
        """The next `count` bytes."""
        while self.ready < count:
            if self._is_closed:
                left = count - self.ready
                raise self.error(self.at, f"the file ends, {left} bytes before the end of a field")
            yield
        return self._take(count)

    def _take(self, count: int) -> bytes:
        taken = bytes(memoryview(self._bytes)[self._first : self._first + count])
        self._first += count
        self.at += count
        return taken

    def varint(self, end: int | None) -> Reading[int]:
        """The next number, unsigned, which is before byte `end`."""
        begin, value = self.at, 0
        for i in range(VARINT_BYTES):
            if not (yield from self.is_before(end)):
                raise self.error(begin, "a number that does not end")
            (byte,) = yield from self.take(1)
            value |= (byte & 0x7F) << 7 * i
            if byte < 0x80:
                return value & ((1 << 64) - 1)
        raise self.error(begin, f"a number of more than {VARINT_BYTES} bytes")

    def head(self, end: int | None) -> Reading[tuple[int, int, int]]:
        """The next field of a message that ends at byte `end`: number, kind, and how many bytes follow, or
        the value of a VARINT."""
        begin = self.at
        tag = yield from self.varint(end)
        number, kind = tag >> 3, tag & 7
        if not number or kind not in KINDS:
            raise self.error(begin, f"tag {tag} is not a field of a message")
        if kind in (VARINT, LENGTH):
            size = yield from self.varint(end)
        else:
            size = 8 if kind == FIXED64 else 4
        if kind != VARINT and end is not None and size > end - self.at:
            left = end - self.at
            raise self.error(begin, f"field {number} has {size} bytes, its message has {left} left")
        return number, kind, size

    def span(self, size: int) -> Reading[Span]:
        """The next `size` bytes as a Span."""
        begin = self.at
        data = yield from self.take(size)
        return Span(memoryview(data), 0, size, self._format, begin)
