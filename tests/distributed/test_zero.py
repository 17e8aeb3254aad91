"""An optimizer that is divided between ranks, and the pieces of its state that they save."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from polygrad import Tensor, distributed, nn
from polygrad.distributed.buckets import make_buckets
from polygrad.distributed.engine import Single
from polygrad.distributed.zero import Shards, shard_key, shards_of
from polygrad.errors import ArgumentError
from polygrad.training.checkpoint import Contents, read_parts

pytestmark = pytest.mark.usefixtures("default_device")


class Rank(Single):
    """Rank `rank` of `size`, which communicates nothing."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self.engine = self


def adam() -> Any:
    return nn.optim.AdamW(nn.state.get_parameters(model()), lr=0.01)


def sgd_of_two_groups() -> Any:
    first, second = model()
    groups = [{"params": nn.state.get_parameters(x), "lr": lr} for x, lr in ((first, 0.1), (second, 0.2))]
    return nn.optim.SGD(groups, lr=0.1, momentum=0.9)


def a_group_with_a_frozen_parameter() -> Any:
    first, second = model()
    opt = nn.optim.OptimizerGroup(
        nn.optim.Adam(nn.state.get_parameters(first), lr=0.1),
        nn.optim.SGD(nn.state.get_parameters(second), lr=0.1),
    )
    first.weight.requires_grad = False
    return opt


def with_two_clocks() -> Any:
    """The second layer was skipped in a step."""
    first, second = model()
    opt = nn.optim.NAdam(nn.state.get_parameters([first, second]), lr=0.1)
    with Tensor.train():
        first(Tensor.ones(1, 3)).sum().backward()
        opt.step()
    return opt


def model() -> Any:
    Tensor.manual_seed(2)
    return [nn.Linear(3, 5), nn.Linear(5, 2)]


def set_random(opt: Any) -> dict[str, np.ndarray]:
    """Give the optimizer random state; the arrays of its `state_dict`."""
    random = np.random.default_rng(0)
    state = {
        name: Tensor(random.random(t.shape).astype(np.float32)) if t.dtype.is_float else t
        for name, t in opt.state_dict().items()
    }
    opt.load_state_dict(state)
    return {name: t.numpy() for name, t in opt.state_dict().items()}


def divided(opt: Any, bucket_bytes: int) -> Shards:
    keys = shard_key(opt)
    params = [p for p in opt.params if p.requires_grad is not False]
    return Shards(opt, make_buckets(params, bucket_bytes, lambda p: keys[id(p)], joined=True))


@pytest.mark.parametrize("bucket_bytes", [1, 1 << 20])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("make", [adam, sgd_of_two_groups, a_group_with_a_frozen_parameter, with_two_clocks])
def test_the_files_of_all_ranks_have_the_state_of_the_whole_optimizer(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[], Any], size: int, bucket_bytes: int
) -> None:
    files, kept = [], []
    for rank in range(size):
        monkeypatch.setattr("polygrad.distributed.zero.group", lambda rank=rank: Rank(rank, size))
        opt = make()
        expected = set_random(opt)
        shards = divided(opt, bucket_bytes)
        state = shards.state_dict(opt)
        assert set(state) <= set(expected)
        whole = {k: x for k, x in state.items() if isinstance(x, Tensor)}
        pieces: Any = {k: x for k, x in state.items() if not isinstance(x, Tensor)}
        kept.append(sum(x.elements.numel() for x in pieces.values()))
        files.append(b"".join(Contents(whole, {}, pieces).share(rank, size).parts()))
    found, _ = read_parts(files, "a checkpoint")
    assert {k: x.tolist() for k, x in expected.items()} == {k: t.tolist() for k, t in found.items()}
    if bucket_bytes > 1:  # all of them are one line, or two
        assert max(kept) - min(kept) <= 2 * 2 * size
    again = make()
    again.load_state_dict(found)
    assert {k: t.tolist() for k, t in again.state_dict().items()} == {
        k: x.tolist() for k, x in expected.items()
    }


def test_missing_pieces_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    files = []
    for rank in range(3):
        monkeypatch.setattr("polygrad.distributed.zero.group", lambda rank=rank: Rank(rank, 3))
        opt = adam()
        pieces: Any = {
            k: x for k, x in divided(opt, 1 << 20).state_dict(opt).items() if not isinstance(x, Tensor)
        }
        files.append(b"".join(Contents({}, {}, pieces).share(rank, 3).parts()))
    read_parts(files, "it")
    with pytest.raises(ArgumentError, match=r"resume: it: m.0: expected pieces of all 15 elements, got 5"):
        read_parts(files[:2], "it")
    with pytest.raises(ArgumentError, match=r"m.0: expected a piece of \(5, 3\) from element 15 on, got"):
        read_parts([files[2], files[2], files[1]], "it")


def test_a_list_of_pieces_that_is_damaged_is_an_error() -> None:
    for places in ("[1]", '{"a": 3}', '{"a": [0, [null]]}', "[" * 100_000):
        file = b"".join(Contents({"a": Tensor([1.0])}, {"pieces": places}).share(0, 1).parts())
        with pytest.raises(ArgumentError, match="the list of pieces is damaged"):
            read_parts([file], "it")


def test_steps_for_batches_of_several_sizes_have_the_same_shards() -> None:
    layers = model()
    opt = nn.optim.SGD(nn.state.get_parameters(layers), lr=0.1, momentum=0.9)
    loss = lambda model, x: model[1](model[0](x)).square().mean()
    whole, last = (
        distributed.DataParallel(loss, layers, opt, Tensor.ones(n, 3), shard_optimizer=True) for n in (4, 2)
    )
    assert shards_of(opt) is not None and whole._shards is last._shards is shards_of(opt)
    with pytest.raises(ArgumentError, match="not divided, got one that another DataParallel has divided"):
        distributed.DataParallel(loss, layers, opt, Tensor.ones(2, 3))
    alike = model()
    expected = nn.optim.SGD(nn.state.get_parameters(alike), lr=0.1, momentum=0.9)
    for step, n in ((whole, 4), (last, 2), (whole, 4)):
        step.run(Tensor.ones(n, 3))
        with Tensor.train():
            expected.zero_grad()
            loss(alike, Tensor.ones(n, 3)).backward()
            expected.step()
    for a, b in zip(nn.state.get_parameters(layers), nn.state.get_parameters(alike)):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)
