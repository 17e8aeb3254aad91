"""Conversions between dtypes. Its methods are named as Python's types are, so it defines nothing else."""

from __future__ import annotations

from typing import Self

from polygrad.dtype import dtypes, to_dtype
from polygrad.errors import DTypeError
from polygrad.tensor.base import DTypeLike, TensorBase


class CastingMixin(TensorBase):
    """`cast`, `bitcast` and their short forms."""

    __slots__ = ()

    def cast(self, dtype: DTypeLike) -> Self:
        """The elements converted to `dtype`; floats truncate and saturate into integers.

        Raises DTypeError.
        """
        to = to_dtype(dtype)
        return self if to is self.uop.dtype else self._with(self.uop.cast(to))

    def bitcast(self, dtype: DTypeLike) -> Self:
        """The same bits as `dtype`, which has the same size: a view. Raises DTypeError."""
        to = to_dtype(dtype)
        if to.itemsize != self.dtype.itemsize or to.is_bool != self.dtype.is_bool:
            raise DTypeError(
                f"bitcast: expected a dtype of {self.dtype.itemsize} bytes like {self.dtype}, got {to}"
            )
        return self._view_of(self.uop.bitcast(to))

    def float(self) -> Self:
        """Cast to float32."""
        return self.cast(dtypes.float32)

    def half(self) -> Self:
        """Cast to float16."""
        return self.cast(dtypes.float16)

    def bfloat16(self) -> Self:
        """Cast to bfloat16."""
        return self.cast(dtypes.bfloat16)

    def double(self) -> Self:
        """Cast to float64."""
        return self.cast(dtypes.float64)

    def int(self) -> Self:
        """Cast to int32."""
        return self.cast(dtypes.int32)

    def long(self) -> Self:
        """Cast to int64."""
        return self.cast(dtypes.int64)

    def short(self) -> Self:
        """Cast to int16."""
        return self.cast(dtypes.int16)

    def bool(self) -> Self:
        """Cast to bool: whether each element differs from 0."""
        return self.cast(dtypes.bool)
