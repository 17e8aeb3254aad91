"""Images of another size: interpolation, and pixels between channels and space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError, ShapeError
from polygrad.tensor.core.sizes import fixed_size
from polygrad.tensor.indexing import IndexingMixin
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


class ResamplingMixin(IndexingMixin):
    """Resampling. Images are (batch, channels, *spatial)."""

    __slots__ = ()

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
            raise ArgumentError(
                f"interpolate: expected either size or scale_factor, got {size} and {scale_factor}"
            )
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

    def pixel_shuffle(self, upscale_factor: int) -> Self:
        """(..., c * r², h, w) as (..., c, h * r, w * r) (Shi et al., 2016). Raises ShapeError.

        >>> Tensor([[[1]], [[2]], [[3]], [[4]]]).pixel_shuffle(2).tolist()
        [[[1, 2], [3, 4]]]
        """
        r = upscale_factor
        if self.ndim < 3 or r < 1 or fixed_size(self.shape[-3], "pixel_shuffle") % (r * r):
            raise ShapeError(f"pixel_shuffle: expected (..., n * {r * r}, height, width), got {self.shape}")
        return self.rearrange("... (c r s) h w -> ... c (h r) (w s)", r=r, s=r)

    def pixel_unshuffle(self, downscale_factor: int) -> Self:
        """(..., c, h * r, w * r) as (..., c * r², h, w): pixel_shuffle's inverse. Raises ShapeError.

        >>> Tensor([[[1, 2], [3, 4]]]).pixel_unshuffle(2).tolist()
        [[[1]], [[2]], [[3]], [[4]]]
        """
        r = downscale_factor
        if self.ndim < 3 or r < 1 or any(fixed_size(n, "pixel_unshuffle") % r for n in self.shape[-2:]):
            raise ShapeError(f"pixel_unshuffle: expected sizes that {r} divides, got {self.shape}")
        return self.rearrange("... c (h r) (w s) -> ... (c r s) h w", r=r, s=r)
