"""`WasmBuilder`: a kernel as a WebAssembly function, and `wasm_module`: functions as a module.

Joins the files beside this: wasm/function.py (code, locals, loops), wasm/lanes.py (how dtypes lie in values),
wasm/alu.py, wasm/cast.py, wasm/memory.py. `dtypes.index` is i32, pointers are i32 byte addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.renderer.builder import Address, Builder
from polygrad.renderer.convert import HALF_CONVERSIONS
from polygrad.renderer.wasm.alu import reduce, scalar_alu, simd_alu
from polygrad.renderer.wasm.cast import (
    float16_lanes_to_float32,
    float16_to_float32,
    float32_lanes_to_float16,
    float32_to_float16,
    scalar_bitcast,
    scalar_cast,
    simd_bitcast,
    simd_cast,
)
from polygrad.renderer.wasm.function import SET, FunctionWriter, Value
from polygrad.renderer.wasm.lanes import (
    VALTYPE,
    Vectors,
    extract,
    interleave,
    lane_bytes,
    pack,
    scalar_const,
    splat,
    splat_const,
    vector_consts,
    vector_count,
)  # fmt: skip
from polygrad.renderer.wasm.memory import (
    load_block,
    permute,
    scalar_load,
    scalar_store,
    simd_load,
    simd_load_masked,
    simd_store,
)
from polygrad.renderer.wasm.outline import OutlinedKernel, flatten
from polygrad.shared_words import STOP
from polygrad.uop.args import Dot
from polygrad.uop.ops import Ops
from polygrad.wasm.instructions import EMPTY_BLOCK, END, i32_const, instruction
from polygrad.wasm.module import DefinedFunction, Export, Import, Module
from polygrad.wasm.opcodes import opcode
from polygrad.wasm.types import I32, V128, MemoryType

Registers = tuple[int, ...]

_BYTES = Dot(dtypes.uint8, dtypes.int8, bits=7)  # more bits may saturate
WASM_DOTS = frozenset({Dot(dtypes.int16, dtypes.int16)})
RELAXED_DOTS = WASM_DOTS | {_BYTES}
_DOT = opcode("i32x4.dot_i16x8_s").code
_DOT_OF_BYTES = opcode("i32x4.relaxed_dot_i8x16_i7x16_add_s").code
_IF = opcode("if").code + bytes((EMPTY_BLOCK,))
_RETURN_IF_STOPPED = b"".join((i32_const(0), instruction("i32.load", STOP), _IF, opcode("return").code, END))


def wasm_module(
    functions: Sequence[DefinedFunction],
    *,
    minimum: int = 1,
    maximum: int | None = None,
    shared: bool = False,
) -> bytes:
    """A module of these functions, each exported by its name, over an imported memory `env.memory`.

    `minimum` and `maximum` are in pages; limits and sharing must match the host's. Raises InternalError when
    two names are equal or a shared memory has no maximum.
    """
    defined, starts = flatten(functions)
    return Module(
        imports=(Import("env", "memory", MemoryType(minimum, maximum, shared)),),
        functions=tuple(defined),
        exports=tuple(Export(f.name, "func", i) for i, f in zip(starts, functions, strict=True)),
    ).to_bytes()


class WasmBuilder(Builder):
    """Writes one `OutlinedKernel`. With `relaxed`, in relaxed SIMD: MULACC is fused, of scalars too."""

    has_safepoints = True

    def __init__(self, relaxed: bool = False) -> None:
        self.relaxed = relaxed

    def begin(
        self, name: str, params: Sequence[DType], variables: Sequence[str]
    ) -> tuple[list[int], list[Value]]:
        count = len(params) + len(variables)
        self.w = FunctionWriter(name, [I32] * count, self.relaxed)
        return list(range(len(params))), list(range(len(params), count))

    def finish(self) -> OutlinedKernel:
        return self.w.finish()

    # --- values

    def const(self, dtype: DType, value: Any, lanes: int) -> Any:
        if lanes == 1:
            return scalar_const(dtype, value)
        return (splat_const(self.w, dtype, value),) * vector_count(dtype, lanes)

    def const_lanes(self, dtype: DType, values: Sequence[Any]) -> Vectors:
        return vector_consts(self.w, b"".join(lane_bytes(dtype, v) for v in values))

    def alu(self, op: Ops, dtype: DType, args: Sequence[Any], lanes: int) -> Any:
        if lanes == 1:
            return scalar_alu(self.w, op, dtype, args)
        return simd_alu(self.w, op, dtype, args, lanes)

    def dot(self, kinds: Dot, a: Any, b: Any, c: Any, lanes: int) -> Any:
        if lanes == 1:  # in all of four lanes
            x, y, z = (splat(self.w, value, dtypes.int32, 4) for value in (a, b, c))
            return extract(self.w, self.dot(kinds, x, y, z, 4), dtypes.int32, 0)
        if kinds == _BYTES:
            operands = zip(b, a, c, strict=True)
            return tuple(self.w.expr(V128, x, y, z, _DOT_OF_BYTES) for x, y, z in operands)
        products = tuple(self.w.expr(V128, x, y, _DOT) for x, y in zip(a, b, strict=True))
        return simd_alu(self.w, Ops.ADD, dtypes.int32, (products, c), lanes)

    def cast_number(self, value: Any, src: DType, dst: DType, lanes: int) -> Any:
        if lanes == 1:
            return scalar_cast(self.w, value, src, dst)
        return simd_cast(self.w, value, src, dst, lanes)

    def extend_half(self, value: Any, src: DType, lanes: int) -> Any:
        if src is not dtypes.float16:
            return HALF_CONVERSIONS[src, dtypes.float32](self, value, lanes)
        if lanes == 1:
            return float16_to_float32(self.w, value)
        return tuple(float16_lanes_to_float32(self.w, v) for v in value)

    def truncate_to_half(self, value: Any, src: DType, dst: DType, lanes: int) -> Any:
        if src is not dtypes.float32 or dst is not dtypes.float16:
            return HALF_CONVERSIONS[src, dst](self, value, lanes)
        if lanes == 1:
            return float32_to_float16(self.w, value)
        return tuple(float32_lanes_to_float16(self.w, v) for v in value)

    def bitcast(self, value: Any, src: DType, dst: DType, lanes: int) -> Any:
        if lanes == 1:
            return scalar_bitcast(self.w, value, src, dst)
        return simd_bitcast(self.w, value, src, dst, lanes)

    def splat(self, value: Value, dtype: DType, lanes: int) -> Any:
        return value if lanes == 1 else splat(self.w, value, dtype, lanes)

    def extract(self, value: Any, dtype: DType, lane: int, lanes: int) -> Value:
        return value if lanes == 1 else extract(self.w, value, dtype, lane)

    def pack(self, values: Sequence[Value], dtype: DType) -> Any:
        return values[0] if len(values) == 1 else pack(self.w, values, dtype)

    def interleave(self, a: Vectors, b: Vectors, dtype: DType, lanes: int) -> tuple[Vectors, Vectors]:
        return interleave(self.w, a, b, dtype)

    def block_size(self, dtype: DType, lanes: int) -> int:
        return 16 // dtype.itemsize

    def load_block(self, address: Address, dtype: DType, lanes: int) -> int:
        return load_block(self.w, address, dtype)

    def permute(self, blocks: Sequence[int], positions: Sequence[int], dtype: DType) -> Vectors:
        return permute(self.w, blocks, positions, dtype)

    def reduce(self, op: Ops, value: Any, dtype: DType, lanes: int) -> Value:
        return value if lanes == 1 else reduce(self.w, op, value, dtype, lanes)

    # --- memory

    def load(self, address: Address, dtype: DType, lanes: int) -> Any:
        if lanes == 1:
            return scalar_load(self.w, address, dtype)
        return simd_load(self.w, address, dtype, lanes)

    def load_masked(self, address: Address, dtype: DType, lanes: int, mask: Any, other: Any) -> Any:
        return simd_load_masked(self.w, address, dtype, lanes, mask, other)

    def store(self, address: Address, value: Any, dtype: DType, lanes: int) -> None:
        if lanes == 1:
            scalar_store(self.w, address, value, dtype)
        else:
            simd_store(self.w, address, value, dtype, lanes)

    # --- control

    def loop(self, size: Value) -> Value:
        return self.w.loop(size)

    def safepoint(self) -> None:
        self.w.frames[-1].code.append(_RETURN_IF_STOPPED)

    def end_loop(self) -> None:
        self.w.end_loop()

    # --- registers

    def register(self, dtype: DType, lanes: int) -> int | Registers:
        depth = len(self.w.frames) - 1
        if lanes == 1:
            return self.w.local(VALTYPE[dtype], depth)
        return tuple(self.w.local(V128, depth) for _ in range(vector_count(dtype, lanes)))

    def get(self, register: int | Registers) -> Any:
        # a copy: the register may be set while this value is still wanted
        w = self.w
        if isinstance(register, int):
            return w.here(w.types[register], register)
        return tuple(w.here(V128, r) for r in register)

    def set(self, register: int | Registers, value: Any) -> None:
        w = self.w
        if isinstance(register, int):
            w.do(value, SET[register])
        else:
            for r, v in zip(register, value, strict=True):
                w.do(v, SET[r])
