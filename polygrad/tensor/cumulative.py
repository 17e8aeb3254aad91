"""Running sums, products and extremes along an axis, and differences, which undo sums."""

from __future__ import annotations

import math
from typing import Self

from polygrad.dtype import dtypes, sum_dtype
from polygrad.errors import ArgumentError
from polygrad.tensor.core.base import broadcast_constant
from polygrad.tensor.core.sizes import fixed_size
from polygrad.tensor.reduce import ReduceMixin
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


class CumulativeMixin(ReduceMixin):
    """Running sums, products and extremes. All raise AxisError for an axis that does not exist."""

    __slots__ = ()

    def cumsum(self, axis: int = 0) -> Self:
        """Running sums along `axis`.

        >>> Tensor([1, 2, 3]).cumsum().tolist()
        [1, 3, 6]
        """
        accumulate = sum_dtype(self.dtype)
        out = self._with(self.uop.cast(accumulate))._cumulative(self._axis(axis), Ops.ADD)
        return out.cast_like(self) if self.dtype.is_float else out

    def cumprod(self, axis: int) -> Self:
        """Running products along `axis`.

        >>> Tensor([1, 2, 3]).cumprod(0).tolist()
        [1, 2, 6]
        """
        accumulate = sum_dtype(self.dtype)
        out = self._with(self.uop.cast(accumulate))._cumulative(self._axis(axis), Ops.MUL)
        return out.cast_like(self) if self.dtype.is_float else out

    def cummax(self, axis: int = 0) -> tuple[Self, Self]:
        """Running maxima along `axis`, and the positions (int32) where they are, the last of equals.

        NaN is the greatest.

        Of equals tinygrad takes the first position, torch the last, as here.

        >>> [t.tolist() for t in Tensor([1, 3, 2, 5]).cummax()]
        [[1, 3, 3, 5], [0, 1, 1, 3]]
        """
        axis = self._axis(axis)
        values = self._cumulative(axis, Ops.MAX)
        if not self.shape:
            return values, self._of(broadcast_constant(dtypes.int32, 0, ()), self._device)
        n = self.shape[axis]
        column = tuple([n if i == axis else 1 for i in range(self.ndim)])
        index = self._of(UOp(Ops.ARANGE, dtypes.int32, (), n).reshape(column), self._device)
        is_top = self.eq(values) | self.isnan() if self.dtype.is_float else self.eq(values)
        return values, is_top.where(index, 0)._cumulative(axis, Ops.MAX)

    def cummin(self, axis: int = 0) -> tuple[Self, Self]:
        """Running minima along `axis`, and the positions (int32) where they are, the last of equals.

        NaN is the least.

        Of equals tinygrad takes the first position, torch the last, as here.

        >>> [t.tolist() for t in Tensor([4, 3, 5, 1]).cummin()]
        [[4, 3, 3, 1], [0, 1, 1, 3]]
        """
        values, positions = self._mirror().cummax(axis)
        return values._mirror(), positions

    def logcumsumexp(self, axis: int = 0) -> Self:
        """Running logsumexp along `axis`.

        >>> Tensor([0.0, 0.0]).logcumsumexp().tolist()
        [0.0, 0.69314...]
        """
        axis = self._axis(axis)
        if not self.shape or self.shape[axis] == 0:
            return self._with(self._as_float())
        x = self._in_accumulation_dtype()
        running_max = x._detached()._cumulative(axis, Ops.MAX)
        top = running_max.isfinite().where(running_max, 0.0)
        # sums of exp(x - top), rescaled when the running maximum rises: s[i] = s[i-1] factor[i] + term[i]
        before, top_before = running_max._one_later(axis, -math.inf), top._one_later(axis, 0.0)
        factor = before.eq(-math.inf).where(0.0, (top_before - top).exp())
        total = x._with((x - top).exp().uop.scan_axis(Ops.MULACC, axis, factor=factor.uop))
        return self._in_result_dtype(total.log() + top)

    def diff(self, n: int = 1, dim: int = -1) -> Self:
        """The differences between neighbours along `dim`, n times over. Raises ArgumentError, AxisError.

        >>> Tensor([1, 4, 9]).diff().tolist()
        [3, 5]
        """
        if n < 0:
            raise ArgumentError(f"diff: expected n of at least 0, got {n}")
        axis, out = self._axis(dim), self._with(self.uop)
        for _ in range(n):
            size = fixed_size(out.shape[axis], "diff")
            length = max(size - 1, 0)
            late, early = out.narrow(axis, min(1, size), length), out.narrow(axis, 0, length)
            out = late.ne(early) if out.dtype.is_bool else late - early
        return out

    def _one_later(self, axis: int, first: float) -> Self:
        """Shift elements by one along `axis`: `first` is put in front, the last element is dropped."""
        n = self.shape[axis]
        padding = [(1, 0) if i == axis else None for i in range(self.ndim)]
        bounds = [(0, n) if i == axis else None for i in range(self.ndim)]
        return self.pad(padding, value=first).shrink(bounds)

    def _cumulative(self, axis: int, op: Ops) -> Self:
        """The inclusive scan with `op` along `axis`."""
        if not self.shape or self.shape[axis] == 0:
            return self._with(self.uop)
        return self._with(self.uop.scan_axis(op, axis))
