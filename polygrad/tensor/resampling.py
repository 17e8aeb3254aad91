"""Resampling of images: interpolation, sampling by a grid, pixel shuffling between channels and space."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Self

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError, ShapeError
from polygrad.tensor.core.aliasing import memory_under
from polygrad.tensor.core.sizes import fixed_size, python_number
from polygrad.tensor.indexing import IndexingMixin
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

_KEYS = -0.75  # the parameter of the cubic kernel, torch's


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

        A single number applies to all axes of an image except the first two (n, channels).

        `mode`: 'nearest', 'nearest-exact', 'linear' ('bilinear' and 'trilinear' say the same), 'bicubic' (of
        two axes; Keys, 1981, with a = -0.75). Positions are torch's; with `align_corners` (linear, bicubic)
        the first and the last elements stay where they are. Raises ArgumentError, ShapeError.

        `mode` is 'linear' by default, as tinygrad's; torch's is 'nearest'.

        >>> Tensor([[[1.0, 3.0]]]).interpolate(4).tolist()
        [[[1.0, 1.5, 2.5, 3.0]]]
        """
        mode = {"bilinear": "linear", "trilinear": "linear"}.get(mode, mode)
        if mode not in ("linear", "bicubic", "nearest", "nearest-exact"):
            raise ArgumentError(
                f"interpolate: expected mode nearest, nearest-exact, linear or bicubic, got {mode!r}"
            )
        is_smooth = mode in ("linear", "bicubic")
        if align_corners and not is_smooth:
            raise ArgumentError(
                f"interpolate: expected align_corners with mode linear or bicubic, got {mode!r}"
            )
        if (size is None) == (scale_factor is None):
            raise ArgumentError(
                f"interpolate: expected either size or scale_factor, got {size} and {scale_factor}"
            )
        size_or_scale: Any = python_number(size if size is not None else scale_factor)
        sizes = (
            [size_or_scale] * max(self.ndim - 2, 1)
            if isinstance(size_or_scale, (int, float))
            else [python_number(n) for n in size_or_scale]
        )
        if not 0 < len(sizes) <= self.ndim or not all(isinstance(n, int) for n in self.shape[-len(sizes) :]):
            raise ShapeError(f"interpolate: expected up to {self.ndim} fixed sizes, got {size_or_scale}")
        if mode == "bicubic" and len(sizes) != 2:
            raise ShapeError(f"interpolate: expected two sizes for mode bicubic, got {len(sizes)}")
        out = self._in_accumulation_dtype() if is_smooth else self
        for axis, new_size in zip(range(-len(sizes), 0), sizes, strict=True):
            n = int(self.shape[axis])
            count = new_size if size is not None else int(n * new_size)
            if not isinstance(count, int) or count < 1 or n < 1:
                raise ShapeError(f"interpolate: expected sizes of at least 1, got {n} to {count}")
            out = out._resize_axis(self.ndim + axis, count, mode, align_corners)
        return self._in_result_dtype(out) if is_smooth else out

    def _resize_axis(self, axis: int, count: int, mode: str, align_corners: bool) -> Self:
        """One axis resized; positions are fractions with a common denominator, so exact."""
        n = int(self.shape[axis])
        lead = [slice(None)] * axis
        if mode.startswith("nearest") and count % n == 0:
            return self.repeat_interleave(count // n, axis)
        if mode.startswith("nearest") and n % count == 0:
            step = n // count
            start = 0 if mode == "nearest" else step // 2
            return self._with(self[(*lead, slice(start, None, step))].uop)  # a value, as of other sizes
        if mode == "linear" and not align_corners and count % n == 0:
            return self._between_neighbours(axis, count // n)
        place = self._of(UOp(Ops.ARANGE, dtypes.int64, (), count), self._device)
        if mode.startswith("nearest"):
            top, bottom = (place * n, count) if mode == "nearest" else ((place * 2 + 1) * n, 2 * count)
            return self[(*lead, top // bottom)]
        if align_corners:
            top, bottom = place * (n - 1), max(count - 1, 1)
        else:
            top, bottom = (place * 2 + 1) * n - count, 2 * count
        top = top if mode == "bicubic" else top.clamp(0, (n - 1) * bottom)
        low = top // bottom
        weight = (top - low * bottom).cast_like(self) * (1.0 / bottom)
        weight = weight.reshape(count, *[1] * (self.ndim - axis - 1))
        if mode == "bicubic":
            taps = [self[(*lead, (low + i).clamp(0, n - 1))] for i in (-1, 0, 1, 2)]
            first, *other_taps = [x * w for x, w in zip(taps, _cubic(weight), strict=True)]
            return sum(other_taps, first)
        first, second = self[(*lead, low)], self[(*lead, (low + 1).minimum(n - 1))]
        return first + (second - first) * weight

    def _between_neighbours(self, axis: int, repeats: int) -> Self:
        """`repeats` elements in the place of each along an axis, linear between neighbours. The first of each
        have the same weight, and so have the others.

            [a, b, c], 2   ->   [a, a + (b - a) / 4, a + (b - a) * 3 / 4, b + (c - b) / 4, ..., c]
        """
        n = int(self.shape[axis])
        sides = [(0, 0)] * self.ndim
        sides[axis] = (1, 1)
        stored = self if memory_under(self.uop) is not None else self._compute_once()
        padded = stored.pad(sides, mode="replicate")
        first, second, third = (padded.narrow(axis, i, n) for i in range(3))
        phases = []
        for phase in range(repeats):
            top = 2 * phase + 1 - repeats  # from the element itself, in halves of a distance
            low, high = (first, second) if top < 0 else (second, third)
            phases.append(low + (high - low) * (top % (2 * repeats) / (2 * repeats)))
        return phases[0].stack(*phases[1:], dim=axis + 1).flatten(axis, axis + 1)

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

    def affine_grid(self, size: Sequence[int], align_corners: bool = False) -> Self:
        """The positions of an image of `size` (n, channels, *spatial) after affine maps.

        self: (n, d, d + 1), a matrix and a shift for each; the result (n, *spatial, d) is what `grid_sample`
        takes: the last axis' position first, from -1 to 1, the centres of the outermost elements with
        `align_corners`, else their edges. Raises ShapeError.

        >>> Tensor([[[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]]]).affine_grid((1, 1, 1, 2)).tolist()
        [[[[0.0, 0.0], [1.0, 0.0]]]]
        """
        size, dims = tuple([python_number(n) for n in size]), len(size) - 2
        if dims < 1 or self.shape != (size[0], dims, dims + 1) or not all(isinstance(n, int) for n in size):
            raise ShapeError(
                f"affine_grid: expected maps (n, d, d + 1) for a size (n, channels, *d sizes), got "
                f"{self.shape} and {tuple(size)}"
            )
        self._need_float("affine_grid")
        out = self.select(2, dims).reshape(size[0], *[1] * dims, dims)
        for d, n in enumerate(size[:1:-1]):  # the last axis first
            place = self._of(UOp(Ops.ARANGE, dtypes.int32, (), n), self._device).cast(self.dtype)
            if align_corners:
                line = place * (2.0 / (n - 1)) - 1.0 if n > 1 else place * 0.0
            else:
                line = (place * 2.0 + (1.0 - n)) * (1.0 / max(n, 1))
            column = [1, *[n if k == dims - 1 - d else 1 for k in range(dims)], 1]
            out = out + line.reshape(column) * self.select(2, d).reshape(size[0], *[1] * dims, dims)
        return out

    def grid_sample(
        self, grid: Self, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False
    ) -> Self:
        """The image (n, channels, *spatial) at the positions `grid` (n, *out, d): (n, channels, *out).

        Positions are as `affine_grid` gives them. `mode`: 'nearest', 'bilinear' (linear in each axis), or
        'bicubic' (of two axes; Keys, 1981, with a = -0.75). `padding_mode`: what lies outside are 'zeros', or
        the elements at the 'border', or its 'reflection'. Raises ArgumentError, ShapeError.

        >>> image = Tensor([[[[1.0, 2.0, 3.0]]]])
        >>> image.grid_sample(Tensor([[[[0.0, 0.0], [1.0, 0.0]]]]), align_corners=True).tolist()
        [[[[2.0, 3.0]]]]
        """
        dims = self.ndim - 2
        if mode not in ("nearest", "bilinear", "bicubic") or (mode == "bicubic" and dims != 2):
            raise ArgumentError(
                "grid_sample: expected mode 'nearest', 'bilinear' or, for images (n, channels, h, w), "
                f"'bicubic', got {mode!r}"
            )
        if padding_mode not in ("zeros", "border", "reflection"):
            raise ArgumentError(
                f"grid_sample: expected padding_mode 'zeros', 'border' or 'reflection', got {padding_mode!r}"
            )
        if dims < 1 or grid.ndim != self.ndim or (grid.shape[0], grid.shape[-1]) != (self.shape[0], dims):
            raise ShapeError(
                f"grid_sample: expected an image (n, channels, *d sizes) and a grid (n, *d sizes, d), got "
                f"{self.shape} and {grid.shape}"
            )
        x, grid = self._in_accumulation_dtype(), grid._in_accumulation_dtype()
        sizes = [fixed_size(n, "grid_sample") for n in self.shape[2:]]
        taps = [
            _taps(grid.select(-1, dims - 1 - k), n, mode, padding_mode, align_corners)
            for k, n in enumerate(sizes)
        ]
        total: Self | None = None
        for combination in itertools.product(*taps):
            value = x._at_places([place for place, _ in combination], sizes)
            for _, weight in combination:
                value = value if weight is None else value * weight.unsqueeze(1)
            total = value if total is None else total + value
        assert total is not None
        return self._in_result_dtype(total)

    def _at_places(self, places: list[Self], sizes: list[int]) -> Self:
        """The elements at whole positions (n, *out) of each spatial axis; 0 outside of the image."""
        index, inside_mask = None, None
        for place, n in zip(places, sizes, strict=True):
            bounded = place.clamp(0.0, n - 1.0)
            axis_mask = place.eq(bounded)
            step = bounded._with(bounded.uop.cast(dtypes.int32))
            index = step if index is None else index * n + step
            inside_mask = axis_mask if inside_mask is None else inside_mask & axis_mask
        assert index is not None and inside_mask is not None
        batch, channels = self.shape[:2]
        flat = index.reshape(batch, 1, -1).expand(batch, channels, -1)
        samples = self.flatten(2).gather(2, flat).reshape(batch, channels, *index.shape[1:])
        return inside_mask.unsqueeze(1).where(samples, 0.0)


def _taps(grid: Any, n: int, mode: str, padding_mode: str, align_corners: bool) -> list[tuple[Any, Any]]:
    """For one axis of n elements: the whole positions that contribute to each sample, and their weights."""
    place = (grid + 1.0) * (0.5 * (n - 1)) if align_corners else ((grid + 1.0) * n - 1.0) * 0.5

    def padded(p: Any) -> Any:
        if padding_mode == "zeros":
            return p
        return (_reflect(p, n, align_corners) if padding_mode == "reflection" else p).clamp(0.0, n - 1.0)

    if mode == "nearest":
        return [(padded(place)._detached().round(), None)]
    if mode == "bilinear":
        place = padded(place)
        low = place._detached().floor()
        part = place - low
        return [(low, 1.0 - part), (low + 1.0, part)]
    low = place._detached().floor()
    part = place - low
    return [(padded(low + (k - 1.0)).round(), w) for k, w in enumerate(_cubic(part))]


def _reflect(place: Any, n: int, align_corners: bool) -> Any:
    """Reflect a position into the image, at the outermost elements or at their edges."""
    low, span = (0.0, n - 1.0) if align_corners else (-0.5, float(n))
    if span == 0.0:
        return place * 0.0
    way = (place - low).abs()
    turns = (way._detached() * (1.0 / span)).floor()
    remainder = way - turns * span
    is_even = (turns * 0.5).floor().eq(turns * 0.5)
    return is_even.where(remainder, span - remainder) + low


def _cubic(part: Any) -> list[Any]:
    """The weights of the four neighbours of a position that lies `part` beyond the second."""
    return [_far(part + 1.0), _near(part), _near(1.0 - part), _far(2.0 - part)]


def _near(x: Any) -> Any:
    """Keys' kernel at distances up to 1."""
    return ((x * (_KEYS + 2.0) - (_KEYS + 3.0)) * x) * x + 1.0


def _far(x: Any) -> Any:
    """Keys' kernel at distances from 1 to 2."""
    return ((x * _KEYS - 5.0 * _KEYS) * x + 8.0 * _KEYS) * x - 4.0 * _KEYS
