"""How WebAssembly values represent dtypes, and conversions between scalars and lanes.

A scalar of up to 32 bits is an i32 (small integers sign- or zero-extended, bool 0 or 1, float16 and bfloat16
as their bits); int64 and uint64 are i64. A SIMD value is a tuple of v128s: four lanes of 32 bits each, or two
of 64 for the 64-bit dtypes; a bool's lanes are 32-bit masks. With two lanes of 32 bits the upper half of the
v128 is undefined.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from polygrad.dtype import DType, dtypes, float_to_bits
from polygrad.renderer.wasm.function import FunctionWriter, Value, constant_value
from polygrad.renderer.wasm.outline import Tee
from polygrad.wasm.instructions import (
    f32_bytes,
    f32_const,
    f64_const,
    i32_const,
    i64_const,
    instruction,
    memarg,
)  # fmt: skip
from polygrad.wasm.opcodes import opcode
from polygrad.wasm.types import F32, F64, I32, I64, V128

Vectors = tuple[Value, ...]

WIDE = frozenset({dtypes.int64, dtypes.uint64, dtypes.float64})
VALTYPE: dict[DType, int] = {
    **dict.fromkeys((dtypes.index, *dtypes.all), I32),
    dtypes.int64: I64, dtypes.uint64: I64, dtypes.float32: F32, dtypes.float64: F64,
}  # fmt: skip
SCALAR_NAME = {d: {I32: "i32", I64: "i64", F32: "f32", F64: "f64"}[t] for d, t in VALTYPE.items()}
SHAPE = {
    d: {"i32": "i32x4", "i64": "i64x2", "f32": "f32x4", "f64": "f64x2"}[n] for d, n in SCALAR_NAME.items()
}

_NEGATE_BOOL = (i32_const(0), opcode("i32.sub").code)
_AND_ONE = i32_const(1) + opcode("i32.and").code
_SPLAT = {d: opcode(s + ".splat").code for d, s in SHAPE.items()}
_EXTRACT = {d: opcode(s + ".extract_lane").code for d, s in SHAPE.items()}
_REPLACE = {d: opcode(s + ".replace_lane").code for d, s in SHAPE.items()}
_LOAD_SPLAT = {
    d: opcode(f"v128.load{64 if d in WIDE else 32}_splat").code
    for d in (dtypes.int32, dtypes.uint32, dtypes.float32, dtypes.int64, dtypes.uint64, dtypes.float64)
}

# shuffles: the low 32 bits of the 64-bit lanes of two vectors; halves of two vectors; words of two vectors
PACK_WORDS = instruction("i8x16.shuffle", 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27)
LOW_HALVES = instruction("i8x16.shuffle", *range(8), *range(16, 24))
HIGH_TO_LOW = instruction("i8x16.shuffle", *range(8, 16), *range(8, 16))
_HIGH_HALVES = instruction("i8x16.shuffle", *range(8, 16), *range(24, 32))
_LOW_WORDS = instruction("i8x16.shuffle", 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23)
_HIGH_WORDS = instruction("i8x16.shuffle", 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31)
_EXTEND_LOW, _EXTEND_HIGH = opcode("i64x2.extend_low_i32x4_s").code, opcode("i64x2.extend_high_i32x4_s").code


def vector_count(dtype: DType, lanes: int) -> int:
    """The number of v128s that `lanes` lanes of `dtype` take."""
    return max(1, lanes // (2 if dtype in WIDE else 4))


# --- constants


def lane_bytes(dtype: DType, value: Any) -> bytes:
    """`value` as one lane of `dtype` holds it: 4 or 8 bytes."""
    if dtype is dtypes.float32:
        return f32_bytes(value)
    if dtype is dtypes.float64:
        return struct.pack("<d", value)
    if dtype is dtypes.bool:
        return b"\xff\xff\xff\xff" if value else bytes(4)
    if dtype is dtypes.float16 or dtype is dtypes.bfloat16:
        return float_to_bits(dtype, value).to_bytes(4, "little")
    size = 8 if dtype in WIDE else 4
    return (int(dtype.cast(value)) & (1 << 8 * size) - 1).to_bytes(size, "little")


def scalar_const(dtype: DType, value: Any) -> bytes:
    """The constant instruction of a scalar."""
    if dtype is dtypes.float32:
        return f32_const(value)
    if dtype is dtypes.float64:
        return f64_const(value)
    if dtype is dtypes.float16 or dtype is dtypes.bfloat16:
        return i32_const(float_to_bits(dtype, value))
    if dtype in WIDE:
        return i64_const(int(value))
    return i32_const(int(dtype.cast(value)))


def vector_consts(w: FunctionWriter, data: bytes) -> Vectors:
    """The SIMD constant whose lanes are `data`, padded to whole vectors."""
    data += bytes(-len(data) % 16)
    return tuple(w.vector(data[i : i + 16]) for i in range(0, len(data), 16))


def splat_const(w: FunctionWriter, dtype: DType, value: Any) -> Value:
    """One vector with `value` in every lane."""
    lane = lane_bytes(dtype, value)
    return w.vector(lane * (16 // len(lane)))


def _const_of_lane(dtype: DType, data: bytes) -> bytes:
    if dtype is dtypes.float32:
        return b"\x43" + data
    if dtype is dtypes.float64:
        return b"\x44" + data
    value = int.from_bytes(data, "little")
    if dtype in WIDE:
        return i64_const(value)
    return i32_const(value & 1 if dtype is dtypes.bool else value)


def _lane_of_const(dtype: DType, const: bytes) -> bytes:
    if dtype is dtypes.float32 or dtype is dtypes.float64:
        return const[1:]
    value = constant_value(const)
    if dtype is dtypes.bool:
        value = -value
    size = 8 if dtype in WIDE else 4
    return (value & (1 << 8 * size) - 1).to_bytes(size, "little")


# --- scalars and lanes


def splat(w: FunctionWriter, value: Value, dtype: DType, lanes: int) -> Vectors:
    """A scalar in every lane. A scalar's load becomes a splatting load, and the scalar its lane 0."""
    if isinstance(value, bytes):
        lane = _lane_of_const(dtype, value)
        vector = w.vector(lane * (16 // len(lane)))
    else:
        info = w.info[value]
        if type(info) is tuple and info[0] == "vector":
            vector = info[1]
        elif type(info) is tuple and info[0] == "load" and dtype in _LOAD_SPLAT:
            _, code, position, immediate = info
            vector = w.local(V128, w.depths[value], fresh=True)
            code[position] = Tee.of(_LOAD_SPLAT[dtype] + immediate, vector, _EXTRACT[dtype] + b"\0")
            w.info[value] = ("vector", vector)
            w.info[vector] = ("splat", value)
        else:
            if dtype is dtypes.bool:
                vector = w.expr(V128, _NEGATE_BOOL[0], value, _NEGATE_BOOL[1], _SPLAT[dtype])
            else:
                vector = w.expr(V128, value, _SPLAT[dtype])
            w.info[vector] = ("splat", value)
    return (vector,) * vector_count(dtype, lanes)


def extract(w: FunctionWriter, vectors: Vectors, dtype: DType, lane: int) -> Value:
    """One lane as a scalar."""
    size = 8 if dtype in WIDE else 4
    number, lane = divmod(lane, 16 // size)
    vector = vectors[number]
    if isinstance(vector, bytes):
        data = vector[2:]
        return _const_of_lane(dtype, data[lane * size : (lane + 1) * size])
    info = w.info[vector]
    if info is not None:
        if info[0] == "const":
            return _const_of_lane(dtype, info[1][lane * size : (lane + 1) * size])
        if info[0] == "splat":
            return info[1]
    code = _EXTRACT[dtype] + bytes((lane,))
    return w.expr(VALTYPE[dtype], vector, code + _AND_ONE if dtype is dtypes.bool else code)


def pack(w: FunctionWriter, values: Sequence[Value], dtype: DType) -> Vectors:
    """Scalars as lanes."""
    if all(isinstance(v, bytes) for v in values):
        return vector_consts(w, b"".join(_lane_of_const(dtype, v) for v in values if isinstance(v, bytes)))
    per = 2 if dtype in WIDE else 4
    out: list[Value] = []
    for start in range(0, len(values), per):
        group = values[start : start + per]
        if all(v == group[0] for v in group):
            out += splat(w, group[0], dtype, per)
            continue
        pieces: list[Value] = []
        for lane, value in enumerate(group):
            pieces += (_NEGATE_BOOL[0], value, _NEGATE_BOOL[1]) if dtype is dtypes.bool else (value,)
            pieces.append(_SPLAT[dtype] if lane == 0 else _REPLACE[dtype] + bytes((lane,)))
        out.append(w.expr(V128, *pieces))
    return tuple(out)


# --- masks: a bool's lanes are 32 bits wide, those of a 64-bit comparison 64


def interleave(w: FunctionWriter, a: Vectors, b: Vectors, dtype: DType) -> tuple[Vectors, Vectors]:
    """The lanes of `a` and `b` in turn: the first half, and the second."""
    low, high = (LOW_HALVES, _HIGH_HALVES) if dtype in WIDE else (_LOW_WORDS, _HIGH_WORDS)
    zipped = [w.expr(V128, x, y, half) for x, y in zip(a, b, strict=True) for half in (low, high)]
    return tuple(zipped[: len(a)]), tuple(zipped[len(a) :])


def narrow_masks(w: FunctionWriter, masks: Vectors) -> Vectors:
    """The low 32 bits of 64-bit lanes: of a mask, which becomes a bool, or of an integer."""
    if len(masks) == 1:
        return (w.expr(V128, masks[0], masks[0], PACK_WORDS),)
    return tuple(w.expr(V128, masks[i], masks[i + 1], PACK_WORDS) for i in range(0, len(masks), 2))


def widen_masks(w: FunctionWriter, masks: Vectors, lanes: int) -> Vectors:
    """A bool as masks of 64 bits."""
    count = vector_count(dtypes.float64, lanes)
    return tuple(w.expr(V128, masks[i // 2], _EXTEND_HIGH if i & 1 else _EXTEND_LOW) for i in range(count))


def load_info(w: FunctionWriter, local: int, align: int, offset: int) -> None:
    """Note for `splat` that a load has just set `local`: it is the last chunk but one."""
    code = w.frames[-1].code
    w.info[local] = ("load", code, len(code) - 2, memarg(align, offset))
