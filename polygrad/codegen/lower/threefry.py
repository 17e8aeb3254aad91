"""THREEFRY as 32-bit arithmetic: Threefry-2x32 with 20 rounds, of Salmon, Moraes, Dror and Shaw, "Parallel
random numbers: as easy as 1, 2, 3" (SC 2011). Knows scalar nodes only.
"""

from __future__ import annotations

from polygrad.dtype import dtypes
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry(counter: UOp, key: UOp) -> UOp:
    """uint64 random bits of a uint64 counter under a uint64 key; the first word of a pair is the low one.

    THREEFRY(counter, key)  ->  (x1 << 32) | x0, where x0, x1 = 20 rounds of adds, rotates and xors of uint32
    """
    x0, x1 = _low(counter), _high(counter)
    k0, k1 = _low(key), _high(key)
    keys = (k0, k1, k0 ^ k1 ^ _PARITY)
    x0, x1 = x0 + k0, x1 + k1
    for group in range(5):
        for bits in _ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = _rotate(x1, bits) ^ x0
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + keys[(group + 2) % 3] + (group + 1)
    return UOp(Ops.OR, dtypes.uint64, (x1.cast(dtypes.uint64) << 32, x0.cast(dtypes.uint64)))


def _low(x: UOp) -> UOp:
    return UOp.const(dtypes.uint32, x.arg) if x.is_const else x.cast(dtypes.uint32)


def _high(x: UOp) -> UOp:
    if x.vmin >> 32 == x.vmax >> 32:
        return UOp.const(dtypes.uint32, x.vmin >> 32)
    return (x >> 32).cast(dtypes.uint32)


def _rotate(x: UOp, bits: int) -> UOp:
    return (x << bits) | (x >> (32 - bits))
