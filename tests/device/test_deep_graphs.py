"""Graphs of 20,000 lazy operations: built, computed, differentiated, dropped and collected, without
recursion."""

from __future__ import annotations

import gc

import pytest
from plain import assert_close

from polygrad import Tensor
from polygrad.engine import compile
from polygrad.engine.programs import clear_caches
from polygrad.uop.intern import collect, node_count

DEEP = 20_000


def elementwise(x):
    """3 of every 4 operations cancel out; the scale shrinks a little."""
    for i in range(DEEP // 4):
        x = (x + 1.0) * 0.5 - 0.5 if i % 2 else (x - 1.0) * 2.0 + 2.0
        x = -x
    return x


def movement(x):
    for i in range(DEEP // 20):  # each of them looks for the memory under it
        x = x.pad(((1, 0), (0, 1))).flip(0 if i % 2 else 1)
        x = x.permute(1, 0).shrink(((1, 4), (0, 2)) if i % 2 else ((0, 3), (1, 3))).permute(1, 0)
    return x


def diamonds(x):
    for i in range(DEEP // 3):
        y = x * 0.5
        x = y + y.flip(0) if i % 2 else y + x * 0.5
    return x


def reductions(x):
    for _ in range(300):
        x = x - x.sum(1, keepdim=True) * 0.25
    return x


def plain_reductions(rows):
    for _ in range(300):
        rows = [[v - sum(r) * 0.25 for v in r] for r in rows]
    return rows


DATA = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
CHAINS = {
    # name: (chain, its value for DATA, the gradient of its sum)
    "elementwise": (elementwise, DATA, [[1.0] * 3] * 2),
    "movement": (movement, None, None),
    "diamonds": (diamonds, [[2.5, 3.5, 4.5]] * 2, [[1.0] * 3] * 2),
    "reductions": (reductions, plain_reductions(DATA), None),
}


@pytest.mark.usefixtures("cold_cache")
@pytest.mark.parametrize("name", CHAINS)
def test_deep_chain(device, name):
    chain, value, slope = CHAINS[name]
    gc.collect()
    clear_caches()
    collect()
    before = node_count()
    x = Tensor(DATA, device=device, requires_grad=True)
    y = chain(x)
    built = node_count() - before
    loss = y.sum()
    loss.backward()
    got, grad = y.tolist(), x.grad.tolist()
    assert built > {"reductions": 1000, "movement": DEEP * 0.15}.get(name, DEEP * 0.6)
    if value is not None:
        assert_close(got, value, 1e-4, 1e-4)
    if slope is not None:
        assert_close(grad, slope, 1e-4, 1e-4)
    del x, y, loss
    clear_caches()
    compile._kept_graphs.clear()  # for reports on kernels, up to some size
    collect()
    assert node_count() - before < built // 2 + 1000  # compiled kernels stay


@pytest.mark.parametrize("name", CHAINS)
def test_dropping_a_deep_chain_that_was_never_computed(device, name):
    y = CHAINS[name][0](Tensor(DATA, device=device))
    held = node_count()
    del y
    assert collect() > 0 and node_count() < held
