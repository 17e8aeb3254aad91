"""Protobuf's wire format, written (protobuf.dev, "Encoding"): fields as bytes, which are joined to messages.

Knows no messages of ONNX; `wire.py` reads the same.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from polygrad.nn.wire import FIXED32, LENGTH, VARINT

_MASK = (1 << 64) - 1


def varint(value: int) -> bytes:
    """An integer in 7 bits a byte, the least first; a negative one as its 64 bits."""
    value &= _MASK
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(number: int, value: int) -> bytes:
    """A field with an integer."""
    return varint(number << 3 | VARINT) + varint(value)


def float32(number: int, value: float) -> bytes:
    """A field with a float."""
    return varint(number << 3 | FIXED32) + struct.pack("<f", value)


def data(number: int, value: bytes | memoryview) -> bytes:
    """A field with bytes, or with a message."""
    return b"".join((varint(number << 3 | LENGTH), varint(len(value)), value))


def text(number: int, value: str) -> bytes:
    """A field with text."""
    return data(number, value.encode())


def integers(number: int, values: Iterable[int]) -> bytes:
    """A repeated field of integers, packed."""
    return data(number, b"".join(map(varint, values)))


def floats(number: int, values: Iterable[float]) -> bytes:
    """A repeated field of floats, packed."""
    listed = list(values)
    return data(number, struct.pack(f"<{len(listed)}f", *listed))
