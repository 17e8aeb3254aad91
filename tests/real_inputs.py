"""Inputs of real ONNX models: features of files, a sound like a voice, a picture of strokes."""

from __future__ import annotations

import math

import numpy as np

CHUNK, CONTEXT = 512, 64  # samples


# --- magika: which type a file is of


def features(content: bytes) -> np.ndarray:
    """The first and the last 1,024 bytes without white space around; 256 stands for none."""
    begin, end = content.lstrip()[:1024], content.rstrip()[-1024:]
    row = [*begin, *[256] * (1024 - len(begin)), *[256] * (1024 - len(end)), *end]
    return np.array([row], np.int32)


FILES = {
    "python": "polygrad/onnx/instance.py",
    "markdown": "README.md",
    "toml": "pyproject.toml",
    "makefile": "Makefile",
    "typescript": "wasm_runtime/src/model.ts",
}


# --- silero-vad: whether somebody speaks


def voice(count: int, rate: int) -> np.ndarray:
    """Samples of a tone with overtones, whose pitch and loudness rise and fall."""
    t = np.arange(count) / rate
    pitch = 140 + 30 * np.sin(2 * math.pi * 1.5 * t)
    phase = 2 * math.pi * np.cumsum(pitch) / rate
    loudness = np.clip(np.sin(2 * math.pi * 2 * t), 0, 1)
    weights = {1: 1.0, 2: 0.8, 3: 0.5, 5: 0.6, 8: 0.3, 17: 0.2}
    return (0.2 * loudness * sum(w * np.sin(k * phase) for k, w in weights.items())).astype(np.float32)


def chunks(rate: int, rounds: int = 4) -> list[np.ndarray]:
    """Chunks with the samples before each, as the package passes them."""
    step, before = (CHUNK, CONTEXT) if rate == 16000 else (CHUNK // 2, CONTEXT // 2)
    samples = np.concatenate([np.zeros(before, np.float32), voice(step * rounds, rate)])
    return [samples[None, i * step : i * step + before + step] for i in range(rounds)]


# --- PP-OCR: where text is, which way up it is, and what it says


def strokes(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Pictures of dark strokes on white."""
    rng = np.random.default_rng(seed)
    x = np.ones(shape, np.float32)
    for _ in range(12):
        y, z = rng.integers(0, shape[2] - 6), rng.integers(0, shape[3] - 20)
        x[..., y : y + 3, z : z + rng.integers(4, 20)] = -1
    return x
