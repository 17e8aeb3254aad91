"""`MSLBuilder`: the Metal Shading Language.

A kernel is `kernel void NAME(device ... [[buffer(n)]], constant int &variable [[buffer(m)]], ...)`: buffers,
then variables. It has to be compiled in the safe math mode. There is no float64. Arithmetic of signed
integers, which wraps, is written with unsigned ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.renderer.cstyle.base import parameter_names
from polygrad.renderer.cstyle.gpu import GPUBuilder
from polygrad.renderer.source_text import Expression
from polygrad.uop.ops import Ops
from polygrad.uop.tensor_cores import TensorCore


def _simdgroup_text(core: TensorCore, operand: str, total: str) -> str:
    """A function for simdgroup_multiply_accumulate. Compilers other than Metal's provide a function of that
    name themselves."""
    types = {"a": operand, "b": operand, "c": total}
    parameters = [f"{t} {x}{i}" for x, t in types.items() for i in (0, 1)]
    matrix = f"simdgroup_matrix<{{}}, {core.m}, {core.n}>"
    return f"""#ifdef __METAL_VERSION__
static inline {total}2 {core.name}({", ".join(parameters)}) {{
  {matrix.format(operand)} a, b;
  {matrix.format(total)} c;
  a.thread_elements()[0] = a0;
  a.thread_elements()[1] = a1;
  b.thread_elements()[0] = b0;
  b.thread_elements()[1] = b1;
  c.thread_elements()[0] = c0;
  c.thread_elements()[1] = c1;
  simdgroup_multiply_accumulate(c, a, b, c);
  return {total}2(c.thread_elements()[0], c.thread_elements()[1]);
}}
#endif"""


class MSLBuilder(GPUBuilder):
    """See `LanesBuilder`."""

    types = {
        dtypes.bool: "bool",
        dtypes.int8: "char", dtypes.uint8: "uchar",
        dtypes.int16: "short", dtypes.uint16: "ushort",
        dtypes.int32: "int", dtypes.uint32: "uint",
        dtypes.int64: "long", dtypes.uint64: "ulong",
        dtypes.float16: "half", dtypes.bfloat16: "bfloat",
        dtypes.float32: "float",
    }  # fmt: skip
    memory_types = {dtypes.bool: "uchar"}
    header = ("#include <metal_stdlib>\nusing namespace metal;\n#pragma METAL fp contract(off)\n",)
    functions = {
        (Ops.SQRT, dtypes.float32): "precise::sqrt",
        (Ops.TRUNC, dtypes.float32): "trunc",
        (Ops.MULACC, dtypes.float32): "fma",
    }
    literal_suffixes = {
        dtypes.float32: "f", dtypes.float16: "h", dtypes.uint32: "u", dtypes.int64: "l", dtypes.uint64: "ul",
    }  # fmt: skip
    buffer_space = "device"
    helper_prefix = "static inline "
    cast_literals = (dtypes.bfloat16,)
    index_names = {"workgroup": "workgroup", "invocation": "invocation"}
    barrier_call = "threadgroup_barrier(mem_flags::mem_threadgroup);"
    shared_qualifier = shared_space = "threadgroup"

    def signature(
        self, name: str, params: Sequence[DType], variables: Sequence[str]
    ) -> tuple[str, list[str], list[str]]:
        pointers, numbers = parameter_names(params, variables)
        arguments = [f"device {self.memory_type(d)} *{p}" for d, p in zip(params, pointers, strict=True)]
        arguments += [f"constant {self.type(dtypes.index, 1)} &{n}" for n in numbers]
        arguments = [f"{a} [[buffer({i})]]" for i, a in enumerate(arguments)]
        arguments += [
            "uint3 workgroup [[threadgroup_position_in_grid]]",
            "uint3 invocation [[thread_position_in_threadgroup]]",
        ]
        start = f"kernel void {name}("
        return start + f",\n{' ' * len(start)}".join(arguments) + ") {", pointers, numbers

    def special_float(self, dtype: DType, value: float) -> str:
        text = "NAN" if value != value else "INFINITY" if value > 0 else "-INFINITY"
        cast = "" if dtype == dtypes.float32 else f"({self.type(dtype, 1)})"
        return f"{cast}{text}"

    def bits(self, value: Expression, src: DType, dst: DType, lanes: int) -> Expression:
        t = self.type(dst, 1)
        return self.call(f"as_type<{t}>", [value], t)

    def extend_half(self, value: Any, src: DType, lanes: int) -> Any:
        return self.convert(value, "float")

    def truncate_to_half(self, value: Any, src: DType, dst: DType, lanes: int) -> Any:
        return self.convert(value, self.type(dst, 1))

    # --- memory

    def vector_type(self, dtype: DType, size: int) -> str:
        return f"{self.types[dtype]}{size}"

    def vector_maker(self, dtype: DType, size: int) -> str:
        return self.vector_type(dtype, size)

    # --- workgroups

    def wmma_function(self, core: TensorCore, operand: str, total: str) -> str:
        return _simdgroup_text(core, operand, total)

    def shuffled(self, value: Expression, mask: int, type_: str) -> Expression:
        return self._source.value(f"simd_shuffle_xor({{}}, (ushort){mask})", [value], type_)
