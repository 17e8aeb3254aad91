"""Sorting, and methods based on it: order statistics, distinct elements, histograms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

from polygrad.dtype import dtypes, promote
from polygrad.engine.devices import Device
from polygrad.engine.realize import realize
from polygrad.errors import ArgumentError, ShapeError
from polygrad.tensor.core.base import TensorLike, broadcast_constant
from polygrad.tensor.core.binary_search import places
from polygrad.tensor.core.sizes import fits, fixed_size, is_negative, python_number, same_size
from polygrad.tensor.core.sorting_network import argsort, greatest
from polygrad.tensor.gather_scatter import goes_in_order
from polygrad.tensor.indexing import IndexingMixin
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

_MAX_TABLE = 4  # `unique` counts integers in a table of at most this many entries for each of them


class SortingMixin(IndexingMixin):
    """Sorting, and methods based on it."""

    __slots__ = ()

    def sort(self, dim: int = -1, descending: bool = False) -> tuple[Self, Self]:
        """The elements along `dim` in order, stably, and their positions (int32). NaN is the greatest.

        Equal elements have gradients of their own, as torch's; tinygrad's share them.

        >>> [t.tolist() for t in Tensor([3, 1, 2]).sort()]
        [[1, 2, 3], [1, 2, 0]]
        """
        axis = self._axis(dim)
        if not self.shape or fits(self.shape[axis], 1):
            return self._with(self.uop), self._with(broadcast_constant(dtypes.int32, 0, self.shape))
        in_order = goes_in_order(self._device)
        order = argsort(self.transpose(axis, -1).uop, descending, in_order).contiguous()
        positions = self._of(order).transpose(axis, -1)
        return self.gather(axis, positions), positions

    def argsort(self, dim: int = -1, descending: bool = False) -> Self:
        """The positions (int32) that sort `dim`.

        >>> Tensor([3, 1, 2]).argsort().tolist()
        [1, 2, 0]
        """
        return self.sort(dim, descending)[1]

    def quantile(
        self,
        q: float | Sequence[float],
        axis: int | None = None,
        keepdim: bool = False,
        interpolation: str = "linear",
    ) -> Self:
        """The q-th quantiles (0 to 1) along `axis`, of all elements when None; several q are a first axis.

        Between two elements: `interpolation` 'linear', 'lower', 'higher', 'nearest' (halves to the even
        position) or 'midpoint'. NaN where there is one. Raises ArgumentError, ShapeError.

        >>> Tensor([1.0, 2.0, 3.0, 4.0]).quantile(0.5).item()
        2.5
        """
        if interpolation not in ("linear", "lower", "higher", "nearest", "midpoint"):
            raise ArgumentError(
                "quantile: expected interpolation 'linear', 'lower', 'higher', 'nearest' or 'midpoint', got "
                f"{interpolation!r}"
            )
        levels = [q] if isinstance(q, (int, float)) else list(q)
        if not all(0 <= level <= 1 for level in levels) or not levels:
            raise ArgumentError(f"quantile: expected numbers from 0 to 1, got {q}")
        x = (self.flatten() if axis is None else self)._in_floats()
        place = 0 if axis is None else self._axis(axis)
        x._need_elements(place, "quantile")
        sorted_x = x.sort(place)[0] if x.shape else x.reshape(1)
        last = sorted_x.shape[place] - 1
        kept_shape: list[Any] = (
            [1] * self.ndim if axis is None else [*x.shape[:place], 1, *x.shape[place + 1 :]]
        )
        has_nan = x.isnan().any(place, keepdim=True)

        quantiles = []
        for level in levels:
            position = level * last
            below = min(int(position), last)
            above = min(below + 1, last)
            part = position - below
            if interpolation == "nearest":
                below, part = round(position), 0.0
            elif interpolation == "higher":
                below, part = (above if part else below), 0.0
            elif interpolation == "midpoint":
                part = 0.5 if part else 0.0
            out = sorted_x._at(place, below)
            if part and interpolation != "lower":
                upper = sorted_x._at(place, above)
                out = out + (upper - out) * part if part < 0.5 else upper - (upper - out) * (1 - part)
            out = has_nan.where(math.nan, out)
            shape = (
                kept_shape
                if keepdim
                else []
                if axis is None
                else [*kept_shape[:place], *kept_shape[place + 1 :]]
            )
            quantiles.append(out.reshape(shape))
        return quantiles[0] if isinstance(q, (int, float)) else quantiles[0].stack(*quantiles[1:])

    def _at(self, axis: int, position: int) -> Self:
        """Element `position` of an axis, which stays, of size 1."""
        return self.shrink([(position, position + 1) if i == axis else None for i in range(self.ndim)])

    def median(self, axis: int | None = None, keepdim: bool = False) -> Self | tuple[Self, Self]:
        """The middle element, the lesser of the two middle ones of an even number: of all elements, a Tensor.

        With `axis`: the middle elements along it, and their positions (int32). As torch's; numpy's, between
        the two middle ones, is `quantile(0.5, axis)`. NaN where there is one. Raises AxisError, ShapeError.

        >>> Tensor([4, 1, 3, 2]).median().item()
        2
        >>> [t.tolist() for t in Tensor([[4, 1, 3, 2]]).median(1)]
        [[2], [3]]
        """
        if axis is None:
            return self.flatten()._medians(0)[0].reshape([1] * self.ndim if keepdim else [])
        value, position = self._medians(self._axis(axis))
        if not self.shape:
            return value.reshape(()), position.reshape(())
        return (value, position) if keepdim else (value.squeeze(axis), position.squeeze(axis))

    def _medians(self, place: int) -> tuple[Self, Self]:
        """The medians along an axis, which stays, of size 1, and their positions."""
        x = self if self.shape else self.reshape(1)
        x._need_elements(place, "median")
        values, positions = x.sort(place)
        middle = (fixed_size(x.shape[place], "median") - 1) // 2
        value, position = values._at(place, middle), positions._at(place, middle)
        if x.dtype.is_float:
            is_nan = x.isnan()
            nan_at = is_nan.argmax(place, keepdim=True)
            has_nan = is_nan.any(place, keepdim=True)
            position = has_nan.where(nan_at, position)
            value = has_nan.where(x.gather(place, nan_at), value)
        return value, position

    def kthvalue(self, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Self, Self]:
        """The k-th least element (1 is the least) along `dim`, and its position (int32). NaN is the greatest.

        Raises AxisError, ArgumentError.

        >>> [t.item() for t in Tensor([3, 1, 2]).kthvalue(2)]
        [2, 2]
        """
        axis = self._axis(dim)
        size = self.shape[axis] if self.shape else 1
        k = python_number(k)
        if not isinstance(k, int) or k < 1 or not fits(k, size):
            raise ArgumentError(f"kthvalue: expected an int k in 1..{size}, got {k!r}")
        values, positions = self.reshape(1 if not self.shape else self.shape).topk(k, dim, largest=False)
        results = [t._at(axis, k - 1) for t in (values, positions)]
        kept_shape = (
            self.shape if not self.shape or keepdim else [*self.shape[:axis], *self.shape[axis + 1 :]]
        )
        kept_shape = (
            [1 if i == axis else n for i, n in enumerate(kept_shape)]
            if keepdim and self.shape
            else kept_shape
        )
        return results[0].reshape(kept_shape), results[1].reshape(kept_shape)

    def mode(self, dim: int = -1, keepdim: bool = False) -> tuple[Self, Self]:
        """The most frequent element along `dim`, the least of several, and its last position (int32).

        Raises AxisError, ShapeError.

        >>> [t.item() for t in Tensor([2, 3, 1, 3, 2]).mode()]
        [2, 4]
        """
        axis = self._axis(dim)
        self._need_elements(axis, "mode")
        if not self.shape:
            return self._with(self.uop), self._with(broadcast_constant(dtypes.int32, 0, ()))
        values, order = self._detached().sort(axis)
        n = values.shape[axis]
        column = [n if i == axis else 1 for i in range(self.ndim)]
        place = self._of(UOp(Ops.ARANGE, dtypes.int32, (), n).reshape(tuple(column)), self._device)
        differs = values.ne(values._one_later(axis, 0)) | place.eq(0)
        length = place - differs.where(place, 0)._cumulative(axis, Ops.MAX)
        position = order.gather(axis, length.argmax(axis, keepdim=True))
        modes = self.gather(axis, position)
        return (modes, position) if keepdim else (modes.squeeze(axis), position.squeeze(axis))

    def searchsorted(self, values: TensorLike, right: bool = False) -> Self:
        """The insert positions (int32) of `values` (..., m) in this ascending Tensor (..., n), before equal
        elements.

        `right`: behind them. A 1-D Tensor serves values of any shape. Raises ShapeError.

        >>> Tensor([1, 3, 5]).searchsorted(Tensor([3, 4])).tolist()
        [1, 2]
        """
        v = self._tensor(values)
        if self.ndim == 0 or (self.ndim > 1 and v.shape[:-1] != self.shape[:-1]):
            raise ShapeError(
                f"searchsorted: expected values of shape {(*self.shape[:-1], 'm')} for shape {self.shape}, "
                f"got {v.shape}"
            )
        dtype = promote(self.dtype, v.dtype)
        values = v.flatten() if self.ndim == 1 else v
        insert_positions = places(self.uop.cast(dtype), values.uop.cast(dtype), right)
        return self._join(insert_positions.reshape(v.shape), v)

    def bincount(self, weights: Self | None = None, minlength: int = 0) -> Self:
        """How often 0, 1, ... up to the greatest element occur in this 1-D Tensor of integers of at least 0.

        `weights`, of its shape, are summed instead of counts. `minlength`: the least number of counts. The
        greatest element is read now. Raises ShapeError, DTypeError, ArgumentError for a negative element.

        >>> Tensor([0, 2, 2]).bincount().tolist()
        [1, 0, 2]
        """
        if self.ndim != 1:
            raise ShapeError(f"bincount: expected 1 axis, got shape {self.shape}")
        self._need_int("bincount")
        if weights is not None and weights.shape != self.shape:
            raise ShapeError(f"bincount: expected weights of shape {self.shape}, got {weights.shape}")
        n = minlength
        if not same_size(self.shape[0], 0):
            least, greatest = self.min().stack(self.max())._read()
            if least < 0:
                raise ArgumentError(f"bincount: expected elements of at least 0, got {least}")
            n = max(n, greatest + 1)
        hits = self.is_class(n, 0)
        if weights is None:
            return hits._reduce(Ops.ADD, 1, False, dtypes.int32, dtypes.int32)
        return hits.where(weights, 0).sum(1)

    def histc(self, bins: int = 100, min_: float = 0, max_: float = 0) -> Self:
        """How many elements (in this dtype) fall into each of `bins` equal intervals from `min_` to `max_`.

        Both 0: from the least to the greatest element. Elements outside, and NaN, are not counted; `max_`
        itself is in the last interval. Raises ArgumentError.

        >>> Tensor([1.0, 2.0, 1.0]).histc(2, 0, 4).tolist()
        [2.0, 1.0]
        """
        if bins < 1 or min_ > max_:
            raise ArgumentError(f"histc: expected bins >= 1 and min_ <= max_, got {bins}, {min_} and {max_}")
        x = self.flatten()._in_floats()
        if same_size(x.shape[0], 0):
            return self._of(broadcast_constant(self.dtype, 0, (bins,)), self._device)
        lo, hi = x.const_like(min_), x.const_like(max_)
        if min_ == max_ == 0:
            lo, hi = x.min(), x.max()
        flat = hi.eq(lo)
        lo, hi = flat.where(lo - 1.0, lo), flat.where(hi + 1.0, hi)
        in_range = (x >= lo) & (x <= hi)
        place = ((in_range.where(x, lo) - lo) * bins / (hi - lo)).floor().minimum(bins - 1.0)
        place = in_range.where(place, -1.0)
        hits = place._with(place.uop.cast(dtypes.int32)).is_class(bins, 0)
        return hits._reduce(Ops.ADD, 1, False, dtypes.int32, dtypes.int32).cast_like(self)

    def unique(self, return_inverse: bool = False, return_counts: bool = False) -> Self | tuple[Self, ...]:
        """The distinct elements in ascending order, 1-D; NaNs are not distinct.

        With `return_inverse` also the position (int32) of each element of self among them, in the shape of
        self; with `return_counts` how often each occurs (int32). Their number is read now.

        >>> [t.tolist() for t in Tensor([3, 1, 3]).unique(return_counts=True)]
        [[1, 3], [1, 2]]
        """
        x = self.flatten()
        n = x.shape[0]
        if same_size(n, 0):
            empty = self._of(broadcast_constant(dtypes.int32, 0, (0,)), self._device)
            inverse = empty.reshape(self.shape)
            extra_results = [*([inverse] if return_inverse else []), *([empty] if return_counts else [])]
            return (x, *extra_results) if extra_results else x
        if self.dtype.is_int and isinstance(n, int) and not Device.is_gpu(self._device):
            least, greatest = x.min().stack(x.max())._read()
            if greatest - least < _MAX_TABLE * n:
                results = x._unique_in_table(least, greatest, return_inverse, return_counts)
                if return_inverse:
                    results[1] = results[1].reshape(self.shape)
                return tuple(results) if len(results) > 1 else results[0]
        values, order = x.sort()
        values, order = values._with(values.uop.contiguous()), order._with(order.uop.contiguous())
        realize([values.uop, order.uop], x._device)  # once, for all later uses
        before = values.shrink([(0, n - 1)])
        after = values.shrink([(1, n)])
        differs = after.ne(before)
        if self.dtype.is_float:
            differs = differs & (after.isnan() & before.isnan()).logical_not()
        first = self._of(broadcast_constant(dtypes.bool, True, (1,)), self._device).cat(differs)
        starts, count = first._true_positions()
        results = [values.gather(0, starts)._first_of(count)]
        if return_inverse:
            place = first._with(first.uop.cast(dtypes.int32)).cumsum(0) - 1
            back = order.is_class(n, 0).where(place, 0)  # the sorted position of each element
            results.append(back._reduce(Ops.ADD, 1, False, dtypes.int32, dtypes.int32).reshape(self.shape))
        if return_counts:
            starts = starts._first_of(count)
            ends = starts.shrink([(1, count)]).cat(starts._of(broadcast_constant(dtypes.int32, n, (1,))))
            results.append(ends - starts)
        return tuple(results) if len(results) > 1 else results[0]

    def _unique_in_table(
        self, smallest: int, largest: int, return_inverse: bool, return_counts: bool
    ) -> list[Self]:
        """`unique` of integers from `least` to `greatest`: a table counts each of them."""
        size = 1 << (largest - smallest).bit_length()  # few different ones, so that few kernels are compiled
        wide = self.dtype if self.dtype.itemsize >= 4 else dtypes.int32
        place = self._with((self._with(self.uop.cast(wide)) - smallest).uop.cast(dtypes.int32).contiguous())
        counts = place.is_class(size, 0)._reduce(Ops.ADD, 1, False, dtypes.int32, dtypes.int32)
        counts = counts._with(counts.uop.contiguous())
        is_there = counts > 0
        positions, count = is_there._true_positions()
        values = positions._with(positions.uop.cast(wide)) + smallest
        results = [values._with(values.uop.cast(self.dtype))._first_of(count)]
        if return_inverse:
            ranks = is_there._with(is_there.uop.cast(dtypes.int32)).cumsum(0) - 1
            results.append(ranks._with(ranks.uop.contiguous()).gather(0, place))
        if return_counts:
            results.append(counts.gather(0, positions)._first_of(count))
        return results

    def topk(self, k: int, dim: int = -1, largest: bool = True, sorted_: bool = True) -> tuple[Self, Self]:
        """The k greatest (least) along `dim`, in order, and their positions. Raises ArgumentError.

        >>> [t.tolist() for t in Tensor([1, 5, 3]).topk(2)]
        [[5, 3], [1, 2]]
        """
        axis = self._axis(dim)
        k = python_number(k)
        if is_negative(k) or not fits(k, self.shape[axis]):
            raise ArgumentError(f"topk: expected k in 0..{self.shape[axis]}, got {k}")
        if fits(k, 0):
            empty = self.shrink([(0, k) if i == axis else None for i in range(self.ndim)])
            return empty, self._with(broadcast_constant(dtypes.int32, 0, empty.shape))
        in_order = goes_in_order(self._device)
        order = greatest(self.transpose(axis, -1).uop, k, largest, in_order).contiguous()
        positions = self._of(order).transpose(axis, -1)
        return self.gather(axis, positions), positions

    def isin(self, elements: TensorLike) -> Self:
        """Whether each element is one of `elements`.

        >>> Tensor([1, 2, 3]).isin([3, 1]).tolist()
        [True, False, True]
        """
        among = self._tensor(elements)
        return self.unsqueeze(-1).eq(among.flatten()).any(-1)
