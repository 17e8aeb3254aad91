"""Integers, names and length prefixes as the binary format writes them (Core Specification, section 5.2).

Lengths are written only here: `vector` (a count before items) and `prefix_length` (a byte count before
bytes).
"""

from __future__ import annotations

from collections.abc import Iterable

from polygrad.errors import InternalError

_ONE_BYTE = [bytes((i,)) for i in range(128)]


def uleb128(value: int) -> bytes:
    """`value` (0 to 2**64 - 1) as unsigned LEB128, in the fewest bytes."""
    if 0 <= value < 128:
        return _ONE_BYTE[value]
    if not 0 <= value < 1 << 64:
        raise InternalError(f"unsigned LEB128: expected 0 to 2**64 - 1, got {value}")
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def sleb128(value: int) -> bytes:
    """`value` (-2**63 to 2**63 - 1) as signed LEB128, in the fewest bytes."""
    if -64 <= value < 64:
        return _ONE_BYTE[value & 127]
    if not -(1 << 63) <= value < 1 << 63:
        raise InternalError(f"signed LEB128: expected -2**63 to 2**63 - 1, got {value}")
    out = bytearray()
    while not -64 <= value < 64:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value & 127)
    return bytes(out)


def prefix_length(data: bytes | bytearray) -> bytes:
    """`data` with its length in bytes before it."""
    return uleb128(len(data)) + data


def vector(items: Iterable[bytes]) -> bytes:
    """Encoded items with their number before them."""
    encoded = list(items)
    return uleb128(len(encoded)) + b"".join(encoded)


def name(text: str) -> bytes:
    """A name: UTF-8 with its length in bytes before it."""
    return prefix_length(text.encode())
