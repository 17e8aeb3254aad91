"""Collectives on Tensors.

Numbers of 8 and 16 bits are reduced in 32 bits. A result that may be differentiated has the gradient of a sum
over all ranks' losses. Inside a captured function a collective becomes a part of it.
"""

from __future__ import annotations

import functools
from typing import Any

from polygrad.distributed.group import Group, group
from polygrad.distributed.memory import buffer_of, exchange, label_of, memory_like
from polygrad.distributed.messages import all_gather_json
from polygrad.dtype import DType, dtypes
from polygrad.engine.realize import preserve
from polygrad.engine.recording import watch
from polygrad.errors import ArgumentError, DTypeError, RankError, ShapeError
from polygrad.helpers import caller
from polygrad.tensor.core.aliasing import is_whole, realize_tensors, rename, storage_of
from polygrad.tensor.custom_gradient import custom_gradient
from polygrad.tensor.tensor import Tensor

_OPS = ("sum", "mean", "max", "min")
_REDUCED = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64)


def all_reduce(x: Tensor, op: str = "sum") -> Tensor:
    """The `op` ("sum", "mean", "max" or "min") of the Tensors of all ranks, which have one shape and dtype.

    Sums and means can be differentiated. Raises ArgumentError, DTypeError, RankError.

    >>> all_reduce(Tensor([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    ranks = _enter("all_reduce", x, op)
    if op not in _OPS:
        raise ArgumentError(f"all_reduce: op: expected one of {', '.join(_OPS)}, got {op!r}")
    if ranks.engine.size == 1:
        return x
    if op in ("max", "min"):
        return _reduced(x.detach(), op)
    return _differentiable(x, functools.partial(_reduced, op=op), lambda g, y, x: all_reduce(g, op))


def all_reduce_(x: Tensor, op: str = "sum") -> Tensor:
    """`all_reduce` in place, in the memory of `x`, which has 32 or 64 bits; returns x. Raises ArgumentError
    for a view or a lazy value that may be differentiated, DTypeError, RankError.
    """
    ranks = _enter("all_reduce_", x, op)
    if op not in ("sum", "max", "min"):
        raise ArgumentError(f"all_reduce_: op: expected sum, max or min, got {op!r}")
    if x.dtype not in _REDUCED:
        raise DTypeError(f"all_reduce_: expected {', '.join(_REDUCED)}, got {x.dtype}: use all_reduce")
    _in_place(x, "all_reduce_", lambda a: ranks.engine.all_reduce(a.view(str(x.dtype)), op))
    return x


def broadcast(x: Tensor, root: int = 0) -> Tensor:
    """The Tensor of the rank `root`; the others' have the same shape and dtype. Raises ArgumentError,
    RankError.

    >>> broadcast(Tensor([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    _check_root(root)
    return x if group().engine.size == 1 else broadcast_(x.detach().clone(), root)


def broadcast_(x: Tensor, root: int = 0) -> Tensor:
    """`broadcast` in place, in the memory of `x`; returns x. Raises ArgumentError for a view or a lazy value
    that may be differentiated, RankError.
    """
    ranks = _enter("broadcast", x, root)
    _check_root(root)
    _in_place(x, "broadcast", lambda a: ranks.engine.broadcast(a, root))
    return x


def all_gather(x: Tensor) -> Tensor:
    """The Tensors of all ranks, of one shape and dtype, joined along axis 0 in the order of the ranks;
    numbers are joined to a Tensor of one axis. Raises RankError.

    >>> all_gather(Tensor([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    ranks = _enter("all_gather", x)
    x = x if x.ndim else x.reshape(1)
    if ranks.engine.size == 1:
        return x
    return _differentiable(x, _gathered, lambda g, y, x: reduce_scatter(g))


def reduce_scatter(x: Tensor, op: str = "sum") -> Tensor:
    """This rank's part, of `size()` equal ones along axis 0, of the `op` of the Tensors of all ranks: part of
    what `all_reduce` gives. Raises ArgumentError, ShapeError unless the axis has that many parts, DTypeError,
    RankError.

    >>> reduce_scatter(Tensor([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    ranks = _enter("reduce_scatter", x, op)
    if op not in _OPS:
        raise ArgumentError(f"reduce_scatter: op: expected one of {', '.join(_OPS)}, got {op!r}")
    if not x.ndim or x.shape[0] % ranks.engine.size:
        raise ShapeError(
            f"reduce_scatter: expected an axis 0 of {ranks.engine.size} equal parts, got {x.shape}: pad it"
        )
    if ranks.engine.size == 1:
        return x
    if op in ("max", "min"):
        return _scattered(x.detach(), op)
    scale = 1 / ranks.engine.size if op == "mean" else 1.0
    return _differentiable(x, functools.partial(_scattered, op=op), lambda g, y, x: all_gather(g) * scale)


def barrier(timeout: float | None = None) -> None:
    """Return when all ranks have called it. `timeout`: seconds to wait for the others, by default that of
    `init`. Raises RankError; CaptureError inside a captured function."""
    watch.forbid("a barrier", "call it between steps")
    ranks = group()
    if ranks.engine.size > 1:
        ranks.run("barrier", ranks.engine.barrier, timeout)


# --- how


def _enter(name: str, x: Tensor, *options: object) -> Group:
    """The group. With `init(check=True)`, all ranks compare what they call."""
    ranks = group()
    if not all(isinstance(n, int) for n in x.shape):
        raise ShapeError(f"{name}: expected a shape of ints, got {x.shape}")
    if ranks.check and ranks.engine.size > 1 and watch.recording is None:
        place = caller()
        own = [name, list(x.shape), str(x.dtype), *map(str, options)]
        for other, (theirs, line) in enumerate(
            all_gather_json([own, "" if place is None else f"{place[0]}:{place[1]}"], f"check of {name}")
        ):
            if theirs != own:
                raise RankError(
                    f"{name}: rank {other} calls {_words(theirs)} at {line}, and rank {ranks.engine.rank} "
                    f"{_words(own)}: expected the same call on all ranks",
                    (other,),
                )
    return ranks


def _words(call: list[Any]) -> str:
    name, shape, dtype, *options = call
    return f"{name}({', '.join([f'{tuple(shape)} {dtype}', *options])})"


def _check_root(root: int) -> None:
    size = group().engine.size
    if not isinstance(root, int) or not 0 <= root < size:
        raise ArgumentError(f"broadcast: root: expected a rank below {size}, got {root!r}")


def _differentiable(x: Tensor, forward: Any, backward: Any) -> Tensor:
    if not x.requires_grad:
        return forward(x.detach())
    return custom_gradient(forward, backward)(x)


def reduced_dtype(dtype: DType) -> DType:
    """The dtype in which numbers are reduced. Raises DTypeError for uint64."""
    if dtype in _REDUCED:
        return dtype
    if dtype == dtypes.uint64:
        raise DTypeError("all_reduce: expected a dtype that int64 or float64 holds, got uint64: use .cast()")
    return dtypes.float32 if dtype.is_float else dtypes.int64 if dtype == dtypes.uint32 else dtypes.int32


def _own_memory(x: Tensor, dtype: DType | None = None) -> Tensor:
    """A copy in new memory, or a lazy value in memory."""
    out = (x if dtype is None else x.cast(dtype)).detach().clone()
    realize_tensors([out])
    return out


def _reduced(x: Tensor, op: str) -> Tensor:
    engine = group().engine
    out = _own_memory(x, reduced_dtype(x.dtype))
    name, engine_op = str(out.dtype), "sum" if op == "mean" else op
    _in_place(out, "all_reduce", lambda a: engine.all_reduce(a.view(name), engine_op))
    return (out / engine.size if op == "mean" else out).cast(x.dtype)


def _gathered(x: Tensor) -> Tensor:
    engine = group().engine
    source = _own_memory(x)
    out = memory_like(source, engine.size * x.shape[0])
    exchange(label_of("all_gather", source), [buffer_of(source), buffer_of(out)], engine.all_gather)
    return out


def _scattered(x: Tensor, op: str) -> Tensor:
    engine = group().engine
    source = _own_memory(x, reduced_dtype(x.dtype))
    out = memory_like(source, x.shape[0] // engine.size)
    name, engine_op = str(source.dtype), "sum" if op == "mean" else op
    exchange(
        label_of("reduce_scatter", source),
        [buffer_of(source), buffer_of(out)],
        lambda a, b: engine.reduce_scatter(a.view(name), b.view(name), engine_op),
    )
    return (out / engine.size if op == "mean" else out).cast(x.dtype)


def _in_place(x: Tensor, name: str, call: Any) -> None:
    """Make a collective on the memory of `x`, all of it. Lazy values that read it are computed before. One
    rank does nothing, and raises the same errors."""
    realize_tensors([x])
    if not x.numel():
        return
    buffer = buffer_of(x)
    if not is_whole(x):
        raise ArgumentError(
            f"{name}: expected a Tensor with memory of its own, got a view of memory: use clone()"
        )
    if group().engine.size == 1:
        return
    preserve({buffer.allocation})
    exchange(label_of(name, x), [buffer], call)
    rename(storage_of(x), contents_change=True)
