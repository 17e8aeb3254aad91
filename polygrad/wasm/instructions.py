"""Encodes one instruction: opcode and immediates, by the kind of immediate in the opcode table.

Hot callers encode instructions once and join the bytes; this is the readable interface. Knows no functions.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

from polygrad.errors import InternalError
from polygrad.wasm.leb128 import sleb128, uleb128, vector
from polygrad.wasm.opcodes import Opcode, opcode

EMPTY_BLOCK = 0x40  # the block type without parameters and results
BR, BR_IF, END = opcode("br").code, opcode("br_if").code, opcode("end").code


def i32_const(value: int) -> bytes:
    """`i32.const` of `value`, any integer, taken modulo 2**32."""
    value &= 0xFFFFFFFF
    return b"\x41" + sleb128(value - (value >> 31 << 32))


def i64_const(value: int) -> bytes:
    """`i64.const` of `value`, any integer, taken modulo 2**64."""
    value &= 0xFFFFFFFFFFFFFFFF
    return b"\x42" + sleb128(value - (value >> 63 << 64))


def f32_bytes(value: float) -> bytes:
    """`value` rounded to the nearest float32 (infinite when it is too large), little-endian."""
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return struct.pack("<f", math.copysign(math.inf, value))


def f32_const(value: float) -> bytes:
    """`f32.const` of `value`, rounded to nearest."""
    return b"\x43" + f32_bytes(value)


def f64_const(value: float) -> bytes:
    """`f64.const` of `value`."""
    return b"\x44" + struct.pack("<d", value)


def v128_const(data: bytes) -> bytes:
    """`v128.const` of 16 bytes, lane 0 first."""
    if len(data) != 16:
        raise InternalError(f"v128.const: expected 16 bytes, got {len(data)}")
    return b"\xfd\x0c" + data


def memarg(align: int, offset: int) -> bytes:
    """A memory immediate: alignment exponent, and the static byte offset (0 to 2**32 - 1)."""
    if not 0 <= offset < 1 << 32:
        raise InternalError(f"memarg: expected an offset of 0 to 2**32 - 1, got {offset}")
    return uleb128(align) + uleb128(offset)


def _memory(row: Opcode, offset: int = 0, align: int | None = None) -> bytes:
    if align is not None and not 0 <= align <= row.bound:
        raise InternalError(f"{row.name}: expected an alignment exponent of 0 to {row.bound}, got {align}")
    return memarg(row.bound if align is None else align, offset)


def _memory_lane(row: Opcode, lane: int, offset: int = 0, align: int | None = None) -> bytes:
    return _memory(row, offset, align) + _lanes(row.name, 16 >> row.bound, lane)


def _lanes(name: str, bound: int, *lanes: int) -> bytes:
    if not all(0 <= lane < bound for lane in lanes):
        raise InternalError(f"{name}: expected lanes below {bound}, got {lanes}")
    return bytes(lanes)


def _shuffle(row: Opcode, *lanes: int) -> bytes:
    if len(lanes) != 16:
        raise InternalError(f"{row.name}: expected 16 lanes, got {len(lanes)}")
    return _lanes(row.name, 32, *lanes)


# kind of immediate -> its bytes; memory and table indices are always 0
_IMMEDIATES: dict[str, Callable[..., bytes]] = {
    "-": lambda row: b"",
    "block": lambda row, valtype=EMPTY_BLOCK: bytes((valtype,)),
    "label": lambda row, label: uleb128(label),
    "labels": lambda row, labels, default: vector(map(uleb128, labels)) + uleb128(default),
    "func": lambda row, index: uleb128(index),
    "type_table": lambda row, typeidx, table=0: uleb128(typeidx) + uleb128(table),
    "local": lambda row, index: uleb128(index),
    "global": lambda row, index: uleb128(index),
    "mem": _memory,
    "memlane": _memory_lane,
    "lane": lambda row, lane: _lanes(row.name, row.bound, lane),
    "shuffle": _shuffle,
    "i32": lambda row, value: i32_const(value)[1:],
    "i64": lambda row, value: i64_const(value)[1:],
    "f32": lambda row, value: f32_bytes(value),
    "f64": lambda row, value: struct.pack("<d", value),
    "v128": lambda row, data: v128_const(data)[2:],
    "memory": lambda row: b"\0",
    "memory_memory": lambda row: b"\0\0",
    "data_memory": lambda row, data: uleb128(data) + b"\0",
    "data": lambda row, data: uleb128(data),
    "elem_table": lambda row, elem, table=0: uleb128(elem) + uleb128(table),
    "elem": lambda row, elem: uleb128(elem),
    "table_table": lambda row, to=0, source=0: uleb128(to) + uleb128(source),
    "fence": lambda row: b"\0",
}


def instruction(name: str, *immediates: Any) -> bytes:
    """The bytes of one instruction.

    Immediates are positional: memory instructions take `offset=0, align=natural`, lane loads and stores
    `lane, offset=0, align=natural`, `v128.const` 16 bytes, `block`/`loop`/`if` a result type or nothing.
    Raises InternalError for an unknown name or immediates that do not fit.

    >>> instruction("i32.load", 8).hex()
    '280208'
    """
    row = opcode(name)
    try:
        return row.code + _IMMEDIATES[row.immediate](row, *immediates)
    except (TypeError, ValueError, struct.error) as e:
        raise InternalError(
            f"{name}: expected immediates of kind {row.immediate!r}, got {immediates}: {e}"
        ) from e
