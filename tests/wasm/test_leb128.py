"""LEB128 and length prefixes: the specification's bytes, at every boundary, there and back."""

from __future__ import annotations

import pytest

from polygrad.errors import CompileError, InternalError
from polygrad.wasm.leb128 import name, prefix_length, sleb128, uleb128, vector
from polygrad.wasm.reader import Reader

UNSIGNED = {
    0: "00", 1: "01", 127: "7f", 128: "8001", 624485: "e58e26", 16383: "ff7f", 16384: "808001",
    2**32 - 1: "ffffffff0f", 2**63: "80808080808080808001", 2**64 - 1: "ffffffffffffffffff01",
}  # fmt: skip
SIGNED = {
    0: "00", 1: "01", -1: "7f", 63: "3f", 64: "c000", -64: "40", -65: "bf7f", 127: "ff00", 128: "8001",
    -128: "807f", -123456: "c0bb78", 2**31 - 1: "ffffffff07", -(2**31): "8080808078",
    2**63 - 1: "ffffffffffffffffff00", -(2**63): "8080808080808080807f",
}  # fmt: skip


@pytest.mark.parametrize("value", UNSIGNED)
def test_unsigned(value: int) -> None:
    assert uleb128(value).hex() == UNSIGNED[value]
    assert Reader(uleb128(value)).uleb(64) == value


@pytest.mark.parametrize("value", SIGNED)
def test_signed(value: int) -> None:
    assert sleb128(value).hex() == SIGNED[value]
    assert Reader(sleb128(value)).sleb(64) == value


@pytest.mark.parametrize("bits", range(64))
def test_every_power_of_two_and_its_neighbours_there_and_back(bits: int) -> None:
    for value in (2**bits - 1, 2**bits, 2**bits + 1):
        assert Reader(uleb128(value)).uleb(64) == value
        for signed in (value, -value):
            if -(2**63) <= signed < 2**63:
                assert Reader(sleb128(signed)).sleb(64) == signed


@pytest.mark.parametrize(
    ("encode", "value"), [(uleb128, -1), (uleb128, 2**64), (sleb128, 2**63), (sleb128, -(2**63) - 1)]
)
def test_out_of_range_is_our_bug(encode: object, value: int) -> None:
    with pytest.raises(InternalError, match=f"got {value}"):
        encode(value)  # type: ignore[operator]


@pytest.mark.parametrize("data", ["808080808000", "ffffffff1f"])
def test_more_than_32_bits_is_refused(data: str) -> None:
    with pytest.raises(CompileError, match="byte 0: expected an integer of 32 bits"):
        Reader(bytes.fromhex(data)).uleb()


def test_prefixes_count_bytes_or_items() -> None:
    assert prefix_length(b"abc") == b"\3abc" and prefix_length(bytes(200))[:2] == b"\xc8\x01"
    assert vector([b"ab", b"c"]) == b"\2abc" and vector([]) == b"\0"
    assert name("é") == b"\2\xc3\xa9"
