"""The log-mel spectrogram that Whisper reads: log energies in frequency bands, 100 times a second.

The bands are triangles on Slaney's mel scale (linear below 1 kHz, logarithmic above), each of area 1.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from polygrad.errors import ArgumentError, ShapeError
from polygrad.tensor.tensor import Tensor

SAMPLE_RATE = 16000
SECONDS = 30
_WINDOW, _HOP = 400, 160  # samples: pieces of 25 ms, every 10 ms
_HIGHEST = 8000.0  # hertz
_KNEE, _KNEE_MEL, _RATIO = 1000.0, 15.0, 27.0 / math.log(6.4)  # where the scale becomes logarithmic


def log_mel(audio: Any, bands: int = 80, seconds: int = SECONDS) -> Tensor:
    """The spectrogram of a sound for a Whisper of `bands` bands (80, or 128 for large-v3): float32 (batch,
    bands, 100 * seconds).

    `audio`: a Tensor, an array or a list of samples at 16 kHz, (samples,) or (batch, samples). It is cut, or
    filled with silence, to `seconds`. Logarithms are at most 8 below the largest of each sound (in units of
    10 dB), and scaled. Raises ShapeError for no samples, ArgumentError for no bands.

    >>> log_mel([0.0] * 1600, bands=80, seconds=1).shape
    (1, 80, 100)
    """
    samples = (audio if isinstance(audio, Tensor) else Tensor(audio)).float()
    if samples.ndim not in (1, 2) or 0 in samples.shape:
        raise ShapeError(f"audio: expected (samples,) or (batch, samples), got shape {tuple(samples.shape)}")
    if bands < 1 or seconds < 1:
        raise ArgumentError(f"log_mel: expected bands and seconds of at least 1, got {bands} and {seconds}")
    samples = samples.unsqueeze(0) if samples.ndim == 1 else samples
    length = seconds * SAMPLE_RATE
    samples = samples[:, :length]
    samples = samples.pad((0, length - samples.shape[1]))
    window = [0.5 - 0.5 * math.cos(2 * math.pi * i / _WINDOW) for i in range(_WINDOW)]
    spectrum = samples.stft(_WINDOW, _HOP, window=Tensor(window, device=samples.device))
    energy = spectrum[:, :, :-1].square().sum(-1)  # (batch, frequencies, pieces); the last piece is beyond
    filters = Tensor([list(row) for row in mel_filters(bands)], device=samples.device)
    logs = filters.dot(energy).clamp_min(1e-10).log10()
    logs = logs.maximum(logs.max((1, 2), keepdim=True) - 8.0)
    return (logs + 4.0) / 4.0


@lru_cache(maxsize=4)
def mel_filters(bands: int) -> tuple[tuple[float, ...], ...]:
    """The weight of each frequency of the transform, (bands, 201), in each band."""
    highest = _mel(_HIGHEST)
    edges = [_hertz(i * highest / (bands + 1)) for i in range(bands + 2)]
    frequencies = [i * SAMPLE_RATE / _WINDOW for i in range(_WINDOW // 2 + 1)]

    def weight(f: float, low: float, middle: float, high: float) -> float:
        rising, falling = (f - low) / (middle - low), (high - f) / (high - middle)
        return max(0.0, min(rising, falling)) * 2 / (high - low)

    corners = zip(edges, edges[1:], edges[2:])
    return tuple(tuple(weight(f, *three) for f in frequencies) for three in corners)


def _mel(hertz: float) -> float:
    if hertz < _KNEE:
        return hertz * _KNEE_MEL / _KNEE
    return _KNEE_MEL + math.log(hertz / _KNEE) * _RATIO


def _hertz(mel: float) -> float:
    if mel < _KNEE_MEL:
        return mel * _KNEE / _KNEE_MEL
    return _KNEE * math.exp((mel - _KNEE_MEL) / _RATIO)
