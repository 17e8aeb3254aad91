"""Tar, zip and gzip files as plain data: their contents by name. Knows no Tensors, and writes no files.

Files are not trusted. Sizes are compared with the length of the data before memory is allocated, the size of
decompressed data is bounded, parts may not overlap, checksums are verified. Names that lead out of a
directory are refused, because a caller may write the files. Formats: POSIX.1-2024 `pax`, PKWARE's APPNOTE
6.3.10, RFC 1952.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from polygrad.errors import ArgumentError

_MAX_BYTES = 1 << 34  # the default limit of decompressed data: 16 GiB
_MAX_NAMES = 1 << 20


def check_name(name: str, what: str) -> str:
    """`name`. Raises ArgumentError if it is empty, absolute, or leads out of a directory."""
    parts = name.replace("\\", "/").split("/")
    if not name or ".." in parts or parts[0] == "" or ":" in parts[0] or "\0" in name:
        raise ArgumentError(f"{what}: the name {name[:200]!r} leads out of the archive")
    return name


def gunzip(raw: bytes | memoryview, what: str, max_bytes: int = _MAX_BYTES) -> bytes:
    """Decompress a gzip file. Raises ArgumentError when it is damaged, or holds more than `max_bytes`."""
    out, remaining = [], bytes(raw)
    bytes_left = max_bytes
    while remaining.rstrip(b"\0"):  # zeros may follow the last member
        inflate = zlib.decompressobj(31)
        try:
            part = inflate.decompress(remaining, bytes_left + 1)
        except zlib.error as e:
            raise ArgumentError(f"{what}: the gzip data is damaged ({e})") from e
        bytes_left -= len(part)
        if bytes_left < 0:
            raise ArgumentError(f"{what}: there are more than {max_bytes} decompressed bytes")
        if not inflate.eof:
            raise ArgumentError(f"{what}: the gzip file ends early")
        out.append(part)
        remaining = inflate.unused_data
    return b"".join(out)


# --- tar


def read_tar(raw: bytes | memoryview, what: str) -> dict[str, memoryview]:
    """The regular files of a tar file (ustar, pax, GNU) by name; the last one, if several have one name.

    Links, directories and devices are left out. Raises ArgumentError when it is damaged.
    """
    data, out = memoryview(raw).cast("B"), {}
    position, name, size = 0, None, None
    while position + 512 <= len(data) and any(data[position : position + 512]):
        block = bytes(data[position : position + 512])
        _check_block(block, what, position)
        length = _tar_number(block[124:136], what) if size is None else size
        kind = block[156:157]
        start = position + 512
        if length < 0 or start + length > len(data):
            raise ArgumentError(
                f"{what}: tar header at byte {position}: its file has {length} bytes, of which "
                f"{len(data) - start} are there"
            )
        body = data[start : start + length]
        position = start + -(-length // 512) * 512
        if kind == b"L":
            name = _text(bytes(body), what)
            continue
        if kind == b"x":
            fields = _pax_fields(bytes(body), what)
            name, size = fields.get("path", name), _decimal(fields.get("size"), what)
            continue
        if kind in (b"0", b"\0", b"7"):
            prefix = _text(block[345:500], what) if block[257:262] == b"ustar" else ""
            short_name = _text(block[:100], what)
            out[check_name(name or (f"{prefix}/{short_name}" if prefix else short_name), what)] = body
        if len(out) > _MAX_NAMES:
            raise ArgumentError(f"{what}: there are more than {_MAX_NAMES} files")
        name, size = None, None
    if not out and (len(data) < 512 or (position == 0 and any(data[:512]))):
        raise ArgumentError(f"{what}: the {len(data)} bytes are not a tar file")
    return out


def _check_block(block: bytes, what: str, position: int) -> None:
    """Verify the checksum of a header, whose own field counts as spaces. Some writers sum signed bytes."""
    stored_sum = _tar_number(block[148:156], what)
    blanked = block[:148] + b" " * 8 + block[156:]
    if stored_sum not in (sum(blanked), sum(b - 256 if b > 127 else b for b in blanked)):
        raise ArgumentError(f"{what}: tar header at byte {position}: checksum mismatch")


def _tar_number(field: bytes, what: str) -> int:
    if field[0] & 0x80:  # base 256, GNU's
        return int.from_bytes(bytes((field[0] & 0x7F,)) + field[1:], "big")
    text = field.strip(b"\0 ")
    if not all(0x30 <= c <= 0x37 for c in text):
        raise ArgumentError(f"{what}: a tar header has {field!r} instead of an octal number")
    return int(text or b"0", 8)


def _pax_fields(body: bytes, what: str) -> dict[str, str]:
    out, position = {}, 0
    while position < len(body):
        space = body.find(b" ", position, position + 20)
        length = _decimal(body[position:space].decode("ascii", "replace"), what) if space > 0 else None
        if length is None or length <= space - position or position + length > len(body):
            raise ArgumentError(
                f"{what}: a pax header has {body[position : position + 20]!r} instead of a record"
            )
        key, _, value = _text(body[space + 1 : position + length - 1], what).partition("=")
        out[key] = value
        position += length
    return out


def _decimal(text: str | None, what: str) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise ArgumentError(f"{what}: a pax header has {text[:40]!r} instead of a decimal number")
    return int(text)


def _text(raw: bytes, what: str) -> str:
    try:
        return raw.partition(b"\0")[0].decode("utf-8")
    except UnicodeDecodeError as e:
        raise ArgumentError(f"{what}: the name {raw[:40]!r} is not UTF-8") from e


# --- zip


@dataclass(frozen=True, slots=True)
class _Member:
    """An entry of a zip file's central directory. `header`: the position of the file's local header."""

    name: str
    method: int
    crc: int
    compressed: int
    size: int
    header: int


_END, _END64, _LOCATOR = b"PK\5\6", b"PK\6\6", b"PK\6\7"


def read_zip(
    raw: bytes | memoryview, what: str, max_bytes: int = _MAX_BYTES
) -> dict[str, memoryview | bytes]:
    """The files of a zip file (stored or deflated, also ZIP64) by name; a stored one is a view of `raw`.

    Raises ArgumentError when it is damaged or encrypted, its files overlap, two have one name, or they have
    more than `max_bytes`.
    """
    data = memoryview(raw).cast("B")
    members = _directory(data, what)
    total = sum(m.size for m in members)
    if total > max_bytes:
        raise ArgumentError(f"{what}: the files have {total} bytes, more than {max_bytes}")
    out: dict[str, memoryview | bytes] = {}
    end = 0
    for m in sorted(members, key=lambda m: m.header):
        if m.header < end:
            raise ArgumentError(f"{what}: {m.name}: the file at byte {m.header} overlaps another")
        body, end = _body(data, m, what)
        if m.name.endswith("/") and not m.size:
            continue
        if m.name in out:
            raise ArgumentError(f"{what}: the name {m.name!r} occurs twice")
        out[m.name] = _contents(body, m, what)
    return out


def _directory(data: memoryview, what: str) -> list[_Member]:
    tail = bytes(data[max(0, len(data) - 65557) :])
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < 22:
        raise ArgumentError(f"{what}: the {len(data)} bytes have no central directory of a zip file")
    end = len(data) - len(tail) + at
    count, size, start = struct.unpack_from("<HII", tail, at + 10)
    located = bytes(data[end - 20 : end]) if end >= 20 else b""
    if located[:4] == _LOCATOR:
        (zip64_position,) = struct.unpack_from("<Q", located, 8)
        record = bytes(data[zip64_position : zip64_position + 56]) if zip64_position + 56 <= end else b""
        if record[:4] != _END64:
            raise ArgumentError(f"{what}: there is no ZIP64 record at {zip64_position}")
        count, size, start = struct.unpack_from("<QQQ", record, 32)
    if start + size > end or count > min(size // 46, _MAX_NAMES):
        raise ArgumentError(
            f"{what}: the central directory of {count} files, {size} bytes at {start}, does not fit into "
            f"{len(data)} bytes"
        )
    out, position = [], start
    for _ in range(count):
        position, member = _entry(data, position, start + size, what)
        out.append(member)
    return out


def _entry(data: memoryview, at: int, end: int, what: str) -> tuple[int, _Member]:
    if at + 46 > end or bytes(data[at : at + 4]) != b"PK\1\2":
        raise ArgumentError(f"{what}: there is no entry of the central directory at byte {at}")
    flags, method, crc, compressed, size, name_length, extra_length, comment = struct.unpack_from(
        "<HH4xIIIHHH", data, at + 8
    )
    (header,) = struct.unpack_from("<I", data, at + 42)
    after = at + 46 + name_length + extra_length + comment
    if after > end:
        raise ArgumentError(
            f"{what}: the entry at byte {at} has {after - at} bytes, of which {end - at} are there"
        )
    raw_name = bytes(data[at + 46 : at + 46 + name_length])
    try:
        name = raw_name.decode("utf-8" if flags & 0x800 else "cp437")
    except UnicodeDecodeError as e:
        raise ArgumentError(f"{what}: the name {raw_name[:40]!r} is not UTF-8") from e
    check_name(name, what)
    if flags & 1:
        raise ArgumentError(f"{what}: {name}: the file is encrypted")
    extra = bytes(data[at + 46 + name_length : at + 46 + name_length + extra_length])
    size, compressed, header = _zip64(extra, (size, compressed, header), name, what)
    return after, _Member(name, method, crc, compressed, size, header)


def _zip64(extra: bytes, values: tuple[int, int, int], name: str, what: str) -> tuple[int, int, int]:
    """Sizes and the position of an entry; values that are all ones are replaced from its extra field."""
    if 0xFFFFFFFF not in values:
        return values
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1 and at + 4 + length <= len(extra):
            wide = iter(struct.unpack_from(f"<{length // 8}Q", extra, at + 4))
            full_values = [next(wide, None) if v == 0xFFFFFFFF else v for v in values]
            if None not in full_values:
                return full_values[0] or 0, full_values[1] or 0, full_values[2] or 0
        at += 4 + length
    raise ArgumentError(f"{what}: {name}: there is no ZIP64 field with its sizes")


def _body(data: memoryview, m: _Member, what: str) -> tuple[memoryview, int]:
    """The compressed bytes of a file, and where they end."""
    if m.header + 30 > len(data) or bytes(data[m.header : m.header + 4]) != b"PK\3\4":
        raise ArgumentError(f"{what}: {m.name}: there is no file header at byte {m.header}")
    name_length, extra_length = struct.unpack_from("<HH", data, m.header + 26)
    start = m.header + 30 + name_length + extra_length
    if start + m.compressed > len(data):
        raise ArgumentError(
            f"{what}: {m.name}: of {m.compressed} bytes at {start}, {len(data) - start} are there"
        )
    return data[start : start + m.compressed], start + m.compressed


def _contents(body: memoryview, m: _Member, what: str) -> memoryview | bytes:
    out: memoryview | bytes = body
    if m.method == 8:
        inflate = zlib.decompressobj(-15)
        try:
            out = inflate.decompress(body, m.size + 1)
        except zlib.error as e:
            raise ArgumentError(f"{what}: {m.name}: the compressed data is damaged ({e})") from e
    elif m.method != 0:
        raise ArgumentError(f"{what}: {m.name}: compression method {m.method} is neither stored nor deflated")
    if len(out) != m.size:
        raise ArgumentError(f"{what}: {m.name}: it has {len(out)} bytes or more instead of {m.size}")
    if zlib.crc32(out) != m.crc:
        raise ArgumentError(
            f"{what}: {m.name}: checksum mismatch, {zlib.crc32(out):08x} instead of {m.crc:08x}"
        )
    return out
