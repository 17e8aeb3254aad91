"""Conversions between dtypes. Its methods are named as Python's types are, so it defines nothing else."""

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

        saturate: of floats of 8 bits, whether what is beyond the largest number, infinity too, becomes that,
        or else infinite (NaN in fp8e4m3, which has no infinity). None is torch's: fp8e4m3 saturates, fp8e5m2
        does not. Raises DTypeError, also for `saturate` with another dtype.

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
        most = dtypes.finfo(to).max
        x: Any = self if self.dtype.is_float and self.dtype.itemsize > 1 else self.cast(dtypes.float32)
        if saturate:
            return x.clamp(-most, most).cast(to)  # type: ignore[no-any-return]
        # 448 to 464 round to 448: half of the last place, to even
        over = x.abs() > 464.0
        return over.where(math.nan, x).cast(to) if to is dtypes.fp8e4m3 else x.cast(to)  # type: ignore[no-any-return]

    def bitcast(self, dtype: DTypeLike) -> Self:
        """The same bits as `dtype`: a view, if its elements have the same size.

        Else the last axis has as many elements more or less, low bytes first: (..., 4) of uint8 are
        (..., 1) of float32. Raises DTypeError, ShapeError.

        >>> Tensor([1.0]).bitcast("int32").tolist()
        [1065353216]
        >>> Tensor([1.0]).bitcast("uint8").tolist()
        [0, 0, 128, 63]
        """
        to, own = to_dtype(dtype), self.dtype
        if to.is_bool != own.is_bool:
            raise DTypeError(f"bitcast: expected a dtype like {own}, got {to}: use .cast()")
        if to.itemsize == own.itemsize:
            return self._view_of(self.uop.bitcast(to))
        if not self.shape:
            raise ShapeError(f"bitcast: expected an axis to make elements of {to} of, got shape ()")
        if to.itemsize > own.itemsize:
            words = self._joined(to.itemsize // own.itemsize)
        else:
            words = self._divided(own.itemsize // to.itemsize)
        return words._with(words.uop.bitcast(to))

    def _joined(self, count: Any) -> Self:
        """Each `count` elements of the last axis as one unsigned integer, the first in its low bits."""
        lead, n, own = self.uop.shape[:-1], self.uop.shape[-1], self.dtype.itemsize
        if not fits(n % count, 0):
            raise ShapeError(f"bitcast: expected a multiple of {count} elements in the last axis, got {n}")
        narrow, wide = _UNSIGNED[own], _UNSIGNED[own * count]
        words = self.uop.bitcast(narrow).cast(wide).reshape((*lead, n // count, count))
        places = UOp(Ops.ARANGE, wide, (), count) * (8 * own)
        shifted = UOp(Ops.SHL, wide, (words, broadcast_to(places, words.shape)))
        return self._with(shifted.reduce_axis(Ops.ADD, (len(lead) + 1,)).reshape((*lead, n // count)))

    def _divided(self, count: Any) -> Self:
        """The bits of each element of the last axis as `count` unsigned integers, the low ones first."""
        lead, n, own = self.uop.shape[:-1], self.uop.shape[-1], self.dtype.itemsize
        wide, narrow = _UNSIGNED[own], _UNSIGNED[own // count]
        whole = (*lead, n, count)
        words = self.uop.bitcast(wide).reshape((*lead, n, 1)).expand(whole)
        places = UOp(Ops.ARANGE, wide, (), count) * (8 * own // count)
        parts = UOp(Ops.SHR, wide, (words, broadcast_to(places, whole))).cast(narrow)
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
