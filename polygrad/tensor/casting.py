"""Conversions between dtypes. Methods are named like Python's types and hide them here, so other methods are
elsewhere."""

from __future__ import annotations

import builtins
import math
from typing import Any, Self

from polygrad.dtype import dtypes, to_dtype
from polygrad.errors import DTypeError, ShapeError
from polygrad.tensor.core.base import DTypeLike, TensorBase, broadcast_to
from polygrad.tensor.core.sizes import fits
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

_UNSIGNED = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}


class CastingMixin(TensorBase):
    """`cast`, `bitcast` and their short forms."""

    __slots__ = ()

    def cast(self, dtype: DTypeLike, saturate: builtins.bool | None = None) -> Self:
        """The elements converted to `dtype`; floats truncate and saturate into integers.

        saturate: for 8-bit floats. True: values beyond the largest number, infinity too, become that number;
        False: they become infinite (NaN in fp8e4m3, which has no infinity). None follows torch: fp8e4m3
        saturates, fp8e5m2 does not. Raises DTypeError, also for `saturate` with another dtype.

        >>> Tensor([1.7, -1.7]).cast("int32").tolist()
        [1, -1]
        """
        to = to_dtype(dtype)
        if saturate is not None:
            if to not in dtypes.fp8s:
                raise DTypeError(f"cast: expected saturate with {' or '.join(dtypes.fp8s)}, got {to}")
            return self._cast_to_fp8(to, saturate)
        return self if to is self.uop.dtype else self._with(self.uop.cast(to))

    def _cast_to_fp8(self, to: Any, saturate: builtins.bool) -> Self:
        largest = dtypes.finfo(to).max
        x: Any = self if self.dtype.is_float and self.dtype.itemsize > 1 else self.cast(dtypes.float32)
        if saturate:
            return x.clamp(-largest, largest).cast(to)  # type: ignore[no-any-return]
        # 448 to 464 round to 448: 464 is a tie, which rounds to even
        overflows = x.abs() > 464.0
        return overflows.where(math.nan, x).cast(to) if to is dtypes.fp8e4m3 else x.cast(to)  # type: ignore[no-any-return]

    def bitcast(self, dtype: DTypeLike) -> Self:
        """The same bits as elements of `dtype`: a view, if these have the same size.

        Else the size of the last axis changes in proportion, low bytes first: (..., 4) of uint8 become (...,
        1) of float32. Raises DTypeError, ShapeError.

        >>> Tensor([1.0]).bitcast("int32").tolist()
        [1065353216]
        >>> Tensor([1.0]).bitcast("uint8").tolist()
        [0, 0, 128, 63]
        """
        to, old = to_dtype(dtype), self.dtype
        if to.is_bool != old.is_bool:
            raise DTypeError(f"bitcast: expected a dtype like {old}, got {to}: use .cast()")
        if to.itemsize == old.itemsize:
            return self._view_of(self.uop.bitcast(to))
        if not self.shape:
            raise ShapeError(f"bitcast: expected an axis to make elements of {to} of, got shape ()")
        if to.itemsize > old.itemsize:
            words = self._join_elements(to.itemsize // old.itemsize)
        else:
            words = self._split_elements(old.itemsize // to.itemsize)
        return words._with(words.uop.bitcast(to))

    def _join_elements(self, count: Any) -> Self:
        """Join each `count` elements of the last axis to one unsigned integer, the first in its low bits."""
        lead, n, itemsize = self.uop.shape[:-1], self.uop.shape[-1], self.dtype.itemsize
        if not fits(n % count, 0):
            raise ShapeError(f"bitcast: expected a multiple of {count} elements in the last axis, got {n}")
        small, large = _UNSIGNED[itemsize], _UNSIGNED[itemsize * count]
        words = self.uop.bitcast(small).cast(large).reshape((*lead, n // count, count))
        places = UOp(Ops.ARANGE, large, (), count) * (8 * itemsize)
        shifted_words = UOp(Ops.SHL, large, (words, broadcast_to(places, words.shape)))
        return self._with(shifted_words.reduce_axis(Ops.ADD, (len(lead) + 1,)).reshape((*lead, n // count)))

    def _split_elements(self, count: Any) -> Self:
        """Split the bits of each element of the last axis into `count` unsigned integers, low bits first."""
        lead, n, itemsize = self.uop.shape[:-1], self.uop.shape[-1], self.dtype.itemsize
        large, small = _UNSIGNED[itemsize], _UNSIGNED[itemsize // count]
        split_shape = (*lead, n, count)
        words = self.uop.bitcast(large).reshape((*lead, n, 1)).expand(split_shape)
        places = UOp(Ops.ARANGE, large, (), count) * (8 * itemsize // count)
        parts = UOp(Ops.SHR, large, (words, broadcast_to(places, split_shape))).cast(small)
        return self._with(parts.reshape((*lead, n * count)))

    def cast_like(self, other: Self) -> Self:
        """self in the dtype of `other`.

        >>> Tensor([1, 2]).cast_like(Tensor([0.5])).tolist()
        [1.0, 2.0]
        """
        return self._with(self.uop.cast(other.dtype))

    type_as = cast_like

    def float(self) -> Self:
        """Cast to float32.

        >>> Tensor([1, 2]).float().tolist()
        [1.0, 2.0]
        """
        return self.cast(dtypes.float32)

    def half(self) -> Self:
        """Cast to float16.

        >>> Tensor([1.0]).half().dtype.name
        'float16'
        """
        return self.cast(dtypes.float16)

    def bfloat16(self) -> Self:
        """Cast to bfloat16.

        >>> Tensor([1.0]).bfloat16().dtype.name
        'bfloat16'
        """
        return self.cast(dtypes.bfloat16)

    def double(self) -> Self:
        """Cast to float64.

        >>> Tensor([1.0]).double().dtype.name
        'float64'
        """
        return self.cast(dtypes.float64)

    def int(self) -> Self:
        """Cast to int32.

        >>> Tensor([1.7]).int().tolist()
        [1]
        """
        return self.cast(dtypes.int32)

    def long(self) -> Self:
        """Cast to int64.

        >>> Tensor([1]).long().dtype.name
        'int64'
        """
        return self.cast(dtypes.int64)

    def short(self) -> Self:
        """Cast to int16.

        >>> Tensor([1]).short().dtype.name
        'int16'
        """
        return self.cast(dtypes.int16)

    def bool(self) -> Self:
        """Cast to bool: whether each element differs from 0.

        >>> Tensor([0.0, 2.0]).bool().tolist()
        [False, True]
        """
        return self.cast(dtypes.bool)
