"""Discrete Fourier transforms: complex numbers are pairs (real, imaginary) along a last axis of 2.

Cooley and Tukey, "An algorithm for the machine calculation of complex Fourier series" (1965), with factors of
up to 32, each a matrix product. Large primes are a convolution, by transforms of a power of two: Bluestein,
"A linear filtering approach to the computation of the discrete Fourier transform" (1970).
"""

from __future__ import annotations

import math
from typing import Any, Literal, Self

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError, ShapeError
from polygrad.tensor.core.sizes import python_number
from polygrad.tensor.linalg import LinalgMixin
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

Norm = Literal["backward", "ortho", "forward"]
_LARGEST_FACTOR = 32
_LARGEST_MATRIX = 256  # a prime above this is transformed by a convolution


class FourierMixin(LinalgMixin):
    """Fourier transforms along one axis, of any fixed size."""

    __slots__ = ()

    def fft(self, n: int | None = None, dim: int = -1, norm: Norm = "backward") -> Self:
        """The Fourier transform of complex numbers (..., size, 2) along `dim`, of the axes before the pairs.

        `n`: the size to cut or to pad with zeros to first. `norm`: 'backward' leaves the scale to `ifft`,
        'forward' divides by n, 'ortho' by its root. Raises ShapeError, ArgumentError.

        >>> Tensor([[1.0, 0.0], [0.0, 0.0]]).fft().tolist()
        [[1.0, 0.0], [1.0, 0.0]]
        """
        return self._transform(n, dim, norm, inverse=False, what="fft")

    def ifft(self, n: int | None = None, dim: int = -1, norm: Norm = "backward") -> Self:
        """The inverse of `fft`, with its arguments. Raises ShapeError, ArgumentError.

        >>> Tensor([[1.0, 0.0], [0.0, 0.0]]).ifft().tolist()
        [[0.5, 0.0], [0.5, 0.0]]
        """
        return self._transform(n, dim, norm, inverse=True, what="ifft")

    def rfft(self, n: int | None = None, dim: int = -1, norm: Norm = "backward") -> Self:
        """The Fourier transform of real numbers: n // 2 + 1 complex ones, (..., n // 2 + 1, 2).

        Arguments as of `fft`. Raises ShapeError, ArgumentError.

        >>> Tensor([1.0, 0.0]).rfft().tolist()
        [[1.0, 0.0], [1.0, 0.0]]
        """
        axis = self._axis(dim)
        if not self.shape:
            raise ShapeError("rfft: expected at least 1 axis, got shape ()")
        x = self._in_accumulation_dtype()._pad_or_cut_axis(axis, n, "rfft")
        size = x.shape[axis]
        pairs = x.unsqueeze(-1).pad([*[None] * self.ndim, (0, 1)])
        out = pairs._transform(None, axis, norm, inverse=False, what="rfft")
        half = out.shrink([(0, size // 2 + 1) if i == axis else None for i in range(out.ndim)])
        return self._in_result_dtype(half)

    def irfft(self, n: int | None = None, dim: int = -1, norm: Norm = "backward") -> Self:
        """The inverse of `rfft`: `n` real numbers, by default 2 (size - 1).

        Raises ShapeError, ArgumentError.

        >>> Tensor([[3.0, 0.0], [1.0, 0.0]]).irfft().tolist()
        [2.0, 1.0]
        """
        self._need_pairs("irfft")
        axis = self.flatten(-2)._axis(dim) if self.ndim > 1 else 0
        size = 2 * (self.shape[axis] - 1) if n is None else python_number(n)
        if not isinstance(size, int) or size < 1:
            raise ArgumentError(f"irfft: expected n of at least 1, got {size}")
        half = self._in_accumulation_dtype()._pad_or_cut_axis(axis, size // 2 + 1, "irfft")
        real, imaginary = half._complex()
        mirrored = [((1, size - size // 2) if i == axis else None) for i in range(real.ndim)]
        full_spectrum = [
            part.cat(sign * part.shrink(mirrored).flip(axis), dim=axis)
            for part, sign in ((real, 1.0), (imaginary, -1.0))
        ]
        pairs = full_spectrum[0].stack(full_spectrum[1], dim=-1)
        out = pairs._transform(None, axis, norm, inverse=True, what="irfft")
        return self._in_result_dtype(out._complex()[0])

    def _need_pairs(self, what: str) -> None:
        if self.ndim < 2 or self.shape[-1] != 2:
            raise ShapeError(f"{what}: expected complex numbers (..., size, 2), got shape {self.shape}")

    def _pad_or_cut_axis(self, axis: int, n: int | None, what: str) -> Self:
        """Cut axis `axis`, or pad it with zeros, to n elements."""
        size = self.shape[axis] if n is None else python_number(n)
        if not isinstance(size, int) or not isinstance(self.shape[axis], int) or size < 1:
            raise ArgumentError(f"{what}: expected a fixed size of at least 1 to transform, got {size}")
        old_size = int(self.shape[axis])
        if size < old_size:
            return self.shrink([(0, size) if i == axis else None for i in range(self.ndim)])
        if size > old_size:
            return self.pad([(0, size - old_size) if i == axis else None for i in range(self.ndim)])
        return self

    def _complex(self) -> tuple[Self, Self]:
        """The real and the imaginary parts."""
        lead: list[Any] = [None] * (self.ndim - 1)
        return self.shrink([*lead, (0, 1)]).squeeze(-1), self.shrink([*lead, (1, 2)]).squeeze(-1)

    def _transform(self, n: int | None, dim: int, norm: str, inverse: bool, what: str) -> Self:
        if norm not in ("backward", "ortho", "forward"):
            raise ArgumentError(f"{what}: expected norm 'backward', 'ortho' or 'forward', got {norm!r}")
        self._need_pairs(what)
        axis = self._complex()[0]._axis(dim)
        x = self._in_accumulation_dtype()._pad_or_cut_axis(axis, n, what)
        size = int(x.shape[axis])
        real, imaginary = (part.transpose(axis, -1) for part in x._complex())
        real, imaginary = _dft(real, imaginary, size, 1.0 if inverse else -1.0)
        scaled = norm == "ortho" or inverse == (norm == "backward")
        if scaled:
            scale = 1.0 / (math.sqrt(size) if norm == "ortho" else size)
            real, imaginary = real * scale, imaginary * scale
        real, imaginary = real.transpose(axis, -1), imaginary.transpose(axis, -1)
        return self._in_result_dtype(real.stack(imaginary, dim=-1))


def _dft(real: Any, imaginary: Any, n: int, sign: float) -> tuple[Any, Any]:
    """The transform of the last axis, of n elements; `sign` of the exponent."""
    factor = next((d for d in range(min(_LARGEST_FACTOR, n), 1, -1) if n % d == 0), n)
    if factor == n and n > _LARGEST_MATRIX:
        return _transform_by_convolution(real, imaginary, n, sign)
    if factor == n:
        cosine, sine = _roots(real, n, n, n, sign)
        return (
            real.dot(cosine) - imaginary.dot(sine),
            real.dot(sine) + imaginary.dot(cosine),
        )
    cofactor = n // factor
    lead = real.shape[:-1]
    # element j1 cofactor + j2 is transformed along j1, multiplied by the twiddle factor of k1 j2, transformed
    # along j2, and becomes element k1 + factor k2
    real, imaginary = (x.reshape(*lead, factor, cofactor).transpose(-2, -1) for x in (real, imaginary))
    real, imaginary = _dft(real, imaginary, factor, sign)
    cosine, sine = _roots(real, cofactor, factor, n, sign)
    real, imaginary = real * cosine - imaginary * sine, real * sine + imaginary * cosine
    real, imaginary = _dft(real.transpose(-2, -1), imaginary.transpose(-2, -1), cofactor, sign)
    return tuple(x.transpose(-2, -1).reshape(*lead, n) for x in (real, imaginary))  # type: ignore[return-value]


def _transform_by_convolution(real: Any, imaginary: Any, n: int, sign: float) -> tuple[Any, Any]:
    """The transform of the last axis by a convolution: j k = (j² + k² - (k - j)²) / 2."""
    size = 1 << (2 * n - 2).bit_length()
    j = real._of(UOp(Ops.ARANGE, dtypes.int64, (), n), real._device)
    angle = (j * j % (2 * n)).cast_like(real) * (sign * math.pi / n)
    cosine, sine = (x._with(x.uop.contiguous()) for x in (angle.cos(), angle.sin()))
    no_lead = [None] * (real.ndim - 1)
    ar, ai = (
        x.pad([*no_lead, (0, size - n)])
        for x in (real * cosine - imaginary * sine, real * sine + imaginary * cosine)
    )
    br, bi = (  # conjugated, and once more from the end backwards
        x.pad([(0, size - n)]) + x.shrink([(1, n)]).flip(0).pad([(size - n + 1, 0)]) for x in (cosine, -sine)
    )
    (ar, ai), (br, bi) = _dft(ar, ai, size, -1.0), _dft(br, bi, size, -1.0)
    br, bi = (x._with(x.uop.contiguous()) for x in (br, bi))
    cr, ci = _dft(ar * br - ai * bi, ar * bi + ai * br, size, 1.0)
    cr, ci = (x.shrink([*no_lead, (0, n)]) / size for x in (cr, ci))
    return cr * cosine - ci * sine, cr * sine + ci * cosine


def _roots(like: Any, rows: int, columns: int, n: int, sign: float) -> tuple[Any, Any]:
    """cos and sin of ±2π j k / n, for all j < rows and k < columns.

    An angle is a number of quarter turns, which are exact, plus at most an eighth of a turn.
    """
    j = like._of(UOp(Ops.ARANGE, dtypes.int64, (), rows).reshape((rows, 1)), like._device)
    k = like._of(UOp(Ops.ARANGE, dtypes.int64, (), columns).reshape((1, columns)), like._device)
    quarters = (j * k % n) * 4  # of 1/n each
    quarter_count = (quarters * 2 + n) // (2 * n)
    angle = (quarters - quarter_count * n).cast_like(like) * (math.pi / 2 / n)
    cosine, sine = angle.cos(), angle.sin()
    is_odd, is_back = (quarter_count & 1).ne(0), (quarter_count & 2).ne(0)
    cosine, sine = is_odd.where(sine.neg(), cosine), is_odd.where(cosine, sine)
    cosine, sine = (is_back.where(x.neg(), x) for x in (cosine, sine))
    return tuple(x._with(x.uop.contiguous()) for x in (cosine, sine * sign))  # type: ignore[return-value]
