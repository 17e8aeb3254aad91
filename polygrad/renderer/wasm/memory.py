"""Loads and stores in WebAssembly: addresses, and dtypes between memory and 32- or 64-bit lanes.

An address is an i32. A constant offset is part of the instruction if the address without it is known not to
be below the pointer: an effective address does not wrap.
"""

from __future__ import annotations

from collections.abc import Sequence

from polygrad.dtype import DType, dtypes
from polygrad.renderer.builder import Address
from polygrad.renderer.wasm.alu import code, is_non_negative, scalar_alu, simd_alu
from polygrad.renderer.wasm.function import FunctionWriter, Value, constant_value
from polygrad.renderer.wasm.lanes import SCALAR_NAME, VALTYPE, Vectors, extract, load_info, pack
from polygrad.uop.ops import Ops
from polygrad.wasm.instructions import i32_const, instruction, memarg, v128_const
from polygrad.wasm.opcodes import opcode
from polygrad.wasm.types import I32, V128

Place = tuple[tuple[Value, ...], int]  # of an element: postfix code, and a static offset in bytes
GUARD = 64  # bytes before and after every buffer, which may be read
_MAX_DISTANCE = 1 << 15  # bytes from the memory's start on that it has in any case

_LOAD: dict[DType, bytes] = {
    d: code(f"{name}.load{width}")
    for d, name, width in (
        (dtypes.bool, "i32", "8_u"), (dtypes.int8, "i32", "8_s"), (dtypes.uint8, "i32", "8_u"),
        (dtypes.int16, "i32", "16_s"), (dtypes.uint16, "i32", "16_u"), (dtypes.float16, "i32", "16_u"),
        (dtypes.bfloat16, "i32", "16_u"), (dtypes.int32, "i32", ""), (dtypes.uint32, "i32", ""),
        (dtypes.int64, "i64", ""), (dtypes.uint64, "i64", ""), (dtypes.float32, "f32", ""),
        (dtypes.float64, "f64", ""),
    )
}  # fmt: skip
_STORE: dict[DType, bytes] = {
    d: code(SCALAR_NAME[d] + ".store" + ("" if d.itemsize >= 4 else str(8 * d.itemsize))) for d in dtypes.all
}
_ALIGN = {1: 0, 2: 1, 4: 2, 8: 3}
_SHL, _ADD, _SELECT = code("i32.shl"), code("i32.add"), code("select")
_FULL, _HALF, _WORD = (opcode(f"v128.load{n}").code for n in ("", "64_zero", "32_zero"))


def _base(w: FunctionWriter, pointer: int, index: int, align: int) -> int:
    """pointer + index elements, computed once in the loop that the index belongs to."""
    bases = w.frames[w.depths[index]].bases
    key = (pointer, index, align)
    base = bases.get(key)
    if base is None:
        scaled = (index, i32_const(align), _SHL) if align else (index,)
        base = bases[key] = w.expr(I32, pointer, *scaled, _ADD)
    return base


def _base_and_offset(w: FunctionWriter, address: Address, align: int) -> tuple[int, int, bool]:
    """A local and the bytes to add to it; and whether the local is known not to be below the pointer."""
    pointer, index, offset = address
    if isinstance(index, bytes):
        offset, index = offset + constant_value(index), None
    base = pointer if index is None else _base(w, pointer, index, align)
    return base, offset << align, index is None or is_non_negative(w, index)


def _place(w: FunctionWriter, address: Address, align: int) -> Place:
    base, offset, is_within = _base_and_offset(w, address, align)
    if offset >= 0 and is_within:
        return (base,), offset
    return ((base, i32_const(offset), _ADD) if offset else (base,)), 0


def _safe_place(
    w: FunctionWriter, address: Address, align: int, mask: Vectors, is_any: Sequence[Value]
) -> Place:
    """The place of a vector, or one near address 0 unless `is_any` of its lanes is set. Vectors with one mask
    that lie at constant distances share the choice."""
    base, offset, _ = _base_and_offset(w, address, align)
    depth = max(w.depths[v] for v in (base, *mask) if type(v) is int)
    first, start = w.frames[depth].safe.get((base, mask), (-1, 0))
    if first < 0 or not 0 <= offset - start <= _MAX_DISTANCE:
        pieces = (base, i32_const(offset), _ADD) if offset else (base,)
        first, start = w.expr(I32, *pieces, i32_const(0), *is_any, _SELECT), offset
        w.frames[depth].safe[base, mask] = first, start
    return (first,), offset - start


# --- scalars


def scalar_load(w: FunctionWriter, address: Address, dtype: DType) -> Value:
    """One element."""
    align = _ALIGN[dtype.itemsize]
    pieces, static = _place(w, address, align)
    out = w.here(VALTYPE[dtype], *pieces, _LOAD[dtype] + memarg(align, static))
    if align >= 2:
        load_info(w, out, align, static)
    return out


def scalar_store(w: FunctionWriter, address: Address, value: Value, dtype: DType) -> None:
    """Store one element."""
    align = _ALIGN[dtype.itemsize]
    pieces, static = _place(w, address, align)
    w.do(*pieces, value, _STORE[dtype] + memarg(align, static))


# --- lanes


def _single(w: FunctionWriter, place: Place, repeats: bool) -> Place:
    """The place, in one local if it `repeats`."""
    pieces, static = place
    return place if len(pieces) == 1 or not repeats else ((w.expr(I32, *pieces),), static)


def _read(w: FunctionWriter, place: Place, dtype: DType, lanes: int) -> Vectors:
    """`lanes` elements from `place` on. Of small elements it may read some bytes beyond the last one."""
    size, align = dtype.itemsize, _ALIGN[dtype.itemsize]
    step = 16 if size >= 4 else 8  # bytes of memory to one load
    loads = max(1, lanes * size // step)
    pieces, static = _single(w, place, loads > 1)
    sign = "s" if dtype.kind == "int" else "u"
    if lanes * size < 8 and size < 4:
        widen = code(f"i32x4.extend_low_i16x8_{sign}")
        if size == 1:
            widen = code(f"i16x8.extend_low_i8x16_{sign}") + widen
        out = [w.here(V128, *pieces, _WORD + memarg(align, static) + widen)]
    elif size == 2:
        load = opcode(f"v128.load16x4_{sign}").code
        out = [w.here(V128, *pieces, load + memarg(align, static + i * step)) for i in range(loads)]
    elif size == 1:
        load, out = opcode(f"v128.load8x8_{sign}").code, []
        for i in range(loads):
            eight = w.here(V128, *pieces, load + memarg(align, static + i * step))
            out += [
                w.expr(V128, eight, code(f"i32x4.extend_{half}_i16x8_{sign}")) for half in ("low", "high")
            ]
    else:
        load = _HALF if lanes * size == 8 else _FULL
        out = [w.here(V128, *pieces, load + memarg(align, static + i * step)) for i in range(loads)]
    if dtype is dtypes.bool:
        return tuple(w.expr(V128, v, code("i32x4.neg")) for v in out)
    return tuple(out)


def simd_load(w: FunctionWriter, address: Address, dtype: DType, lanes: int) -> Vectors:
    """`lanes` consecutive elements."""
    return _read(w, _place(w, address, _ALIGN[dtype.itemsize]), dtype, lanes)


def load_block(w: FunctionWriter, address: Address, dtype: DType) -> int:
    """16 bytes of consecutive elements, of which the last may be in the guard."""
    align = _ALIGN[dtype.itemsize]
    pieces, static = _place(w, address, align)
    return w.here(V128, *pieces, _FULL + memarg(align, static))


def permute(w: FunctionWriter, blocks: Sequence[int], positions: Sequence[int], dtype: DType) -> Vectors:
    """Elements of 16-byte blocks as lanes. Elements of less than 32 bits are shuffled to the top of their
    lanes and shifted down. Unsigned ones out of one block need no shift: `i8x16.swizzle` fills with zeros."""
    size = dtype.itemsize
    per, width = (2, 8) if size == 8 else (4, 4)
    per_block = 16 // size
    out: list[Value] = []
    for start in range(0, len(positions), per):
        group = positions[start : start + per]
        sources = sorted({p // per_block for p in group})
        first = [16 * sources.index(p // per_block) + size * (p % per_block) for p in group]  # bytes
        first += [first[-1]] * (per - len(first))
        signed = dtype.kind == "int" and size < 4
        if size < 4 and len(sources) == 1 and not signed:
            chosen = [b + i if i < size else 0x80 for b in first for i in range(width)]
            vector = w.expr(V128, blocks[sources[0]], w.vector(bytes(chosen)), code("i8x16.swizzle"))
        else:
            chosen = [b + max(i - (width - size), 0) for b in first for i in range(width)]
            vector = _shuffle(w, [blocks[n] for n in sources], chosen)
            if size < 4:
                shift = code(f"i32x4.shr_{'s' if signed else 'u'}")
                vector = w.expr(V128, vector, i32_const(8 * (4 - size)), shift)
        out.append(w.expr(V128, vector, code("i32x4.neg")) if dtype is dtypes.bool else vector)
    return tuple(out)


def _shuffle(w: FunctionWriter, sources: Sequence[int], chosen: Sequence[int]) -> int:
    """A vector whose byte i is byte `chosen[i]` of the concatenated sources."""
    second = sources[min(1, len(sources) - 1)]
    lanes = [b if b < 32 else 0 for b in chosen]
    out = w.expr(V128, sources[0], second, instruction("i8x16.shuffle", *lanes))
    for number, source in enumerate(sources[2:], 2):
        lanes = [b - 16 * number + 16 if b // 16 == number else i for i, b in enumerate(chosen)]
        out = w.expr(V128, out, source, instruction("i8x16.shuffle", *lanes))
    return out


def simd_load_masked(
    w: FunctionWriter,
    address: Address,
    dtype: DType,
    lanes: int,
    mask: Vectors,
    other: Vectors,
) -> Vectors:
    """`lanes` consecutive elements where `mask` is set, else `other`. It reads at the memory's start if no
    lane is set."""
    align = _ALIGN[dtype.itemsize]
    if lanes * dtype.itemsize > GUARD:
        pieces, static = _place(w, address, align)
        pieces = (*pieces, i32_const(static), _ADD) if static else pieces
        zero = i32_const(0)
        values: list[Value] = []
        start = w.expr(I32, *pieces)
        for lane in range(lanes):
            chosen = extract(w, mask, dtypes.bool, lane)
            load = (
                start,
                i32_const(lane * dtype.itemsize),
                _ADD,
                zero,
                chosen,
                _SELECT,
                _LOAD[dtype] + memarg(align, 0),
            )
            element = w.here(VALTYPE[dtype], *load)
            values.append(scalar_alu(w, Ops.WHERE, dtype, (chosen, element, extract(w, other, dtype, lane))))
        return pack(w, values, dtype)
    if lanes == 2:  # the upper lanes of the mask are undefined
        test: tuple[Value, ...] = (mask[0], code("i64x2.extract_lane") + b"\0" + b"\x42\0" + code("i64.ne"))
    else:
        test = (mask[0],)
        for m in mask[1:]:
            test = (*test, m, code("v128.or"))
        test = (*test, code("v128.any_true"))
    loaded = _read(w, _safe_place(w, address, align, mask, test), dtype, lanes)
    return simd_alu(w, Ops.WHERE, dtype, (mask, loaded, other), lanes)


def simd_store(w: FunctionWriter, address: Address, value: Vectors, dtype: DType, lanes: int) -> None:
    """Store `lanes` consecutive elements."""
    size, align = dtype.itemsize, _ALIGN[dtype.itemsize]
    packed = _narrow(value, dtype)
    nbytes = lanes * size
    place, static = _single(w, _place(w, address, align), len(packed) > 1)
    for i, vector in enumerate(packed):
        if dtype is dtypes.bool:
            vector = (*vector, w.vector(b"\1" * 16), code("v128.and"))
        if nbytes >= 16:
            store = code("v128.store") + memarg(align, static + 16 * i)
        else:
            store = code(f"v128.store{8 * nbytes}_lane") + memarg(align, static) + b"\0"
        w.do(*place, *vector, store)


def _narrow(value: Vectors, dtype: DType) -> list[tuple[Value, ...]]:
    """The code of the vectors to store. Narrowing saturates, which changes nothing: lanes are in range."""
    if dtype.itemsize >= 4:
        return [(v,) for v in value]
    sign = "s" if dtype.kind in ("int", "bool") else "u"
    halves: list[tuple[Value, ...]] = []
    narrow = code(f"i16x8.narrow_i32x4_{sign}" if dtype.itemsize == 2 else "i16x8.narrow_i32x4_s")
    for i in range(0, len(value), 2):
        halves.append((value[i], value[min(i + 1, len(value) - 1)], narrow))
    if dtype.itemsize == 2:
        return halves
    narrow = code(f"i8x16.narrow_i16x8_{sign}")
    if len(halves) == 1:
        halves.append((v128_const(bytes(16)),))
    return [(*halves[i], *halves[i + 1], narrow) for i in range(0, len(halves), 2)]
