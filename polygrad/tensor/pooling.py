"""Pooling: windows by movement ops, then a reduction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self, overload

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError, ShapeError
from polygrad.helpers import ceildiv, prod
from polygrad.tensor.convolution import ConvolutionMixin, steps_of
from polygrad.tensor.core.sizes import each_of, fits, fixed_size, larger
from polygrad.tensor.indexing import IndexingMixin
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


class PoolingMixin(ConvolutionMixin, IndexingMixin):
    """Pooling over the last axes, any number of them."""

    __slots__ = ()

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

        `dilation` comes before `padding`, and equal maxima of a window share the gradient, as tinygrad's; in
        torch `padding` comes first, and the first of equals has the gradient.

        >>> Tensor([[[[1, 2], [3, 4]]]]).max_pool2d().tolist()
        [[[[4]]]]
        """
        kernel = each_of(kernel_size, 2)
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

        The other arguments are those of the pooling; they determine the size of the result, unless
        `output_size` (its last axes) is given. Where an index occurs twice, the elements add up. Raises
        ShapeError.

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
            kernel = each_of(kernel_size, dims)
            strides = each_of(stride if stride is not None else kernel, dims)
            pads = self._spatial_padding(padding, dims, "max_unpool2d")
            spatial = [
                (n - 1) * s + d * (k - 1) + 1 - lo - hi
                for n, k, s, d, (lo, hi) in zip(
                    self.shape[2:], kernel, strides, each_of(dilation, dims), pads, strict=True
                )
            ]
        else:
            spatial = list(output_size)[-dims:]
        hits = indices.flatten(2).is_class(prod(spatial), 2)
        values = hits.where(self.flatten(2).unsqueeze(2), 0)
        out = values._reduce(Ops.ADD, -1, False, self.dtype, self.dtype)
        return out.reshape(*self.shape[:2], *spatial)

    def avg_pool2d(
        self,
        kernel_size: int | Sequence[int] = (2, 2),
        stride: Any = None,
        dilation: Any = 1,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> Self:
        """The mean of each window over the last axes; padding counts if `count_include_pad`. Raises
        ShapeError.

        `dilation` comes before `padding`, as tinygrad's; torch has none, and `padding` in its place.

        >>> Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]).avg_pool2d().tolist()
        [[[[2.5]]]]
        """
        kernel = each_of(kernel_size, 2)
        axes = tuple(range(-len(kernel), 0))
        windows = self._windows(kernel, stride, dilation, padding, 0, ceil_mode, "avg_pool2d")
        if not ceil_mode and (count_include_pad or padding == 0):
            return windows.mean(axes)
        counted = self.const_like(1)
        if count_include_pad:  # only the elements that ceil_mode adds do not count
            pads = self._spatial_padding(padding, len(kernel), "avg_pool2d")
            lead: list[Any] = [None] * (self.ndim - len(kernel))
            counted = counted.pad([*lead, *pads], value=1)
            count = counted._windows_behind(self, kernel, stride, dilation, padding)
        else:
            count = counted._windows(kernel, stride, dilation, padding, 0, ceil_mode, "avg_pool2d")
        return windows.sum(axes) / count.sum(axes)

    # --- windows that follow from the size of the result

    def adaptive_avg_pool1d(self, output_size: int | Sequence[int]) -> Self:
        """The means of `output_size` windows of nearly equal size along the last axis.

        Window i is from floor(i n / m) up to ceil((i + 1) n / m), for m of n elements. Raises ArgumentError,
        ShapeError.

        >>> Tensor([[1.0, 2.0, 3.0, 4.0]]).adaptive_avg_pool1d(2).tolist()
        [[1.5, 3.5]]
        """
        return self._adaptive_avg_pool(output_size, 1)

    def adaptive_avg_pool2d(self, output_size: int | Sequence[int | None]) -> Self:
        """As `adaptive_avg_pool1d`, over the last two axes; a size that is None is the axis' own.

        >>> Tensor([[[1.0, 2.0], [3.0, 4.0]]]).adaptive_avg_pool2d((1, None)).tolist()
        [[[2.0, 3.0]]]
        """
        return self._adaptive_avg_pool(output_size, 2)

    def adaptive_avg_pool3d(self, output_size: int | Sequence[int | None]) -> Self:
        """As `adaptive_avg_pool1d`, over the last three axes; a size that is None is the axis' own.

        >>> Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]).adaptive_avg_pool3d(1).tolist()
        [[[[2.5]]]]
        """
        return self._adaptive_avg_pool(output_size, 3)

    def adaptive_max_pool1d(
        self, output_size: int | Sequence[int], return_indices: bool = False
    ) -> Self | tuple[Self, Self]:
        """The greatest elements of the windows of `adaptive_avg_pool1d`.

        With `return_indices` also their positions (int32), as `max_pool2d` gives them. Raises ArgumentError,
        ShapeError.

        >>> Tensor([[1.0, 2.0, 3.0, 4.0]]).adaptive_max_pool1d(2).tolist()
        [[2.0, 4.0]]
        """
        return self._adaptive_max_pool(output_size, 1, return_indices)

    def adaptive_max_pool2d(
        self, output_size: int | Sequence[int | None], return_indices: bool = False
    ) -> Self | tuple[Self, Self]:
        """As `adaptive_max_pool1d`, over the last two axes; a size that is None is the axis' own.

        >>> values, indices = Tensor([[[1, 2], [4, 3]]]).adaptive_max_pool2d((1, None), return_indices=True)
        >>> values.tolist(), indices.tolist()
        ([[[4, 3]]], [[[2, 3]]])
        """
        return self._adaptive_max_pool(output_size, 2, return_indices)

    def adaptive_max_pool3d(
        self, output_size: int | Sequence[int | None], return_indices: bool = False
    ) -> Self | tuple[Self, Self]:
        """As `adaptive_max_pool1d`, over the last three axes; a size that is None is the axis' own.

        >>> Tensor([[[[1, 2], [4, 3]]]]).adaptive_max_pool3d(1).tolist()
        [[[[4]]]]
        """
        return self._adaptive_max_pool(output_size, 3, return_indices)

    def _adaptive_windows(self, output_size: Any, dims: int, what: str) -> tuple[Self, Self | None]:
        """(..., *outputs, *windows), and a mask of the elements that belong to the windows; None: all do."""
        sizes = each_of(output_size, dims)
        if len(sizes) != dims or not all(s is None or (isinstance(s, int) and s > 0) for s in sizes):
            raise ArgumentError(
                f"{what}: expected an output_size of {dims} ints from 1 up, got {output_size}"
            )
        if self.ndim < dims:
            raise ShapeError(f"{what}: expected at least {dims} axes, got shape {self.shape}")
        lead = self.ndim - dims
        out, window_mask = self, None
        for d, output_count in enumerate(sizes):
            axis = lead + 2 * d
            n = fixed_size(out.shape[axis], what)
            m = n if output_count is None else output_count
            if n % m == 0:
                out = out.unflatten(axis, (m, n // m))
                continue
            if n == 0:
                raise ShapeError(f"{what}: expected at least one element to pool, got shape {self.shape}")
            first = [i * n // m for i in range(m)]
            width = max(ceildiv((i + 1) * n, m) - first[i] for i in range(m))
            window = self._of(UOp(Ops.ARANGE, dtypes.int32, (), m), self._device).unsqueeze(1)
            place = window * n // m + self._of(UOp(Ops.ARANGE, dtypes.int32, (), width), self._device)
            belongs = place < ((window + 1) * n + (m - 1)) // m
            out = out[(slice(None),) * axis + (place.minimum(n - 1),)]
            belongs = belongs.reshape(*[1] * (2 * d), m, width, *[1] * (2 * (dims - d - 1)))
            window_mask = belongs if window_mask is None else window_mask & belongs
        order = [*range(lead), *range(lead, out.ndim, 2), *range(lead + 1, out.ndim, 2)]
        if window_mask is not None:
            window_mask = window_mask.permute([*range(0, 2 * dims, 2), *range(1, 2 * dims, 2)])
        out = out.permute(order)
        return out, None if window_mask is None else window_mask.expand(out.shape[lead:])

    def _adaptive_avg_pool(self, output_size: Any, dims: int) -> Self:
        windows, window_mask = self._adaptive_windows(output_size, dims, f"adaptive_avg_pool{dims}d")
        axes = tuple(range(-dims, 0))
        if window_mask is None:
            return windows.mean(axes)
        count = window_mask._with(window_mask.uop.cast(dtypes.int32)).sum(axes)
        return window_mask.where(windows, 0).sum(axes) / count

    def _adaptive_max_pool(
        self, output_size: Any, dims: int, return_indices: bool
    ) -> Self | tuple[Self, Self]:
        what = f"adaptive_max_pool{dims}d"
        windows, window_mask = self._adaptive_windows(output_size, dims, what)
        axes = tuple(range(-dims, 0))
        if window_mask is not None:
            windows = window_mask.where(windows, self.dtype.min)
        top = windows.max(axes)
        if not return_indices:
            return top
        total = fixed_size(prod(self.shape[-dims:]), what)
        from_end = self._of(UOp(Ops.ARANGE, dtypes.int32, (), total), self._device) * -1 + total
        places, _ = from_end.reshape(self.shape[-dims:])._adaptive_windows(output_size, dims, what)
        is_top = windows.eq(windows.max(axes, keepdim=True))
        is_top = is_top | windows.isnan() if self.dtype.is_float else is_top
        is_top = is_top if window_mask is None else is_top & window_mask
        first = is_top.where(places, 0)._reduce(Ops.MAX, axes, False, dtypes.int32, dtypes.int32)
        return top, first * -1 + total

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
        kernel = steps_of(kernel, dims, f"{what}: kernel_size")
        strides = steps_of(kernel if stride is None else stride, dims, f"{what}: stride")
        dilations = steps_of(dilation, dims, f"{what}: dilation")
        pads = self._spatial_padding(padding, dims, what)
        if ceil_mode:
            extra_padding = []
            for n, k, s, d, (lo, hi) in zip(
                self.shape[-dims:], kernel, strides, dilations, pads, strict=True
            ):
                reach = d * (k - 1) + 1
                out = ceildiv(n + lo + hi - reach, s) + 1
                if fits(n + lo, (out - 1) * s):  # a window must start inside
                    out = out - 1
                extra_padding.append((lo, larger((out - 1) * s + reach - n - lo, hi)))
            pads = extra_padding
        lead: list[Any] = [None] * (self.ndim - dims)
        return self.pad([*lead, *pads], value=value).pool(tuple(kernel), strides, dilations)

    def _windows_behind(self, image: Self, kernel: Any, stride: Any, dilation: Any, padding: Any) -> Self:
        """The windows of this padded Tensor that correspond to those of `image` with ceil_mode; zeros beyond
        its end."""
        windows = image._windows(kernel, stride, dilation, padding, 0, True, "avg_pool2d")
        dims = len(kernel)
        strides, dilations = (
            each_of(stride if stride is not None else tuple(kernel), dims),
            each_of(dilation, dims),
        )
        outs = windows.shape[self.ndim - dims : self.ndim]
        lead: list[Any] = [None] * (self.ndim - dims)
        fill = [
            (0, larger((o - 1) * s + d * (k - 1) + 1 - n, 0))
            for o, s, d, k, n in zip(outs, strides, dilations, kernel, self.shape[-dims:], strict=True)
        ]
        return self.pad([*lead, *fill]).pool(tuple(kernel), strides, dilations)
