"""What readers say of a file whose header has one part changed, for files that Python and JavaScript read.

A file is 8 bytes | u32 header length | SHA-256 of the header | header (JSON) | the rest.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from typing import Any

JUNK = [None, True, -1, 0, 1, 1.5, 2**60, "x", "", [], [1], {}]
_START = 44  # where the header begins


def with_header(data: bytes, change: Callable[[Any], Any]) -> bytes:
    """`data`, whose header `change` has changed in place."""
    header = header_of(data)
    change(header)
    return with_text(data, json.dumps(header).encode())


def with_text(data: bytes, text: bytes) -> bytes:
    """`data` with another text as header, and its SHA-256."""
    (length,) = struct.unpack_from("<I", data, 8)
    prefix = data[:8] + struct.pack("<I", len(text)) + hashlib.sha256(text).digest()
    return prefix + text + data[_START + length :]


def header_of(data: bytes) -> Any:
    """The header of a file."""
    (length,) = struct.unpack_from("<I", data, 8)
    return json.loads(data[_START : _START + length])


def verdicts(data: bytes, is_read: Callable[[bytes], bool]) -> str:
    """The text of a golden file: the bytes, and for each part of their header what may stand in its place,
    and whether it may be missing."""
    header = header_of(data)
    lines = [data.hex()]
    for path in sorted(_paths(header), key=json.dumps):

        def put(h: Any, junk: Any, path: tuple[Any, ...] = path) -> None:
            _parent_of(h, path)[path[-1]] = junk

        def remove(h: Any, path: tuple[Any, ...] = path) -> None:
            del _parent_of(h, path)[path[-1]]

        accepted = [
            junk for junk in JUNK if is_read(with_header(data, lambda h, put=put, junk=junk: put(h, junk)))
        ]
        is_optional = is_read(with_header(data, remove))
        lines.append(json.dumps({"path": path, "accepted": accepted, "optional": is_optional}))
    return "\n".join(lines)


def _paths(value: Any, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where each part of a header is, the whole of it left out."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [((*prefix, key), part) for key, part in items]
    return [p for path, part in found for p in (path, *_paths(part, path))]


def _parent_of(header: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        header = header[key]
    return header
