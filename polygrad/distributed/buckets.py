"""Gradients in buckets: each is one exchange, as large as pays, which begins when its last gradient is
computed.

Backward computes the gradients of the last parameters first, so buckets are filled from the end. The first
bucket is small, so that communication begins early (as of torch's DistributedDataParallel), and so is the
last one, of the first parameters, which no computation hides.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.helpers import prod
from polygrad.tensor.tensor import Tensor

BUCKET_BYTES = 25 << 20
EDGE_BYTES = 1 << 20  # of the first and the last bucket
_DIRECT = 1 << 16  # gradients of at least this many elements are exchanged where they are computed


@dataclass(frozen=True)
class Bucket:
    """Parameters whose gradients are exchanged together. `direct`: the number of those at the front whose
    gradients have memory of their own; those of the others are joined."""

    params: tuple[Tensor, ...]
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
    """Buckets from the last parameter to the first. `nbytes`: of their gradients, at least, if there are as
    many; the first bucket has `EDGE_BYTES`, if that is less, and the last one no more or a single parameter.
    `key`: equal of all parameters in a bucket. `joined`: all gradients of a bucket are joined."""
    edge = min(nbytes, EDGE_BYTES)
    in_last = _count_in_last(params, edge)
    open_buckets: dict[Hashable, list[int]] = {}  # positions of parameters
    full_buckets: list[list[int]] = []
    limit = edge
    for i in reversed(range(len(params))):
        k = (params[i].dtype == dtypes.float64, key(params[i]), i < in_last)
        members = open_buckets.setdefault(k, [])
        members.append(i)
        if sum(_gradient_bytes(params[j]) for j in members) >= limit:
            full_buckets.append(open_buckets.pop(k))
            limit = nbytes
    # those whose last gradient is computed first come first
    buckets = sorted([*full_buckets, *open_buckets.values()], key=lambda members: -members[-1])
    return [_bucket([params[i] for i in members], joined) for members in buckets]


def _count_in_last(params: Sequence[Tensor], edge: int) -> int:
    """The number of parameters in the last bucket: of the first ones, those with so many bytes, at least one;
    0 if all have no more, which are one bucket then."""
    sizes = list(itertools.accumulate(map(_gradient_bytes, params)))
    fitting = sum(size <= edge for size in sizes)
    return 0 if fitting == len(sizes) else max(fitting, 1)


def _gradient_bytes(p: Tensor) -> int:
    """The bytes of a parameter's gradient where it is summed up."""
    return prod(p.shape) * (8 if p.dtype == dtypes.float64 else 4)


def _bucket(params: list[Tensor], joined: bool) -> Bucket:
    large = [] if joined else [p for p in params if prod(p.shape) >= _DIRECT]
    small = [p for p in params if all(p is not x for x in large)]
    return Bucket((*large, *small), len(large))


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
