"""Convolution and pooling: windows made by movement ops, then a product and a sum, or a reduction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from polygrad.dtype import promote
from polygrad.errors import ArgumentError, ShapeError
from polygrad.helpers import ceildiv
from polygrad.tensor.base import DTypeLike
from polygrad.tensor.movement import same_size
from polygrad.tensor.reduce import ReduceMixin, sum_dtypes
from polygrad.tensor.sizes import fits, larger
from polygrad.uop.ops import Ops


class ConvolutionMixin(ReduceMixin):
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
        """The transpose of conv2d. weight: (groups*cin, cout/groups, *kernel). Raises ShapeError."""
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

    def max_pool2d(
        self,
        kernel_size: int | Sequence[int] = (2, 2),
        stride: Any = None,
        dilation: Any = 1,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
    ) -> Self:
        """The greatest element of each window over the last axes; `stride` defaults to the window.

        Raises ShapeError.
        """
        kernel = _each(kernel_size, 2)
        lowest = self.dtype.min
        windows = self._windows(kernel, stride, dilation, padding, lowest, ceil_mode, "max_pool2d")
        return windows.max(tuple(range(-len(kernel), 0)))

    def avg_pool2d(
        self,
        kernel_size: int | Sequence[int] = (2, 2),
        stride: Any = None,
        dilation: Any = 1,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> Self:
        """The mean of each window over the last axes; padding counts unless told. Raises ShapeError."""
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
