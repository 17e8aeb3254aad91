"""Pooling: windows made by movement ops, then a reduction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self, overload

from polygrad.dtype import dtypes
from polygrad.errors import ShapeError
from polygrad.helpers import ceildiv, prod
from polygrad.tensor.convolution import ConvolutionMixin, each_of, steps_of
from polygrad.tensor.core.sizes import fits, larger
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
        """The mean of each window over the last axes; padding counts unless told. Raises ShapeError.

        >>> Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]).avg_pool2d().tolist()
        [[[[2.5]]]]
        """
        kernel = each_of(kernel_size, 2)
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

    def _windows_behind(self, image: Self, kernel: Any, stride: Any, dilation: Any, padding: Any) -> Self:
        """The windows of this padded Tensor where ceil_mode has those of `image`; zeros beyond its end."""
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
