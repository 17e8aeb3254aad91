"""Sums over ranks, of arrays in memory, as buckets of gradients need them.

A sum in order: each rank gets its part of all arrays and adds them up as a binary tree over the ranks, then
all parts go to all ranks. That moves as many bytes as a ring does, the order is always the same, and 16-bit
numbers are added up in float32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence

from polygrad.distributed.engine import Array, Engine

WIRES = ("float32", "bfloat16")


def tree_sum(parts: Sequence[Array]) -> Array:
    """The sum of arrays, as a binary tree: ((a + b) + (c + d)) + e."""
    while len(parts) > 1:
        pairs = [a + b for a, b in zip(parts[::2], parts[1::2])]
        parts = [*pairs, *parts[len(pairs) * 2 :]]
    return parts[0]


def sum_in_order(engine: Engine, array: Array) -> None:
    """`engine.all_reduce` of floats or, as uint16, of bfloat16, in an order that depends on no engine."""
    import numpy as np

    count = engine.size
    length = -(-len(array) // count)
    own = np.zeros(length * count, array.dtype)
    own[: len(array)] = array
    received = np.empty_like(own)
    engine.all_to_all(own.view(np.uint8), received.view(np.uint8))
    total = _sum_of_parts(received, count)
    total = to_bfloat16(total) if array.dtype == np.uint16 else total
    engine.all_gather(total.view(np.uint8), own.view(np.uint8))
    array[:] = own[: len(array)]


def scatter_in_order(engine: Engine, array: Array, out: Array) -> None:
    """`engine.reduce_scatter`, likewise; of bfloat16 to float32."""
    import numpy as np

    received = np.empty_like(array)
    engine.all_to_all(array.view(np.uint8), received.view(np.uint8))
    out[:] = _sum_of_parts(received, engine.size)


def _sum_of_parts(received: Array, count: int) -> Array:
    """The sum of `count` equal parts; of bfloat16 in float32."""
    import numpy as np

    parts = np.split(received, count)
    return tree_sum([from_bfloat16(x) for x in parts] if received.dtype == np.uint16 else parts)


def from_bfloat16(bits: Array) -> Array:
    """The float32 numbers of bfloat16's bits, as uint16."""
    import numpy as np

    return (bits.astype(np.uint32) << 16).view(np.float32)


def to_bfloat16(numbers: Array) -> Array:
    """The bits, as uint16, of float32 numbers rounded to the nearest bfloat16, ties to even."""
    import numpy as np

    bits = numbers.view(np.uint32)
    rounded = ((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16).astype(np.uint16)
    rounded[np.isnan(numbers)] = 0x7FC0
    return rounded
