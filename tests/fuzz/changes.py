"""Damage: files with other bytes, lengths and parts than good ones have."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Callable, Sequence

Change = Callable[[bytearray, random.Random, Sequence[bytes]], None]

_LIMITS = (0, 1, 2, 7, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40)
_LARGE = (*_LIMITS, 1 << 60, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
_NUMBER = re.compile(rb"-?\d+")
# What may stand for a number, or anything else, in a text.
_WORDS = (
    b"0", b"1", b"-1", b"2", b"255", b"65536", b"2147483648", b"9223372036854775808", b"1e400", b"-0", b"1.5",
    b"NaN", b"null", b"true", b'""', b'"x"', b"[]", b"{}", b"[[]]", b"\xff", b"9" * 400,
)  # fmt: skip


def flip(data: bytearray, rng: random.Random, files: Sequence[bytes]) -> None:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def set_byte(data: bytearray, rng: random.Random, files: Sequence[bytes]) -> None:
    data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def number(data: bytearray, rng: random.Random, files: Sequence[bytes]) -> None:
    """An integer at its limits, little-endian, of 1 to 8 bytes."""
    size = rng.choice((1, 2, 4, 4, 8, 8))
    value = rng.choice((*_LARGE, len(data), len(data) - 1)) & (1 << 8 * size) - 1
    at = rng.randrange(len(data))
    data[at : at + size] = value.to_bytes(size, "little")


def near(data: bytearray, rng: random.Random, files: Sequence[bytes]) -> None:
    """An integer that is there, one more or less."""
    kind = rng.choice(("<H", "<I", "<Q"))
    size = struct.calcsize(kind)
    if len(data) >= size:
        at = rng.randrange(len(data) - size + 1)
        value = int.from_bytes(data[at : at + size], "little") + rng.choice((-8, -1, 1, 8))
        data[at : at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")


def word(data: bytearray, rng: random.Random, files: Sequence[bytes]) -> None:
    """Another word in the place of a number of a text."""
    places = list(_NUMBER.finditer(data, max(0, rng.randrange(len(data)) - 200)))[:20]
    if places:
        data[slice(*rng.choice(places).span())] = rng.choice(_WORDS)


def remove(data: bytearray, rng: random.Random, files: Sequence[bytes]) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.choice((1, 1, 2, 4, 8, 16, 64))]


def repeat(data: bytearray, rng: random.Random, files: Sequence[bytes]) -> None:
    at = rng.randrange(len(data))
    part = bytes(data[at : at + rng.randint(1, 64)])
    data[at:at] = part * rng.choice((1, 1, 2, 20, 500))


def swap(data: bytearray, rng: random.Random, files: Sequence[bytes]) -> None:
    """Two parts change places."""
    size = rng.choice((1, 2, 4, 8, 24))
    if len(data) > 2 * size:
        a, b = sorted(rng.sample(range(len(data) - size), 2))
        if a + size <= b:
            data[a : a + size], data[b : b + size] = data[b : b + size], data[a : a + size]


def splice(data: bytearray, rng: random.Random, files: Sequence[bytes]) -> None:
    other, at = rng.choice(files), rng.randrange(len(data))
    start = rng.randrange(len(other))
    data[at : at + rng.choice((0, 8, 64))] = other[start : start + rng.randint(1, 128)]


def cut(data: bytearray, rng: random.Random, files: Sequence[bytes]) -> None:
    del data[rng.randrange(len(data)) :]


CHANGES: list[Change] = [
    flip, flip, set_byte, set_byte, number, number, near, near, word, word, remove, repeat, swap,
    splice, cut,
]  # fmt: skip


def changed(files: Sequence[bytes], rng: random.Random) -> bytes:
    """One of the files with a few changes, mostly one."""
    data = bytearray(rng.choice(files))
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        if data:
            rng.choice(CHANGES)(data, rng, files)
    return bytes(data)
