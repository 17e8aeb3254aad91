"""The memory planner: what is alive together lies apart, and no more memory than needed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polygrad import Tensor, nn
from polygrad.engine.programs import clear_caches
from polygrad.engine.stats import stats
from polygrad.schedule.memory import ALIGN, GUARD, Lifetime, lower_bound, plan


def lifetimes():
    one = st.tuples(st.integers(0, 5000), st.integers(0, 40), st.integers(0, 20))
    return st.lists(one.map(lambda t: Lifetime(t[0], t[1], t[1] + t[2])), max_size=60)


@given(lifetimes())
def test_buffers_alive_at_once_do_not_overlap(lives):
    offsets, arena = plan(lives)
    for i, (at, life) in enumerate(zip(offsets, lives, strict=True)):
        assert at % ALIGN == 0 and 0 <= at and at + life.nbytes + GUARD <= arena
        for other_at, other in zip(offsets[:i], lives[:i], strict=True):
            apart = at + life.nbytes + GUARD <= other_at or other_at + other.nbytes + GUARD <= at
            assert apart or life.last < other.first or other.last < life.first


@given(lifetimes())
def test_the_arena_is_at_least_the_lower_bound(lives):
    assert plan(lives)[1] >= lower_bound(lives)


def test_nothing_needs_nothing():
    assert plan([]) == ([], 0)
    assert lower_bound([]) == 0


def test_a_chain_needs_two_places():
    lives = [Lifetime(1000, i, i + 1) for i in range(30)]
    offsets, arena = plan(lives)
    assert len(set(offsets)) == 2 and arena == 2 * 1088
    assert lower_bound(lives) == 2000


def test_a_small_buffer_fits_between_large_ones():
    long, early, late, small = (
        Lifetime(4096, 0, 9),
        Lifetime(2048, 0, 3),
        Lifetime(2048, 5, 9),
        Lifetime(1024, 4, 4),
    )
    offsets, arena = plan([long, early, late, small])
    assert offsets[1] == offsets[2] == offsets[3]
    assert arena == 4096 + 64 + 2048 + 64


def test_twenty_thousand_launches_are_planned():
    lives = [Lifetime(64, i, i + 2) for i in range(20_000)]
    assert plan(lives)[1] == 3 * 128


def gpt(layers=3, width=32, time=16):
    x = Tensor.rand(2, time, width).realize()
    for _ in range(layers):
        q, k, v = (x.linear(Tensor.rand(width, width).realize()) for _ in range(3))
        x = x + q.scaled_dot_product_attention(k, v, is_causal=True)
        h = x.layernorm().linear(Tensor.rand(width, 4 * width).realize()).gelu()
        x = x + h.linear(Tensor.rand(4 * width, width).realize())
    return x.sum()


def perceptron():
    x, layers = Tensor.rand(64, 100).realize(), [nn.Linear(100, 100) for _ in range(6)]
    nn.state.get_parameters(layers)[0].realize(*nn.state.get_parameters(layers)[1:])
    for layer in layers:
        x = layer(x).tanh()
    return x.sum()


def convolutions():
    x = Tensor.rand(2, 3, 24, 24).realize()
    for i, o in ((3, 8), (8, 16), (16, 16)):
        x = x.conv2d(Tensor.rand(o, i, 3, 3).realize(), padding=1).relu().max_pool2d(2)
    return x.mean()


@pytest.mark.parametrize("network", [gpt, perceptron, convolutions])
@pytest.mark.parametrize("training", [False, True])
def test_the_arena_of_a_network_is_within_10_percent_of_the_lower_bound(network, training):
    Tensor.manual_seed(1)
    clear_caches()
    out = network()
    if training:
        x = Tensor.rand(1, 1, requires_grad=True)
        out = out * x.sum()
        (grad,) = out.gradient(x)
        out.realize(grad)
    else:
        out.realize()
    assert stats.arena_bytes <= 1.1 * stats.arena_lower_bound + 64 * 20
