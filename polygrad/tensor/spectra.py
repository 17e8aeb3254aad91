"""Fourier transforms along several axes, of symmetric signals and of short pieces of a signal (STFT).

Complex numbers are pairs along a last axis of 2, as of `fft`; `dim` counts the axes before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError, ShapeError
from polygrad.tensor.core.base import DTypeLike
from polygrad.tensor.core.sizes import python_number
from polygrad.tensor.fourier import FourierMixin, Norm
from polygrad.tensor.gather_scatter import GatherScatterMixin
from polygrad.tensor.padding import PaddingMixin

_TWO = (-2, -1)


class SpectraMixin(FourierMixin, GatherScatterMixin, PaddingMixin):
    """Fourier transforms along several axes, and of short pieces."""

    __slots__ = ()

    # --- several axes

    def fftn(
        self, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: Norm = "backward"
    ) -> Self:
        """`fft` along several axes: `dim`, by default all, or as many of the last as `s` has sizes.

        `s`: the sizes to cut or to pad to first, -1 for an axis as it is. Raises ShapeError, ArgumentError.

        >>> Tensor([[[1.0, 0.0], [0.0, 0.0]]]).fftn().tolist()
        [[[1.0, 0.0], [1.0, 0.0]]]
        """
        self._need_pairs("fftn")
        return self._transform_axes(self._axes_of(s, dim, self.ndim - 1, "fftn"), norm, inverse=False)

    def ifftn(
        self, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: Norm = "backward"
    ) -> Self:
        """The inverse of `fftn`, with its arguments. Raises ShapeError, ArgumentError.

        >>> Tensor([[[2.0, 1.0]]]).ifftn().tolist()
        [[[2.0, 1.0]]]
        """
        self._need_pairs("ifftn")
        return self._transform_axes(self._axes_of(s, dim, self.ndim - 1, "ifftn"), norm, inverse=True)

    def rfftn(
        self, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: Norm = "backward"
    ) -> Self:
        """`fftn` of real numbers: of the last of the axes the half that `rfft` gives. Raises ShapeError,
        ArgumentError.

        >>> Tensor.ones(2, 4, 6).rfftn().shape
        (2, 4, 4, 2)
        """
        *other_axes, (axis, size) = self._axes_of(s, dim, self.ndim, "rfftn")
        return self.rfft(size, axis, norm)._transform_axes(other_axes, norm, inverse=False)

    def irfftn(
        self, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: Norm = "backward"
    ) -> Self:
        """The inverse of `rfftn`; the last size of `s` is that of the result, by default 2 (size - 1). Raises
        ShapeError, ArgumentError.

        >>> Tensor.ones(2, 4, 6).rfftn().irfftn().shape
        (2, 4, 6)
        """
        self._need_pairs("irfftn")
        *other_axes, (axis, size) = self._axes_of(s, dim, self.ndim - 1, "irfftn")
        return self._transform_axes(other_axes, norm, inverse=True).irfft(size, axis, norm)

    def fft2(
        self, s: Sequence[int] | None = None, dim: Sequence[int] = _TWO, norm: Norm = "backward"
    ) -> Self:
        """`fftn` along two axes. Raises ShapeError, ArgumentError.

        >>> Tensor([[[1.0, 0.0], [0.0, 0.0]]]).fft2().tolist()
        [[[1.0, 0.0], [1.0, 0.0]]]
        """
        return self.fftn(s, dim, norm)

    def ifft2(
        self, s: Sequence[int] | None = None, dim: Sequence[int] = _TWO, norm: Norm = "backward"
    ) -> Self:
        """`ifftn` along two axes. Raises ShapeError, ArgumentError.

        >>> Tensor([[[2.0, 1.0]]]).ifft2().tolist()
        [[[2.0, 1.0]]]
        """
        return self.ifftn(s, dim, norm)

    def rfft2(
        self, s: Sequence[int] | None = None, dim: Sequence[int] = _TWO, norm: Norm = "backward"
    ) -> Self:
        """`rfftn` along two axes. Raises ShapeError, ArgumentError.

        >>> Tensor([[1.0, 0.0], [0.0, 0.0]]).rfft2().shape
        (2, 2, 2)
        """
        return self.rfftn(s, dim, norm)

    def irfft2(
        self, s: Sequence[int] | None = None, dim: Sequence[int] = _TWO, norm: Norm = "backward"
    ) -> Self:
        """`irfftn` along two axes. Raises ShapeError, ArgumentError.

        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).rfft2().irfft2().round().tolist()
        [[1.0, 2.0], [3.0, 4.0]]
        """
        return self.irfftn(s, dim, norm)

    def _axes_of(
        self, s: Sequence[int] | None, dim: int | Sequence[int] | None, count: int, what: str
    ) -> list[tuple[int, int | None]]:
        """The axes to transform, all below `count`, each with its new size (None: unchanged)."""
        dim = python_number(dim)
        dims = [dim] if isinstance(dim, int) else dim
        if dims is None:
            dims = list(range(count if s is None else len(s)))
            dims = [i + count - len(dims) for i in dims]
        for d in dims:
            if not -count <= d < count:
                raise ShapeError(f"{what}: expected dim in {-count}..{count - 1}, got {d}")
        axes = [d % count for d in dims]
        if len(set(axes)) < len(axes) or not axes:
            raise ArgumentError(f"{what}: expected different axes, at least one, got {tuple(dims)}")
        if s is not None and len(s) != len(axes):
            raise ArgumentError(f"{what}: expected a size in s for each of {len(axes)} axes, got {len(s)}")
        sizes = [None] * len(axes) if s is None else [None if n == -1 else n for n in s]
        return list(zip(axes, sizes, strict=True))

    def _transform_axes(self, axes: Sequence[tuple[int, int | None]], norm: Norm, inverse: bool) -> Self:
        out = self
        for axis, size in reversed(axes):
            out = out.ifft(size, axis, norm) if inverse else out.fft(size, axis, norm)
        return out

    # --- symmetric signals, frequencies

    def hfft(self, n: int | None = None, dim: int = -1, norm: Norm = "backward") -> Self:
        """The transform, `n` real numbers, of a signal of which the second half is the conjugate of the
        first. Raises ShapeError, ArgumentError.

        >>> Tensor([[1.0, 0.0], [1.0, 0.0]]).hfft().tolist()
        [2.0, 0.0]
        """
        return self._conjugate().irfft(n, dim, _opposite(norm))

    def ihfft(self, n: int | None = None, dim: int = -1, norm: Norm = "backward") -> Self:
        """The inverse of `hfft`: half a signal, in pairs. Raises ShapeError, ArgumentError.

        >>> Tensor([2.0, 0.0]).ihfft().tolist()
        [[1.0, -0.0], [1.0, -0.0]]
        """
        return self.rfft(n, dim, _opposite(norm))._conjugate()

    def _conjugate(self) -> Self:
        self._need_pairs("hfft")
        return self * type(self)([1.0, -1.0], device=self._device, dtype=self.dtype)  # type: ignore[call-arg]

    @classmethod
    def fftfreq(
        cls, n: int, d: float = 1.0, dtype: DTypeLike | None = None, device: str | None = None
    ) -> Self:
        """The frequencies of the n results of `fft`, of samples that are `d` apart. Raises ArgumentError.

        >>> Tensor.fftfreq(4).tolist()
        [0.0, 0.25, -0.5, -0.25]
        """
        n = python_number(n)
        if not isinstance(n, int) or n < 1:
            raise ArgumentError(f"fftfreq: expected n of at least 1, got {n!r}")
        numbers = [*range((n + 1) // 2), *range(-(n // 2), 0)]
        return cls._frequencies(numbers, n, d, dtype, device)

    @classmethod
    def rfftfreq(
        cls, n: int, d: float = 1.0, dtype: DTypeLike | None = None, device: str | None = None
    ) -> Self:
        """The frequencies of the n // 2 + 1 results of `rfft`. Raises ArgumentError.

        >>> Tensor.rfftfreq(4).tolist()
        [0.0, 0.25, 0.5]
        """
        n = python_number(n)
        if not isinstance(n, int) or n < 1:
            raise ArgumentError(f"rfftfreq: expected n of at least 1, got {n!r}")
        return cls._frequencies(list(range(n // 2 + 1)), n, d, dtype, device)

    @classmethod
    def _frequencies(
        cls, numbers: list[int], n: int, d: float, dtype: DTypeLike | None, device: str | None
    ) -> Self:
        kind = dtypes.default_float if dtype is None else dtype
        return cls([i / (n * d) for i in numbers], device=device, dtype=kind)  # type: ignore[call-arg]

    def fftshift(self, dim: int | Sequence[int] | None = None) -> Self:
        """The frequency 0 moved to the middle of the axes `dim`, by default of all: of pairs, say which.

        >>> Tensor.fftfreq(4).fftshift().tolist()
        [-0.5, -0.25, 0.0, 0.25]
        """
        return self._roll_axes(dim, lambda n: n // 2)

    def ifftshift(self, dim: int | Sequence[int] | None = None) -> Self:
        """The inverse of `fftshift`.

        >>> Tensor([-0.5, -0.25, 0.0, 0.25]).ifftshift().tolist()
        [0.0, 0.25, -0.5, -0.25]
        """
        return self._roll_axes(dim, lambda n: -(n // 2))

    def _roll_axes(self, dim: int | Sequence[int] | None, by: Any) -> Self:
        dim = python_number(dim)
        dims = range(self.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
        axes = [self._axis(d) for d in dims]
        return self.roll(tuple([by(self.shape[a]) for a in axes]), tuple(axes)) if axes else self

    # --- short pieces

    def stft(
        self,
        n_fft: int,
        hop_length: int | None = None,
        win_length: int | None = None,
        window: Self | None = None,
        center: bool = True,
        pad_mode: str = "reflect",
        normalized: bool = False,
        onesided: bool = True,
    ) -> Self:
        """The transforms of overlapping pieces of a real signal (..., size): (..., frequencies, pieces, 2).

        Pieces of `n_fft` elements begin every `hop_length` (a quarter of n_fft) and are multiplied by
        `window`, of `win_length` elements (n_fft), in the middle. `center`: piece i is around element
        i hop_length; the signal is padded as `pad_mode` says. `normalized`: divided by the root of n_fft.
        `onesided`: n_fft // 2 + 1 frequencies, else all. As torch's. Raises ShapeError, ArgumentError.

        >>> Tensor.ones(8).stft(4, center=False).shape
        (3, 5, 2)
        """
        hop = _check_hop("stft", n_fft, hop_length)
        weights = self._window("stft", window, win_length, n_fft)
        if not self.shape:
            raise ShapeError("stft: expected a signal (..., size), got shape ()")
        x = self.pad((n_fft // 2, n_fft // 2), mode=pad_mode) if center else self
        if not isinstance(x.shape[-1], int) or x.shape[-1] < n_fft:
            raise ShapeError(f"stft: expected a signal of at least n_fft = {n_fft}, got {x.shape[-1]}")
        pieces = x.unfold(-1, n_fft, hop)
        pieces = pieces if weights is None else pieces * weights
        norm: Norm = "ortho" if normalized else "backward"
        if onesided:
            out = pieces.rfft(norm=norm)
        else:
            out = pieces.stack(pieces.zeros_like(), dim=-1).fft(norm=norm)
        return out.transpose(-3, -2)

    def istft(
        self,
        n_fft: int,
        hop_length: int | None = None,
        win_length: int | None = None,
        window: Self | None = None,
        center: bool = True,
        normalized: bool = False,
        onesided: bool = True,
        length: int | None = None,
    ) -> Self:
        """The signal whose transforms these are, (..., frequencies, pieces, 2); arguments as of `stft`.

        `length`: how many elements of it. Where pieces overlap it is the mean that is weighted by squared
        windows (Griffin and Lim, 1984). Raises ShapeError, ArgumentError.

        >>> Tensor.ones(8).stft(4).istft(4).round().tolist()
        [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
        """
        hop = _check_hop("istft", n_fft, hop_length)
        weights = self._window("istft", window, win_length, n_fft)
        frequency_count = n_fft // 2 + 1 if onesided else n_fft
        if self.ndim < 3 or self.shape[-1] != 2 or self.shape[-3] != frequency_count:
            raise ShapeError(
                f"istft: expected (..., {frequency_count} frequencies, pieces, 2), got shape {self.shape}"
            )
        norm: Norm = "ortho" if normalized else "backward"
        spectra = self.transpose(-3, -2)
        pieces = spectra.irfft(n_fft, norm=norm) if onesided else spectra.ifft(norm=norm)._complex()[0]
        if weights is None:
            weights = pieces.ones_like()._part_of_last(n_fft)
        count = int(pieces.shape[-2])
        total = _overlap_add(pieces * weights, hop)
        overlap = _overlap_add((weights * weights).expand(count, n_fft), hop)
        start = n_fft // 2 if center else 0
        stop = start + length if length is not None else int(total.shape[-1]) - start
        missing = max(0, stop - int(total.shape[-1]))
        total, overlap = total.pad((0, missing)), overlap.pad((0, missing), value=1.0)
        keep: list[Any] = [None] * (total.ndim - 1)
        return total.shrink([*keep, (start, stop)]) / overlap.shrink([(start, stop)])

    def _part_of_last(self, n: int) -> Self:
        """n elements of the last axis alone."""
        return self.flatten().shrink([(0, n)])

    def _window(self, what: str, window: Self | None, length: int | None, n_fft: int) -> Self | None:
        """The weights of a piece: `window` with zeros on both sides."""
        size = n_fft if length is None else length
        if not isinstance(size, int) or not 0 < size <= n_fft:
            raise ArgumentError(f"{what}: expected win_length in 1..{n_fft}, got {size}")
        if window is None:
            if size == n_fft:
                return None
            window = self._of(self.uop, self._device).flatten().shrink([(0, 1)]).ones_like().expand(size)
        if window.shape != (size,):
            raise ShapeError(f"{what}: expected a window of shape ({size},), got {window.shape}")
        left = (n_fft - size) // 2
        return window.pad((left, n_fft - size - left))


def _opposite(norm: Norm) -> Norm:
    opposite_norm: Norm = "forward" if norm == "backward" else "backward" if norm == "forward" else norm
    return opposite_norm


def _check_hop(what: str, n_fft: int, hop: int | None) -> int:
    if not isinstance(n_fft, int) or n_fft < 1:
        raise ArgumentError(f"{what}: expected n_fft of at least 1, got {n_fft!r}")
    out = n_fft // 4 if hop is None else hop
    if not isinstance(out, int) or out < 1:
        raise ArgumentError(f"{what}: expected hop_length of at least 1, got {out!r}")
    return out


def _overlap_add(pieces: Any, hop: int) -> Any:
    """The sum of pieces (..., count, n), each of which begins `hop` elements after its predecessor."""
    *lead, count, n = pieces.shape
    steps = -(-n // hop)  # how many pieces overlap each segment of `hop` elements
    blocks = pieces.pad((0, steps * hop - n)).reshape(*lead, count, steps, hop)
    total: Any = None
    for k in range(steps):  # the k-th segments of all pieces are adjacent
        part = blocks.shrink([*[None] * (len(lead) + 1), (k, k + 1), None]).reshape(*lead, count * hop)
        part = part.pad((k * hop, (steps - 1 - k) * hop))
        total = part if total is None else total + part
    return total.shrink([*[None] * len(lead), (0, (count - 1) * hop + n)])
