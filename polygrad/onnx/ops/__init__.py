"""The ops of ONNX by family. Importing this package fills the table of `polygrad.onnx.registry`."""

from __future__ import annotations

from polygrad.onnx.ops import (
    activations,
    casting,
    convolution,
    elementwise,
    indexing,
    linalg,
    movement,
    normalization,
    pooling,
    quantization,
    reductions,
)

__all__ = [
    "activations",
    "casting",
    "convolution",
    "elementwise",
    "indexing",
    "linalg",
    "movement",
    "normalization",
    "pooling",
    "quantization",
    "reductions",
]
