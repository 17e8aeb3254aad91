"""Operators derived from methods: `x + y`, `y + x` where y is not a Tensor, and `x += y`.

The tables that use it are at the end of `ElementwiseMixin` and in `LinalgMixin`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from polygrad.dtype import DType
from polygrad.errors import DTypeError
from polygrad.monitor import computing
from polygrad.tensor.core.base import TensorLike

T = TypeVar("T")


def operators(
    symbol: str, method: Callable[..., Any]
) -> tuple[Callable[[T, TensorLike], T], Callable[[T, TensorLike], T], Callable[[T, TensorLike], T]]:
    """The operator of `method(self, x)`, its reflected form, `method(self, x, True)`, and its in-place form,
    which writes the result to the memory of self: `__add__, __radd__, __iadd__ = operators("+", add)`.
    """

    def forward(self: T, x: TensorLike) -> T:
        return method(self, x)

    def reflected(self: T, x: TensorLike) -> T:
        return method(self, x, True)

    @computing  # as a whole: no other thread may write between the read and the write
    def in_place(self: Any, x: TensorLike) -> Any:
        out = method(self, x)
        if _category(out.dtype) > _category(self.dtype):
            raise DTypeError(
                f"{symbol}=: expected a result that fits {self.dtype}, got {out.dtype}: use .cast()"
            )
        return self.assign(out.cast(self.dtype))

    forward.__name__ = reflected.__name__ = in_place.__name__ = method.__name__  # what errors call them
    return forward, reflected, in_place


def _category(dtype: DType) -> int:
    """torch's category of a dtype: bools convert to integers, integers to floats."""
    return 0 if dtype.is_bool else 1 if dtype.is_int else 2
