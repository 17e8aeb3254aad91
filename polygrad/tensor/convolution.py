"""Convolution and pooling: windows made by movement ops, then a product and a sum, or a reduction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self, overload

from polygrad.dtype import dtypes, promote
from polygrad.errors import ArgumentError, ShapeError
from polygrad.helpers import ceildiv, prod
from polygrad.tensor.base import DTypeLike
from polygrad.tensor.indexing import IndexingMixin
from polygrad.tensor.movement import same_size
from polygrad.tensor.reduce import sum_dtypes
from polygrad.tensor.sizes import fits, larger
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


class ConvolutionMixin(IndexingMixin):
    """Convolution and pooling. Images are (batch, channels, *spatial)."""

    __slots__ = ()

    def _spatial_padding(self, padding: int | Sequence[int], dims: int, what: str) -> list[tuple[int, int]]:
        """(before, after) of each spatial axis, first axis first.

        A flat sequence of 2n starts with the last, as torch's.
        """
        if isinstance(padding, int):
            return [(padding, padding)] * dims
        sizes = list(padding)
        if len(sizes) == dims:
            return [(p, p) for p in sizes]
        if len(sizes) == 2 * dims:
            return [(sizes[2 * i], sizes[2 * i + 1]) for i in range(dims)][::-1]
        raise ArgumentError(f"{what}: expected padding of 1, {dims} or {2 * dims} ints, got {padding}")

    def conv2d(
        self,
        weight: Self,
        bias: Self | None = None,
        groups: int = 1,
        stride: int | Sequence[int] = 1,
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dtype: DTypeLike | None = None,
    ) -> Self:
        """Cross-correlation over any number of spatial axes. Raises ShapeError.

        Shapes: self (n, groups*cin, *spatial), weight (cout, cin, *kernel), bias (cout,), result
        (n, cout, *out).

        >>> Tensor.arange(9).reshape(1, 1, 3, 3).float().conv2d(Tensor.ones(1, 1, 2, 2)).tolist()
        [[[[8.0, 12.0], [20.0, 24.0]]]]
        """
        dims = weight.ndim - 2
        cout, cin, kernel = weight.shape[0], weight.shape[1], weight.shape[2:]
        if self.ndim != weight.ndim or not same_size(self.shape[1], groups * cin) or cout % groups:
            raise ShapeError(
                f"conv2d: expected input (n, {groups * cin}, ...) with {weight.ndim} axes in {groups} "
                f"groups for weight {weight.shape}, got input {self.shape}"
            )
        pads = self._spatial_padding(padding, dims, "conv2d")
        accumulate, kind = sum_dtypes(promote(self.dtype, weight.dtype), dtype)
        x, w = self, weight
        if kind.is_float:  # 16-bit products would be rounded before they are added
            x, w = x._with(x.uop.cast(accumulate)), w._with(w.uop.cast(accumulate))
        x = x.pad([None, None, *pads]).pool(kernel, _each(stride, dims), _each(dilation, dims))
        batch, out = self.shape[0], x.shape[2 : 2 + dims]
        per_group = cout // groups
        x = x.reshape(batch, groups, cin, 1, *out, *kernel).expand(
            batch, groups, cin, per_group, *out, *kernel
        )
        order = [0, 1, 3, *range(4, 4 + dims), 2, *range(4 + dims, 4 + 2 * dims)]
        x = x.permute(*order)  # (n, groups, per_group, *out, cin, *kernel)
        w = w.reshape(1, groups, per_group, *[1] * dims, cin, *kernel)
        result = (x * w)._reduce(Ops.ADD, tuple(range(-1 - dims, 0)), True, accumulate, kind)
        result = result.reshape(batch, cout, *out)
        return result if bias is None else result + bias.reshape(1, -1, *[1] * dims)

    def conv_transpose2d(
        self,
        weight: Self,
        bias: Self | None = None,
        groups: int = 1,
        stride: int | Sequence[int] = 1,
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
    ) -> Self:
        """The transpose of conv2d. weight: (groups*cin, cout/groups, *kernel). Raises ShapeError.

        >>> Tensor([[[[1.0, 2.0]]]]).conv_transpose2d(Tensor.ones(1, 1, 1, 2)).tolist()
        [[[[1.0, 3.0, 2.0]]]]
        """
        kernel = weight.shape[2:]
        dims = len(kernel)
        strides, dilations, extra = _each(stride, dims), _each(dilation, dims), _each(output_padding, dims)
        pads = self._spatial_padding(padding, dims, "conv_transpose2d")
        w = weight.unflatten(0, (groups, -1)).permute(0, 2, 1, *range(3, 3 + dims))
        w = w.flip(tuple(range(3, 3 + dims))).flatten(0, 1)
        x = self
        if any(s > 1 for s in strides):  # zeros between the elements
            spatial = x.shape[2:]
            x = x.reshape(*x.shape[:2], *[v for n in spatial for v in (n, 1)])
            x = x.pad([None, None, *[p for s in strides for p in (None, (0, s - 1))]])
            x = x.reshape(*x.shape[:2], *[n * s for n, s in zip(spatial, strides, strict=True)])
            x = x.shrink([None, None, *[(0, n * s - (s - 1)) for n, s in zip(spatial, strides, strict=True)]])
        input_padding = [
            ((k - 1) * d - lo, (k - 1) * d - hi + e)
            for k, d, (lo, hi), e in zip(kernel, dilations, pads, extra, strict=True)
        ]
        return x.pad([None, None, *input_padding]).conv2d(w, bias, groups=groups, dilation=dilations)

    def _windows(
        self,
        kernel: Sequence[int],
        stride: Any,
        dilation: Any,
        padding: Any,
        value: Any,
        ceil_mode: bool,
        what: str,
    ) -> Self:
        dims = len(kernel)
        if self.ndim < dims:
            raise ShapeError(f"{what}: expected at least {dims} axes, got shape {self.shape}")
        strides, dilations = (
            _each(stride if stride is not None else tuple(kernel), dims),
            _each(dilation, dims),
        )
        pads = self._spatial_padding(padding, dims, what)
        if ceil_mode:
            grown = []
            for n, k, s, d, (lo, hi) in zip(
                self.shape[-dims:], kernel, strides, dilations, pads, strict=True
            ):
                reach = d * (k - 1) + 1
                out = ceildiv(n + lo + hi - reach, s) + 1
                if fits(n + lo, (out - 1) * s):  # a window must start inside
                    out = out - 1
                grown.append((lo, larger((out - 1) * s + reach - n - lo, hi)))
            pads = grown
        lead: list[Any] = [None] * (self.ndim - dims)
        return self.pad([*lead, *pads], value=value).pool(tuple(kernel), strides, dilations)

    @overload
    def max_pool2d(
        self,
        kernel_size: int | Sequence[int] = (2, 2),
        stride: Any = None,
        dilation: Any = 1,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        return_indices: Literal[False] = False,
    ) -> Self: ...

    @overload
    def max_pool2d(
        self,
        kernel_size: int | Sequence[int] = (2, 2),
        stride: Any = None,
        dilation: Any = 1,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Self | tuple[Self, Self]: ...

    def max_pool2d(
        self,
        kernel_size: int | Sequence[int] = (2, 2),
        stride: Any = None,
        dilation: Any = 1,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Self | tuple[Self, Self]:
        """The greatest element of each window over the last axes; `stride` defaults to the window.

        With `return_indices` also its position (int32) in these axes, flattened, the first of equals or of
        NaNs: what `max_unpool2d` takes. Raises ShapeError.

        >>> Tensor([[[[1, 2], [3, 4]]]]).max_pool2d().tolist()
        [[[[4]]]]
        """
        kernel = _each(kernel_size, 2)
        dims = len(kernel)
        axes = tuple(range(-dims, 0))
        windows = self._windows(kernel, stride, dilation, padding, self.dtype.min, ceil_mode, "max_pool2d")
        top = windows.max(axes)
        if not return_indices:
            return top
        spatial = self.shape[-dims:]
        total = prod(spatial)
        from_end = self._of(UOp(Ops.ARANGE, dtypes.int32, (), total), self._device) * -1 + total
        places = from_end.reshape(spatial)._windows(
            kernel, stride, dilation, padding, 0, ceil_mode, "max_pool2d"
        )
        is_top = windows.eq(windows.max(axes, keepdim=True))
        is_top = is_top | windows.isnan() if self.dtype.is_float else is_top
        first = is_top.where(places, 0)._reduce(Ops.MAX, axes, False, dtypes.int32, dtypes.int32)
        return top, first * -1 + total

    def max_unpool2d(
        self,
        indices: Self,
        kernel_size: int | Sequence[int] = (2, 2),
        stride: Any = None,
        dilation: Any = 1,
        padding: int | Sequence[int] = 0,
        output_size: Sequence[int] | None = None,
    ) -> Self:
        """The elements at `indices` of `max_pool2d`, zeros elsewhere: (n, channels, *spatial).

        The other arguments are those of the pooling, from which the size follows, unless it is `output_size`
        (its last axes). Where an index comes twice, the elements add up. Raises ShapeError.

        >>> values, indices = Tensor([[[[1, 2], [3, 4]]]]).max_pool2d(return_indices=True)
        >>> values.max_unpool2d(indices).tolist()
        [[[[0, 0], [0, 4]]]]
        """
        dims = self.ndim - 2
        if dims < 1 or indices.shape != self.shape:
            raise ShapeError(
                f"max_unpool2d: expected (n, channels, ...) and indices of one shape, got {self.shape} and "
                f"{indices.shape}"
            )
        spatial: Sequence[int]
        if output_size is None:
            kernel = _each(kernel_size, dims)
            strides = _each(stride if stride is not None else kernel, dims)
            pads = self._spatial_padding(padding, dims, "max_unpool2d")
            spatial = [
                (n - 1) * s + d * (k - 1) + 1 - lo - hi
                for n, k, s, d, (lo, hi) in zip(
                    self.shape[2:], kernel, strides, _each(dilation, dims), pads, strict=True
                )
            ]
        else:
            spatial = list(output_size)[-dims:]
        hits = indices.flatten(2).is_class(prod(spatial), 2)
        values = hits.where(self.flatten(2).unsqueeze(2), 0)
        out = values._reduce(Ops.ADD, -1, False, self.dtype, self.dtype)
        return out.reshape(*self.shape[:2], *spatial)

    def interpolate(
        self,
        size: int | Sequence[int] | None = None,
        mode: str = "linear",
        align_corners: bool = False,
        scale_factor: float | Sequence[float] | None = None,
    ) -> Self:
        """The last axes resized to `size`, or by `scale_factor`: a number for each of them.

        One number alone is for all axes of an image but the first two (n, channels).

        `mode`: 'nearest', 'nearest-exact', 'linear' ('bilinear' and 'trilinear' say the same). Positions are
        torch's; with `align_corners` (linear) the first and the last elements stay where they are. Raises
        ArgumentError, ShapeError.

        >>> Tensor([[[1.0, 3.0]]]).interpolate(4).tolist()
        [[[1.0, 1.5, 2.5, 3.0]]]
        """
        mode = {"bilinear": "linear", "trilinear": "linear"}.get(mode, mode)
        if mode not in ("linear", "nearest", "nearest-exact"):
            raise ArgumentError(f"interpolate: expected mode nearest, nearest-exact or linear, got {mode!r}")
        if align_corners and mode != "linear":
            raise ArgumentError(f"interpolate: expected align_corners with mode linear, got {mode!r}")
        if (size is None) == (scale_factor is None):
            raise ArgumentError("interpolate: expected either size or scale_factor")
        given: Any = size if size is not None else scale_factor
        sizes = [given] * max(self.ndim - 2, 1) if isinstance(given, (int, float)) else list(given)
        if not 0 < len(sizes) <= self.ndim or not all(isinstance(n, int) for n in self.shape[-len(sizes) :]):
            raise ShapeError(f"interpolate: expected up to {self.ndim} fixed sizes, got {given}")
        out = self if mode != "linear" else self._in_accumulation_dtype()
        for axis, wanted in zip(range(-len(sizes), 0), sizes, strict=True):
            n = int(self.shape[axis])
            count = wanted if size is not None else int(n * wanted)
            if not isinstance(count, int) or count < 1 or n < 1:
                raise ShapeError(f"interpolate: expected sizes of at least 1, got {n} to {count}")
            out = out._resized(self.ndim + axis, count, mode, align_corners)
        return out if mode != "linear" else self._in_result_dtype(out)

    def _resized(self, axis: int, count: int, mode: str, align_corners: bool) -> Self:
        """One axis resized; positions are fractions with a common denominator, so exact."""
        n = int(self.shape[axis])
        place = self._of(UOp(Ops.ARANGE, dtypes.int64, (), count), self._device)
        lead = [slice(None)] * axis
        if mode != "linear":
            top, bottom = (place * n, count) if mode == "nearest" else ((place * 2 + 1) * n, 2 * count)
            return self[(*lead, top // bottom)]
        if align_corners:
            top, bottom = place * (n - 1), max(count - 1, 1)
        else:
            top, bottom = (place * 2 + 1) * n - count, 2 * count
        top = top.clamp(0, (n - 1) * bottom)
        low = top // bottom
        weight = (top - low * bottom).cast_like(self) * (1.0 / bottom)
        weight = weight.reshape(count, *[1] * (self.ndim - axis - 1))
        first, second = self[(*lead, low)], self[(*lead, (low + 1).minimum(n - 1))]
        return first + (second - first) * weight

    def avg_pool2d(
        self,
        kernel_size: int | Sequence[int] = (2, 2),
        stride: Any = None,
        dilation: Any = 1,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> Self:
        """The mean of each window over the last axes; padding counts unless told. Raises ShapeError.

        >>> Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]).avg_pool2d().tolist()
        [[[[2.5]]]]
        """
        kernel = _each(kernel_size, 2)
        axes = tuple(range(-len(kernel), 0))
        windows = self._windows(kernel, stride, dilation, padding, 0, ceil_mode, "avg_pool2d")
        if not ceil_mode and (count_include_pad or padding == 0):
            return windows.mean(axes)
        ones = self.const_like(1)
        if count_include_pad:  # only what ceil_mode adds is left out
            pads = self._spatial_padding(padding, len(kernel), "avg_pool2d")
            lead: list[Any] = [None] * (self.ndim - len(kernel))
            ones = ones.pad([*lead, *pads], value=1)
            count = ones._windows_behind(self, kernel, stride, dilation, padding)
        else:
            count = ones._windows(kernel, stride, dilation, padding, 0, ceil_mode, "avg_pool2d")
        return windows.sum(axes) / count.sum(axes)

    def _windows_behind(self, image: Self, kernel: Any, stride: Any, dilation: Any, padding: Any) -> Self:
        """The windows of this padded Tensor where ceil_mode has those of `image`; zeros beyond its end."""
        windows = image._windows(kernel, stride, dilation, padding, 0, True, "avg_pool2d")
        dims = len(kernel)
        strides, dilations = (
            _each(stride if stride is not None else tuple(kernel), dims),
            _each(dilation, dims),
        )
        outs = windows.shape[self.ndim - dims : self.ndim]
        lead: list[Any] = [None] * (self.ndim - dims)
        fill = [
            (0, larger((o - 1) * s + d * (k - 1) + 1 - n, 0))
            for o, s, d, k, n in zip(outs, strides, dilations, kernel, self.shape[-dims:], strict=True)
        ]
        return self.pad([*lead, *fill]).pool(tuple(kernel), strides, dilations)


def _each(x: int | Sequence[int], n: int) -> tuple[int, ...]:
    return (x,) * n if isinstance(x, int) else tuple(x)
