"""Conversions between dtypes in WebAssembly, for scalars and for lanes.

float16 and bfloat16 are their bits. bfloat16, and float64 to either, are converted as `renderer/convert.py`
has it. float16 has sequences of its own, which take 10 to 17 % less time in wasmtime: after Giesen ("Half to
float done quick" and "float->half variants"), with the signed comparisons, the unsigned minimum and the
selection of bits that WebAssembly has.
"""

from __future__ import annotations

from polygrad.dtype import DType, dtypes
from polygrad.renderer.builder import HALF_DTYPES
from polygrad.renderer.wasm.alu import WRAP, WRAP_LANES, code
from polygrad.renderer.wasm.function import FunctionWriter, Value
from polygrad.renderer.wasm.lanes import (
    HIGH_TO_LOW,
    LOW_HALVES,
    SCALAR_NAME,
    SHAPE,
    VALTYPE,
    WIDE,
    Vectors,
    extract,
    lane_bytes,
    narrow_masks,
    pack,
    scalar_const,
    splat_const,
    vector_count,
    widen_masks,
)  # fmt: skip
from polygrad.wasm.instructions import f32_const, i32_const
from polygrad.wasm.types import F32, I32, V128

_INT32 = dtypes.int32
_BITS = dict.fromkeys(HALF_DTYPES, dtypes.uint16)  # the integer whose lanes hold them
_F32_INF, _F32_SIGN = 0x7F800000, 0x80000000
_F16_EXPONENT = 0x7C00 << 13  # float16's largest exponent, where float32's lies
_F16_TO_F32 = 2.0**112  # float32's bias over float16's, as a factor
_F16_MIN_NORMAL = 113 << 23  # 2**-14 as float32 bits
_REBIAS = -(112 << 23) + 0xFFF  # of the exponent, and nearly half of the last place kept
_DENORMAL_MAGIC = 126 << 23  # 0.5f: adding it puts a float16 denormal's last place at float32's

AND, OR, XOR, ADD, SUB, SHL, SHR = (
    code("i32." + op) for op in ("and", "or", "xor", "add", "sub", "shl", "shr_u")
)
SELECT, TO_BITS, FROM_BITS = code("select"), code("i32.reinterpret_f32"), code("f32.reinterpret_i32")


def fits(src: DType, dst: DType) -> bool:
    """Whether the i32 (or 32-bit lane) of integer `src` is that of `dst` as it is."""
    if dst.bits >= 32 or dst is dtypes.index:
        return True
    return src is not dtypes.index and dst.min <= src.min and src.max <= dst.max


def _signed(dtype: DType) -> str:
    return "u" if dtype.is_unsigned or dtype.is_bool else "s"


# --- scalars


def scalar_cast(w: FunctionWriter, value: Value, src: DType, dst: DType) -> Value:
    """See `Builder.cast_number`."""
    s, d = SCALAR_NAME[src], SCALAR_NAME[dst]
    if dst is dtypes.bool:
        return w.expr(I32, value, scalar_const(src, 0), code(f"{s}.ne"))
    if dst.is_float:
        if not src.is_float:
            return w.expr(VALTYPE[dst], value, code(f"{d}.convert_{s}_{_signed(src)}"))
        return w.expr(VALTYPE[dst], value, code("f64.promote_f32" if d == "f64" else "f32.demote_f64"))
    if src.is_float:
        clamp = b""
        if dst in WRAP:
            clamp = (
                scalar_const(src, dst.min) + code(f"{s}.max") + scalar_const(src, dst.max) + code(f"{s}.min")
            )
        return w.expr(VALTYPE[dst], value, clamp + code(f"{d}.trunc_sat_{s}_{_signed(dst)}"))
    if s == d:
        return value if d == "i64" or fits(src, dst) else w.expr(I32, value, WRAP[dst])
    if d == "i64":
        return w.expr(VALTYPE[dst], value, code(f"i64.extend_i32_{_signed(src)}"))
    return w.expr(I32, value, code("i32.wrap_i64") + WRAP.get(dst, b""))


def scalar_bitcast(w: FunctionWriter, value: Value, src: DType, dst: DType) -> Value:
    """The same bits as another dtype of the same size."""
    s, d = SCALAR_NAME[src], SCALAR_NAME[dst]
    if dst is dtypes.bool:
        return scalar_cast(w, value, src, dst)
    if s != d:
        return w.expr(VALTYPE[dst], value, code(f"{d}.reinterpret_{s}"))
    src, dst = _BITS.get(src, src), _BITS.get(dst, dst)
    return value if s != "i32" or src is dst else scalar_cast(w, value, src, dst)


def float16_to_float32(w: FunctionWriter, bits: Value) -> Value:
    """See `Builder.extend_half`."""
    magnitude = w.expr(I32, bits, i32_const(0x7FFF) + AND + i32_const(13) + SHL)
    infinite = (
        i32_const(_F32_INF) + i32_const(0),
        magnitude,
        i32_const(_F16_EXPONENT) + code("i32.ge_u") + SELECT,
    )
    scale = FROM_BITS + f32_const(_F16_TO_F32) + code("f32.mul") + TO_BITS
    sign = (bits, i32_const(0x8000) + AND + i32_const(16) + SHL)
    return w.expr(F32, magnitude, scale, *infinite, OR, *sign, OR + FROM_BITS)


def float32_to_float16(w: FunctionWriter, value: Value) -> Value:
    """See `Builder.truncate_to_half`."""
    bits = w.expr(I32, value, TO_BITS)
    magnitude = w.expr(I32, bits, i32_const(0x7FFFFFFF) + AND)
    shift = i32_const(13) + SHR
    normal = w.expr(
        I32, magnitude, magnitude, shift + i32_const(1) + AND + ADD + i32_const(_REBIAS) + ADD + shift
    )
    half = f32_const(0.5)
    denormal = (magnitude, FROM_BITS + half + code("f32.add") + TO_BITS + i32_const(_DENORMAL_MAGIC) + SUB)
    # at most infinity; for float16's denormals this wrapped to something large, and is not taken
    capped = (normal, i32_const(0x7C00), normal, i32_const(0x7C00) + code("i32.lt_u") + SELECT)
    finite = w.expr(
        I32, *denormal, *capped, magnitude, i32_const(_F16_MIN_NORMAL) + code("i32.lt_u") + SELECT
    )
    sign = (bits, i32_const(16) + SHR + i32_const(0x8000) + AND)
    return w.expr(I32, i32_const(0x7E00), finite, value, value, code("f32.ne") + SELECT, *sign, OR)


# --- lanes


def simd_cast(w: FunctionWriter, vectors: Vectors, src: DType, dst: DType, lanes: int) -> Vectors:
    """See `Builder.cast_number`."""
    if src is dtypes.bool:
        masks = widen_masks(w, vectors, lanes) if dst in WIDE else vectors
        one = splat_const(w, dst, 1)
        return tuple(w.expr(V128, m, one, code("v128.and")) for m in masks)
    if dst is dtypes.bool:
        nonzero = code(SHAPE[src] + ".ne")
        masks = tuple(w.expr(V128, v, w.vector(bytes(16)), nonzero) for v in vectors)
        return narrow_masks(w, masks) if src in WIDE else masks
    if src in WIDE:
        if dst in WIDE and not src.is_float and not dst.is_float:
            return vectors
        if src.is_float and (dst is dtypes.float32 or (dst.is_int and dst not in WIDE)):
            return _from_float64(w, vectors, dst)
        if dst.is_int and dst not in WIDE:
            return _wrap(w, narrow_masks(w, vectors), dst)
    elif dst in WIDE:
        if dst.is_float or src.is_int:
            return _to_wide(w, vectors, src, dst, lanes)
    elif dst is dtypes.float32:
        # small unsigned integers are positive as signed ones, whose conversion is cheaper
        sign = "u" if src is dtypes.uint32 else "s"
        return tuple(w.expr(V128, v, code(f"f32x4.convert_i32x4_{sign}")) for v in vectors)
    elif src is dtypes.float32:
        sign = "u" if dst is dtypes.uint32 else "s"
        truncated = tuple(w.expr(V128, v, code(f"i32x4.trunc_sat_f32x4_{sign}")) for v in vectors)
        return _saturate(w, truncated, dst)
    else:
        return vectors if fits(src, dst) else _wrap(w, vectors, dst)
    return pack(w, [scalar_cast(w, extract(w, vectors, src, lane), src, dst) for lane in range(lanes)], dst)


def simd_bitcast(w: FunctionWriter, vectors: Vectors, src: DType, dst: DType, lanes: int) -> Vectors:
    """The same bits as another dtype of the same size."""
    if src.itemsize == 1 and dtypes.bool in (src, dst):
        return simd_cast(w, vectors, src, dst, lanes)
    src, dst = _BITS.get(src, src), _BITS.get(dst, dst)
    return vectors if src.itemsize >= 4 or fits(src, dst) else _wrap(w, vectors, dst)


def _wrap(w: FunctionWriter, vectors: Vectors, dtype: DType) -> Vectors:
    if dtype not in WRAP_LANES:
        return vectors
    wrap = [p if type(p) is bytes else w.vector(p[0]) for p in WRAP_LANES[dtype]]
    return tuple(w.expr(V128, v, *wrap) for v in vectors)


def _saturate(w: FunctionWriter, vectors: Vectors, dtype: DType) -> Vectors:
    """32-bit lanes saturated to the range of a small integer."""
    if dtype not in WRAP:
        return vectors
    low, high = splat_const(w, _INT32, dtype.min), splat_const(w, _INT32, dtype.max)
    return tuple(w.expr(V128, v, low, code("i32x4.max_s"), high, code("i32x4.min_s")) for v in vectors)


def _from_float64(w: FunctionWriter, vectors: Vectors, dst: DType) -> Vectors:
    """Two lanes each to the low half of a vector; halves of neighbours joined."""
    name = "f32x4.demote_f64x2_zero"
    if dst.is_int:
        name = f"i32x4.trunc_sat_f64x2_{'u' if dst is dtypes.uint32 else 's'}_zero"
    half = code(name)
    if len(vectors) == 1:
        return _saturate(w, (w.expr(V128, vectors[0], half),), dst)
    pairs = zip(vectors[::2], vectors[1::2], strict=True)
    return _saturate(w, tuple(w.expr(V128, a, half, b, half + LOW_HALVES) for a, b in pairs), dst)


def _to_wide(w: FunctionWriter, vectors: Vectors, src: DType, dst: DType, lanes: int) -> Vectors:
    """32-bit lanes to 64-bit ones: the low half of each vector, then the high one."""
    count = vector_count(dst, lanes)
    out: list[Value] = []
    for i in range(count):
        v = vectors[i // 2]
        if dst.is_int and src.is_int:
            out.append(
                w.expr(V128, v, code(f"i64x2.extend_{'high' if i & 1 else 'low'}_i32x4_{_signed(src)}"))
            )
            continue
        if src.is_float and dst.is_int:
            return pack(w, [scalar_cast(w, extract(w, vectors, src, k), src, dst) for k in range(lanes)], dst)
        name = "f64x2.promote_low_f32x4" if src.is_float else f"f64x2.convert_low_i32x4_{_signed(src)}"
        out.append(w.expr(V128, v, v, HIGH_TO_LOW + code(name)) if i & 1 else w.expr(V128, v, code(name)))
    return tuple(out)


def _bits(w: FunctionWriter, value: int) -> Value:
    return w.vector((value & 0xFFFFFFFF).to_bytes(4, "little") * 4)


def float16_lanes_to_float32(w: FunctionWriter, v: Value) -> Value:
    """`float16_to_float32` in four lanes."""
    and_, or_ = code("v128.and"), code("v128.or")
    magnitude = w.expr(V128, v, _bits(w, 0x7FFF), and_ + i32_const(13) + code("i32x4.shl"))
    scale = w.vector(lane_bytes(dtypes.float32, _F16_TO_F32) * 4)
    infinite = (magnitude, _bits(w, _F16_EXPONENT), code("i32x4.ge_s"), _bits(w, _F32_INF), and_)
    sign = (v, _bits(w, 0x8000), and_ + i32_const(16) + code("i32x4.shl"))
    return w.expr(V128, magnitude, scale, code("f32x4.mul"), *infinite, or_, *sign, or_)


def float32_lanes_to_float16(w: FunctionWriter, v: Value) -> Value:
    """`float32_to_float16` in four lanes."""
    add, shift, select = code("i32x4.add"), i32_const(13) + code("i32x4.shr_u"), code("v128.bitselect")
    magnitude = w.expr(V128, v, _bits(w, 0x7FFFFFFF), code("v128.and"))
    odd = (magnitude, shift, _bits(w, 1), code("v128.and"))
    capped = (magnitude, *odd, add, _bits(w, _REBIAS), add + shift, _bits(w, 0x7C00), code("i32x4.min_u"))
    magic = _bits(w, _DENORMAL_MAGIC)
    denormal = (magnitude, magic, code("f32x4.add"), magic, code("i32x4.sub"))
    small = (magnitude, _bits(w, _F16_MIN_NORMAL), code("i32x4.lt_s"))
    finite = w.expr(V128, *denormal, *capped, *small, select)
    sign = (v, i32_const(16) + code("i32x4.shr_u"), _bits(w, 0x8000), code("v128.and"))
    return w.expr(V128, _bits(w, 0x7E00), finite, v, v, code("f32x4.ne") + select, *sign, code("v128.or"))
