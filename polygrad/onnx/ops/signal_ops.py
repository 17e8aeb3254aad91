"""Fourier transforms and windows. Complex numbers are pairs along a last axis of 2, real ones alone in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from polygrad.errors import OnnxError
from polygrad.onnx.elements import element_of
from polygrad.onnx.op_table import Float, Int, op
from polygrad.tensor.tensor import Tensor


def _dft(x: Tensor, length: int | None, axis: int, inverse: int, onesided: int) -> Tensor:
    axis = axis % x.ndim
    real = x.squeeze(-1) if x.shape[-1] == 1 else None
    pairs = x.pad([*[None] * (x.ndim - 1), (0, 1)]) if real is not None else x
    if inverse:
        return pairs.irfft(length, axis).unsqueeze(-1) if onesided else pairs.ifft(length, axis)
    if onesided:
        half = (length or x.shape[axis]) // 2 + 1
        if real is not None:
            return real.rfft(length, axis)
        return pairs.fft(length, axis).shrink([(0, half) if i == axis else None for i in range(x.ndim)])
    return pairs.fft(length, axis)


@op("DFT", 20)
def dft(
    x: Tensor, length: Int | None = None, axis: Int | None = None, *, inverse: int = 0, onesided: int = 0
) -> Tensor:
    return _dft(x, length, -2 if axis is None else axis, inverse, onesided)


@op("DFT", 17)
def dft_17(
    x: Tensor, length: Int | None = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0
) -> Tensor:
    return _dft(x, length, axis, inverse, onesided)


@op("STFT", 17)
def stft(
    x: Tensor, step: Int, window: Tensor | None = None, length: Int | None = None, *, onesided: int = 1
) -> Tensor:
    """The transforms of windows of `length`, each `step` after the one before: (n, frames, bins, 2)."""
    size = length or (window.shape[0] if window is not None else x.shape[1])
    frames = x.unfold(1, size, step).transpose(2, 3)
    if window is not None:
        frames = frames * window.reshape(-1, 1)
    return _dft(frames, None, 2, 0, onesided)


# --- windows: sums of cosines

_MOST_NUMBERS = 1 << 22  # made on the host


def _check_host(what: str, count: int) -> None:
    if count > _MOST_NUMBERS:
        raise OnnxError(f"{what}: expected up to {_MOST_NUMBERS} numbers, got {count}")


def _window(coefficients: Sequence[float]) -> Callable[..., Tensor]:
    def window(size: Int, *, output_datatype: int = 1, periodic: int = 1, device: str | None) -> Tensor:
        _check_host("the window", size)
        turns = size if periodic else size - 1
        values = [
            sum(c * math.cos(2 * math.pi * k * n / turns) for k, c in enumerate(coefficients))
            if turns
            else 1.0
            for n in range(size)
        ]
        return Tensor(values, device).cast(element_of(output_datatype, "output_datatype").dtype)

    return window


op("BlackmanWindow", 17)(_window((0.42, -0.5, 0.08)))
op("HammingWindow", 17)(_window((25 / 46, -21 / 46)))
op("HannWindow", 17)(_window((0.5, -0.5)))


@op("MelWeightMatrix", 17)
def mel_weight_matrix(
    bins: Int,
    length: Int,
    sample_rate: Int,
    low: Float,
    high: Float,
    *,
    output_datatype: int = 1,
    device: str | None,
) -> Tensor:
    """Weights that gather the bins of a spectrum into bands of equal width in mel: (spectrum, bands)."""
    _check_host("the matrix", max(bins, 1) * max(length // 2 + 1, 1))
    lowest, highest = (2595.0 * math.log10(1.0 + hertz / 700.0) for hertz in (low, high))
    step = (highest - lowest) / (bins + 2)
    edges = [
        int((length + 1) * (700.0 * (10.0 ** ((lowest + i * step) / 2595.0) - 1.0)) // sample_rate)
        for i in range(bins + 2)
    ]
    rows = [[0.0] * bins for _ in range(length // 2 + 1)]
    for i in range(bins):
        left, centre, right = edges[i : i + 3]
        if left == centre:
            rows[centre][i] = 1.0
        for j in range(left, centre + 1 if left < centre else left):
            rows[j][i] = (j - left) / (centre - left)
        for j in range(centre, right):
            rows[j][i] = (right - j) / (right - centre)
    return Tensor(rows, device).cast(element_of(output_datatype, "output_datatype").dtype)
