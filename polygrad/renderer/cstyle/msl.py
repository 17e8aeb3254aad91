"""`MSLBuilder`: the Metal Shading Language.

A kernel is `kernel void NAME(device ... [[buffer(n)]], constant int &variable [[buffer(m)]], ...)`: buffers,
then variables. It has to be compiled with the safe math mode. There is no float64. Arithmetic on signed
integers wraps, so it is done in unsigned ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polygrad.dtype import DType, dtypes, rounded
from polygrad.errors import DeviceError
from polygrad.renderer.cstyle.base import NOTHING, Known, Pointer, variable_name
from polygrad.renderer.cstyle.lanes import LanesBuilder
from polygrad.renderer.source_text import ATOM, UNARY, Expression
from polygrad.uop.ops import Ops
from polygrad.uop.tensor_cores import TensorCore


def _simdgroup_text(core: TensorCore, operand: str, total: str) -> str:
    """A function that is simdgroup_multiply_accumulate; other compilers than Metal's have one of their
    own."""
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


class MSLBuilder(LanesBuilder):
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

    def signature(
        self, name: str, params: Sequence[DType], variables: Sequence[str]
    ) -> tuple[str, list[str], list[str]]:
        pointers = [f"data{i}" for i in range(len(params))]
        numbers = [variable_name(v, i) for i, v in enumerate(variables)]
        arguments = [f"device {self.memory_type(d)} *{p}" for d, p in zip(params, pointers, strict=True)]
        arguments += [f"constant {self.type(dtypes.index, 1)} &{n}" for n in numbers]
        arguments = [f"{a} [[buffer({i})]]" for i, a in enumerate(arguments)]
        arguments += [
            "uint3 workgroup [[threadgroup_position_in_grid]]",
            "uint3 invocation [[thread_position_in_threadgroup]]",
        ]
        start = f"kernel void {name}("
        return start + f",\n{' ' * len(start)}".join(arguments) + ") {", pointers, numbers

    def type(self, dtype: DType, lanes: int) -> str:
        if dtype == dtypes.float64:
            raise DeviceError(
                "device METAL: expected a dtype that Metal has, got float64: use float32 (Tensor.float()), "
                "or another device for this part (Tensor.to)"
            )
        return super().type(dtype, lanes)

    def literal(self, dtype: DType, value: Any) -> tuple[str, int]:
        if dtype == dtypes.bfloat16:
            exact = rounded(dtype, float(value))  # once: as a float32 it would be rounded before
            return f"(bfloat){super().literal(dtypes.float32, exact)[0]}", UNARY
        return super().literal(dtype, value)

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

    def special(self, kind: str, axis: int, size: Expression) -> Expression:
        t = self.type(dtypes.index, 1)
        return self._source.value(
            f"({t}){kind}.{'xyz'[axis]}", (), t, precedence=UNARY, hint=kind, data=Known()
        )

    def wmma(self, core: TensorCore, a: Sequence[Any], b: Sequence[Any], c: Sequence[Any]) -> Sequence[Any]:
        total = self.type(core.total, 1)
        self.need(core.name, _simdgroup_text(core, self.type(core.operands, 1), total))
        result = self.call(core.name, [*a, *b, *c], f"{total}2", hint="tile", known=NOTHING)
        return [
            self._source.value(f"{{}}.{component}", [result], total, needs=ATOM, data=NOTHING)
            for component in "xy"
        ]

    def shuffled(self, value: Expression, mask: int, type_: str) -> Expression:
        return self._source.value(f"simd_shuffle_xor({{}}, (ushort){mask})", [value], type_, data=NOTHING)

    def barrier(self) -> None:
        self._source.statement("threadgroup_barrier(mem_flags::mem_threadgroup);", ())

    def shared(self, name: str, dtype: DType, size: int) -> Pointer:
        self._prologue.append(f"  threadgroup {self.memory_type(dtype)} {name}[{size}];")
        return Pointer(name, "threadgroup")
