"""The IR's arithmetic in WebAssembly: two tables of postfix templates, and the few ops that need more.

A template is a tuple: an int is an operand, bytes are instructions, a 1-tuple of 16 bytes a vector constant.
Small integers are wrapped into their range after every op whose result may leave it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.errors import InternalError
from polygrad.renderer.wasm.function import FunctionWriter, Value, is_negative
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
    widen_masks,
)  # fmt: skip
from polygrad.uop.ops import GroupOp, Ops
from polygrad.wasm.instructions import i32_const, instruction
from polygrad.wasm.opcodes import opcode
from polygrad.wasm.types import I32, V128

Template = tuple[Any, ...]
_INTS = (dtypes.index, *dtypes.ints)
_FLOATS = (dtypes.float32, dtypes.float64)


def code(name: str) -> bytes:
    """The opcode of an instruction without immediates."""
    return opcode(name).code


# an i32 wrapped into a small integer's range
WRAP: dict[DType, bytes] = {
    dtypes.int8: code("i32.extend8_s"),
    dtypes.int16: code("i32.extend16_s"),
    dtypes.uint8: i32_const(0xFF) + code("i32.and"),
    dtypes.uint16: i32_const(0xFFFF) + code("i32.and"),
}
# the same for four lanes
_WRAP_SHIFT = {dtypes.int8: i32_const(24), dtypes.int16: i32_const(16)}
WRAP_LANES: dict[DType, Template] = {
    **{d: (n + code("i32x4.shl") + n + code("i32x4.shr_s"),) for d, n in _WRAP_SHIFT.items()},
    dtypes.uint8: ((b"\xff\0\0\0" * 4,), code("v128.and")),
    dtypes.uint16: ((b"\xff\xff\0\0" * 4,), code("v128.and")),
}

_INFIX = {
    Ops.ADD: "add", Ops.SUB: "sub", Ops.MUL: "mul", Ops.AND: "and", Ops.OR: "or", Ops.XOR: "xor",
    Ops.SHL: "shl", Ops.CMPEQ: "eq", Ops.CMPNE: "ne",
}  # fmt: skip
_WRAPPED = frozenset({Ops.ADD, Ops.SUB, Ops.MUL, Ops.SHL})


def _scalar_table() -> dict[Ops, dict[DType, Template]]:
    table: dict[Ops, dict[DType, Template]] = {op: {} for op in GroupOp.ALU}
    for d in _INTS:
        t, s, wrap = SCALAR_NAME[d], "u" if d.is_unsigned else "s", WRAP.get(d, b"")
        for op, name in _INFIX.items():
            table[op][d] = (0, 1, code(f"{t}.{name}") + (wrap if op in _WRAPPED else b""))
        table[Ops.NEG][d] = (scalar_const(d, 0), 0, code(f"{t}.sub") + wrap)
        table[Ops.SHR][d] = (0, 1, code(f"{t}.shr_{s}"))
        table[Ops.CMPLT][d] = (0, 1, code(f"{t}.lt_{s}"))
        table[Ops.MAX][d] = (0, 1, 0, 1, code(f"{t}.gt_{s}") + code("select"))
        table[Ops.MULACC][d] = (0, 1, code(f"{t}.mul"), 2, code(f"{t}.add") + wrap)
        table[Ops.TRUNC][d] = (0,)
        if d.is_unsigned:
            table[Ops.IDIV][d], table[Ops.MOD][d] = (0, 1, code(f"{t}.div_u")), (0, 1, code(f"{t}.rem_u"))
    for d in _FLOATS:
        t = SCALAR_NAME[d]
        infix = {Ops.ADD: "add", Ops.SUB: "sub", Ops.MUL: "mul", Ops.FDIV: "div", Ops.MAX: "max"}
        compare = {Ops.CMPEQ: "eq", Ops.CMPNE: "ne", Ops.CMPLT: "lt"}
        for op, name in (infix | compare).items():
            table[op][d] = (0, 1, code(f"{t}.{name}"))
        for op, name in {Ops.SQRT: "sqrt", Ops.NEG: "neg", Ops.TRUNC: "trunc"}.items():
            table[op][d] = (0, code(f"{t}.{name}"))
        table[Ops.RECIPROCAL][d] = (scalar_const(d, 1), 0, code(f"{t}.div"))
        table[Ops.MULACC][d] = (0, 1, code(f"{t}.mul"), 2, code(f"{t}.add"))
    bools = {Ops.ADD: "or", Ops.MAX: "or", Ops.MUL: "and", Ops.SUB: "xor", Ops.CMPNE: "xor", Ops.CMPEQ: "eq"}
    for op, name in (bools | {Ops.AND: "and", Ops.OR: "or", Ops.XOR: "xor", Ops.CMPLT: "lt_u"}).items():
        table[op][dtypes.bool] = (0, 1, code(f"i32.{name}"))
    table[Ops.MULACC][dtypes.bool] = (0, 1, code("i32.and"), 2, code("i32.or"))
    for d in VALTYPE:
        table[Ops.WHERE][d] = (1, 2, 0, code("select"))
    return table


def _simd_table() -> dict[Ops, dict[DType, Template]]:
    table: dict[Ops, dict[DType, Template]] = {op: {} for op in GroupOp.ALU}
    bits = {Ops.AND: "v128.and", Ops.OR: "v128.or", Ops.XOR: "v128.xor"}
    for d in _INTS:
        s, u, wrap = SHAPE[d], "u" if d.is_unsigned else "s", WRAP_LANES.get(d, ())
        for op, name in {Ops.ADD: "add", Ops.SUB: "sub", Ops.MUL: "mul"}.items():
            table[op][d] = (0, 1, code(f"{s}.{name}"), *wrap)
        for op, name in {Ops.CMPEQ: "eq", Ops.CMPNE: "ne"}.items():
            table[op][d] = (0, 1, code(f"{s}.{name}"))
        for op, name in bits.items():
            table[op][d] = (0, 1, code(name))
        table[Ops.NEG][d] = (0, code(f"{s}.neg"), *wrap)
        table[Ops.MULACC][d] = (0, 1, code(f"{s}.mul"), 2, code(f"{s}.add"), *wrap)
        table[Ops.TRUNC][d] = (0,)
        if d in WIDE:
            # 64-bit lanes have no unsigned comparison: the signed one compares them with the sign bits
            # flipped
            flip = ((b"\0" * 7 + b"\x80") * 2,), code("v128.xor")
            pair = (0, *flip, 1, *flip) if d.is_unsigned else (0, 1)
            table[Ops.CMPLT][d] = (*pair, code("i64x2.lt_s"))
            table[Ops.MAX][d] = (0, 1, *pair, code("i64x2.gt_s") + code("v128.bitselect"))
        else:
            table[Ops.CMPLT][d] = (0, 1, code(f"i32x4.lt_{u}"))
            table[Ops.MAX][d] = (0, 1, code(f"i32x4.max_{u}"))
    for d in _FLOATS:
        s = SHAPE[d]
        infix = {Ops.ADD: "add", Ops.SUB: "sub", Ops.MUL: "mul", Ops.FDIV: "div"}
        compare = {Ops.CMPEQ: "eq", Ops.CMPNE: "ne", Ops.CMPLT: "lt"}
        for op, name in (infix | compare).items():
            table[op][d] = (0, 1, code(f"{s}.{name}"))
        # pmax(a, b) is a < b ? b : a, which keeps a NaN of a; max takes eight instructions on x86
        table[Ops.MAX][d] = (0, 1, code(f"{s}.pmax"), 1, 1, code(f"{s}.ne") + code("v128.or"))
        for op, name in {Ops.SQRT: "sqrt", Ops.NEG: "neg", Ops.TRUNC: "trunc"}.items():
            table[op][d] = (0, code(f"{s}.{name}"))
        one = lane_bytes(d, 1.0)
        table[Ops.RECIPROCAL][d] = ((one * (16 // len(one)),), 0, code(f"{s}.div"))
        table[Ops.MULACC][d] = (0, 1, code(f"{s}.mul"), 2, code(f"{s}.add"))
    b = dtypes.bool
    for op, name in {Ops.ADD: "or", Ops.MAX: "or", Ops.MUL: "and", Ops.SUB: "xor", Ops.CMPNE: "xor"}.items():
        table[op][b] = (0, 1, code(f"v128.{name}"))
    for op, name in bits.items():
        table[op][b] = (0, 1, code(name))
    table[Ops.CMPEQ][b] = (0, 1, code("i32x4.eq"))
    table[Ops.CMPLT][b] = (1, 0, code("v128.andnot"))
    table[Ops.MULACC][b] = (0, 1, code("v128.and"), 2, code("v128.or"))
    for d in VALTYPE:
        table[Ops.WHERE][d] = (1, 2, 0, code("v128.bitselect"))
    return table


def _relaxed_table() -> dict[Ops, dict[DType, Template]]:
    table = {op: dict(row) for op, row in SIMD.items()}
    for d in _FLOATS:
        table[Ops.MULACC][d] = (0, 1, 2, code(f"{SHAPE[d]}.relaxed_madd"))
    for d in VALTYPE:  # masks are whole lanes, for which the relaxed form is exact
        shape = "i64x2" if d in WIDE else "i32x4"
        table[Ops.WHERE][d] = (1, 2, 0, code(f"{shape}.relaxed_laneselect"))
    return table


SCALAR = _scalar_table()
FUSED_SCALAR: dict[DType, Template] = {  # in lane 0, as scalars have no such instruction
    d: (0, code(f"{s}.splat"), 1, code(f"{s}.splat"), 2,
        code(f"{s}.splat") + code(f"{s}.relaxed_madd") + code(f"{s}.extract_lane") + b"\0")
    for d, s in ((d, SHAPE[d]) for d in _FLOATS)
}  # fmt: skip
SIMD = _simd_table()
RELAXED = _relaxed_table()


def _unknown_op(op: Ops, dtype: DType) -> InternalError:
    return InternalError(f"WasmBuilder.alu: {op} of {dtype} is no op of Builder.alu")


def scalar_alu(w: FunctionWriter, op: Ops, dtype: DType, args: Sequence[Value]) -> Value:
    """`op` on scalars. Raises InternalError for an op that WebAssembly does not have."""
    template = SCALAR[op].get(dtype)
    if w.relaxed and op is Ops.MULACC and dtype in _FLOATS:
        template = FUSED_SCALAR[dtype]
    if template is None:
        if op is Ops.IDIV or op is Ops.MOD:
            return _floor_division(w, op, dtype, args[0], args[1])
        raise _unknown_op(op, dtype)
    if len(template) == 1:
        return args[template[0]]
    pieces = [args[p] if type(p) is int else p for p in template]
    if op is Ops.IDIV or op is Ops.MOD:
        return _may_trap(w, args[1])(VALTYPE[dtype], *pieces)
    out = w.expr(I32 if op in GroupOp.Comparison else VALTYPE[dtype], *pieces)
    if dtype is dtypes.index and _stays_non_negative(w, op, args):
        w.info[out] = True
    return out


def is_non_negative(w: FunctionWriter, value: Value) -> bool:
    """Whether an i32 is known to be at least zero."""
    return not is_negative(value) if isinstance(value, bytes) else w.info[value] is True


def _stays_non_negative(w: FunctionWriter, op: Ops, args: Sequence[Value]) -> bool:
    if op is Ops.ADD or op is Ops.MUL or op is Ops.MULACC or op is Ops.SHL or op is Ops.OR or op is Ops.XOR:
        return all(is_non_negative(w, a) for a in args)
    if op is Ops.AND or op is Ops.MAX:
        return any(is_non_negative(w, a) for a in args)
    if op is Ops.SHR:
        return is_non_negative(w, args[0])
    return op is Ops.WHERE and is_non_negative(w, args[1]) and is_non_negative(w, args[2])


def _may_trap(w: FunctionWriter, divisor: Value) -> Callable[..., int]:
    """How to write a division. Only a division by a constant may leave its loop: it cannot trap."""
    return w.expr if isinstance(divisor, bytes) else w.here


def _floor_division(w: FunctionWriter, op: Ops, dtype: DType, a: Value, b: Value) -> Value:
    """Signed division rounded to minus infinity, or its remainder; b is not 0 and not -1."""
    t, valtype, write = SCALAR_NAME[dtype], VALTYPE[dtype], _may_trap(w, b)
    divide, remainder = code(f"{t}.div_s"), code(f"{t}.rem_s")
    index = dtype is dtypes.index
    if index and is_non_negative(w, a) and is_non_negative(w, b):
        out = write(valtype, a, b, divide if op is Ops.IDIV else remainder)
        w.info[out] = True
        return out
    positive = not is_negative(b) if isinstance(b, bytes) else index and is_non_negative(w, b)
    if op is Ops.IDIV:
        q = write(valtype, a, b, divide)
        r = w.expr(valtype, a, q, b, code(f"{t}.mul") + code(f"{t}.sub"))
    else:
        q = r = write(valtype, a, b, remainder)
    if positive:  # the sign of r, -1 or 0
        sign = scalar_const(dtypes.int32 if t == "i32" else dtypes.int64, 63 if t == "i64" else 31) + code(
            f"{t}.shr_s"
        )
        if op is Ops.IDIV:
            return w.expr(valtype, q, r, sign + code(f"{t}.add"))
        out = w.expr(valtype, r, r, sign, b, code(f"{t}.and") + code(f"{t}.add"))
        if index:
            w.info[out] = True
        return out
    zero = scalar_const(dtype, 0)
    differs = (r, zero, code(f"{t}.ne"), r, b, code(f"{t}.xor"), zero, code(f"{t}.lt_s") + code("i32.and"))
    if op is Ops.IDIV:
        widen = code("i64.extend_i32_u") if t == "i64" else b""
        return w.expr(valtype, q, *differs, widen + code(f"{t}.sub"))
    return w.expr(valtype, r, b, zero, *differs, code("select") + code(f"{t}.add"))


# --- SIMD


def simd_alu(w: FunctionWriter, op: Ops, dtype: DType, args: Sequence[Vectors], lanes: int) -> Vectors:
    """`op` on SIMD values. Raises InternalError for an op that WebAssembly does not have."""
    template = (RELAXED if w.relaxed else SIMD)[op].get(dtype)
    if template is None:
        return _simd_special(w, op, dtype, args, lanes)
    if len(template) == 1:
        return args[template[0]]
    if op is Ops.MAX and dtype.is_float and (numbers := _without_nan(w, args, dtype)) is not None:
        template = (1 - numbers, numbers, code(f"{SHAPE[dtype]}.pmax"))
    if op is Ops.WHERE:
        if dtype in WIDE:
            args = (widen_masks(w, args[0], lanes), args[1], args[2])
        template = _mask_operand(w, args) or template
    out: list[Value] = []
    for vectors in zip(*args, strict=True):
        chosen = _clamp(w, vectors) if op is Ops.WHERE and dtype is dtypes.float32 else None
        out.append(w.expr(V128, *[
            vectors[p] if type(p) is int else p if type(p) is bytes else w.vector(p[0])
            for p in chosen or template
        ]))  # fmt: skip
        if op is Ops.CMPLT and dtype is dtypes.float32:
            w.info[out[-1]] = ("less", vectors)  # type: ignore[index]
    if dtype in WIDE and op in GroupOp.Comparison:
        return narrow_masks(w, tuple(out))
    return tuple(out)


def _mask_operand(w: FunctionWriter, args: Sequence[Vectors]) -> Template | None:
    """`mask ? x : 0` and `mask ? 0 : x` as one bitwise operation; None for others."""
    if _is_zero(w, args[2]):
        return 1, 0, code("v128.and")
    return (2, 0, code("v128.andnot")) if _is_zero(w, args[1]) else None


def _is_zero(w: FunctionWriter, vectors: Vectors) -> bool:
    return all(_constant(w, vector) == bytes(16) for vector in vectors)


def _constant(w: FunctionWriter, vector: Value) -> bytes | None:
    """The 16 bytes of a constant vector; None for another value."""
    info = ("const", vector[2:]) if isinstance(vector, bytes) else w.info[vector]
    return info[1] if type(info) is tuple and info[0] == "const" else None


def _clamp(w: FunctionWriter, vectors: Sequence[Value]) -> Template | None:
    """`a < b ? b : a` and `a < b ? a : b` as instructions, pmax(a, b) and pmin(b, a); None for others."""
    mask, then, other = vectors
    info = w.info[mask] if type(mask) is int else None
    if type(info) is not tuple or info[0] != "less":
        return None
    if info[1] == (other, then):
        return 2, 1, code("f32x4.pmax")
    return (2, 1, code("f32x4.pmin")) if info[1] == (then, other) else None


def _without_nan(w: FunctionWriter, args: Sequence[Vectors], dtype: DType) -> int | None:
    """The number of the first argument that is a constant without NaN, if any."""
    for number, vectors in enumerate(args):
        lanes: list[float] = []
        for vector in vectors:
            if (data := _constant(w, vector)) is None:
                break
            lanes += struct.unpack("<4f" if dtype is dtypes.float32 else "<2d", data)
        else:
            if not any(map(math.isnan, lanes)):
                return number
    return None


def lanewise(w: FunctionWriter, op: Ops, dtype: DType, args: Sequence[Vectors], lanes: int) -> Vectors:
    """`op` lane by lane, in scalars: for ops without a SIMD form."""
    scalars = [scalar_alu(w, op, dtype, [extract(w, a, dtype, lane) for a in args]) for lane in range(lanes)]
    return pack(w, scalars, dtype)


def _simd_special(w: FunctionWriter, op: Ops, dtype: DType, args: Sequence[Vectors], lanes: int) -> Vectors:
    if dtype not in _INTS:
        raise _unknown_op(op, dtype)
    if op is Ops.SHL or op is Ops.SHR:
        return _simd_shift(w, op, dtype, args, lanes)
    if op is Ops.IDIV or op is Ops.MOD:
        if dtype in WIDE:
            return lanewise(w, op, dtype, args, lanes)
        return tuple(_simd_division(w, op, dtype, a, b) for a, b in zip(*args, strict=True))
    raise _unknown_op(op, dtype)


def _simd_shift(w: FunctionWriter, op: Ops, dtype: DType, args: Sequence[Vectors], lanes: int) -> Vectors:
    """SIMD shifts take one scalar amount for all lanes. Different amounts are shifted lane by lane."""
    vectors, amounts = args
    amount = extract(w, amounts, dtype, 0) if _is_splat(w, amounts, dtype) else None
    if amount is None:
        return lanewise(w, op, dtype, args, lanes)
    name = "shl" if op is Ops.SHL else "shr_u" if dtype.is_unsigned else "shr_s"
    suffix = code("i32.wrap_i64") if dtype in WIDE else b""
    wrap = (
        [p if type(p) is bytes else w.vector(p[0]) for p in WRAP_LANES.get(dtype, ())]
        if op is Ops.SHL
        else []
    )
    return tuple(w.expr(V128, v, amount, suffix + code(f"{SHAPE[dtype]}.{name}"), *wrap) for v in vectors)


def _is_splat(w: FunctionWriter, vectors: Vectors, dtype: DType) -> bool:
    first = vectors[0]
    if any(v != first for v in vectors):
        return False
    if isinstance(first, bytes):
        return True
    info = w.info[first]
    if info is None or info[0] != "const":
        return info is not None and info[0] == "splat"
    size = 8 if dtype in WIDE else 4
    return bool(info[1] == info[1][:size] * (16 // size))


_F64_LOW = {True: code("f64x2.convert_low_i32x4_u"), False: code("f64x2.convert_low_i32x4_s")}
_I32_ZERO = {True: code("i32x4.trunc_sat_f64x2_u_zero"), False: code("i32x4.trunc_sat_f64x2_s_zero")}


def _simd_division(w: FunctionWriter, op: Ops, dtype: DType, a: Value, b: Value) -> Value:
    """Floor division of four 32-bit lanes in floating point, or its remainder. Never traps.

    Exact: a/b is an integer or at least 1/|b| away from one, relatively more than 1/|a|, so the rounded
    quotient has the same floor, in float32 for operands of 16 bits, in float64 for those of 32.
    """
    if dtype.bits <= 16 and dtype is not dtypes.index:
        convert = code("f32x4.convert_i32x4_s")
        q = w.expr(
            V128,
            a,
            convert,
            b,
            convert + code("f32x4.div") + code("f32x4.floor"),
            code("i32x4.trunc_sat_f32x4_s"),
        )
    else:
        unsigned = dtype.is_unsigned
        convert, back = _F64_LOW[unsigned], _I32_ZERO[unsigned]
        divide = convert + code("f64x2.div") + code("f64x2.floor") + back
        q = w.expr(
            V128, a, convert, b, divide, a, a, HIGH_TO_LOW + convert, b, b, HIGH_TO_LOW + divide, LOW_HALVES
        )  # fmt: skip
    if op is Ops.IDIV:
        return q
    return w.expr(V128, a, q, b, code("i32x4.mul") + code("i32x4.sub"))


# moves the upper half of 2 or 4 lanes to the lower
_UPPER = {2: instruction("i8x16.shuffle", *range(4, 8), *range(4, 16)), 4: HIGH_TO_LOW}


def reduce(w: FunctionWriter, op: Ops, vectors: Vectors, dtype: DType, lanes: int) -> Value:
    """Combine the lanes into a scalar: the upper half with the lower, until one lane is left."""
    while len(vectors) > 1:
        half = len(vectors) // 2
        lanes //= 2
        vectors = simd_alu(w, op, dtype, (vectors[:half], vectors[half:]), lanes)
    if dtype in WIDE:
        return scalar_alu(w, op, dtype, [extract(w, vectors, dtype, 0), extract(w, vectors, dtype, 1)])
    while lanes > 1:
        upper = (w.expr(V128, vectors[0], vectors[0], _UPPER[lanes]),)
        lanes //= 2
        vectors = simd_alu(w, op, dtype, (vectors, upper), lanes)
    return extract(w, vectors, dtype, 0)
