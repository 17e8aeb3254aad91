"""Gradients in buckets: each is one exchange, as large as pays, which begins when its last gradient is
computed.

Backward computes the gradients of the last parameters first, so buckets are filled from the end.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.helpers import prod
from polygrad.tensor.tensor import Tensor

BUCKET_BYTES = 25 << 20
_DIRECT = 1 << 16  # gradients of at least this many elements are exchanged where they are computed


@dataclass(frozen=True)
class Bucket:
    """Parameters whose gradients are exchanged together. `key`: what they have in common. `direct`: the
    number of those at the front whose gradients have memory of their own; those of the others are joined."""

    params: tuple[Tensor, ...]
    key: Hashable
    direct: int

    @property
    def large(self) -> tuple[Tensor, ...]:
        return self.params[: self.direct]

    @property
    def small(self) -> tuple[Tensor, ...]:
        return self.params[self.direct :]

    @property
    def dtype(self) -> DType:
        """The dtype of the sums."""
        return dtypes.float64 if self.params[0].dtype == dtypes.float64 else dtypes.float32


def make_buckets(
    params: Sequence[Tensor], nbytes: int, key: Callable[[Tensor], Hashable], joined: bool
) -> list[Bucket]:
    """Buckets of at least `nbytes` bytes of gradients, if there are as many, from the last parameter to the
    first. `key`: equal of all parameters in a bucket. `joined`: all gradients of a bucket are joined."""
    open_buckets: dict[Hashable, list[Tensor]] = {}
    nbytes_of: dict[Hashable, int] = {}
    out: list[tuple[Hashable, list[Tensor]]] = []
    for p in reversed(params):
        k = (p.dtype == dtypes.float64, key(p))
        size = prod(p.shape) * (8 if k[0] else 4)
        if k not in open_buckets:
            open_buckets[k], nbytes_of[k] = [], 0
            out.append((k, open_buckets[k]))
        open_buckets[k].append(p)
        nbytes_of[k] += size
        if nbytes_of[k] >= nbytes:
            del open_buckets[k]
    return [_bucket(k, members, joined) for k, members in out]


def _bucket(key: Hashable, params: list[Tensor], joined: bool) -> Bucket:
    large = [] if joined else [p for p in params if prod(p.shape) >= _DIRECT]
    small = [p for p in params if all(p is not x for x in large)]
    return Bucket((*large, *small), key, len(large))


def line_of(values: Sequence[Any], dtype: DType, multiple: int) -> Tensor:
    """The elements of all values, lazily, as one axis, with zeros up to a multiple of `multiple` elements."""
    flat = [v.detach().flatten().cast(dtype) for v in values]
    padding = -sum(v.shape[0] for v in flat) % multiple
    if padding:
        flat.append(Tensor.zeros(padding, dtype=dtype, device=flat[0].device))
    return flat[0].cat(*flat[1:]) if len(flat) > 1 else flat[0].clone()


def split(line: Tensor, params: Sequence[Tensor]) -> list[Tensor]:
    """The elements of each parameter, in its shape, of one axis with those of all."""
    out, start = [], 0
    for p in params:
        end = start + prod(p.shape)
        out.append(line[start:end].reshape(p.shape))
        start = end
    return out
