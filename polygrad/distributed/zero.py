"""ZeRO-1: the optimizer's state is divided between ranks (Rajbhandari et al., 2020).

All parameters of a bucket are one line of elements, of which each rank has an equal part, its *shard*: a copy
of these elements, their gradient, and their state. The optimizer trains shards in the place of parameters. It
has to treat each element by itself. All ranks' shards together are the new parameters.

Checkpoints know no shards: each rank has pieces of the state that the optimizer would have without the
division.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from polygrad import nn
from polygrad.distributed.buckets import Bucket, line_of
from polygrad.distributed.group import group
from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError
from polygrad.helpers import prod
from polygrad.nn.optimizer import Optimizer, OptimizerGroup
from polygrad.tensor.tensor import Tensor

_ELEMENTWISE = (
    nn.optim.ASGD, nn.optim.SGD, nn.optim.Adadelta, nn.optim.Adagrad, nn.optim.AdamW,
    nn.optim.Adamax, nn.optim.NAdam, nn.optim.RAdam, nn.optim.RMSprop, nn.optim.Rprop,
)  # fmt: skip


def members_of(opt: Any) -> list[Optimizer]:
    """The optimizers of a group, or the one alone."""
    return list(opt.optimizers) if isinstance(opt, OptimizerGroup) else [opt]


def check_elementwise(opt: Any) -> None:
    """Raises ArgumentError for an optimizer whose step looks at whole parameters."""
    for o in members_of(opt):
        if type(o) not in _ELEMENTWISE:
            names = ", ".join(c.__name__ for c in _ELEMENTWISE)
            raise ArgumentError(
                f"DataParallel: shard_optimizer: expected an optimizer that treats each element by itself "
                f"({names}), got {type(o).__name__}"
            )


@dataclass(frozen=True, slots=True)
class Piece:
    """This rank's part of a Tensor of `shape`: its `elements`, of one axis, from number `start` on."""

    elements: Tensor
    start: int
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Undivided:
    """An optimizer before its division: its parameters, their clocks, and the state of those in no bucket, by
    its name in `state_dict`."""

    params: list[Tensor]
    clocks: list[int]
    state: dict[str, Tensor]


class Shards:
    """This rank's shards: one for each bucket, `tensors`. The optimizer has them from now on.

    `full_bytes`, `own_bytes`: of the optimizer's state without and with the division, shards included.
    """

    def __init__(self, opt: Any, buckets: Sequence[Bucket]) -> None:
        self.buckets = list(buckets)
        before = _state_bytes(opt)
        self._undivided = {id(o): self._facts_of(o) for o in members_of(opt)}
        with Tensor.no_grad():
            self.tensors = [self._shard(b, b.params) for b in self.buckets]
            for t in self.tensors:
                t.requires_grad = True
            for o in members_of(opt):
                self._divide(o)
        if isinstance(opt, OptimizerGroup):
            opt.params = [p for o in opt.optimizers for p in o.params]
        self.full_bytes = before
        self.own_bytes = _state_bytes(opt) + sum(t.numel() * t.dtype.itemsize for t in self.tensors)
        _shards.update(dict.fromkeys((opt, *members_of(opt)), self))

    def state_dict(self, opt: Any) -> dict[str, Tensor | Piece]:
        """The state that `opt.state_dict()` would have without the division: Tensors that are equal on all
        ranks, and pieces of the others. `opt`: what was divided, or a member of that group."""
        out: dict[str, Tensor | Piece] = {}
        for number, o in enumerate(members_of(opt)):
            start = f"{number}." if isinstance(opt, OptimizerGroup) else ""
            out |= {f"{start}{name}": value for name, value in self._state_of(o).items()}
        return out

    def _state_of(self, o: Optimizer) -> dict[str, Tensor | Piece]:
        undivided = self._undivided[id(o)]
        state = {k: t for k, t in o.state_dict().items() if k.split(".")[0] not in o._state_names}
        out: dict[str, Tensor | Piece] = {**state, **undivided.state}
        position = {id(p): i for i, p in enumerate(undivided.params)}
        clocks = list(undivided.clocks)
        for i, shard in enumerate(o.params):
            bucket = next(b for b, t in zip(self.buckets, self.tensors) if t is shard)
            for p in bucket.params:
                clocks[position[id(p)]] = o._clock_of[i]
            for name in o._state_names:
                if kept := getattr(o, name):
                    pieces = _pieces(bucket, kept[i])
                    out |= {f"{name}.{position[id(p)]}": piece for p, piece in pieces}
        if "clock_of" in out:
            out["clock_of"] = Tensor(clocks, dtype=dtypes.int32)
        return out

    def _facts_of(self, o: Optimizer) -> _Undivided:
        divided = {id(p) for b in self.buckets for p in b.params}
        undivided = [i for i, p in enumerate(o.params) if id(p) not in divided]
        state = {
            f"{name}.{i}": getattr(o, name)[i]
            for name in o._state_names
            if getattr(o, name)
            for i in undivided
        }
        return _Undivided(list(o.params), list(o._clock_of), state)

    def _shard(self, bucket: Bucket, values: Sequence[Tensor]) -> Tensor:
        """This rank's part of the values of a bucket's parameters."""
        ranks = group().engine
        line = line_of(values, values[0].dtype, ranks.size)
        length = line.shape[0] // ranks.size
        part: Tensor = line[ranks.rank * length : (ranks.rank + 1) * length].clone().realize()
        return part

    def _divide(self, o: Optimizer) -> None:
        """Replace an optimizer's parameters, and what it keeps of each, by shards."""
        position = {id(p): i for i, p in enumerate(o.params)}
        own = [(b, t) for b, t in zip(self.buckets, self.tensors) if id(b.params[0]) in position]
        places = [[position[id(p)] for p in b.params] for b, _ in own]
        state = {}
        for name in o._state_names:
            kept = getattr(o, name)
            if kept:
                state[name] = [self._shard(b, [kept[i] for i in where]) for (b, _), where in zip(own, places)]
        clocks = [o._clock_of[where[0]] for where in places]
        for record in o._records:
            ids = {id(p) for p in record.params}
            record.params = [t for b, t in own if id(b.params[0]) in ids]
        order = [next(i for i, (_, t) in enumerate(own) if t is p) for r in o._records for p in r.params]
        o.params, o.buffers = [own[i][1] for i in order], []
        o._clock_of = [clocks[i] for i in order]
        for name, shards in state.items():
            setattr(o, name, [shards[i] for i in order])


_shards: weakref.WeakKeyDictionary[Any, Shards] = weakref.WeakKeyDictionary()


def shards_of(x: Any) -> Shards | None:
    """The shards of an optimizer that is divided; None for any other object."""
    return _shards.get(x) if isinstance(x, Optimizer | OptimizerGroup) else None


def _pieces(bucket: Bucket, kept: Tensor) -> list[tuple[Tensor, Piece]]:
    """What this rank keeps of a bucket's parameters, and of which ones: `kept` is its part of a line."""
    first = group().engine.rank * kept.shape[0]
    out = []
    ends = itertools.accumulate(prod(p.shape) for p in bucket.params)
    for p, end in zip(bucket.params, ends):
        begin = end - prod(p.shape)
        low, high = max(begin, first), min(end, first + kept.shape[0])
        if low < high:
            out.append((p, Piece(kept[low - first : high - first], low - begin, p.shape)))
    return out


def shard_key(opt: Any) -> dict[int, Any]:
    """By parameter's id: what parameters of one shard have in common, the optimizer's group and clock."""
    keys = {}
    for number, o in enumerate(members_of(opt)):
        clock_of = {id(p): c for p, c in zip(o.params, o._clock_of)}
        for index, record in enumerate(o._records):
            for p in record.params:
                if id(p) in clock_of:
                    keys[id(p)] = number, index, clock_of[id(p)], str(p.dtype)
    return keys


def _state_bytes(opt: Any) -> int:
    """The bytes of what an optimizer keeps of its parameters."""
    tensors = [t for o in members_of(opt) for name in o._state_names for t in getattr(o, name)]
    return sum(t.numel() * t.dtype.itemsize for t in tensors)
