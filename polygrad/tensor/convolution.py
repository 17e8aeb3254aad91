"""Convolution: windows by movement ops, then a product and a sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from polygrad.dtype import promote
from polygrad.errors import ArgumentError, ShapeError
from polygrad.tensor.core.base import DTypeLike
from polygrad.tensor.core.sizes import each_of, python_number, same_size
from polygrad.tensor.reduce import ReduceMixin, sum_dtypes
from polygrad.uop.ops import Ops


class ConvolutionMixin(ReduceMixin):
    """Convolution. Images are (batch, channels, *spatial)."""

    __slots__ = ()

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
        """Cross-correlation over any number of spatial axes. Raises ShapeError, ArgumentError.

        Shapes: self (n, groups*cin, *spatial), weight (cout, cin, *kernel), bias (cout,), result
        (n, cout, *out).

        The order of arguments is tinygrad's; torch's is stride, padding, dilation, groups: pass them by
        name.

        >>> Tensor.arange(9).reshape(1, 1, 3, 3).float().conv2d(Tensor.ones(1, 1, 2, 2)).tolist()
        [[[[8.0, 12.0], [20.0, 24.0]]]]
        """
        dims = weight.ndim - 2
        if dims < 1:
            raise ShapeError(f"conv2d: expected a weight (out, in, *kernel), got shape {weight.shape}")
        cout, cin, kernel = weight.shape[0], weight.shape[1], weight.shape[2:]
        if self.ndim != weight.ndim or not same_size(self.shape[1], groups * cin) or cout % groups:
            raise ShapeError(
                f"conv2d: expected input (n, {groups * cin}, ...) with {weight.ndim} axes in {groups} "
                f"groups for weight {weight.shape}, got input {self.shape}"
            )
        if bias is not None and bias.shape != (cout,):
            raise ShapeError(f"conv2d: expected a bias of shape {(cout,)}, got {bias.shape}")
        strides, dilations = (
            steps_of(stride, dims, "conv2d: stride"),
            steps_of(dilation, dims, "conv2d: dilation"),
        )
        pads = self._spatial_padding(padding, dims, "conv2d")
        accumulate, kind = sum_dtypes(promote(self.dtype, weight.dtype), dtype)
        # Products of narrow numbers would be rounded, or wrap around, before they are added.
        x, w = (t._with(t.uop.cast(accumulate)) for t in (self, weight))
        x = x.pad([None, None, *pads]).pool(kernel, strides, dilations)
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

        The order of arguments is tinygrad's, as of `conv2d`.

        >>> Tensor([[[[1.0, 2.0]]]]).conv_transpose2d(Tensor.ones(1, 1, 1, 2)).tolist()
        [[[[1.0, 3.0, 2.0]]]]
        """
        kernel = weight.shape[2:]
        dims = len(kernel)
        strides = steps_of(stride, dims, "conv_transpose2d: stride")
        dilations = steps_of(dilation, dims, "conv_transpose2d: dilation")
        extra = each_of(output_padding, dims)
        if any(e < 0 or e >= max(s, d) for e, s, d in zip(extra, strides, dilations, strict=True)):
            raise ArgumentError(
                f"conv_transpose2d: expected output_padding from 0 up, below stride {stride} or dilation "
                f"{dilation}, got {output_padding}"
            )
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

    def _spatial_padding(self, padding: int | Sequence[int], dims: int, what: str) -> list[tuple[int, int]]:
        """(before, after) of each spatial axis, first axis first.

        A flat sequence of 2n starts with the last, as torch's.
        """
        padding = python_number(padding)
        if isinstance(padding, int):
            return [(padding, padding)] * dims
        sizes = list(padding) if isinstance(padding, (tuple, list)) else []
        if len(sizes) == dims:
            return [(p, p) for p in sizes]
        if len(sizes) == 2 * dims:
            return [(sizes[2 * i], sizes[2 * i + 1]) for i in range(dims)][::-1]
        raise ArgumentError(f"{what}: expected padding of 1, {dims} or {2 * dims} ints, got {padding!r}")


def steps_of(x: int | Sequence[int], n: int, what: str) -> tuple[int, ...]:
    """One number from 1 up for each of n axes. Raises ArgumentError."""
    out = each_of(x, n)
    if len(out) != n or any(isinstance(s, int) and s < 1 for s in out):
        raise ArgumentError(f"{what}: expected an int from 1 up, or {n} of them, got {x}")
    return out
