"""Checks that all ranks make together: collectives, training, guards that compare. One launch runs them
all."""

from __future__ import annotations

import functools
import hashlib
import math
import sys
from collections.abc import Callable
from typing import Any

import pytest

from polygrad import Tensor, TinyJit, compile_step, distributed, dtypes, nn
from polygrad.distributed.group import group
from polygrad.engine.trace import EXCHANGE, PROGRAM
from polygrad.errors import ArgumentError, CaptureError, RankError, ShapeError
from polygrad.pictures import trace

distributed.init(timeout=60)  # one rank may compile much longer than another one on a busy machine
RANK, SIZE = distributed.rank(), distributed.size()
STEPS, BATCH = 4, 16


def of_several(check: Callable[[], None]) -> Callable[[], None]:
    """A check of what one rank alone does not do."""
    return check if SIZE > 1 else lambda: None


def check_collectives() -> None:
    x = Tensor([RANK + 1.0, 2.0])
    assert distributed.all_reduce(x).tolist() == [SIZE * (SIZE + 1) / 2, 2.0 * SIZE]
    assert distributed.all_reduce(x, "mean").tolist() == [(SIZE + 1) / 2, 2]
    assert distributed.all_reduce(x, "max").tolist() == [SIZE, 2]
    assert distributed.all_reduce(x, "min").tolist() == [1, 2]
    assert distributed.broadcast(x, SIZE - 1).tolist() == [SIZE, 2]
    assert distributed.all_gather(x).tolist() == [v for i in range(SIZE) for v in (i + 1, 2)]
    assert distributed.all_gather(Tensor(RANK)).tolist() == list(range(SIZE))
    y = Tensor([[float(RANK), i] for i in range(2 * SIZE)])
    part = [[SIZE * (SIZE - 1) / 2, SIZE * (2.0 * RANK + k)] for k in range(2)]
    assert distributed.reduce_scatter(y).tolist() == part
    assert x.tolist() == [RANK + 1, 2]  # nothing of it was written
    distributed.barrier()


def check_dtypes() -> None:
    for dtype in (dtypes.float64, dtypes.float16, dtypes.bfloat16, dtypes.int64, dtypes.int8, dtypes.uint8):
        total = distributed.all_reduce(Tensor([1, RANK], dtype=dtype))
        assert total.dtype == dtype and total.tolist() == [SIZE, SIZE * (SIZE - 1) // 2], dtype
    moved = distributed.all_gather(Tensor([RANK % 2 == 0, True]))
    assert moved.dtype == dtypes.bool and moved.tolist() == [
        v for i in range(SIZE) for v in (i % 2 == 0, True)
    ]


def check_in_place() -> None:
    z = Tensor([3.0, 4.0]).realize()
    view, before = z[1:], z + 1  # a view sees the write, a lazy value does not
    assert distributed.all_reduce_(z) is z
    assert (
        z.tolist() == [3.0 * SIZE, 4.0 * SIZE] and view.tolist() == [4.0 * SIZE] and before.tolist() == [4, 5]
    )
    with pytest.raises(ArgumentError, match="view of memory"):
        distributed.all_reduce_(z[1:])
    w = Tensor([float(RANK)]).realize()
    distributed.broadcast_(w, SIZE - 1)
    assert w.tolist() == [SIZE - 1]


def check_arguments() -> None:
    with pytest.raises(ArgumentError, match="op: expected one of sum, mean, max, min, got 'prod'"):
        distributed.all_reduce(Tensor([1.0]), "prod")
    with pytest.raises(ArgumentError, match="root: expected a rank below"):
        distributed.broadcast(Tensor([1.0]), SIZE)
    with pytest.raises(ShapeError, match="equal parts"):
        distributed.reduce_scatter(Tensor.ones(SIZE + 1) if SIZE > 1 else Tensor(1.0))


def check_gradients() -> None:
    p = Tensor([2.0 + RANK], requires_grad=True)
    (distributed.all_reduce(p * p) * (RANK + 1)).sum().backward()
    assert p.grad is not None and p.grad.tolist() == [2 * (2 + RANK) * SIZE * (SIZE + 1) / 2]
    q = Tensor([1.0 + RANK], requires_grad=True)
    (distributed.all_gather(q) * Tensor([float(i + 1) for i in range(SIZE)])).sum().backward()
    assert q.grad is not None and q.grad.tolist() == [SIZE * (RANK + 1.0)]


def check_captured() -> None:
    @TinyJit
    def f(x: Tensor) -> tuple[Tensor, Tensor]:
        total = distributed.all_reduce((x * 2).sum(1))
        return (total + (x @ x.T).relu().sum(1)).realize(), distributed.all_gather(total).realize()

    for i in range(4):
        rows = [[[float(q + i + j + k) for j in range(3)] for k in range(3)] for q in range(SIZE)]
        total = [sum(2 * sum(rows[q][k]) for q in range(SIZE)) for k in range(3)]
        products = [sum(sum(a * b for a, b in zip(u, v)) for v in rows[RANK]) for u in rows[RANK]]
        a, b = f(Tensor(rows[RANK]))
        assert a.tolist() == [t + z for t, z in zip(total, products)] and b.tolist() == total * SIZE

    weight = Tensor([1.0, 2.0]).realize()

    @TinyJit
    def doubled(x: Tensor) -> Tensor:
        return distributed.all_reduce_(weight.assign(weight * x)).realize()

    for _ in range(4):
        doubled(Tensor([1.0, 1.0]))
    assert weight.tolist() == [SIZE**4, 2 * SIZE**4]
    with pytest.raises(CaptureError, match="a barrier"):
        waiting = TinyJit(lambda x: (distributed.barrier(), x + 1)[1])
        for _ in range(3):
            waiting(Tensor([1.0]))


class Model:
    def __init__(self, batch_norm: bool = False) -> None:
        self.first, self.second = nn.Linear(12, 300), nn.Linear(300, 256)
        self.norm: Any = nn.BatchNorm(256) if batch_norm else nn.LayerNorm(256)
        self.last = nn.Linear(256, 4)

    def __call__(self, x: Tensor) -> Tensor:
        return self.last(self.norm(self.second(self.first(x).relu()).relu()))


def loss_of(model: Model, x: Tensor, y: Tensor) -> Tensor:
    return model(x).cross_entropy(y)


def train(
    optimizer: Any, clip: float | None = None, single: bool = False, batch_norm: bool = False, **options: Any
) -> tuple[list[float], list[bytes], Any]:
    """The losses, the parameters' bytes and the step, of one process with the whole batch (`single`) or of
    all ranks."""
    Tensor.manual_seed(3)
    model = Model(batch_norm)
    if batch_norm and not single:
        distributed.sync_batch_norm(model)
    params = nn.state.get_parameters(model)
    opt = optimizer([p for p in params if p.requires_grad is not False])
    opt.clip_gradients(max_norm=clip)
    Tensor.manual_seed(9)
    xs = Tensor.randn(STEPS, BATCH, 12).realize()
    ys = Tensor.randint(STEPS, BATCH, high=4).realize()
    losses = []
    if single:
        step: Any = compile_step(loss_of, model, opt, xs[0], ys[0])
        for i in range(STEPS):
            step.run(xs[i], ys[i])
            losses.append(step.loss_value())
    else:
        runs = options.get("accumulate", 1)
        rows = BATCH // SIZE // runs

        def part(t: Tensor, i: int, j: int) -> Tensor:
            return t[i, (RANK * runs + j) * rows : (RANK * runs + j + 1) * rows]

        step = distributed.DataParallel(loss_of, model, opt, part(xs, 0, 0), part(ys, 0, 0), **options)
        for i in range(STEPS):
            for j in range(runs):
                step.run(part(xs, i, j), part(ys, i, j))
            losses.append(step.loss_value())
    return losses, [bytes(p.data()) for p in params], step


def adam(params: Any) -> Any:
    return nn.optim.AdamW(params, lr=1e-2)


def sgd(params: Any) -> Any:
    return nn.optim.SGD(params, lr=0.1, momentum=0.9)


def check_losses_are_those_of_one_process_to_1e_5() -> None:
    for optimizer, clip in ((adam, None), (sgd, 0.5)):
        expected, _, _ = train(optimizer, clip, single=True)
        for options in (
            {},
            {"bucket_bytes": 100_000},
            {"accumulate": 2},
            {"shard_optimizer": True},
            {"shard_optimizer": True, "accumulate": 2, "bucket_bytes": 1},
        ):
            losses, weights, _ = train(optimizer, clip, **options)
            assert all(math.isclose(a, b, abs_tol=1e-5) for a, b in zip(losses, expected, strict=True)), (
                options
            )
            hashes = [hash_of(weights)]
            assert distributed.all_gather_json(hashes) == [hashes] * SIZE, options


def say(line: str) -> None:
    """Print a line in one piece, as all ranks may print to one file."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def hash_of(weights: list[bytes]) -> str:
    return hashlib.sha256(b"".join(weights)).hexdigest()


@of_several
def check_bfloat16_on_the_wire_to_1e_3() -> None:
    expected, _, _ = train(sgd, 0.5, single=True)
    for options in ({}, {"shard_optimizer": True}):
        losses, _, step = train(sgd, 0.5, wire="bfloat16", **options)
        assert all(math.isclose(a, b, abs_tol=1e-3) for a, b in zip(losses, expected, strict=True)), losses
        assert losses != expected
        labels = [s.label for s in step.step._step.captured.steps if hasattr(s, "label")]
        gradients = [
            x for x in labels if x.startswith(("all_reduce", "reduce_scatter")) and " of 1 " not in x
        ]
        assert gradients and all("bfloat16" in x for x in gradients)  # others: the norm of all


def check_sums_in_order_have_the_same_bits_for_any_number_of_ranks() -> None:
    """4 parts of a batch: by one rank, as 4 runs, by two, as 2 runs, or by four."""
    losses, weights, _ = train(adam, accumulate=4 // SIZE, in_order=True)
    assert all(math.isfinite(x) for x in losses)
    say(f"bits {hash_of(weights)}")


def check_optimizer_state_is_divided() -> None:
    *_, whole = train(adam)
    *_, divided = train(adam, shard_optimizer=True)
    # two states for each parameter; divided, these and a copy of the shard, a few elements padded
    assert abs(divided.optimizer_bytes - 1.5 * whole.optimizer_bytes / SIZE) < 1000


@of_several
def check_accumulation_communicates_in_the_last_run_alone() -> None:
    for options in ({}, {"shard_optimizer": True}, {"in_order": True}):
        model, opt, x = _small()
        step = distributed.DataParallel(_plain, model, opt, x, accumulate=4, **options)
        counts = []
        for _ in range(8):
            before = group()._log[-1][0]
            step.run()
            counts.append(group()._log[-1][0] - before)
        exchanges = [s for s in step.step._step.captured.steps if type(s).__name__ == "BeginStep"]
        assert exchanges and counts == [0, 0, 0, len(exchanges)] * 2, options


def check_batches_of_two_sizes_share_a_divided_optimizer_to_1e_5() -> None:
    def weights_after(make: Any, first: int, ranks: int) -> list[float]:
        Tensor.manual_seed(1)
        model = nn.Linear(12, 3)
        opt = nn.optim.Adam(nn.state.get_parameters(model), lr=0.1)
        xs = Tensor.randn(2 * SIZE, 12).realize()
        parts = [xs[first * n : first * n + n * SIZE // ranks] for n in (2, 1)]
        steps = [make(lambda model, x: model(x).square().mean(), model, opt, x) for x in parts]
        for i in (0, 1, 0):
            steps[i].run(parts[i])
        return [x for p in nn.state.get_parameters(model) for x in p.flatten().tolist()]

    found = weights_after(functools.partial(distributed.DataParallel, shard_optimizer=True), RANK, SIZE)
    assert all(map(functools.partial(math.isclose, abs_tol=1e-5), found, weights_after(compile_step, 0, 1)))


def check_batch_norm_is_that_of_the_whole_batch_to_1e_5() -> None:
    expected, _, _ = train(sgd, 0.5, single=True, batch_norm=True)
    losses, _, _ = train(sgd, 0.5, batch_norm=True)
    assert all(math.isclose(a, b, abs_tol=1e-5) for a, b in zip(losses, expected, strict=True)), losses


@of_several
def check_exchanges_begin_before_backward_ends() -> None:
    *_, step = train(adam, bucket_bytes=1)
    kinds = [type(s).__name__ for s in step.step._step.captured.steps]
    first, last = kinds.index("BeginStep"), len(kinds) - 1 - kinds[::-1].index("BeginStep")
    assert "ProgramStep" in kinds[first:last] and "EndStep" not in kinds[:last]
    found = trace(step.run)
    exchanges = found.of_kind(EXCHANGE)
    assert len(exchanges) == kinds.count("BeginStep")
    assert exchanges[0].start < found.of_kind(PROGRAM)[-1].start


def check_random_numbers_differ_between_ranks() -> None:
    distributed.manual_seed(5)
    numbers = distributed.all_gather_json(Tensor.rand(4).tolist())
    assert len({tuple(x) for x in numbers}) == SIZE
    distributed.manual_seed(5)
    assert Tensor.rand(4).tolist() == numbers[RANK]


def check_evaluation_weighs_rows() -> None:
    batches = [(Tensor([float(RANK)] * (i + 1)),) for i in range(RANK + 1)]
    measured = distributed.evaluate(lambda x: {"mean": x.mean()}, batches)
    rows = [(r + 1) * (r + 2) // 2 for r in range(SIZE)]
    assert math.isclose(measured["mean"], sum(r * n for r, n in enumerate(rows)) / sum(rows))
    with pytest.raises(ArgumentError, match="at least one batch"):
        distributed.evaluate(lambda x: {"mean": x.mean()}, [])


@of_several
def check_ranks_compare_their_programs() -> None:
    def make(scale: float = 1.0, width: int = 4, rows: int = 2, names: str = "w") -> None:
        w = nn.Linear(3, width)
        model = {names: w}
        opt = nn.optim.SGD(nn.state.get_parameters(model), lr=0.1)
        distributed.DataParallel(lambda m, x: (m[names](x) * scale).sum(), model, opt, Tensor.ones(rows, 3))

    odd = RANK == SIZE - 1
    make()
    for options, message in (
        ({"scale": 2.0}, "code, number 0: a Program of"),
        ({"width": 5}, r"Tensors, number 0: w.weight: \(5, 3\) float32"),
        ({"rows": 3}, r"inputs, number 0: input 0: \(3, 3\) float32"),
        ({"names": "v"}, "Tensors, number 0: v.weight"),
    ):
        if SIZE == 2 and not odd:
            message = "differs from rank"
        expected = "rank 1 differs from rank 0" if SIZE == 2 else f"rank {SIZE - 1} differs from rank 0"
        with pytest.raises(RankError, match=f"{expected}: .*{message}" if odd or SIZE > 2 else expected):
            make(**(options if odd else {}))  # type: ignore[arg-type]
    with pytest.raises(ValueError if odd else RankError, match="no such data"):
        distributed.DataParallel(_failing if odd else _plain, *_small())


def _small() -> tuple[Any, Any, Tensor]:
    w = nn.Linear(3, 4)
    return w, nn.optim.SGD(nn.state.get_parameters(w), lr=0.1), Tensor.ones(2, 3)


def _plain(model: Any, x: Tensor) -> Tensor:
    return model(x).sum()


def _failing(model: Any, x: Tensor) -> Tensor:
    raise ValueError("no such data")


@of_several
def check_debug_mode_compares_calls() -> None:
    ranks = group()
    ranks.check = True
    try:
        assert distributed.all_reduce(Tensor([1.0])).tolist() == [SIZE]
        with pytest.raises(
            RankError, match=r"calls all_reduce\(\(\d,\) float32, sum\) at .*checked.py:\d+, and"
        ):
            distributed.all_reduce(Tensor([1.0] * (2 if RANK == SIZE - 1 else 1)))
    finally:
        ranks.check = False


if __name__ == "__main__":
    checks = [f for name, f in list(globals().items()) if name.startswith("check_")]
    for check in checks:
        check()
    say(f"rank {RANK} of {SIZE}: {len(checks)} checks on {group().engine.name}")
