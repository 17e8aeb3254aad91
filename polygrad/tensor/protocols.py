"""Protocols of Python and numpy: conversion to numbers, text and arrays.

`bool(t)`, `float(t)`, `f"{t:.3f}"`, `round(t)`, `math.floor(t)`, `print(t)`, `np.sin(t)`, `array * t`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from polygrad.engine.normalize import stored_value
from polygrad.engine.recording import watch
from polygrad.engine.write_hazards import stored_node
from polygrad.errors import DTypeError, ShapeError
from polygrad.helpers import prod
from polygrad.missing import missing
from polygrad.monitor import computing
from polygrad.runtime.buffer import Buffer
from polygrad.tensor.core.convert import unpack
from polygrad.tensor.core.formatting import SHORTENED, printed_positions, text_of
from polygrad.tensor.core.registry import node_set_aside
from polygrad.tensor.storage import StorageMixin

# numpy's functions for operators between an array and a Tensor; these return Tensors
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "true_divide": operator.truediv,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "matmul": operator.matmul,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "left_shift": operator.lshift,
    "right_shift": operator.rshift,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}


class ProtocolsMixin(StorageMixin):
    """Conversion to Python's numbers and text, and to numpy's arrays."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        """Raises AttributeError, which names a replacement: called only for names that do not exist, and for
        `uop` while the Tensor is set aside (`registry.SetAside`)."""
        if name == "uop":
            return node_set_aside(self)
        raise AttributeError(missing("Tensor", repr(type(self).__name__), name), name=name, obj=self)

    # --- numbers

    def __bool__(self) -> bool:
        if prod(self.shape) != 1:
            raise ShapeError(f"bool(): expected one element, got shape {self.shape}: use any() or all()")
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        if not self.dtype.is_int:
            raise DTypeError(f"index: expected an integer tensor, got {self.dtype}")
        return int(self.item())

    def __round__(self, ndigits: int | None = None) -> Any:
        return round(self.item(), ndigits)

    def __floor__(self) -> int:
        return math.floor(self.item())

    def __ceil__(self) -> int:
        return math.ceil(self.item())

    def __trunc__(self) -> int:
        return math.trunc(self.item())

    def __divmod__(self, x: Any) -> tuple[Any, Any]:
        t: Any = self
        return t // x, t % x

    def __rdivmod__(self, x: Any) -> tuple[Any, Any]:
        t: Any = self
        return x // t, x % t

    # --- text

    def __format__(self, spec: str) -> str:
        """The number, for one element; with a `spec`, of one element alone. Raises ShapeError."""
        return format(self.item(), spec) if spec or not self.shape else str(self)

    def __repr__(self) -> str:
        """The elements, if they are computed already; `repr` computes nothing."""
        grad = f", grad={self.grad.shape} {self.grad.dtype}" if self.grad is not None else ""
        computed_value = stored_value(stored_node(self.uop))
        shape = tuple([n for n in self.shape if isinstance(n, int)])
        is_lazy = (
            computed_value is None or computed_value.arg.is_overwritten or isinstance(self._device, tuple)
        )
        if is_lazy or len(shape) < self.ndim or watch.recording is not None:
            return f"<Tensor {self.shape} {self.dtype} on {self.device}, lazy: tolist() shows it{grad}>"
        assert computed_value is not None
        buffer: Buffer = computed_value.arg
        if not buffer.allocation.is_allocated:
            return f"<Tensor {self.shape} {self.dtype} on {self.device}, lazy{grad}>"
        return f"Tensor({self._text(buffer, shape)}, {self.dtype} on {self.device}{grad})"

    @computing
    def _text(self, buffer: Buffer, shape: tuple[int, ...]) -> str:
        """The elements as text; only those that are printed are read."""
        n = shape[-1] if shape else 1
        positions = printed_positions(n, prod(shape) > SHORTENED)
        strides = [prod(shape[i + 1 :]) for i in range(len(shape) - 1)]

        def row(index: tuple[int, ...]) -> list[Any]:
            start = sum(i * s for i, s in zip(index, strides, strict=True))
            parts = [(positions[0], len(positions))]
            if len(positions) < n:
                half = len(positions) // 2
                parts = [(0, half), (n - half, half)]
            size = self.dtype.itemsize
            read = buffer.runtime.read
            return [
                x
                for first, count in parts
                for x in unpack(read(buffer.handle, (start + first) * size, count * size), self.dtype)
            ]

        return text_of(shape, row, len("Tensor("))

    # --- numpy

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        out = self.numpy()
        return out if dtype is None else out.astype(dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """`array * t` is a Tensor; numpy's other functions return arrays."""
        apply = _OPERATORS.get(ufunc.__name__) if method == "__call__" and not kwargs else None
        if apply is not None and len(inputs) == 2:
            a, b = inputs
            return apply(a if isinstance(a, ProtocolsMixin) else self._lift(a), b)
        return getattr(ufunc, method)(*map(_as_array, inputs), **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """numpy's functions, applied to a Tensor's elements: `np.max(t)`, `np.concatenate([t, u])`."""
        return function(*_as_array(args), **_as_array(kwargs))


def _as_array(x: Any) -> Any:
    """`x` with arrays in the place of the Tensors in it."""
    if isinstance(x, ProtocolsMixin):
        return x.numpy()
    if isinstance(x, (list, tuple)):
        return type(x)(map(_as_array, x))
    return {k: _as_array(v) for k, v in x.items()} if isinstance(x, dict) else x
