"""Measuring over all ranks, and random numbers that differ between ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from polygrad.capture.jit import TinyJit
from polygrad.distributed.group import group
from polygrad.distributed.messages import all_gather_json
from polygrad.errors import ArgumentError
from polygrad.tensor.core.generator import mix
from polygrad.tensor.tensor import Tensor

_PATIENCE = 600.0  # seconds for ranks with more batches


def manual_seed(seed: int) -> None:
    """`Tensor.manual_seed` with another seed on each rank, a function of `seed` and the rank. On rank 0 it is
    `seed` itself. For dropout and augmentation: `DataParallel` sets weights to those of rank 0.

    >>> manual_seed(7)
    """
    rank = group().engine.rank
    Tensor.manual_seed(seed if rank == 0 else mix(mix(seed) + rank))


def evaluate(
    measure: Callable[..., Mapping[str, Any]], batches: Iterable[Any], rows: Callable[..., int] | None = None
) -> dict[str, float]:
    """The means over the rows of all ranks' batches of what `measure(*batch)` returns: names, and Tensors of
    one element, the means over the rows of a batch.

    Each rank passes its own batches, of any number and size. `measure` is captured once for each combination
    of shapes, and runs outside of training mode and without gradients. `rows(*batch)`: how many rows a batch
    has, by default the size of axis 0 of its first Tensor.

    Raises ArgumentError where no rank has a batch, RankError.

    >>> batches = [(Tensor([1.0, 2.0]),), (Tensor([6.0]),)]
    >>> evaluate(lambda x: {"mean": x.mean()}, batches)
    {'mean': 3.0}
    """
    steps: dict[Any, Any] = {}
    sums: dict[str, float] = {}
    count = 0
    with Tensor.no_grad(), Tensor.train(False):
        for batch in batches:
            tensors = [x if isinstance(x, Tensor) else Tensor(x) for x in batch]
            key = tuple((t.shape, t.dtype) for t in tensors)
            step = steps.setdefault(key, TinyJit(measure))
            n = tensors[0].shape[0] if rows is None else rows(*batch)
            for name, value in step(*tensors).items():
                sums[name] = sums.get(name, 0.0) + float(value.item()) * n
            count += n
    answers = all_gather_json([sums, count], "evaluate", _PATIENCE)
    total = sum(n for _, n in answers)
    if total == 0:
        raise ArgumentError("evaluate: expected at least one batch on some rank, got none")
    names = dict.fromkeys(name for part, _ in answers for name in part)
    return {name: sum(part.get(name, 0.0) for part, _ in answers) / total for name in names}
