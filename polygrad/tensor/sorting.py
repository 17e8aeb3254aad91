"""Sorting, and what is found by it."""

from __future__ import annotations

from typing import Self

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError
from polygrad.tensor.base import filled
from polygrad.tensor.indexing import IndexingMixin
from polygrad.tensor.sizes import fits, is_negative
from polygrad.tensor.sorting_network import argsort, greatest


class SortingMixin(IndexingMixin):
    """sort, argsort, topk."""

    __slots__ = ()

    def sort(self, dim: int = -1, descending: bool = False) -> tuple[Self, Self]:
        """The elements along `dim` in order, stably, and their positions (int32). NaN is the greatest."""
        axis = self._axis(dim)
        if not self.shape or fits(self.shape[axis], 1):
            return self._with(self.uop), self._with(filled(dtypes.int32, 0, self.shape))
        order = argsort(self.transpose(axis, -1).uop, descending).contiguous()
        positions = self._of(order).transpose(axis, -1)
        return self.gather(axis, positions), positions

    def argsort(self, dim: int = -1, descending: bool = False) -> Self:
        """The positions (int32) that sort `dim`."""
        return self.sort(dim, descending)[1]

    def topk(self, k: int, dim: int = -1, largest: bool = True, sorted_: bool = True) -> tuple[Self, Self]:
        """The k greatest (least) along `dim`, in order, and their positions. Raises ArgumentError."""
        axis = self._axis(dim)
        if is_negative(k) or not fits(k, self.shape[axis]):
            raise ArgumentError(f"topk: expected k in 0..{self.shape[axis]}, got {k}")
        if fits(k, 0):
            none = self.shrink([(0, k) if i == axis else None for i in range(self.ndim)])
            return none, self._with(filled(dtypes.int32, 0, none.shape))
        order = greatest(self.transpose(axis, -1).uop, k, largest).contiguous()
        positions = self._of(order).transpose(axis, -1)
        return self.gather(axis, positions), positions
