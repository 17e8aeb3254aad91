"""`PortableCBuilder`: C11 that any compiler takes. Its results depend on none of their options but those that
change floating-point arithmetic itself.

It is the text of `c.py` without what C leaves undefined: signed integers wrap in unsigned types, floats that
are out of an integer's range are not converted, memory is accessed by types that may alias. A kernel is a
static function with a typed pointer for each buffer (const where it only reads) and an `idx` for each
variable. `PRELUDE` has the declarations that it needs. Without lanes it needs no extension of a compiler.

`FUSED` says whether multiply-adds of sums are fused, so one text serves processors with such instructions and
those without.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, ClassVar

from polygrad.codegen.target import Target
from polygrad.dtype import DType, dtypes
from polygrad.renderer.builder import Address
from polygrad.renderer.cstyle.base import NO_INFO, Pointer, ValueFacts, parameter_names
from polygrad.renderer.cstyle.c import CBuilder
from polygrad.renderer.source_text import COMPARE, SELECT, Expression
from polygrad.uop.ops import Ops

# `idx` counts elements of memory. Types in memory may alias, as scratch is used again for other dtypes.
PRELUDE = """\
#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline, unused))
#define ALIAS __attribute__((may_alias))
#else
#define INLINE static inline
#define ALIAS
#endif
typedef ptrdiff_t idx;
typedef int8_t ALIAS mem_i8;
typedef uint8_t ALIAS mem_u8;
typedef int16_t ALIAS mem_i16;
typedef uint16_t ALIAS mem_u16;
typedef int32_t ALIAS mem_i32;
typedef uint32_t ALIAS mem_u32;
typedef int64_t ALIAS mem_i64;
typedef uint64_t ALIAS mem_u64;
typedef float ALIAS mem_f32;
typedef double ALIAS mem_f64;
"""

MATH = "#include <math.h>"  # a declaration of a kernel that calls libm
_NARROW = frozenset({"int8_t", "uint8_t", "int16_t", "uint16_t"})  # C computes in int
_UNSIGNED = {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}
_BITS_OF = {dtypes.float32: dtypes.uint32, dtypes.float64: dtypes.uint64}
_SUFFIX = {dtypes.float32: "f", dtypes.float64: ""}

# Instructions on vectors: a macro that tells of one, and the expression.
_INSTRUCTIONS: dict[tuple[Ops, DType, int], tuple[tuple[str, str], ...]] = {
    (Ops.SQRT, dtypes.float32, 4): (
        ("__SSE2__", "_mm_sqrt_ps((__m128)x)"),
        ("__aarch64__", "vsqrtq_f32((float32x4_t)x)"),
    ),
    (Ops.SQRT, dtypes.float32, 8): (("__AVX__", "_mm256_sqrt_ps((__m256)x)"),),
    (Ops.SQRT, dtypes.float32, 16): (("__AVX512F__", "_mm512_sqrt_ps((__m512)x)"),),
    (Ops.SQRT, dtypes.float64, 2): (
        ("__SSE2__", "_mm_sqrt_pd((__m128d)x)"),
        ("__aarch64__", "vsqrtq_f64((float64x2_t)x)"),
    ),
    (Ops.SQRT, dtypes.float64, 4): (("__AVX__", "_mm256_sqrt_pd((__m256d)x)"),),
    (Ops.SQRT, dtypes.float64, 8): (("__AVX512F__", "_mm512_sqrt_pd((__m512d)x)"),),
    (Ops.MULACC, dtypes.float32, 4): (
        ("__FMA__", "_mm_fmadd_ps((__m128)x, (__m128)y, (__m128)z)"),
        ("__aarch64__", "vfmaq_f32((float32x4_t)z, (float32x4_t)x, (float32x4_t)y)"),
    ),
    (Ops.MULACC, dtypes.float32, 8): (("__FMA__", "_mm256_fmadd_ps((__m256)x, (__m256)y, (__m256)z)"),),
    (Ops.MULACC, dtypes.float32, 16): (
        ("__AVX512F__", "_mm512_fmadd_ps((__m512)x, (__m512)y, (__m512)z)"),
    ),
    (Ops.MULACC, dtypes.float64, 2): (
        ("__FMA__", "_mm_fmadd_pd((__m128d)x, (__m128d)y, (__m128d)z)"),
        ("__aarch64__", "vfmaq_f64((float64x2_t)z, (float64x2_t)x, (float64x2_t)y)"),
    ),
    (Ops.MULACC, dtypes.float64, 4): (("__FMA__", "_mm256_fmadd_pd((__m256d)x, (__m256d)y, (__m256d)z)"),),
    (Ops.MULACC, dtypes.float64, 8): (
        ("__AVX512F__", "_mm512_fmadd_pd((__m512d)x, (__m512d)y, (__m512d)z)"),
    ),
}  # fmt: skip
_MASKED_LOADS = {  # by bytes of an element and lanes
    (4, 8): (
        "__AVX2__",
        "_mm256_blendv_ps((__m256)x, _mm256_maskload_ps((const float *)p, (__m256i)mask), (__m256)mask)",
    ),
    (4, 16): ("__AVX512DQ__", "_mm512_mask_loadu_ps((__m512)x, _mm512_movepi32_mask((__m512i)mask), p)"),
}
_FUNCTIONS = {Ops.SQRT: "sqrt", Ops.TRUNC: "trunc", Ops.MULACC: "fma"}


class PortableCBuilder(CBuilder):
    """`writes`: the positions of the pointers through which the kernel writes."""

    header: ClassVar[tuple[str, ...]] = ()
    memory_types = {
        dtypes.bool: "mem_u8",
        **{d: f"mem_{'u' if d.is_unsigned else 'i'}{d.bits}" for d in dtypes.ints},
        dtypes.float16: "mem_u16", dtypes.bfloat16: "mem_u16",
        dtypes.float32: "mem_f32", dtypes.float64: "mem_f64",
    }  # fmt: skip
    wraps = False
    has_safepoints = False

    def __init__(self, target: Target, writes: Sequence[int]) -> None:
        super().__init__(target)
        self._writes = frozenset(writes)

    # --- the function

    def signature(
        self, name: str, params: Sequence[DType], variables: Sequence[str]
    ) -> tuple[str, list[str], list[str]]:
        pointers, numbers = parameter_names(params, variables)
        declared = [
            f"{self._space(i)}{self.memory_type(dtype)} *{pointer}"
            for i, (pointer, dtype) in enumerate(zip(pointers, params, strict=True))
        ]
        declared += [f"idx {number}" for number in numbers]
        return f"static void {name}({', '.join(declared) or 'void'}) {{", pointers, numbers

    def _space(self, position: int) -> str:
        return "" if position in self._writes else "const "

    def begin(
        self, name: str, params: Sequence[DType], variables: Sequence[str]
    ) -> tuple[list[Pointer], list[Expression]]:
        pointers, numbers = super().begin(name, params, variables)
        return [Pointer(p.name, self._space(i).strip()) for i, p in enumerate(pointers)], numbers

    def type(self, dtype: DType, lanes: int) -> str:
        return "idx" if dtype == dtypes.index and lanes == 1 else super().type(dtype, lanes)

    def special_float(self, dtype: DType, value: float) -> str:
        bits = _BITS_OF[dtype]
        number = int.from_bytes(struct.pack("<f" if dtype == dtypes.float32 else "<d", value), "little")
        self.bits(self.const(bits, number, 1), bits, dtype, 1)  # declares the function
        return f"bits_{bits}_to_{dtype}(0x{number:x}{self.literal_suffixes[bits]})"

    # --- arithmetic

    def binary(
        self,
        op: Ops,
        a: Expression,
        b: Expression,
        type_: str,
        info: ValueFacts = NO_INFO,
        hint: str = "x",
    ) -> Expression:
        if type_ in _NARROW:
            return self.convert(super().binary(op, a, b, "int", info, hint), type_, info)
        return super().binary(op, a, b, type_, info, hint)

    def choose(
        self, condition: Expression, a: Expression, b: Expression, type_: str, hint: str = "x"
    ) -> Expression:
        """Clang wants parentheses around `a | b` before `?`."""
        return self._source.value(
            "{} ? {} : {}",
            [condition, a, b],
            type_,
            needs=(COMPARE, SELECT + 1, SELECT + 1),
            precedence=SELECT,
            hint=hint,
        )

    def index(self, op: Ops, a: Any, b: Any, lanes: int) -> Any:
        if op is Ops.SHL and b.data.value is not None:  # C shifts no negative numbers
            op, b = Ops.MUL, self.const(dtypes.index, 1 << b.data.value, lanes)
        return super().index(op, a, b, lanes)

    def integer(self, op: Ops, dtype: DType, a: Any, b: Any, lanes: int) -> Any:
        if lanes == 1 or dtype.is_unsigned or op in (Ops.AND, Ops.OR, Ops.XOR, Ops.SHR):
            return super().integer(op, dtype, a, b, lanes)
        unsigned = _UNSIGNED[dtype.bits]
        operands = [self._unsigned_lanes(x, unsigned, lanes) for x in (a, b)]
        bits = self.binary(op, operands[0], operands[1], self.type(unsigned, lanes))
        return self.convert(bits, self.type(dtype, lanes), ValueFacts(bits=bits))

    def _unsigned_lanes(self, value: Any, unsigned: DType, lanes: int) -> Any:
        if value.data.value is not None:
            return self.const(unsigned, unsigned.cast(value.data.value), lanes)
        return value.data.bits or self.convert(value, self.type(unsigned, lanes))

    def function(self, op: Ops, dtype: DType, args: Sequence[Any], lanes: int) -> Any:
        t = self.type(dtype, lanes)
        name = f"{_FUNCTIONS[op]}_{self.dtype_name(dtype, lanes)}"
        if op is Ops.TRUNC:
            name = self.helper(name, [(t, "x")], t, lambda x: self._truncated(x, dtype, lanes))
            return self.call(name, args, t)
        names = "xyz"[: len(args)]
        head = f"INLINE {t} {name}({', '.join(f'{t} {n}' for n in names)}) {{\n"
        each = ", ".join(n if lanes == 1 else f"{n}[i]" for n in names)
        called = f"{_FUNCTIONS[op]}{_SUFFIX[dtype]}({each})"
        body = f"  return {called};\n"
        if lanes != 1:
            body = f"  for (int i = 0; i < {lanes}; i++)\n    x[i] = {called};\n  return x;\n"
        instructions = _INSTRUCTIONS.get((op, dtype, lanes), ())
        if op is Ops.MULACC:
            conditions = [("!FUSED", "x * y + z"), *((f"defined({m})", f"({t}){e}") for m, e in instructions)]
        else:
            conditions = [(f"defined({m})", f"({t}){e}") for m, e in instructions]
        self.need(MATH, MATH)
        self.need(name, f"{head}{_chosen(conditions, body)}}}")
        return self.call(name, args, t)

    def _truncated(self, x: Any, dtype: DType, lanes: int) -> Any:
        """Larger numbers are integers. -0.5 becomes -0."""
        bound = self.const(dtype, 2.0 ** (23 if dtype == dtypes.float32 else 52), lanes)
        wide = dtypes.int32 if dtype == dtypes.float32 else dtypes.int64
        whole = self.convert_number(self.convert_number(x, dtype, wide, lanes), wide, dtype, lanes)
        zero = self.const(dtype, 0.0, lanes)
        is_zero = self.compare(Ops.CMPEQ, dtype, whole, zero, lanes)
        whole = self.where(dtype, is_zero, self.alu(Ops.MUL, dtype, [x, zero], lanes), whole, lanes)
        low = self.compare(Ops.CMPLT, dtype, self.unary("-", bound, self.type(dtype, lanes)), x, lanes)
        is_small = self.logic(Ops.AND, low, self.compare(Ops.CMPLT, dtype, x, bound, lanes), lanes)
        return self.where(dtype, is_small, whole, x, lanes)

    # --- conversions

    def convert_number(self, value: Any, src: DType, dst: DType, lanes: int) -> Any:
        if src.is_float and dst.is_int:
            value = self._in_range(value, src, dst, lanes)
        if dst == dtypes.index and lanes == 1 and src in (dtypes.int64, dtypes.uint32, dtypes.uint64):
            return self._clamped_index(value, src)
        return super().convert_number(value, src, dst, lanes)

    def _in_range(self, value: Any, src: DType, dst: DType, lanes: int) -> Any:
        """The float, or 0 where it is out of the range of the integer `dst`, or NaN."""
        t, name = self.type(src, lanes), f"{self.dtype_name(src, lanes)}_in_{self._stored(dst)}"

        def write(x: Any) -> Any:
            zero, lowest = self.const(src, 0.0, lanes), self.const(src, float(dst.min), lanes)
            is_low = self.compare(Ops.CMPLT, src, x, lowest, lanes)
            is_lower = self.compare(Ops.CMPLT, src, x, self.const(src, float(dst.max + 1), lanes), lanes)
            not_low = self.where(src, is_low, zero, x, lanes)
            return self.where(src, is_lower, not_low, zero, lanes)

        return self.call(self.helper(name, [(t, "x")], t, write), [value], t)

    def _clamped_index(self, value: Any, src: DType) -> Expression:
        """An integer as an index, which on some processors has 32 bits."""
        t, name = self.type(src, 1), f"index_of_{src}"
        low = "" if src.is_unsigned else f"  if (x < ({t})-PTRDIFF_MAX) return -PTRDIFF_MAX;\n"
        self.need(
            name,
            f"INLINE idx {name}({t} x) {{\n#if PTRDIFF_MAX < INT64_MAX\n"
            f"  if (x > ({t})PTRDIFF_MAX) return PTRDIFF_MAX;\n{low}#endif\n  return (idx)x;\n}}",
        )
        return self.call(name, [value], "idx", ValueFacts(multiple=value.data.multiple))

    def extract(self, value: Any, dtype: DType, lane: int, lanes: int) -> Any:
        out = super().extract(value, dtype, lane, lanes)
        return self.convert(out, "idx", out.data) if dtype == dtypes.index and lanes != 1 else out

    # --- memory

    def load_scalar(self, pointer: Pointer, place: Expression, dtype: DType) -> Expression:
        t = "uint8_t" if dtype.is_bool else self.type(dtype, 1)
        value = self._source.value(f"{pointer.name}[{{}}]", [place], t, reads="memory")
        return self.from_memory(value, dtype)

    def to_memory(self, value: Expression, dtype: DType) -> Expression:
        """gcc 12 drops a conversion to an unsigned integer, then warns of the implicit one that is left."""
        value = super().to_memory(value, dtype)
        return self.convert(value, self.memory_type(dtype)) if dtype.is_unsigned else value

    def load_masked(self, address: Address, dtype: DType, lanes: int, mask: Any, other: Any) -> Any:
        entry = None if dtype.is_bool else _MASKED_LOADS.get((self._stored(dtype).itemsize, lanes))
        if entry is None:
            return super().load_masked(address, dtype, lanes, mask, other)
        t, scalar = self.type(dtype, lanes), self.memory_type(dtype)
        m, _ = self._mask_type(dtype, lanes)
        macro, expression = entry
        portable = f"  for (int i = 0; i < {lanes}; i++)\n    if (mask[i])\n      x[i] = p[i];\n  return x;\n"
        name = f"load_masked_{t}"
        self.need(
            name,
            f"INLINE {t} {name}(const {scalar} *p, {m} mask, {t} x) {{\n"
            f"{_chosen([(f'defined({macro})', f'({t}){expression}')], portable)}}}",
        )
        args = [self.address_of(address, dtype), self._mask(mask, dtype, lanes), other]
        return self._source.value(f"{name}({{}}, {{}}, {{}})", args, t, reads="memory")


def _chosen(conditions: Sequence[tuple[str, str]], otherwise: str) -> str:
    """The body of a function that returns the expression of the first condition that holds."""
    if not conditions:
        return otherwise
    lines = [
        f"#{'elif' if i else 'if'} {condition}\n  return {expression};\n"
        for i, (condition, expression) in enumerate(conditions)
    ]
    return "".join([*lines, "#else\n", otherwise, "#endif\n"])
