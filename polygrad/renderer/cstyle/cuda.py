"""`CUDABuilder`: CUDA C++, for NVRTC or nvcc.

A kernel is `extern "C" __global__ void NAME(buffers..., variables...)`. It has to be compiled with
`--fmad=false`, so that only MULACC is fused. Arithmetic of signed integers, which wraps, is written with
unsigned ones. float16 and bfloat16 are the toolkit's types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from polygrad.codegen.target import Target
from polygrad.dtype import DType, dtypes
from polygrad.helpers import prod
from polygrad.renderer.builder import Address, Operand
from polygrad.renderer.cstyle.base import FunctionText, Pointer, ValueFacts, parameter_names
from polygrad.renderer.cstyle.gpu import GPUBuilder
from polygrad.renderer.source_text import ATOM, BITS, SUM, UNARY, Expression
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


_COPY_TEXT = """#ifdef __CUDACC__
template <int size> static __device__ inline void copy_async(void *target, const void *source) {
  unsigned address = (unsigned)__cvta_generic_to_shared(target);
  if (size == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(address), "l"(source) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
                 : : "r"(address), "l"(source), "n"(size) : "memory");
}
static __device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" : : : "memory"); }
template <int pending> static __device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" : : "n"(pending) : "memory");
}
#endif"""
_FENCE_TEXT = """#ifdef __CUDACC__
static __device__ inline void show_to_tensor_cores() {
  asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
}
#endif"""
_STATIC_BYTES = 48 << 10  # of a workgroup's memory; more is asked for when a kernel is launched
_SWIZZLE_BYTES = 1024  # what swizzled memory is a multiple of


def _wgmma_text(core: TensorCore, operand: str, total: str) -> str:
    """A function for four wgmma.mma_async of PTX: all terms of a row of 128 bytes. The descriptors are those
    of the PTX ISA, "Matrix Descriptor Format", with swizzling of 128 bytes. A core's result is there when the
    function returns."""
    kind = _MMA_OPERANDS[core.operands][0]
    count = prod(core.c.elements)
    places = ", ".join(f"%{i}" for i in range(count))
    registers = ", ".join(f'"+f"(d[{i}])' for i in range(count))
    one = f"{core.name}_16"
    return f"""#ifdef __CUDACC__
static __device__ inline unsigned long long matrix_descriptor(const void *start, unsigned step) {{
  unsigned long long address = __cvta_generic_to_shared(start);
  return (address & 0x3ffff) >> 4 | (unsigned long long)(step >> 4) << 16 | 64ull << 32 | 1ull << 62;
}}
template <int a_across, int b_across>
static __device__ inline void {one}({total} (&d)[{count}], unsigned long long a, unsigned long long b) {{
  asm volatile("wgmma.mma_async.sync.aligned.m{core.m}n{core.n}k16.f32.{kind}.{kind} "
               "{{{places}}}, %{count}, %{count + 1}, 1, 1, 1, %{count + 2}, %{count + 3};"
               : {registers}
               : "l"(a), "l"(b), "n"(a_across), "n"(b_across));
}}
template <int a_across, int b_across, int a_step, int b_step>
static __device__ inline void {core.name}({total} (&d)[{count}], const {operand} *a, const {operand} *b) {{
  asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
#pragma unroll
  for (int k = 0; k < {core.k}; k += 16)
    {one}<a_across, b_across>(d, matrix_descriptor(a + k * (a_across ? 64 : 1), a_step * 2),
                              matrix_descriptor(b + k * (b_across ? 64 : 1), b_step * 2));
  asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" : : : "memory");
}}
#endif"""


class _Shared(NamedTuple):
    """Memory of a workgroup."""

    name: str
    type: str
    size: int
    itemsize: int
    swizzled: bool

    @property
    def alignment(self) -> int:
        return _SWIZZLE_BYTES if self.swizzled else 16


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

    def __init__(self, target: Target, aligned: bool = False) -> None:
        super().__init__(target, aligned)
        self._shared: list[_Shared] = []

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

    def place(self, address: Address) -> Expression:
        """The position of an element: swizzled, in memory that is."""
        place = super().place(address)
        if not address.pointer.swizzled:
            return place
        t, data = self.type(dtypes.index, 1), ValueFacts(multiple=8 if place.data.multiple % 8 == 0 else 1)
        return self._source.value(
            "{} ^ ({} >> 3 & 56)", [place, place], t, needs=ATOM, precedence=BITS, data=data
        )

    def copies(self, target: Address, source: Address, dtype: DType, size: int) -> bool:
        limits = self.target.workgroups
        if limits is None or not limits.copies or size * dtype.itemsize not in (4, 8, 16):
            return False
        return size == 1 or all(self._is_aligned(a, size) for a in (target, source))

    def _is_aligned(self, address: Address, size: int) -> bool:
        multiple = 0 if address.base is None else address.base.data.multiple
        return self.aligned and multiple % size == 0 and address.offset % size == 0

    def copy(self, target: Address, source: Address, dtype: DType, size: int) -> None:
        self.need("copy_async", _COPY_TEXT)
        places = [self.address_of(target, dtype), self.address_of(source, dtype)]
        self._source.statement(f"copy_async<{size * dtype.itemsize}>({{}}, {{}});", places)

    # --- workgroups

    def commit(self) -> None:
        self.need("copy_async", _COPY_TEXT)
        self._source.statement("commit_copies();", ())

    def barrier(self, pending: int | None = None) -> None:
        if pending is not None:
            self.need("copy_async", _COPY_TEXT)
            self._source.statement(f"wait_for_copies<{pending}>();", ())
        if any(memory.swizzled for memory in self._shared):
            self.need("show_to_tensor_cores", _FENCE_TEXT)
            self._source.statement("show_to_tensor_cores();", ())
        super().barrier()

    def shared(self, name: str, dtype: DType, size: int, swizzled: bool = False) -> Pointer:
        self._shared.append(_Shared(name, self.memory_type(dtype), size, dtype.itemsize, swizzled))
        return Pointer(name, self.shared_space, swizzled)

    def finish(self) -> FunctionText:
        self._prologue += self._shared_lines()
        return super().finish()

    def _shared_lines(self) -> list[str]:
        """The declarations of workgroup memory. More than a kernel has by itself is one array, which has the
        size that the launch says: the runtime reads it here."""
        static = [f"  __shared__ __align__({m.alignment}) {m.type} {m.name}[{m.size}];" for m in self._shared]
        if sum(m.size * m.itemsize for m in self._shared) <= _STATIC_BYTES:
            return static
        lines, start = list[str](), 0
        for m in sorted(self._shared, key=lambda m: -m.alignment):
            lines.append(f"  {m.type} *{m.name} = ({m.type} *)(workgroup_memory + {start});")
            start += -(-m.size * m.itemsize // m.alignment) * m.alignment
        head = f"  extern __shared__ __align__({_SWIZZLE_BYTES}) unsigned char workgroup_memory[];"
        return ["#ifdef __CUDACC__", f"{head}  // {start} bytes", *lines, "#else", *static, "#endif"]

    def wmma_in_memory(self, core: TensorCore, a: Operand, b: Operand, c: Sequence[Any]) -> Sequence[Any]:
        total, operand = self.type(core.total, 1), self.type(core.operands, 1)
        self.need(core.name, _wgmma_text(core, operand, total))
        name, count = self._source.name("tile"), len(c)
        self._source.statement(f"{total} {name}[{count}] = {{{{{', '.join(['{}'] * count)}}}}};", c)
        starts = [
            self._source.value(
                f"{x.start.pointer.name} + {{}}",
                [super(CUDABuilder, self).place(x.start)],
                "",
                needs=SUM,
                precedence=SUM,
            )
            for x in (a, b)
        ]
        layout = f"{int(not a.along_terms)}, {int(not b.along_terms)}, {a.step}, {b.step}"
        self._source.statement(f"{core.name}<{layout}>({name}, {{}}, {{}});", starts)
        return [self._source.value(f"{name}[{i}]", (), total, reads="memory") for i in range(count)]

    def wmma_function(self, core: TensorCore, operand: str, total: str) -> str:
        return _mma_text(core, operand, total)

    def shuffled(self, value: Expression, mask: int, type_: str) -> Expression:
        return self._source.value(f"__shfl_xor_sync(0xffffffffu, {{}}, {mask})", [value], type_)
