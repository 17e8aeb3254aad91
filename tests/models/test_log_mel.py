"""What Whisper hears, judged by the WhisperFeatureExtractor of `transformers`."""

from __future__ import annotations

import numpy as np
import pytest
from transformers import WhisperFeatureExtractor

from polygrad import Tensor
from polygrad.errors import ArgumentError, ShapeError
from polygrad.models.log_mel import SAMPLE_RATE, log_mel, mel_filters


def _noise(seconds: float) -> np.ndarray:
    samples = np.random.default_rng(0).standard_normal(int(SAMPLE_RATE * seconds))
    return (samples * 0.1).astype(np.float32)


def _chirp(seconds: float) -> np.ndarray:
    at = np.arange(int(SAMPLE_RATE * seconds)) / SAMPLE_RATE
    return (0.3 * np.sin(2 * np.pi * 440 * at) + 0.1 * np.sin(400 * np.pi * at * at)).astype(np.float32)


@pytest.mark.parametrize("device", ["CPU", "WASM"])
@pytest.mark.parametrize("bands", [80, 128])
@pytest.mark.parametrize("sound", [_noise(7), _noise(31), _chirp(12), np.zeros(100, np.float32)])
@pytest.mark.usefixtures("default_device")
def test_features_are_those_of_transformers_within_1e_4(device: str, bands: int, sound: np.ndarray) -> None:
    extractor = WhisperFeatureExtractor(feature_size=bands)
    expected = extractor(sound, sampling_rate=SAMPLE_RATE, return_tensors="np")["input_features"]
    found = log_mel(sound, bands).numpy()
    assert found.shape == expected.shape == (1, bands, 3000)
    assert np.abs(found - expected).max() < 1e-4 * np.abs(expected).max()


@pytest.mark.parametrize("bands", [80, 128])
def test_filters_are_those_of_transformers_within_1e_12(bands: int) -> None:
    expected = WhisperFeatureExtractor(feature_size=bands).mel_filters
    assert np.abs(np.array(mel_filters(bands)).T - expected).max() < 1e-12


def test_sounds_of_a_batch_do_not_hear_each_other() -> None:
    loud, quiet = _chirp(1), _noise(1) * 1e-3
    both = log_mel(np.stack([loud, quiet]), 80, seconds=1).numpy()
    alone = log_mel(quiet.tolist(), 80, seconds=1).numpy()
    assert both.shape == (2, 80, 100)
    assert np.abs(both[1] - alone[0]).max() < 1e-4


def test_what_is_no_sound_is_refused() -> None:
    with pytest.raises(ShapeError, match="audio: expected"):
        log_mel(Tensor.zeros(0))
    with pytest.raises(ShapeError, match="audio: expected"):
        log_mel(Tensor.zeros(1, 1, 16))
    with pytest.raises(ArgumentError, match="bands"):
        log_mel([0.0] * 400, bands=0)
