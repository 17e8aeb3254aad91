"""`DataParallel`: a training step on all ranks, each with its part of the batch.

Every rank captures the step (`capture_step`). After backward, gradients are exchanged in buckets, each as
soon as it is computed (`capture/overlap.py`), then the optimizer takes its step with their mean. So
parameters stay equal on all ranks. With one rank nothing is exchanged, and the arithmetic is the same.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from polygrad.capture.step import CompiledStep, capture_step, input_specs
from polygrad.distributed.agreement import facts_of_program, together
from polygrad.distributed.buckets import BUCKET_BYTES, Bucket, line_of, make_buckets, split
from polygrad.distributed.collectives import all_reduce, broadcast
from polygrad.distributed.engine import Array
from polygrad.distributed.group import group
from polygrad.distributed.memory import buffer_of, exchange, memory_like
from polygrad.distributed.reduction import WIRES, scatter_in_order, sum_in_order
from polygrad.distributed.zero import Shards, check_elementwise, members_of, shard_key, shards_of
from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError, GradientError
from polygrad.nn.clipping import clip_grad_value_
from polygrad.nn.state import get_state_dict
from polygrad.tensor.core.aliasing import realize_tensors, rename, storage_of
from polygrad.tensor.tensor import Tensor


@dataclass(frozen=True)
class _Kind:
    """What a step does with its gradients: adds those of accumulators `added`, then keeps the sum in
    accumulator `kept`, or with None exchanges it and updates the parameters."""

    added: tuple[int, ...]
    kept: int | None


class DataParallel:
    """`compile_step` on all ranks: `run` takes this rank's part of a batch, all parts of one size.

    The loss and the gradients are the means over all ranks' parts, as if one process had computed the whole
    batch. Parameters, buffers and the optimizer's state are set to those of rank 0 first. All ranks compare
    their Programs.

        distributed.init()
        step = distributed.DataParallel(lambda model, x, y: model(x).cross_entropy(y), model, opt, x, y)
        for x, y in batches_of_this_rank:
            step.run(x, y)

    fn, model, opt, inputs: as of `compile_step`. What `fn` returns besides the loss is this rank's.
    bucket_bytes: gradients are exchanged in buckets of about this size, while others are computed; in the
        first and the last bucket are at most about 1 MB.
    wire: "float32", or "bfloat16": gradients are rounded to 16 bits to be sent, added up in float32, and
        rounded once more.
    accumulate: a batch consists of that many runs. Only the last one communicates and updates.
    shard_optimizer: ZeRO-1. The optimizer's state is divided between ranks: `opt.params` are shards then.
        A second step with the same optimizer, for batches of another size, has the shards of the first.
    in_order: gradients are added up as a binary tree over all runs and ranks, so that the result has the same
        bits for any number of ranks, a power of two, as long as ranks times `accumulate` and the size of a
        part stay.

    Raises RankError where another rank has another model or another Program, or fails; ArgumentError; and
    what `compile_step` raises.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        model: Any,
        opt: Any,
        *inputs: Any,
        bucket_bytes: int = BUCKET_BYTES,
        wire: str = "float32",
        accumulate: int = 1,
        shard_optimizer: bool = False,
        in_order: bool = False,
    ) -> None:
        _check(wire, accumulate, bucket_bytes, in_order)
        if shard_optimizer:
            check_elementwise(opt)
        self._model, self._opt, self._wire, self._in_order = model, opt, wire, in_order
        self._parts = accumulate * group().engine.size
        self._position = 0  # of the next run in the batch
        self._shards = shards_of(opt)
        if self._shards is None:
            equalize(model, opt)
            self._params = [p for p in opt.params if p.requires_grad is not False]
            self._buckets = self._make_buckets(bucket_bytes, shard_optimizer)
            self._shards = Shards(opt, self._buckets) if shard_optimizer else None
        elif shard_optimizer:
            equalize(model)
            self._buckets = self._shards.buckets
            self._params = [p for b in self._buckets for p in b.params]
        else:
            raise ArgumentError(
                "DataParallel: opt: expected an optimizer that is not divided, got one that another "
                "DataParallel has divided: pass shard_optimizer=True"
            )
        self._kinds = _kinds(accumulate, in_order)
        self._accumulators = self._make_accumulators()
        self._steps: dict[_Kind, CompiledStep] = {}
        for kind in dict.fromkeys(self._kinds):
            self._steps[kind] = together(
                "DataParallel",
                lambda kind=kind: self._capture(kind, fn, inputs),  # type: ignore[misc]
                _facts,
            )
        self._last = self._steps[self._kinds[0]]

    def run(self, *inputs: Any) -> Any:
        """Take one step, or a part of one with `accumulate`. Returns what the function returned; its loss is
        the mean over all ranks and the runs of the batch in the last one, and this run's before.

        Raises RankError for a rank that has ended or does not arrive, and what `CompiledStep.run` raises.
        """
        self._last = self._steps[self._kinds[self._position]]
        result = self._last.run(*inputs)
        self._position = (self._position + 1) % len(self._kinds)
        return result

    def loss_value(self) -> float:
        """The loss of the last run. Raises CaptureError before the first."""
        return self._last.loss_value()

    @property
    def step(self) -> CompiledStep:
        """The captured step that communicates and updates."""
        return self._steps[self._kinds[-1]]

    @property
    def optimizer_bytes(self) -> int:
        """The bytes of the optimizer's state on this rank, with its shards of parameters."""
        if self._shards is not None:
            return self._shards.own_bytes
        tensors = [t for o in members_of(self._opt) for name in o._state_names for t in getattr(o, name)]
        return sum(t.numel() * t.dtype.itemsize for t in tensors)

    # --- the captured step

    def _capture(self, kind: _Kind, fn: Callable[..., Any], inputs: Sequence[Any]) -> CompiledStep:
        def update(result: Any) -> Any:
            with Tensor.no_grad():
                return self._update(kind, result)

        return capture_step(fn, self._model, self._opt, inputs, update, self._zero_grad)

    def _zero_grad(self) -> None:
        self._opt.zero_grad()
        for p in self._params:
            p.grad = None

    def _update(self, kind: _Kind, result: Any) -> Any:
        """What follows backward; the step's result."""
        loss = result[0] if isinstance(result, tuple) else result
        missing = [p.shape for p in self._params if p.grad is None]
        if missing:
            raise GradientError(
                f"DataParallel: expected a gradient of each parameter, got none of {len(missing)}, the first "
                f"of shape {missing[0]}: freeze it with requires_grad=False, or leave it out of the optimizer"
            )
        sums = self._local_sums(loss)
        for level in kind.added:
            sums = [total + x for total, x in zip(self._accumulators[level], sums)]
        if kind.kept is not None:
            self._keep(kind.kept, sums)
            return result
        loss = self._exchange_and_step(sums).reshape(loss.shape).cast(loss.dtype)
        return (loss, *result[1:]) if isinstance(result, tuple) else loss

    def _local_sums(self, loss: Any) -> list[Tensor]:
        """What is exchanged, of one axis each: for each bucket its large gradients, in memory, then the small
        ones, lazily joined; at the end the loss."""
        large = [[_gradient(p).flatten().cast(b.dtype).clone() for p in b.large] for b in self._buckets]
        small = [_gradient(p) for b in self._buckets for p in b.small]
        loss = loss.detach()
        realize_tensors([loss, *small, *(x for xs in large for x in xs)])
        out = []
        for b, xs in zip(self._buckets, large):
            out += xs
            if b.small:
                out.append(line_of([_gradient(p) for p in b.small], b.dtype, group().engine.size))
        return [*out, loss.reshape(1).cast(dtypes.float32).clone()]

    def _keep(self, level: int, sums: Sequence[Tensor]) -> None:
        """Write sums to the accumulators of a level."""
        for accumulator, x in zip(self._accumulators[level], sums):
            accumulator.assign(x)

    def _make_buckets(self, nbytes: int, is_divided: bool) -> list[Bucket]:
        """`is_divided`: the parameters of a bucket become one shard."""
        keys = shard_key(self._opt)
        joined = is_divided or self._wire == "bfloat16"
        return make_buckets(self._params, nbytes, lambda p: keys[id(p)] if is_divided else None, joined)

    def _make_accumulators(self) -> dict[int, list[Tensor]]:
        levels = sorted({kind.kept for kind in self._kinds if kind.kept is not None})
        sizes: list[tuple[int, Any]] = []
        for b in self._buckets:
            sizes += [(p.numel(), b.dtype) for p in b.large]
            if b.small:
                count = sum(p.numel() for p in b.small)
                sizes.append((count + -count % group().engine.size, b.dtype))
        sizes.append((1, dtypes.float32))
        device = self._params[0].device
        return {
            level: [Tensor.zeros(n, dtype=d, device=device).contiguous().realize() for n, d in sizes]
            for level in levels
        }

    # --- communication

    def _exchange_and_step(self, sums: list[Tensor]) -> Tensor:
        """Exchange the sums, and take the optimizer's step with the means; the mean of the loss."""
        if self._wire == "bfloat16":
            sums = [*[x.cast(dtypes.bfloat16) for x in sums[:-1]], sums[-1]]
        realize_tensors(sums)
        *gradients, loss = sums
        if self._shards is None:
            self._exchange_gradients(gradients, loss)
            self._opt.schedule_step()
        else:
            self._exchange_shards(self._shards, gradients, loss)
            with self._clipped(self._shards):
                updated = self._opt.schedule_step()
            realize_tensors([*updated, *self._shards.tensors])
            self._gather_parameters(self._shards)
        return loss / self._parts

    def _exchange_gradients(self, sums: Sequence[Tensor], loss: Tensor) -> None:
        """Sum up over ranks, in place, and give the means to the parameters."""
        remaining = iter(sums)
        for i, b in enumerate(self._buckets):
            members = [next(remaining) for _ in range(len(b.large) + bool(b.small))]
            together = [*members, loss] if i == len(self._buckets) - 1 else members
            self._sum_over_ranks(together)
            small = split(members[-1], b.small) if b.small else []
            for p, total in zip(b.params, [*members[: len(b.large)], *small]):
                p.grad = (total.cast(b.dtype) / self._parts).reshape(p.shape).cast(p.dtype)

    def _sum_over_ranks(self, tensors: Sequence[Tensor]) -> None:
        engine = group().engine
        if engine.size == 1:
            return
        dtype_names = [str(x.dtype) for x in tensors]

        def call(*arrays: Array) -> None:
            for array, name in zip(arrays, dtype_names):
                if name == "bfloat16" or self._in_order:
                    sum_in_order(engine, array.view("uint16" if name == "bfloat16" else name))
                else:
                    engine.all_reduce(array.view(name), "sum")

        exchange(_label("all_reduce", tensors), [buffer_of(x) for x in tensors], call)
        for x in tensors:
            rename(storage_of(x), contents_change=True)

    def _exchange_shards(self, shards: Shards, sums: Sequence[Tensor], loss: Tensor) -> None:
        """Sum up over ranks, and give the means of this rank's shards to them."""
        engine = group().engine
        for i, (b, shard, line) in enumerate(zip(self._buckets, shards.tensors, sums)):
            own = memory_like(line.cast(b.dtype), line.shape[0] // engine.size)
            tensors = [line, own, loss] if i == len(self._buckets) - 1 else [line, own]
            call = functools.partial(self._scatter, str(line.dtype), str(b.dtype))
            exchange(_label("reduce_scatter", tensors), [buffer_of(x) for x in tensors], call)
            shard.grad = (own / self._parts).cast(shard.dtype)
        rename(storage_of(loss), contents_change=True)

    def _scatter(self, dtype: str, to: str, line: Array, own: Array, *loss: Array) -> None:
        engine = group().engine
        if dtype == "bfloat16" or self._in_order:
            scatter_in_order(engine, line.view("uint16" if dtype == "bfloat16" else dtype), own.view(to))
        else:
            engine.reduce_scatter(line.view(dtype), own.view(to), "sum")
        for x in loss:
            sum_in_order(engine, x.view("float32"))

    def _gather_parameters(self, shards: Shards) -> None:
        """Write all ranks' shards to the parameters."""
        engine = group().engine
        for b, shard in zip(self._buckets, shards.tensors):
            line = memory_like(shard.detach(), shard.shape[0] * engine.size)
            exchange(_label("all_gather", [shard]), [buffer_of(shard), buffer_of(line)], engine.all_gather)
            for p, value in zip(b.params, split(line, b.params)):
                p.assign(value)

    @contextlib.contextmanager
    def _clipped(self, shards: Shards) -> Iterator[None]:
        """`with self._clipped(shards):` gradients are clipped, by their norm over all ranks, and optimizers
        do not do so themselves."""
        clipping = list(dict.fromkeys([self._opt, *members_of(self._opt)]))
        limits = [(o.max_value, o.max_norm) for o in clipping]
        try:
            for o in clipping:
                _clip_shards(o)
                o.max_value = o.max_norm = None
            yield
        finally:
            for o, limit in zip(clipping, limits):
                o.max_value, o.max_norm = limit


def _clip_shards(opt: Any) -> None:
    if opt.max_value is not None:
        clip_grad_value_(opt.params, opt.max_value)
    if opt.max_norm is not None:
        squares = [p.grad.cast(dtypes.float32).square().sum() for p in opt.params]
        total = all_reduce(squares[0].stack(*squares[1:]).sum()).sqrt()
        scale = (opt.max_norm / (total + 1e-6)).minimum(1.0)
        for p in opt.params:
            p.grad = (p.grad * scale).cast(p.grad.dtype)


def _gradient(p: Tensor) -> Tensor:
    assert p.grad is not None
    return p.grad.detach()


def _label(name: str, tensors: Sequence[Tensor]) -> str:
    return f"{name} of {' + '.join(f'{x.numel()} {x.dtype}' for x in tensors)}"


def _check(wire: str, accumulate: int, bucket_bytes: int, in_order: bool) -> None:
    if wire not in WIRES:
        raise ArgumentError(f"DataParallel: wire: expected one of {', '.join(WIRES)}, got {wire!r}")
    for name, value in (("accumulate", accumulate), ("bucket_bytes", bucket_bytes)):
        if not isinstance(value, int) or value < 1:
            raise ArgumentError(f"DataParallel: {name}: expected an integer of at least 1, got {value!r}")
    if in_order and accumulate & (accumulate - 1):
        raise ArgumentError(
            f"DataParallel: accumulate: expected a power of two with in_order, got {accumulate}"
        )


def _kinds(accumulate: int, in_order: bool) -> list[_Kind]:
    """What the runs of a batch do, one after the other. In order, accumulator i has the sum of 2^i runs."""
    out = []
    for i in range(accumulate):
        is_last = i == accumulate - 1
        if in_order:
            full = ((i + 1) & -(i + 1)).bit_length() - 1  # trailing ones of i: accumulators that are full
            out.append(_Kind(tuple(range(full)), None if is_last else full))
        else:
            out.append(_Kind((0,) if i else (), None if is_last else 0))
    return out


def _facts(step: CompiledStep) -> dict[str, Any]:
    inputs = [f"{s.name}: {s.shape} {s.dtype} on {s.device}" for s in input_specs(step)]
    return {"inputs": inputs, **facts_of_program(step._step.captured)}


def equalize(model: Any, opt: Any = None) -> None:
    """Set the Tensors of `model`, and of the optimizer `opt`, to those of rank 0. Raises RankError where
    another rank's have other names, shapes or dtypes."""
    named = get_state_dict(model) | ({} if opt is None else get_state_dict(opt))
    tensors = list({id(t): t for t in named.values()}.values())
    together(
        "DataParallel",
        lambda: named,
        lambda named: {"Tensors": [f"{k}: {tuple(t.shape)} {t.dtype}" for k, t in named.items()]},
    )
    if group().engine.size > 1:
        with Tensor.no_grad():
            for t in tensors:
                t.assign(broadcast(t)).realize()
