"""`CUDABuilder`: CUDA C++, for NVRTC or nvcc.

A kernel is `extern "C" __global__ void NAME(buffers..., variables...)`. It has to be compiled with
`--fmad=false`, so that only MULACC is fused. Arithmetic of signed integers, which wraps, is written with
unsigned ones. float16 and bfloat16 are the toolkit's types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.helpers import prod
from polygrad.renderer.cstyle.base import Pointer, ValueFacts, parameter_names
from polygrad.renderer.cstyle.gpu import GPUBuilder
from polygrad.renderer.source_text import BITS, UNARY, Expression
from polygrad.uop.ops import Ops
from polygrad.uop.tensor_cores import TensorCore

_HEADERS = {dtypes.float16: "#include <cuda_fp16.h>", dtypes.bfloat16: "#include <cuda_bf16.h>"}
_VECTORS = {
    dtypes.int8: "char", dtypes.uint8: "uchar", dtypes.int16: "short", dtypes.uint16: "ushort",
    dtypes.int32: "int", dtypes.uint32: "uint", dtypes.int64: "longlong", dtypes.uint64: "ulonglong",
    dtypes.float16: "half", dtypes.bfloat16: "__nv_bfloat16",
    dtypes.float32: "float", dtypes.float64: "double",
}  # fmt: skip
# Functions that reinterpret bits. Other integers of the same size are cast to or from these.
_BITS = {
    (dtypes.float16, dtypes.uint16): "__half_as_ushort", (dtypes.uint16, dtypes.float16): "__ushort_as_half",
    (dtypes.bfloat16, dtypes.uint16): "__bfloat16_as_ushort",
    (dtypes.uint16, dtypes.bfloat16): "__ushort_as_bfloat16",
    (dtypes.float32, dtypes.uint32): "__float_as_uint", (dtypes.uint32, dtypes.float32): "__uint_as_float",
    (dtypes.float64, dtypes.int64): "__double_as_longlong",
    (dtypes.int64, dtypes.float64): "__longlong_as_double",
}  # fmt: skip
_SHORT = {
    (dtypes.float16, dtypes.float32): "__half2float",
    (dtypes.float32, dtypes.float16): "__float2half_rn",
    (dtypes.float64, dtypes.float16): "__double2half",
    (dtypes.bfloat16, dtypes.float32): "__bfloat162float",
    (dtypes.float32, dtypes.bfloat16): "__float2bfloat16_rn",
    (dtypes.float64, dtypes.bfloat16): "__double2bfloat16",
}
_WORDS = {2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.int64}


# The operand's type in PTX, and the expression that packs two elements (or one) into a register.
_MMA_OPERANDS = {
    dtypes.float16: ("f16", "__half_as_ushort({}) | (unsigned)__half_as_ushort({}) << 16"),
    dtypes.bfloat16: (
        "bf16",
        "__bfloat16_as_ushort({}) | (unsigned)__bfloat16_as_ushort({}) << 16",
    ),
    dtypes.float32: ("tf32", "as_tf32({})"),
}
_AS_TF32 = """static __device__ inline unsigned as_tf32(float x) {
  unsigned y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return y;
}
"""


def _mma_text(core: TensorCore, operand: str, total: str) -> str:
    """A function for mma.sync of PTX. Compilers other than CUDA's provide a function of that name themselves.

    The assembly is volatile because all lanes must execute it: it must not be moved into a branch.
    """
    name, packed = _MMA_OPERANDS[core.operands]
    each = packed.count("{}")
    counts = {"a": prod(core.a.elements), "b": prod(core.b.elements)}
    words = [
        packed.format(*(f"{matrix}{i + j}" for j in range(each)))
        for matrix, count in counts.items()
        for i in range(0, count, each)
    ]
    n_a, n_b = (count // each for count in counts.values())
    places = [f"%{i}" for i in range(4 + n_a + n_b + 4)]
    groups = [places[:4], places[4 : 4 + n_a], places[4 + n_a : 4 + n_a + n_b], places[-4:]]
    parameters = [f"{operand} {matrix}{i}" for matrix, count in counts.items() for i in range(count)]
    parameters += [f"{total} c{i}" for i in range(4)]
    head = f"static __device__ inline {total}4 {core.name}("
    indent, lines = " " * len(head), ",\n" + " " * 17
    listed = f",\n{indent}".join(", ".join(p for p in parameters if f" {x}" in p) for x in "abc")
    registers = lines.join(f'"r"({word})' for word in words)
    return f"""#ifdef __CUDACC__
{_AS_TF32 if core.rounds else ""}{head}{listed}) {{
  {total}4 d;
  asm volatile("mma.sync.aligned.m{core.m}n{core.n}k{core.k}.row.col.f32.{name}.{name}.f32 "
               "{", ".join(f"{{{', '.join(group)}}}" for group in groups)};"
               : {", ".join(f'"=f"(d.{component})' for component in "xyzw")}
               : {registers},
                 {", ".join(f'"f"(c{i})' for i in range(4))});
  return d;
}}
#endif"""


class CUDABuilder(GPUBuilder):
    """See `LanesBuilder`."""

    types = {
        dtypes.bool: "bool",
        dtypes.int8: "signed char", dtypes.uint8: "unsigned char",
        dtypes.int16: "short", dtypes.uint16: "unsigned short",
        dtypes.int32: "int", dtypes.uint32: "unsigned",
        dtypes.int64: "long long", dtypes.uint64: "unsigned long long",
        dtypes.float16: "half", dtypes.bfloat16: "__nv_bfloat16",
        dtypes.float32: "float", dtypes.float64: "double",
    }  # fmt: skip
    memory_types = {dtypes.bool: "unsigned char"}
    functions = {
        (op, dtype): f"{name}{suffix}"
        for op, name in ((Ops.SQRT, "sqrt"), (Ops.TRUNC, "trunc"), (Ops.MULACC, "fma"))
        for dtype, suffix in ((dtypes.float32, "f"), (dtypes.float64, ""))
    }
    literal_suffixes = {dtypes.float32: "f", dtypes.uint32: "u", dtypes.int64: "ll", dtypes.uint64: "ull"}
    helper_prefix = "static __device__ inline "
    cast_literals = tuple(_HEADERS)
    index_names = {"workgroup": "blockIdx", "invocation": "threadIdx"}
    barrier_call = "__syncthreads();"
    shared_qualifier = "__shared__ __align__(16)"
    vector_sizes = (8, 4, 2)

    def signature(
        self, name: str, params: Sequence[DType], variables: Sequence[str]
    ) -> tuple[str, list[str], list[str]]:
        pointers, numbers = parameter_names(params, variables)
        arguments = [f"{self.memory_type(d)} *{p}" for d, p in zip(params, pointers, strict=True)]
        arguments += [f"{self.type(dtypes.index, 1)} {n}" for n in numbers]
        return f'extern "C" __global__ void {name}({", ".join(arguments)}) {{', pointers, numbers

    def type(self, dtype: DType, lanes: int) -> str:
        if dtype in _HEADERS:
            self.need(_HEADERS[dtype], _HEADERS[dtype])
        return super().type(dtype, lanes)

    def special_float(self, dtype: DType, value: float) -> str:
        sign = "-" if value < 0 else ""
        if dtype == dtypes.float64:
            word = "0x7ff8000000000000ll" if value != value else "0x7ff0000000000000ll"
            return f"{sign}__longlong_as_double({word})"
        return f"{sign}__uint_as_float({'0x7fc00000u' if value != value else '0x7f800000u'})"

    def bits(self, value: Expression, src: DType, dst: DType, lanes: int) -> Expression:
        word = _WORDS[src.itemsize]
        if src.is_float:
            value = self.call(_BITS[src, word], [value], self.type(word, 1))
            src = word
        if dst.is_float:
            if src != word:
                value = self.convert(value, self.type(word, 1))
            return self.call(_BITS[word, dst], [value], self.type(dst, 1))
        return value if src == dst else self.convert(value, self.type(dst, 1), ValueFacts(bits=value))

    def extend_half(self, value: Any, src: DType, lanes: int) -> Any:
        return self.call(_SHORT[src, dtypes.float32], [value], "float")

    def truncate_to_half(self, value: Any, src: DType, dst: DType, lanes: int) -> Any:
        return self.call(_SHORT[src, dst], [value], self.type(dst, 1))

    # --- memory

    def has_vector(self, dtype: DType, size: int) -> bool:
        return dtype in _VECTORS and (size <= 4 or dtype in _HEADERS)

    def load_vector(self, pointer: Pointer, start: Expression, dtype: DType, size: int) -> Expression:
        """float16 and bfloat16 have vector types of two elements only. More are loaded as words of two."""
        if dtype in _HEADERS and size > 2:
            return super().load_vector(pointer, start, dtypes.uint32, size // 2)
        return super().load_vector(pointer, start, dtype, size)

    def vector_elements(self, vector: Expression, dtype: DType, size: int) -> list[Expression]:
        if dtype not in _HEADERS or size == 2:
            return super().vector_elements(vector, dtype, size)
        words = super().vector_elements(vector, dtypes.uint32, size // 2)
        u16, make, t = self.type(dtypes.uint16, 1), _BITS[dtypes.uint16, dtype], self.type(dtype, 1)
        return [
            self._source.value(f"{make}(({u16}){text})", [word], t, needs=UNARY)
            for word in words
            for text in ("{}", "({} >> 16)")
        ]

    def store_vector(self, pointer: Pointer, start: Expression, dtype: DType, values: Sequence[Any]) -> None:
        """See `load_vector`."""
        if dtype not in _HEADERS or len(values) == 2:
            return super().store_vector(pointer, start, dtype, values)
        bits = _BITS[dtype, dtypes.uint16]
        words = [
            self._source.value(
                f"{bits}({{}}) | (unsigned){bits}({{}}) << 16",
                pair,
                "unsigned",
                precedence=BITS,
            )
            for pair in zip(values[::2], values[1::2], strict=True)
        ]
        super().store_vector(pointer, start, dtypes.uint32, words)

    def vector_type(self, dtype: DType, size: int) -> str:
        return "__nv_bfloat162" if dtype == dtypes.bfloat16 else f"{_VECTORS[dtype]}{size}"

    def vector_maker(self, dtype: DType, size: int) -> str:
        return "make_bfloat162" if dtype == dtypes.bfloat16 else f"make_{self.vector_type(dtype, size)}"

    # --- workgroups

    def wmma_function(self, core: TensorCore, operand: str, total: str) -> str:
        return _mma_text(core, operand, total)

    def shuffled(self, value: Expression, mask: int, type_: str) -> Expression:
        return self._source.value(f"__shfl_xor_sync(0xffffffffu, {{}}, {mask})", [value], type_)
