"""Packed weights of every kind, of random numbers and of random blocks."""

from __future__ import annotations

import numpy as np

from polygrad import Tensor, nn
from polygrad.nn.quantization import KINDS

PACKED = [name for name, kind in KINDS.items() if kind.pack is not None]
READ_ONLY = [name for name in KINDS if name not in PACKED]


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def some_packed(kind: str, *rows: int, columns: int = 256) -> nn.PackedWeight:
    """A weight of any kind: random numbers that are packed, or random blocks."""
    if kind in PACKED:
        return nn.PackedWeight.of(Tensor(numbers(*rows, columns)), kind)
    packed_kind = KINDS[kind]
    assert packed_kind.block is not None
    blocks = np.random.default_rng(1).integers(
        0, 120, (*rows, columns // packed_kind.block, packed_kind.nbytes)
    )
    return nn.PackedWeight.of_blocks(Tensor(blocks.astype(np.uint8)), kind)
