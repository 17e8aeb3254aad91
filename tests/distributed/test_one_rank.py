"""`polygrad.distributed` in a program of one rank: nothing is communicated, and nothing differs."""

from __future__ import annotations

import doctest
import importlib
import sys
from typing import Any

import pytest

from polygrad import Device, Tensor, compile_step, distributed, dtypes, nn
from polygrad.distributed.agreement import raise_for_difference
from polygrad.distributed.buckets import line_of, make_buckets, split
from polygrad.distributed.data_parallel import _kinds
from polygrad.errors import ArgumentError, DistributedError, GradientError, RankError


def model_and_data() -> tuple[Any, Tensor, Tensor]:
    Tensor.manual_seed(1)
    model = [nn.Linear(6, 40), nn.Linear(40, 3)]
    x, y = Tensor.randn(8, 6).realize(), Tensor.randint(8, high=3).realize()
    return model, x, y


def loss_of(model: Any, x: Tensor, y: Tensor) -> Tensor:
    return model[1](model[0](x).tanh()).cross_entropy(y)


def weights(model: Any) -> list[bytes]:
    return [bytes(p.data()) for p in nn.state.get_parameters(model)]


def trained(make: Any, optimizer: Any = nn.optim.AdamW, clip: float | None = None) -> tuple[list[bytes], Any]:
    model, x, y = model_and_data()
    opt = optimizer(nn.state.get_parameters(model), lr=0.01)
    opt.clip_gradients(max_norm=clip)
    step = make(loss_of, model, opt, x, y)
    for _ in range(3):
        step.run()
    return weights(model), step


def data_parallel(**options: Any) -> Any:
    return lambda *arguments: distributed.DataParallel(*arguments, **options)


@pytest.mark.parametrize("optimizer", [nn.optim.SGD, nn.optim.AdamW, nn.optim.NAdam, nn.optim.Adagrad])
@pytest.mark.parametrize("options", [{}, {"bucket_bytes": 1}, {"in_order": True}, {"shard_optimizer": True}])
def test_the_step_is_that_of_compile_step_in_bits(optimizer: Any, options: Any) -> None:
    expected, single = trained(compile_step, optimizer)
    found, step = trained(data_parallel(**options), optimizer)
    assert found == expected and step.loss_value() == single.loss_value()
    assert "shard_optimizer" in options or len(step.step.programs) == 1  # nothing is communicated


@pytest.mark.parametrize("dtype", [dtypes.bfloat16, dtypes.float64])
@pytest.mark.parametrize("options", [{}, {"shard_optimizer": True}])
def test_parameters_of_other_dtypes_in_bits(dtype: Any, options: Any) -> None:
    def run(make: Any) -> list[bytes]:
        model, x, y = model_and_data()
        nn.state.model_to(model, dtype=dtype)
        opt = nn.optim.SGD(nn.state.get_parameters(model), lr=0.1)
        step = make(lambda m, x, y: loss_of(m, x.cast(dtype), y), model, opt, x, y)
        for _ in range(3):
            step.run()
        return weights(model)

    assert run(data_parallel(**options)) == run(compile_step)


def test_gradients_are_clipped_by_the_norm_of_all_shards() -> None:
    expected, _ = trained(compile_step, nn.optim.SGD, clip=1e-3)
    assert trained(data_parallel(), nn.optim.SGD, clip=1e-3)[0] == expected
    found, step = trained(data_parallel(shard_optimizer=True, bucket_bytes=1), nn.optim.SGD, clip=1e-3)
    close = [
        Tensor(a, dtype=dtypes.float32).sub(Tensor(b, dtype=dtypes.float32)) for a, b in zip(found, expected)
    ]
    assert max(d.abs().max().item() for d in close) < 1e-6
    assert step._opt.max_norm == 1e-3  # it is only lent


def test_a_frozen_parameter_stays() -> None:
    model, x, y = model_and_data()
    model[0].weight.requires_grad = False
    before = weights(model)
    opt = nn.optim.SGD([p for p in nn.state.get_parameters(model) if p.requires_grad is not False], lr=0.1)
    distributed.DataParallel(loss_of, model, opt, x, y).run()
    assert [a == b for a, b in zip(weights(model), before)] == [True, False, False, False]


def test_accumulation_updates_in_the_last_run_alone() -> None:
    model, x, y = model_and_data()
    opt = nn.optim.SGD(nn.state.get_parameters(model), lr=0.1)
    step = distributed.DataParallel(loss_of, model, opt, x[:2], y[:2], accumulate=4)
    losses, before = [], weights(model)
    for i in range(4):
        assert weights(model) == before
        step.run(x[2 * i : 2 * i + 2], y[2 * i : 2 * i + 2])
        losses.append(step.loss_value())
    assert weights(model) != before
    assert losses[3] != losses[0]  # the mean of all four
    again, x, y = model_and_data()
    opt = nn.optim.SGD(nn.state.get_parameters(again), lr=0.1)
    whole = compile_step(loss_of, again, opt, x, y)
    whole.run()
    assert abs(whole.loss_value() - losses[3]) < 1e-6
    for a, b in zip(nn.state.get_parameters(model), nn.state.get_parameters(again)):
        assert (a - b).abs().max().item() < 1e-6


def test_what_runs_of_a_batch_do() -> None:
    assert [(k.added, k.kept) for k in _kinds(3, False)] == [((), 0), ((0,), 0), ((0,), None)]
    assert [(k.added, k.kept) for k in _kinds(1, True)] == [((), None)]
    tree = [((), 0), ((0,), 1), ((), 0), ((0, 1), None)]
    assert [(k.added, k.kept) for k in _kinds(4, True)] == tree


def test_other_results_of_the_function_are_returned() -> None:
    model, x, y = model_and_data()
    opt = nn.optim.SGD(nn.state.get_parameters(model), lr=0.1)
    step = distributed.DataParallel(lambda m, x, y: (loss_of(m, x, y), x.sum()), model, opt, x, y)
    loss, total = step.run()
    assert loss.shape == () and abs(total.item() - x.sum().item()) < 1e-5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wire": "int8"}, "wire: expected one of float32, bfloat16, got 'int8'"),
        ({"accumulate": 0}, "accumulate: expected an integer of at least 1, got 0"),
        ({"bucket_bytes": 0.5}, "bucket_bytes: expected an integer of at least 1, got 0.5"),
        ({"accumulate": 3, "in_order": True}, "a power of two with in_order, got 3"),
    ],
)
def test_wrong_options(options: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        trained(data_parallel(**options))


def test_an_optimizer_that_looks_at_whole_parameters_is_not_divided() -> None:
    with pytest.raises(ArgumentError, match=r"treats each element by itself .*, got LAMB"):
        trained(data_parallel(shard_optimizer=True), nn.optim.LAMB)


def test_a_parameter_without_a_gradient_is_an_error() -> None:
    model, x, _ = model_and_data()
    opt = nn.optim.SGD(nn.state.get_parameters(model), lr=0.1)
    with pytest.raises(GradientError, match=r"got none of 2, the first of shape \(3, 40\)"):
        distributed.DataParallel(lambda m, x: m[0](x).sum(), model, opt, x)


def test_buckets_are_filled_from_the_last_parameter() -> None:
    params = [Tensor.zeros(n) for n in (70_000, 10, 20, 30)]
    (one,) = make_buckets(params, 1 << 30, lambda p: None, joined=False)
    assert one.params == (params[0], *params[:0:-1]) and one.large == (params[0],)
    many = make_buckets(params, 100, lambda p: None, joined=True)
    assert [b.params for b in many] == [(params[3],), (params[2], params[1]), (params[0],)]
    keyed = make_buckets(params[1:], 1 << 30, lambda p: p.shape[0] > 10, joined=True)
    assert [len(b.params) for b in keyed] == [2, 1]
    four = [Tensor.zeros(30) for _ in range(4)]
    interleaved = make_buckets(four, 200, lambda p: any(p is x for x in four[::2]), joined=True)
    # in the order in which their last gradients are computed
    assert [b.params for b in interleaved] == [(four[2],), (four[3], four[1]), (four[0],)]


def test_the_first_and_the_last_bucket_are_small() -> None:
    params = [Tensor.empty(n) for n in (100_000, 50_000, 200_000, *[100_000] * 20, 30, 250_000, 20_000)]
    sizes = [len(b.params) for b in make_buckets(params, 2 << 20, lambda p: None, joined=True)]
    assert sizes == [2, 7, 6, 6, 3, 2]  # 1.08 MB; 2.4 MB each; what is left; 0.6 MB
    whole = make_buckets(params[:2], 2 << 20, lambda p: None, joined=True)
    assert [len(b.params) for b in whole] == [2], "0.6 MB are one bucket"
    large = [Tensor.empty(n) for n in (10_000_000, 10)]
    assert [len(b.params) for b in make_buckets(large, 25 << 20, lambda p: None, joined=True)] == [1, 1]
    assert make_buckets([], 25 << 20, lambda p: None, joined=True) == []


def test_a_line_is_padded_and_divided_again() -> None:
    params = [Tensor([[1.0, 2.0]]), Tensor(3.0), Tensor([4.0, 5.0])]
    line = line_of(params, dtypes.float32, 4)
    assert line.tolist() == [1, 2, 3, 4, 5, 0, 0, 0]
    assert [x.tolist() for x in split(line, params)] == [[[1, 2]], 3, [4, 5]]


def test_the_rank_that_most_do_not_agree_with_is_the_one_that_differs() -> None:
    same = {"inputs": ["a"], "target": ["x"], "exchanges": ["e"], "code": ["p"]}
    raise_for_difference("step", [same] * 3)
    with pytest.raises(
        RankError, match=r"step: rank 0 differs from rank 1: inputs, number 0: b instead of a"
    ) as e:
        raise_for_difference("step", [{**same, "inputs": ["b"]}, same, same])
    assert e.value.ranks == (0,)
    with pytest.raises(RankError, match=r"rank 2 differs from rank 0: exchanges: 2 instead of 1"):
        raise_for_difference("step", [same, same, {**same, "exchanges": ["e", "f"]}])
    other_processor = {**same, "target": ["y"], "code": ["q"]}
    raise_for_difference("step", [same, other_processor])  # code for another processor is other code
    with pytest.raises(RankError, match="exchanges"):
        raise_for_difference("step", [same, {**other_processor, "exchanges": ["f"]}])


def test_evaluation_of_one_rank() -> None:
    batches = [(Tensor([1.0, 2.0]),), (Tensor([6.0]),), (Tensor([3.0, 4.0]),)]
    assert distributed.evaluate(lambda x: {"mean": x.mean()}, batches) == {"mean": 3.2}


def test_synchronised_batch_norm_of_one_rank() -> None:
    model = {"norm": nn.BatchNorm(3), "rest": [nn.BatchNorm(2), nn.Linear(2, 2)]}
    distributed.sync_batch_norm(model)
    assert [type(x) for x in (model["norm"], model["rest"][0])] == [distributed.SyncBatchNorm] * 2
    x = Tensor.randn(4, 3, 5)
    with Tensor.train():
        assert model["norm"](x).tolist() == nn.BatchNorm(3)(x).tolist()


def test_a_launched_program_has_to_call_init(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polygrad.distributed.group._group", None)
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    with pytest.raises(DistributedError, match=r"started by mpirun: expected polygrad.distributed.init"):
        distributed.rank()
    distributed.init("single")
    assert (distributed.rank(), distributed.size(), distributed.local_rank()) == (0, 1, 0)


def test_one_rank_needs_no_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in Pyodide, where there are no threads either."""
    monkeypatch.setitem(sys.modules, "numpy", None)
    monkeypatch.setattr("threading.Thread.start", None)
    monkeypatch.setattr("polygrad.distributed.group._group", None)
    distributed.init()
    x = Tensor([1.0, 2.0])
    assert distributed.all_reduce(x).tolist() == distributed.all_gather(x).tolist() == [1, 2]
    distributed.barrier()
    assert distributed.all_gather_json({"a": 1}) == [{"a": 1}]
    assert trained(data_parallel())[0] == trained(compile_step)[0]


MODULES = ["batch_norm", "collectives", "evaluation", "group", "launch", "messages"]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Device, "DEFAULT", "CPU")  # as examples print
    module = importlib.import_module(f"polygrad.distributed.{name}")
    assert doctest.testmod(module).failed == 0


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polygrad.distributed.group._group", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DistributedError, match=r"which needs mpi4py: pip install 'polygrad\[mpi\]'"):
        distributed.init("mpi")
    with pytest.raises(ArgumentError, match="engine: expected one of mpi, torch, single, got 'nccl'"):
        distributed.init("nccl")
    with pytest.raises(ArgumentError, match="timeout: expected a number of seconds above 0"):
        distributed.init(timeout=0)
