"""Random valid ONNX graphs with inputs: `make(seed)`."""

from __future__ import annotations

import random

from onnx_random import elementwise, layers, shapes
from onnx_random.maker import Made, Maker

__all__ = ["Made", "elementwise", "layers", "make", "shapes"]


def make(seed: int, least: int = 5, most: int = 40) -> Made:
    """The model of a seed, of `least` to `most` nodes."""
    rng = random.Random(seed)
    return Maker(rng).make(rng.randint(least, most))
