"""`GPUBuilder`: what CUDA C++ and the Metal Shading Language have in common beside being like C: indices of
workgroups and invocations, workgroup memory and tensor cores, each under a name of the language's own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from polygrad.dtype import DType, dtypes, rounded
from polygrad.helpers import prod
from polygrad.renderer.cstyle.base import Pointer
from polygrad.renderer.cstyle.lanes import LanesBuilder
from polygrad.renderer.source_text import UNARY, Expression
from polygrad.uop.tensor_cores import TensorCore


class GPUBuilder(LanesBuilder):
    """See `LanesBuilder`."""

    cast_literals: ClassVar[tuple[DType, ...]]  # dtypes whose literals are those of float32, cast
    index_names: ClassVar[dict[str, str]]  # by the kind of `Builder.special`
    barrier_call: ClassVar[str]
    shared_qualifier: ClassVar[str]  # of workgroup memory
    shared_space: ClassVar[str] = ""

    def literal(self, dtype: DType, value: Any) -> tuple[str, int]:
        if dtype not in self.cast_literals:
            return super().literal(dtype, value)
        exact = rounded(dtype, float(value))  # rounded once: float32 has all numbers of these dtypes
        return f"({self.type(dtype, 1)}){super().literal(dtypes.float32, exact)[0]}", UNARY

    def special(self, kind: str, axis: int, size: Expression) -> Expression:
        t = self.type(dtypes.index, 1)
        text = f"({t}){self.index_names[kind]}.{'xyz'[axis]}"
        return self._source.value(text, (), t, precedence=UNARY, hint=kind)

    @abstractmethod
    def wmma_function(self, core: TensorCore, operand: str, total: str) -> str:
        """The text of a function `core.name`: it takes the elements of a, b and c and gives those of the
        result as a vector. `operand`, `total`: the types of the elements."""

    def wmma(self, core: TensorCore, a: Sequence[Any], b: Sequence[Any], c: Sequence[Any]) -> Sequence[Any]:
        total = self.type(core.total, 1)
        self.need(core.name, self.wmma_function(core, self.type(core.operands, 1), total))
        components = "xyzw"[: prod(core.c.elements)]
        result = self.call(core.name, [*a, *b, *c], f"{total}{len(components)}", hint="tile")
        return [self.component(result, name, total) for name in components]

    def barrier(self, pending: int | None = None) -> None:
        self._source.statement(self.barrier_call, ())

    def shared(self, name: str, dtype: DType, size: int, swizzled: bool = False) -> Pointer:
        self._prologue.append(f"  {self.shared_qualifier} {self.memory_type(dtype)} {name}[{size}];")
        return Pointer(name, self.shared_space)
