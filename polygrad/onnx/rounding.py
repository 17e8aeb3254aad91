"""Rounding to even by one addition, for numbers that are saturated before."""

from __future__ import annotations

import struct

from polygrad.dtype import dtypes
from polygrad.tensor.tensor import Tensor

MAGIC = 1.5 * 2**23
MAGIC_BITS: int = struct.unpack("<i", struct.pack("<f", MAGIC))[0]


def rounded_to_even(x: Tensor) -> Tensor:
    """float32 as int32, for at most 2^22 either way; not a number becomes any number.

    x + MAGIC lies where float32 has the integers alone, so the addition rounds, and its bits count up from
    those of MAGIC. `Tensor.round` is for all numbers, and takes a dozen operations.

    >>> rounded_to_even(Tensor([-1.5, 0.5, 2.5, 2.51])).tolist()
    [-2, 0, 2, 3]
    """
    return (x + MAGIC).bitcast(dtypes.int32) - MAGIC_BITS
