"""The values that flow between nodes: Tensors, constants that the host knows, and others.

A Value is a Tensor, a Constant, Narrow (a Tensor of an element type that is no dtype), Strings, a list (a
sequence) or None (an optional without a value). Between nodes of one graph it may be Dequantized, Scaled or
Codewise, too: only what asks for them sees that, other ops see the Tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from polygrad.dtype import DType, dtypes
from polygrad.errors import OnnxError
from polygrad.onnx.elements import Element, element_of_dtype
from polygrad.tensor.core.convert import pack, unpack
from polygrad.tensor.tensor import Tensor
from polygrad.uop.node import UOp

_MOST_READ = 1 << 20  # the most elements that an op may read on the host


@dataclass(slots=True, eq=False)
class Constant:
    """Numbers that are known before anything is computed: shapes, attributes, small integer initializers.

    `numbers` are in row-major order; a size may be symbolic.
    """

    dtype: DType
    shape: tuple[int, ...]
    numbers: list[Any]
    _tensors: dict[str | None, Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, value: Any, dtype: DType = dtypes.int64) -> Constant:
        """A number, or a list of numbers of one axis."""
        if isinstance(value, (list, tuple)):
            return cls(dtype, (len(value),), list(value))
        return cls(dtype, (), [value])

    def tensor(self, device: str | None) -> Tensor:
        """The numbers as a Tensor on `device`, made once."""
        if device not in self._tensors:
            self._tensors[device] = self._made(device)
        return self._tensors[device]

    def _made(self, device: str | None) -> Tensor:
        if UOp in set(map(type, self.numbers)):
            parts = [Tensor(n, device, self.dtype).reshape(1) for n in self.numbers]
            return parts[0].cat(*parts[1:]).reshape(self.shape)
        if not self.shape:
            return Tensor(self.numbers[0], device, self.dtype)
        raw = bytes(pack(self.numbers, self.dtype))
        return (
            Tensor(raw, device, self.dtype).reshape(self.shape)
            if raw
            else Tensor.zeros(self.shape, dtype=self.dtype, device=device)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Narrow:
    """Elements of a type that is no dtype, by their values, in the dtype that holds them (`elements.py`)."""

    tensor: Tensor
    element: Element


@dataclass(frozen=True, slots=True, eq=False)
class Dequantized:
    """Numbers that are (codes - zero) * scale. `codes` are int8 or uint8; scale and zero are of the whole
    tensor, or vectors along `axis`. `tensor`: the numbers; `function`: how they depend on other codes."""

    tensor: Tensor
    codes: Tensor
    scale: Tensor
    zero: Value
    axis: int
    function: Codewise | None = None

    @property
    def is_uniform(self) -> bool:
        """Whether the scale is of the whole tensor."""
        return self.scale.numel() == 1

    def rearrange(self, function: Callable[[Tensor], Tensor]) -> Dequantized:
        """The same of a uniform one, with its elements in another order."""
        return replace(self, tensor=function(self.tensor), codes=function(self.codes), function=None)

    def of(self, codes: Tensor) -> Tensor:
        """The numbers of other codes, for a uniform one."""
        out = codes.cast(dtypes.int32)
        if self.zero is not None:
            out = out - tensor_of(self.zero, codes.device).cast(dtypes.int32).reshape(())
        return out.cast(self.scale.dtype) * self.scale.reshape(())


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """Numbers that are total * scale + offset: the sums of a product of integers. `scale` is of the whole
    tensor or of each column or channel, as `offset` is; None is 0. `tensor`: the numbers."""

    tensor: Tensor
    total: Tensor
    scale: Tensor
    offset: Tensor | None = None

    @classmethod
    def of(cls, total: Tensor, scale: Tensor) -> Scaled:
        """Sums by a scale."""
        return cls(total.cast(dtypes.float32) * scale, total, scale)

    def plus(self, offset: Tensor) -> Scaled:
        """The same with numbers added that it does not have yet; in a shape that broadcasts."""
        assert self.offset is None
        return replace(self, tensor=self.tensor + offset, offset=offset)

    def by(self, scale: Tensor) -> Tensor:
        """The numbers divided by one: the scale and the offset are, once for all elements."""
        factor = self.scale / scale
        out = self.total.cast(dtypes.float32) * (factor if factor.numel() == 1 else factor.contiguous())
        return out if self.offset is None else out + (self.offset / scale).contiguous()


@dataclass(frozen=True, slots=True, eq=False)
class Codewise:
    """A tensor whose elements depend on the 8-bit `codes` at the same place alone. `table()` has the element
    of each code, those of negative ones behind the others. `depth`: as many nodes compute it, one after the
    other."""

    tensor: Tensor
    codes: Tensor
    table: Callable[[], Tensor]
    depth: int


@dataclass(frozen=True, slots=True, eq=False)
class Strings:
    """Text, in row-major order."""

    shape: tuple[int, ...]
    texts: list[str]


Value: TypeAlias = Tensor | Constant | Narrow | Dequantized | Scaled | Codewise | Strings | list[Any] | None


def plain(value: Value) -> Value:
    """A value as what any op takes."""
    return value.tensor if isinstance(value, (Dequantized, Scaled, Codewise)) else value


def floats_of(value: Tensor | Dequantized | Scaled) -> Tensor:
    """The numbers of what an op takes as `Quantizable`."""
    return value if isinstance(value, Tensor) else value.tensor


def constant_of(element: Element, shape: tuple[int, ...], raw: memoryview) -> Constant:
    """Bytes of a native element type as a Constant."""
    return Constant(element.dtype, shape, unpack(raw, element.dtype))


def tensor_of(value: Value, device: str | None) -> Tensor:
    """A value as a Tensor. Raises OnnxError for other values."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Constant):
        return value.tensor(device)
    raise OnnxError(f"expected a tensor, got {describe(value)}")


def numbers_of(value: Value) -> list[Any]:
    """The elements of a value on the host, in row-major order; a Tensor is computed. Raises OnnxError."""
    if isinstance(value, Constant):
        return value.numbers
    if isinstance(value, Narrow):
        value = value.tensor
    if not isinstance(value, Tensor):
        raise OnnxError(f"expected numbers, got {describe(value)}")
    if math.prod(value.max_shape) > _MOST_READ:
        raise OnnxError(f"expected up to {_MOST_READ} numbers that the host reads, got shape {value.shape}")
    numbers = value.flatten().tolist()
    return numbers if isinstance(numbers, list) else [numbers]


def integers_of(value: Value) -> list[Any]:
    """The elements of a value on the host as integers; symbolic ones stay. Raises OnnxError."""
    return [n if isinstance(n, UOp) else int(n) for n in numbers_of(value)]


def scalar_of(value: Value) -> Any:
    """The only element of a value. Raises OnnxError."""
    numbers = numbers_of(value)
    if len(numbers) != 1:
        raise OnnxError(f"expected one number, got {describe(value)}")
    return numbers[0]


def shape_of(value: Value) -> tuple[Any, ...]:
    """The shape of a tensor of any kind. Raises OnnxError."""
    if isinstance(value, Narrow):
        return value.tensor.shape
    if isinstance(value, (Tensor, Constant, Strings)):
        return value.shape
    raise OnnxError(f"expected a tensor, got {describe(value)}")


def element_of_value(value: Value) -> Element:
    """The element type of a tensor. Raises OnnxError."""
    if isinstance(value, Narrow):
        return value.element
    if isinstance(value, (Tensor, Constant)):
        return element_of_dtype(value.dtype)
    raise OnnxError(f"expected a tensor of numbers, got {describe(value)}")


def held(tensor: Tensor, element: Element) -> Tensor | Narrow:
    """Values of an element type, already rounded to it, as what holds them."""
    tensor = tensor.cast(element.dtype)
    return tensor if element.is_native else Narrow(tensor, element)


def describe(value: Any) -> str:
    """A value in the words of an error; also an attribute of another type than an op takes."""
    if value is None:
        return "no value"
    if isinstance(value, list):
        return f"a sequence of {len(value)}"
    if isinstance(value, Strings):
        return f"strings of shape {value.shape}"
    if not isinstance(value, (Tensor, Constant, Narrow)):
        return f"an attribute of type {type(value).__name__}"
    kind = element_of_value(value).name
    return f"{kind} of shape {tuple(shape_of(value))}"


def as_list(value: Any) -> Sequence[Any]:
    """A sequence. Raises OnnxError."""
    if not isinstance(value, list):
        raise OnnxError(f"expected a sequence, got {describe(value)}")
    return value
