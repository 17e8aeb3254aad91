"""`LanesBuilder`: SIMD values as several scalars, for GPUs, whose threads are lanes themselves.

A SIMD value is a tuple of expressions, one for each lane; an operation is written once for each lane. Only
loads and stores use vectors (`float4`): of consecutive elements whose position is known to be a multiple of
their number, if buffers are `aligned`.

Must not know: differences between the languages.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from polygrad.codegen.target import Target
from polygrad.dtype import DType
from polygrad.renderer.builder import Address
from polygrad.renderer.cstyle.base import CStyleBuilder, Pointer
from polygrad.renderer.source_text import ANY, ATOM, SELECT, UNARY, Expression
from polygrad.uop.ops import Ops

_COMPONENTS = "xyzw"


class LanesBuilder(CStyleBuilder):
    """`aligned`: every buffer starts at a multiple of 16 bytes."""

    vector_sizes: ClassVar[tuple[int, ...]] = (4, 2)  # elements of one load or store, largest first

    def __init__(self, target: Target, aligned: bool = False) -> None:
        super().__init__(target)
        self.aligned = aligned

    @abstractmethod
    def vector_type(self, dtype: DType, size: int) -> str:
        """The type of `size` elements in memory."""

    @abstractmethod
    def vector_maker(self, dtype: DType, size: int) -> str:
        """The function that makes one of its elements."""

    # --- values

    def alu(self, op: Ops, dtype: DType, args: Sequence[Any], lanes: int) -> Any:
        if lanes == 1:
            return super().alu(op, dtype, args, 1)
        return tuple(self.alu(op, dtype, lane, 1) for lane in zip(*args, strict=True))

    def cast(self, value: Any, src: DType, dst: DType, lanes: int) -> Any:
        if lanes == 1:
            return super().cast(value, src, dst, 1)
        return tuple(self.cast(v, src, dst, 1) for v in value)

    def bitcast(self, value: Any, src: DType, dst: DType, lanes: int) -> Any:
        if lanes == 1:
            return super().bitcast(value, src, dst, 1)
        return tuple(self.bitcast(v, src, dst, 1) for v in value)

    @abstractmethod
    def shuffled(self, value: Expression, mask: int, type_: str) -> Expression:
        """The call that is `shuffle_xor` of a scalar."""

    def shuffle_xor(self, value: Any, dtype: DType, mask: int, lanes: int) -> Any:
        if lanes != 1:
            return tuple(self.shuffle_xor(v, dtype, mask, 1) for v in value)
        # A statement of its own: inside of another expression it could be in one branch of a selection.
        register = self.register(dtype, 1)
        self.set(register, self.shuffled(value, mask, self.type(dtype, 1)))
        return self.get(register)

    def splat(self, value: Any, dtype: DType, lanes: int) -> Any:
        return value if lanes == 1 else (value,) * lanes

    def extract(self, value: Any, dtype: DType, lane: int, lanes: int) -> Any:
        return value if lanes == 1 else value[lane]

    def pack(self, values: Sequence[Any], dtype: DType) -> Any:
        return values[0] if len(values) == 1 else tuple(values)

    def reduce(self, op: Ops, value: Any, dtype: DType, lanes: int) -> Any:
        """Combine the low half with the high half until one lane is left."""
        while lanes > 1:
            lanes //= 2
            value = tuple(
                self.alu(op, dtype, pair, 1) for pair in zip(value[:lanes], value[lanes:], strict=True)
            )
        return value[0]

    def interleave(self, a: Any, b: Any, dtype: DType, lanes: int) -> tuple[Any, Any]:
        both = tuple(v for pair in zip(a, b, strict=True) for v in pair)
        return both[:lanes], both[lanes:]

    # --- memory

    def block_size(self, dtype: DType, lanes: int) -> int:
        return lanes

    def load_block(self, address: Address, dtype: DType, lanes: int) -> Any:
        return self.load(address, dtype, lanes)

    def permute(self, blocks: Sequence[Any], positions: Sequence[int], dtype: DType) -> Any:
        elements = [v for block in blocks for v in block]
        return tuple(elements[p] for p in positions)

    def load(self, address: Address, dtype: DType, lanes: int) -> Any:
        if lanes == 1:
            return super().load(address, dtype, 1)
        size = self._vector_size(address, dtype, lanes)
        if size == 1:
            return tuple(super(LanesBuilder, self).load(address.plus(i), dtype, 1) for i in range(lanes))
        out: list[Any] = []
        for first in range(0, lanes, size):
            start = self.address_of(address.plus(first), dtype)
            vector = self.load_vector(address.pointer, start, dtype, size)
            out += [self.from_memory(e, dtype) for e in self.vector_elements(vector, dtype, size)]
        return tuple(out)

    def _vector_size(self, address: Address, dtype: DType, lanes: int) -> int:
        """The number of elements of each load or store."""
        if not self.aligned:
            return 1
        multiple = 0 if address.base is None else address.base.data.multiple
        for size in self.vector_sizes:
            if (
                lanes % size == 0
                and size * dtype.itemsize <= 16
                and multiple % size == 0
                and address.offset % size == 0
                and self.has_vector(dtype, size)
            ):
                return size
        return 1

    def load_vector(self, pointer: Pointer, start: Expression, dtype: DType, size: int) -> Expression:
        """`size` elements from an address in a buffer, which is a multiple of their size."""
        t = self.vector_type(dtype, size)
        return self._source.value(
            f"*({f'{pointer.space} {t}'.lstrip()} *){{}}",
            [start],
            t,
            needs=UNARY,
            precedence=UNARY,
            hint="v",
            reads="memory",
        )

    def vector_elements(self, vector: Expression, dtype: DType, size: int) -> list[Expression]:
        """The elements of a loaded vector, as memory holds them."""
        t = self.memory_type(dtype)
        components = _COMPONENTS[:size]
        return [self._source.value(f"{{}}.{c}", [vector], t, needs=ATOM) for c in components]

    def store_vector(self, pointer: Pointer, start: Expression, dtype: DType, values: Sequence[Any]) -> None:
        t, make = self.vector_type(dtype, len(values)), self.vector_maker(dtype, len(values))
        each = ", ".join(["{}"] * len(values))
        self._source.statement(
            f"*({f'{pointer.space} {t}'.lstrip()} *){{}} = {make}({each});",
            [start, *values],
            (UNARY, *[ANY] * len(values)),
        )

    def has_vector(self, dtype: DType, size: int) -> bool:
        """Whether the language has a vector type of `size` elements."""
        return not dtype.is_bool

    def load_masked(self, address: Address, dtype: DType, lanes: int, mask: Any, other: Any) -> Any:
        """One conditional load for each lane: `mask ? data[i] : other` reads memory only where `mask`
        holds."""
        return tuple(
            self.guarded_load(address.pointer, self.place(address.plus(i)), dtype, mask[i], other[i])
            for i in range(lanes)
        )

    def guarded_load(
        self, pointer: Pointer, place: Expression, dtype: DType, condition: Expression, other: Expression
    ) -> Expression:
        """An element if `condition` holds, else `other`, without a read of memory."""
        element = f"{pointer.name}[{{}}]{' != 0' if dtype.is_bool else ''}"
        return self._source.value(
            f"{{}} ? {element} : {{}}",
            [condition, place, other],
            self.type(dtype, 1),
            needs=(SELECT + 1, ANY, SELECT + 1),
            precedence=SELECT,
            reads="memory",
        )

    def store(self, address: Address, value: Any, dtype: DType, lanes: int) -> None:
        if lanes == 1:
            return super().store(address, value, dtype, 1)
        size = self._vector_size(address, dtype, lanes)
        for first in range(0, lanes, size):
            if size == 1:
                super().store(address.plus(first), value[first], dtype, 1)
            else:
                stored = [self.to_memory(v, dtype) for v in value[first : first + size]]
                start = self.address_of(address.plus(first), dtype)
                self.store_vector(address.pointer, start, dtype, stored)

    # --- registers

    def register(self, dtype: DType, lanes: int) -> Any:
        if lanes == 1:
            return super().register(dtype, 1)
        return tuple(super(LanesBuilder, self).register(dtype, 1) for _ in range(lanes))

    def get(self, register: Any) -> Any:
        if isinstance(register, tuple):
            return tuple(super(LanesBuilder, self).get(r) for r in register)
        return super().get(register)

    def set(self, register: Any, value: Any) -> None:
        if not isinstance(register, tuple):
            return super().set(register, value)
        for r, v in zip(register, value, strict=True):
            super().set(r, v)
