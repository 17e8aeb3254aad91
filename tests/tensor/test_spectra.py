"""Fourier transforms of several axes, large primes and short pieces: values and gradients are torch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from polygrad import Tensor
from polygrad.errors import ArgumentError, PolygradError, ShapeError

pytestmark = pytest.mark.usefixtures("default_device")
rng = np.random.default_rng(5)
REAL = rng.normal(size=(2, 6, 5)).astype(np.float32)
PAIRS = rng.normal(size=(2, 6, 5, 2)).astype(np.float32)
SIGNAL = rng.normal(size=(2, 40)).astype(np.float32)
WINDOW = np.hanning(10)[1:-1].astype(np.float32) + 0.1


def complex_(t: torch.Tensor) -> torch.Tensor:
    return torch.view_as_complex(t)


def pairs(t: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(t.resolve_conj())


F = torch.fft
CASES: list[tuple[str, np.ndarray, Callable[[Any], Any], Callable[[Any], Any]]] = [
    ("fft2", PAIRS, lambda x: x.fft2(), lambda x: pairs(F.fft2(complex_(x)))),
    (
        "fft2_sizes",
        PAIRS,
        lambda x: x.fft2((4, 7), norm="ortho"),
        lambda x: pairs(F.fft2(complex_(x), (4, 7), norm="ortho")),
    ),
    ("ifft2", PAIRS, lambda x: x.ifft2(dim=(0, 2)), lambda x: pairs(F.ifft2(complex_(x), dim=(0, 2)))),
    ("fftn", PAIRS, lambda x: x.fftn(), lambda x: pairs(F.fftn(complex_(x)))),
    (
        "fftn_dim",
        PAIRS,
        lambda x: x.fftn((3, -1), (1, 0), "forward"),
        lambda x: pairs(F.fftn(complex_(x), (3, 2), (1, 0), "forward")),
    ),
    ("fftn_s", PAIRS, lambda x: x.fftn((3, 4)), lambda x: pairs(F.fftn(complex_(x), (3, 4)))),
    ("ifftn", PAIRS, lambda x: x.ifftn(norm="ortho"), lambda x: pairs(F.ifftn(complex_(x), norm="ortho"))),
    ("rfft2", REAL, lambda x: x.rfft2(), lambda x: pairs(F.rfft2(x))),
    ("rfftn", REAL, lambda x: x.rfftn((2, 4, 8)), lambda x: pairs(F.rfftn(x, (2, 4, 8)))),
    ("rfftn_dim", REAL, lambda x: x.rfftn(dim=(2, 0)), lambda x: pairs(F.rfftn(x, dim=(2, 0)))),
    ("irfft2", PAIRS, lambda x: x.irfft2(), lambda x: F.irfft2(complex_(x))),
    ("irfft2_odd", PAIRS, lambda x: x.irfft2((6, 9)), lambda x: F.irfft2(complex_(x), (6, 9))),
    ("irfftn", PAIRS, lambda x: x.irfftn(norm="forward"), lambda x: F.irfftn(complex_(x), norm="forward")),
    ("hfft", PAIRS, lambda x: x.hfft(), lambda x: F.hfft(complex_(x))),
    ("hfft_odd", PAIRS, lambda x: x.hfft(7, 1, "ortho"), lambda x: F.hfft(complex_(x), 7, 1, "ortho")),
    ("ihfft", REAL, lambda x: x.ihfft(), lambda x: pairs(F.ihfft(x))),
    (
        "ihfft_norm",
        REAL,
        lambda x: x.ihfft(4, norm="forward"),
        lambda x: pairs(F.ihfft(x, 4, norm="forward")),
    ),
    ("fftshift", REAL, lambda x: x.fftshift(), F.fftshift),
    ("fftshift_dim", REAL, lambda x: x.fftshift((0, -1)), lambda x: F.fftshift(x, (0, -1))),
    ("ifftshift", REAL, lambda x: x.ifftshift(2), lambda x: F.ifftshift(x, 2)),
    (
        "stft",
        SIGNAL,
        lambda x: x.stft(8),
        lambda x: pairs(torch.stft(x, 8, return_complex=True, window=torch.ones(8))),
    ),
    (
        "stft_window",
        SIGNAL,
        lambda x: x.stft(12, 3, 8, Tensor(WINDOW), normalized=True, pad_mode="constant"),
        lambda x: pairs(
            torch.stft(
                x, 12, 3, 8, torch.tensor(WINDOW), normalized=True, pad_mode="constant", return_complex=True
            )
        ),
    ),
    (
        "stft_whole",
        SIGNAL,
        lambda x: x.stft(9, 4, center=False, onesided=False),
        lambda x: pairs(
            torch.stft(x, 9, 4, center=False, onesided=False, return_complex=True, window=torch.ones(9))
        ),
    ),
]


@pytest.mark.parametrize(("name", "data", "ours", "theirs"), CASES, ids=[c[0] for c in CASES])
def test_values_and_gradients_are_torchs(name, data, ours, theirs):
    x, t = Tensor(data, requires_grad=True), torch.tensor(data, requires_grad=True)
    got, want = ours(x), theirs(t)
    np.testing.assert_allclose(got.numpy(), want.detach().numpy(), rtol=1e-4, atol=3e-5)
    weights = np.random.default_rng(1).normal(size=got.shape).astype(np.float32)
    (got * Tensor(weights)).sum().backward()
    (want * torch.tensor(weights)).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("n", [1, 2, 7, 97, 257, 263 * 2, 1009])
def test_every_size_has_a_small_error(n):
    x = np.random.default_rng(n).normal(size=(2, n, 2)).astype(np.float32)
    want = np.fft.fft(x[..., 0].astype(np.float64) + 1j * x[..., 1])
    got = Tensor(x).fft().numpy()
    bound = 1e-6 * max(1.0, np.log2(n)) * np.abs(want).max()
    assert np.abs(got[..., 0] + 1j * got[..., 1] - want).max() < bound
    np.testing.assert_allclose(Tensor(x).fft().ifft().numpy(), x, atol=1e-5)


def test_a_large_prime_has_a_gradient():
    x = np.random.default_rng(1).normal(size=(257,)).astype(np.float32)
    ours, theirs = Tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    ours.rfft().square().sum(-1).sqrt().sum().backward()
    torch.fft.rfft(theirs).abs().sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("options", [
    {}, {"hop_length": 3}, {"normalized": True}, {"onesided": False}, {"length": 33},
    {"center": False, "hop_length": 2}, {"win_length": 8, "window": WINDOW},
])  # fmt: skip
def test_istft_is_torchs_and_the_inverse(options):
    options = dict(options)
    window = options.pop("window", np.ones(options.get("win_length", 12), np.float32) * 0.5)
    forward = {k: v for k, v in options.items() if k != "length"}
    spectra = torch.stft(
        torch.tensor(SIGNAL),
        12,
        window=torch.tensor(window),
        return_complex=True,
        **{"pad_mode": "reflect"} | forward,
    )
    want = torch.istft(spectra, 12, window=torch.tensor(window), **options)
    x = Tensor(pairs(spectra).numpy(), requires_grad=True)
    got = x.istft(12, window=Tensor(window), **options)
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=1e-5)
    n = got.shape[-1]
    np.testing.assert_allclose(got.numpy(), SIGNAL[:, :n], atol=1e-4)
    got.square().sum().backward()
    assert np.isfinite(x.grad.numpy()).all()


def test_frequencies_are_numpys():
    for n in (1, 4, 5, 8):
        np.testing.assert_allclose(Tensor.fftfreq(n, 0.5).numpy(), np.fft.fftfreq(n, 0.5), rtol=1e-6)
        np.testing.assert_allclose(Tensor.rfftfreq(n, 3.0).numpy(), np.fft.rfftfreq(n, 3.0), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: Tensor(REAL).fft2(), ShapeError, "fft"),
        (lambda: Tensor(PAIRS).fftn(dim=(0, 0)), ArgumentError, "different axes"),
        (lambda: Tensor(PAIRS).fftn((1, 2), (0,)), ArgumentError, "a size in s for each"),
        (lambda: Tensor(PAIRS).fftn(dim=3), ShapeError, "expected dim in"),
        (lambda: Tensor(SIGNAL).stft(0), ArgumentError, "n_fft"),
        (lambda: Tensor(SIGNAL).stft(8, 0), ArgumentError, "hop_length"),
        (lambda: Tensor(SIGNAL).stft(8, win_length=9), ArgumentError, "win_length"),
        (lambda: Tensor(SIGNAL).stft(8, window=Tensor.ones(7)), ShapeError, "window"),
        (lambda: Tensor(SIGNAL).stft(41, center=False), ShapeError, "at least n_fft"),
        (lambda: Tensor(PAIRS).istft(8), ShapeError, "frequencies"),
        (lambda: Tensor.fftfreq(0), ArgumentError, "n of at least 1"),
    ],
)
def test_wrong_arguments(call, error, text):
    with pytest.raises(error, match=text) as caught:
        call()
    assert isinstance(caught.value, PolygradError)
