"""Eager loops: one Program however often, and memory that goes back soon."""

from __future__ import annotations

import gc

import pytest
from device_suite import CPU_FIRST

from polygrad import Tensor, nn
from polygrad.engine import compile as kernels
from polygrad.engine import programs
from polygrad.engine.stats import stats
from polygrad.nn.optim import SGD
from polygrad.runtime.buffer import Allocation
from polygrad.uop.intern import collect, generations, node_count


def mlp_step():
    """An eager training step of a small network: a function that does one."""
    hidden, out = nn.Linear(40, 64), nn.Linear(64, 10)
    optimizer = SGD([hidden.weight, hidden.bias, out.weight, out.bias], lr=0.01)
    x, y = Tensor.randn(16, 40).realize(), Tensor([i % 10 for i in range(16)]).realize()

    def step() -> None:
        optimizer.zero_grad()
        out(hidden(x).relu()).sparse_categorical_crossentropy(y).backward()
        optimizer.step()

    return step


@pytest.fixture
def training():
    with Tensor.train():
        yield


def test_a_loop_schedules_once(device):
    x = Tensor([1.0, 2, 3, 4], device=device)
    y = (x * 1.0001 + x).realize()
    for _ in range(2):
        y = (y * 1.0001 + x).realize()
    before, runs = stats.programs, stats.runs
    for _ in range(20):
        y = (y * 1.0001 + x).realize()
    assert stats.programs == before and stats.runs == runs + 20


def test_a_training_loop_keeps_less_than_twice_its_live_memory(training):
    """Live: what is left when everything that nothing holds is collected."""
    step = mlp_step()
    for _ in range(5):
        step()
    gc.collect()
    collect()
    live_nodes = node_count()
    live_bytes = []
    most_bytes = most_nodes = 0
    for i in range(120):
        step()
        most_bytes, most_nodes = max(most_bytes, Allocation.allocated_bytes), max(most_nodes, node_count())
        if i % 40 == 39:
            gc.collect()
            collect()
            live_bytes.append(Allocation.allocated_bytes)
    assert most_bytes < 2 * max(live_bytes) + (1 << 18)
    assert most_nodes < live_nodes + 3000


def test_a_training_loop_is_never_interrupted_for_long(training):
    """Counted in nodes that collections look at; 10,000 take about a millisecond."""
    step = mlp_step()
    collect()
    others = node_count()  # of other tests
    held = Tensor([0.0]).uop
    for i in range(10_000):  # 20,000 nodes that live
        held = held + float(i)
    for _ in range(5):
        step()
    collect()
    most, start = 0, generations.examined
    for _ in range(200):
        before = generations.examined
        step()
        most = max(most, generations.examined - before)
    assert most < 6000 + others
    assert (generations.examined - start) / 200 < 1000 + others / 4
    assert len(held.toposort()) > 20_000


@pytest.mark.parametrize("device", CPU_FIRST)
def test_large_results_that_were_dropped_go_back_at_once(device):
    large = max(1 << 17, Allocation.allocated_bytes // 4)  # elements; beside what other tests left
    x = Tensor.zeros(large, device=device).contiguous().realize()
    y = (x + 1).realize()
    gc.collect()
    collect()
    before, most = Allocation.allocated_bytes, 0
    for _ in range(12):
        y = (y * 0.5 + x).realize()
        most = max(most, Allocation.allocated_bytes)
    assert most <= before + 3 * x.nbytes()


@pytest.mark.usefixtures("cold_cache")
def test_ever_different_graphs_keep_to_the_bytes_that_caches_may_have(monkeypatch, device):
    """What the algebra folds cannot be an argument: each of these is a Program and a kernel of its own."""
    x = Tensor([1.0, 2, 3, 4], device=device).realize()
    kernels._kernels.clear()
    folded = lambda v: x * (Tensor.ones(4, device=device) * v)
    folded(1.7).realize()
    kernel = kernels._kernels.nbytes  # on CC a whole shared object
    caches = {programs._graphs: 2_000_000, programs._families: 20_000, kernels._kernels: 20 * kernel}
    for cache, limit in caches.items():
        monkeypatch.setattr(cache, "limit", limit)
        cache.clear()
    nodes = []
    for i in range(120):
        folded(1.1 + i / 1000).realize()
        (x + 1).realize() if i % 2 else (x.reshape(2, 2) + i).sum(i % 2).realize()
        for cache, limit in caches.items():
            assert cache.nbytes <= limit
        if i >= 60 and i % 10 == 0:
            gc.collect()
            collect()
            nodes.append(node_count())
    assert 5 < len(programs._graphs) < 60 and 5 < len(kernels._kernels) < 60
    assert nodes[-1] < nodes[0] + 300
    made = stats.programs
    (x + 1).realize()  # used again and again: it is still there
    assert stats.programs == made
    folded(1.1).realize()  # the oldest is not
    assert stats.programs == made + 1
