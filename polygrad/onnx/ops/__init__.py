"""The ops of ONNX by family. Importing this package fills the table of `polygrad.onnx.registry`."""

from __future__ import annotations

from polygrad.onnx.ops import (
    activations,
    elementwise,
    movement,
    reductions,
)

__all__ = ["activations", "elementwise", "movement", "reductions"]
