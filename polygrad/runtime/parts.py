"""What exported files have in common: a header, and the parts that follow it, with a SHA-256 of everything.

A file is

    magic (4 bytes) | u32 version | u32 header length | SHA-256 of the header | header (UTF-8 JSON) | parts

(little-endian). The header describes each part by the fields `bytes`, its length, and `sha256`, a list with
the SHA-256 in hexadecimal of each block of 4 MiB of it, of which the last may be shorter. So a reader checks
a part while it arrives, and uses no byte that is not checked. The digests are against damage. They are no
signature: whoever changes a file can compute them anew. `export/signing.py` signs a file.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from polygrad.errors import ProgramError
from polygrad.runtime.limits import MAX_BYTES, MAX_HEADER
from polygrad.runtime.strict_json import parse_json

BLOCK = 4 << 20
_PREFIX = struct.Struct("<4sII32s")
HEAD_BYTES = _PREFIX.size  # up to the header, whose SHA-256 they have
_DIGEST = re.compile(r"[0-9a-f]{64}")
_ALIGN = 64
_FIELDS = {"bytes", "sha256"}


def part_of(pieces: Iterable[Any]) -> dict[str, Any]:
    """The fields of a header for a part that consists of these pieces: bytes, or buffers."""
    digests: list[Any] = []
    nbytes = 0
    for piece in pieces:
        view = memoryview(piece)
        start = 0
        while start < view.nbytes:
            if nbytes % BLOCK == 0:
                digests.append(hashlib.sha256())
            end = min(start + BLOCK - nbytes % BLOCK, view.nbytes)
            digests[-1].update(view[start:end])
            nbytes += end - start
            start = end
    return {"bytes": nbytes, "sha256": [digest.hexdigest() for digest in digests]}


def write_header(magic: bytes, version: int, header: Mapping[str, Any], before_values: int) -> bytes:
    """A file up to its parts. `before_values`: the bytes of the parts that precede the values, which then
    begin on a multiple of 64: a reader can use them where the file is mapped."""
    text = json.dumps(header, separators=(",", ":"), sort_keys=True).encode()
    text += b" " * (-(_PREFIX.size + len(text) + before_values) % _ALIGN)
    return _PREFIX.pack(magic, version, len(text), hashlib.sha256(text).digest()) + text


def read_header(
    raw: memoryview, magic: bytes, versions: Sequence[int], what: str
) -> tuple[int, Any, memoryview]:
    """The version of a file, its header, and the parts. Raises ProgramError for another kind of file, or
    another version than these; ValueError and RecursionError for a damaged one."""
    if raw[:4] != magic:
        raise ProgramError(f"{what}: expected bytes starting {magic!r}, got {bytes(raw[:4])!r}")
    if len(raw) < _PREFIX.size:
        raise ValueError(f"{len(raw)} bytes, {_PREFIX.size} precede a header")
    _, got, length, digest = _PREFIX.unpack_from(raw)
    if got not in versions:
        advice = "export it again" if got < max(versions) else "use a newer polygrad"
        raise ProgramError(f"{what}: expected version {' or '.join(map(str, versions))}, got {got}: {advice}")
    text = raw[_PREFIX.size : _PREFIX.size + length]
    if length > MAX_HEADER or len(text) < length:
        raise ValueError(f"a header of {length} bytes, {len(text)} are there, {MAX_HEADER} are allowed")
    if hashlib.sha256(text).digest() != digest:
        raise ValueError("the header has another SHA-256")
    return got, parse_json(text), raw[_PREFIX.size + length :]


def read_parts(raw: memoryview, described: Sequence[tuple[str, Any]]) -> list[memoryview]:
    """The parts of a file, in order, by what its header says of each, with a name for errors. Raises
    ValueError unless they are whole and undamaged."""
    for name, entry in described:
        _check_entry(name, entry)
    lengths = [entry["bytes"] for _, entry in described]
    if sum(lengths) != len(raw):
        raise ValueError(f"parts of {sum(lengths)} bytes, {len(raw)} are there")
    parts, end = [], 0
    for name, entry in described:
        part = raw[end : end + entry["bytes"]]
        end += entry["bytes"]
        for i, digest in enumerate(entry["sha256"]):
            if hashlib.sha256(part[i * BLOCK : (i + 1) * BLOCK]).hexdigest() != digest:
                raise ValueError(f"{name} has another SHA-256")
        parts.append(part)
    return parts


def _check_entry(name: str, entry: Any) -> None:
    if entry.keys() != _FIELDS:
        raise ValueError(f"{name} with the fields {sorted(entry)!r:.80}")
    nbytes, digests = entry["bytes"], entry["sha256"]
    if type(nbytes) is not int or not 0 <= nbytes <= MAX_BYTES:
        raise ValueError(f"{name} of {nbytes!r:.80} bytes")
    if not isinstance(digests, list) or len(digests) != -(-nbytes // BLOCK):
        raise ValueError(f"no SHA-256 of each block of {name}")
    if not all(isinstance(d, str) and _DIGEST.fullmatch(d) for d in digests):
        raise ValueError(f"no SHA-256 of {name}")
