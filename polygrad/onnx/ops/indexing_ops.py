"""Gathering, scattering, sorting, and choosing by conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polygrad.dtype import dtypes
from polygrad.errors import OnnxError
from polygrad.helpers import prod
from polygrad.onnx.op_table import Int, op
from polygrad.onnx.values import Constant, Value, numbers_of, tensor_of
from polygrad.tensor.tensor import Tensor
from polygrad.uop.node import UOp


def from_zero(indices: Tensor, size: Any) -> Tensor:
    """Indices, of which negative ones count from the end, as 0-based int64."""
    indices = indices.cast(dtypes.int64)
    return (indices < 0).where(indices + size, indices)


# --- reading


@op("Gather", 1, 11, 13)
def gather(x: Tensor, indices: Value, *, axis: int = 0, device: str | None) -> Tensor:
    axis = x._axis(axis)
    if isinstance(indices, Constant) and not indices.shape and not isinstance(indices.numbers[0], UOp):
        return x.select(axis, indices.numbers[0])  # a view
    places = tensor_of(indices, device)
    return x[(slice(None),) * axis + (from_zero(places, x.shape[axis]),)]


@op("GatherElements", 11, 13)
def gather_elements(x: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    return x.gather(axis, from_zero(indices, x.shape[x._axis(axis)]))


def _flat_places(shape: Sequence[Any], indices: Tensor) -> Tensor:
    """The last axis of indices, coordinates in the first axes of `shape`, as positions in row-major order."""
    depth = indices.shape[-1]
    total = None
    for k in range(depth):
        place = from_zero(indices.select(-1, k), shape[k]) * prod(shape[k + 1 : depth])
        total = place if total is None else total + place
    assert total is not None
    return total


@op("GatherND", 11, 12, 13)
def gather_nd(x: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
    depth = indices.shape[-1]
    batch, sizes, inner_shape = x.shape[:batch_dims], x.shape[batch_dims:], x.shape[batch_dims + depth :]
    places = _flat_places(sizes, indices)
    if batch_dims:
        first = Tensor.arange(prod(batch), dtype=dtypes.int64) * prod(sizes[:depth])
        places = places + first.reshape(*batch, *[1] * (places.ndim - batch_dims))
    return x.reshape(-1, *inner_shape)[places]


@op("Compress", 9, 11, 28)
def compress(x: Tensor, condition: Value, *, axis: int | None = None, device: str | None) -> Tensor:
    chosen = [i for i, is_chosen in enumerate(numbers_of(condition)) if is_chosen]
    x, along = (x.flatten(), 0) if axis is None else (x, x._axis(axis))
    if not chosen:
        return x.shrink([(0, 0) if i == along else None for i in range(x.ndim)])
    return x[(slice(None),) * along + (Tensor(chosen, device, dtypes.int32),)]


@op("NonZero", 9, 13)
def non_zero(x: Tensor) -> Tensor:
    positions = (x.reshape(1) if not x.ndim else x).nonzero().cast(dtypes.int64)
    return positions.T if x.ndim else positions.T[:0]


# --- writing

_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def _write(x: Tensor, axis: int, places: Tensor, updates: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return x.scatter(axis, places, updates)
    if reduction not in _REDUCTIONS:
        raise OnnxError(f"expected reduction none, {', '.join(_REDUCTIONS)}, got {reduction!r}")
    return x.scatter_reduce(axis, places, updates, _REDUCTIONS[reduction])


@op("ScatterElements", 11, 13, 16, 18)
def scatter_elements(
    x: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, reduction: str = "none"
) -> Tensor:
    return _write(x, axis, from_zero(indices, x.shape[x._axis(axis)]), updates, reduction)


@op("Scatter", 9, 11)
def scatter(x: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0) -> Tensor:
    return scatter_elements(x, indices, updates, axis=axis)


@op("ScatterND", 11, 13, 16, 18)
def scatter_nd(x: Tensor, indices: Tensor, updates: Tensor, *, reduction: str = "none") -> Tensor:
    depth = indices.shape[-1]
    count, inner_count = prod(x.shape[:depth]), prod(x.shape[depth:])
    places = _flat_places(x.shape, indices).reshape(-1, 1).expand(-1, inner_count)
    out = _write(x.reshape(count, inner_count), 0, places, updates.reshape(-1, inner_count), reduction)
    return out.reshape(x.shape)


@op("TensorScatter", 24)
def tensor_scatter(
    past: Tensor, update: Tensor, starts: Tensor | None = None, *, axis: int = -2, mode: str = "linear"
) -> Tensor:
    """A cache with `update` written along `axis`, from `starts` on, which has one number for each of the
    batch."""
    at = past._axis(axis)
    if mode not in ("linear", "circular"):
        raise OnnxError(f"expected mode linear or circular, got {mode!r}")
    steps = Tensor.arange(update.shape[at], dtype=dtypes.int64)
    places = steps.reshape([-1 if i == at else 1 for i in range(past.ndim)])
    if starts is not None:
        places = places + starts.cast(dtypes.int64).reshape(-1, *[1] * (past.ndim - 1))
    if mode == "circular":
        places = places % past.shape[at]
    return past.scatter(at, places.expand(update.shape), update)


@op("OneHot", 9, 11, 28)
def one_hot(indices: Tensor, depth: Int, values: Tensor, *, axis: int = -1) -> Tensor:
    places = from_zero(indices, depth)
    return places.is_class(depth, axis).where(values[1], values[0])


# --- order


@op("TopK", 11, 24)
def top_k(x: Tensor, k: Int, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> tuple[Tensor, Tensor]:
    values, places = x.topk(k, axis, bool(largest), bool(sorted))
    return values, places.cast(dtypes.int64)


@op("TopK", 10)
def top_k_10(x: Tensor, k: Int, *, axis: int = -1) -> tuple[Tensor, Tensor]:
    return top_k(x, k, axis=axis)


@op("TopK", 1)
def top_k_1(x: Tensor, *, k: int, axis: int = -1) -> tuple[Tensor, Tensor]:
    return top_k(x, k, axis=axis)


@op("Unique", 11, 28)
def unique(
    x: Tensor, *, axis: int | None = None, sorted: int = 1, device: str | None
) -> tuple[Tensor, Constant, Constant, Constant]:
    """Computed on the host, because the shape of the result depends on the values."""
    along = 0 if axis is None else x._axis(axis)
    rows = x.flatten() if axis is None else x.transpose(0, along)
    columns = prod(rows.shape[1:])
    numbers = numbers_of(rows)
    keys = [tuple(numbers[i * columns : (i + 1) * columns]) for i in range(rows.shape[0])]
    groups: dict[tuple[Any, ...], list[int]] = {}
    for i, key in enumerate(keys):
        groups.setdefault(key, []).append(i)
    order = list(groups)
    if sorted:
        order.sort()
    rank = {key: i for i, key in enumerate(order)}
    first = [groups[key][0] for key in order]
    picked = rows[Tensor(first, device, dtypes.int32)] if first else rows
    return (
        picked if axis is None else picked.transpose(0, along),
        Constant.of(first),
        Constant.of([rank[key] for key in keys]),
        Constant.of([len(groups[key]) for key in order]),
    )
