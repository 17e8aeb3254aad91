"""Sorting by rank: the position of an element is how many precede it. Work grows with the square of the axis.

There is no data-dependent control flow in a kernel; counting needs none.
"""

from __future__ import annotations

from typing import Any, Self

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError
from polygrad.tensor.base import filled
from polygrad.tensor.indexing import IndexingMixin
from polygrad.tensor.sizes import fits, is_negative
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


class SortingMixin(IndexingMixin):
    """sort, argsort, topk."""

    __slots__ = ()

    def _ranks(self, descending: bool) -> Self:
        """The position (int32) of each element of the last axis in a stable sort."""
        n = self.shape[-1]
        index = self._of(UOp(Ops.ARANGE, dtypes.int32, (), n))
        x, y = self.unsqueeze(-1), self.unsqueeze(-2)
        precedes = x < y if descending else y < x
        ties = y.eq(x) & (index.unsqueeze(0) < index.unsqueeze(1))
        return (precedes | ties)._reduce(Ops.ADD, -1, False, dtypes.int32, dtypes.int32)

    def sort(self, dim: int = -1, descending: bool = False) -> tuple[Self, Self]:
        """The elements along `dim` in order, stably, and their positions (int32). NaN is not ordered."""
        axis = self._axis(dim)
        if not self.shape or fits(self.shape[axis], 1):
            return self._with(self.uop), self._with(filled(dtypes.int32, 0, self.shape))
        x = self.transpose(axis, -1)
        ranks = x._with(x._ranks(descending).uop.contiguous())
        chosen = ranks.is_class(x.shape[-1], -2)  # (..., place, element)
        spread = x.unsqueeze(-2).expand(chosen.shape)
        if x.dtype.is_bool:
            values = (chosen & spread).any(-1)
        else:
            values = chosen.where(spread, 0)._reduce(Ops.ADD, -1, False, x.dtype, x.dtype)
        index = self._of(UOp(Ops.ARANGE, dtypes.int32, (), x.shape[-1]))
        positions = chosen.where(index, 0)._reduce(Ops.ADD, -1, False, dtypes.int32, dtypes.int32)
        return values.transpose(axis, -1), positions.transpose(axis, -1)

    def argsort(self, dim: int = -1, descending: bool = False) -> Self:
        """The positions (int32) that sort `dim`."""
        return self.sort(dim, descending)[1]

    def topk(self, k: int, dim: int = -1, largest: bool = True, sorted_: bool = True) -> tuple[Self, Self]:
        """The k greatest (least) along `dim`, in order, and their positions. Raises ArgumentError."""
        axis = self._axis(dim)
        if is_negative(k) or not fits(k, self.shape[axis]):
            raise ArgumentError(f"topk: expected k in 0..{self.shape[axis]}, got {k}")
        values, positions = self.sort(axis, largest)
        cut: list[Any] = [(0, k) if i == axis else None for i in range(self.ndim)]
        return values.shrink(cut), positions.shrink(cut)
