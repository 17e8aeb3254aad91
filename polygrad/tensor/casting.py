"""Conversions between dtypes. Its methods are named as Python's types are, so it defines nothing else."""

from __future__ import annotations

import builtins
import math
from typing import Any, Self

from polygrad.dtype import dtypes, to_dtype
from polygrad.errors import DTypeError
from polygrad.tensor.base import TensorBase


class CastingMixin(TensorBase):
    """`cast`, `bitcast` and their short forms."""

    __slots__ = ()

    def cast(self, dtype: Any, saturate: builtins.bool | None = None) -> Self:
        """The elements converted to `dtype`; floats truncate and saturate into integers.

        saturate: of floats of 8 bits, whether what is beyond the largest number, infinity too, becomes that,
        or else infinite (NaN in fp8e4m3, which has no infinity). None is torch's: fp8e4m3 saturates, fp8e5m2
        does not. Raises DTypeError, also for `saturate` with another dtype.
        """
        to = to_dtype(dtype)
        if saturate is not None:
            if to not in dtypes.fp8s:
                raise DTypeError(f"cast: expected saturate with {' or '.join(dtypes.fp8s)}, got {to}")
            return self._cast_to_fp8(to, saturate)
        return self if to is self.uop.dtype else self._with(self.uop.cast(to))

    def _cast_to_fp8(self, to: Any, saturate: builtins.bool) -> Self:
        most = dtypes.finfo(to).max
        x: Any = self if self.dtype.is_float and self.dtype.itemsize > 1 else self.cast(dtypes.float64)
        if saturate:
            return x.clamp(-most, most).cast(to)  # type: ignore[no-any-return]
        # 448 to 464 round to 448: half of the last place, to even
        over = x.abs() > 464.0
        return over.where(math.nan, x).cast(to) if to is dtypes.fp8e4m3 else x.cast(to)  # type: ignore[no-any-return]

    def bitcast(self, dtype: Any) -> Self:
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
