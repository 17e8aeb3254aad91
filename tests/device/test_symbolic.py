"""Bounded symbolic sizes: one compiled Program for every binding of a Variable."""

from __future__ import annotations

import pytest
from plain import assert_close, assert_same

from polygrad import Tensor, Variable
from polygrad.engine.stats import stats
from polygrad.errors import ArgumentError


def ramp(device, *shape):
    n = 1
    for s in shape:
        n *= s
    return Tensor([float(i) for i in range(n)], device=device).reshape(*shape).contiguous().realize()


def each(device, make, expected, bindings=(1, 2, 5, 9, 10)):
    """`make(i)` for a Variable i bound to each value in turn; nothing is compiled after the first."""
    i = Variable("i", 1, 10)
    for round_, value in enumerate(bindings):
        stats.reset()
        assert_same(make(i.bind(value)).tolist(), expected(value), f"i = {value}")
        if round_:
            assert (stats.programs, stats.kernels_compiled) == (0, 0), f"i = {value} was compiled again"


def test_sum_of_a_bound_prefix(device):
    x = ramp(device, 10)
    each(device, lambda i: x.shrink(((0, i),)).sum(), lambda n: float(sum(range(n))))


def test_max_of_bound_rows(device):
    x = ramp(device, 10, 3)
    each(device, lambda i: x.shrink(((0, i), (0, 3))).max(0), lambda n: [3.0 * (n - 1) + j for j in range(3)])


def test_elementwise_then_reduce(device):
    x, y = ramp(device, 3, 10), ramp(device, 10)
    each(
        device,
        lambda i: (x.shrink(((0, 3), (0, i))) * y.shrink(((0, i),)) + 1).sum(1),
        lambda n: [float(sum((10 * r + k) * k + 1 for k in range(n))) for r in range(3)],
    )


def test_matmul_over_a_bound_axis(device):
    a, b = ramp(device, 3, 10), ramp(device, 10, 4)
    each(
        device,
        lambda i: a.shrink(((0, 3), (0, i))) @ b.shrink(((0, i), (0, 4))),
        lambda n: [
            [float(sum((10 * r + k) * (4 * k + c) for k in range(n))) for c in range(4)] for r in range(3)
        ],
    )


def test_a_window_at_a_bound_position(device):
    x = ramp(device, 12)
    each(device, lambda i: x.shrink(((i, i + 2),)) * 2, lambda n: [2.0 * n, 2.0 * n + 2])


def test_expand_to_a_bound_size(device):
    x = ramp(device, 1, 3)
    each(device, lambda i: x.expand(i, 3).sum(0), lambda n: [0.0, 1.0 * n, 2.0 * n])


def test_reshape_with_a_bound_size(device):
    x = ramp(device, 10, 6)
    each(
        device,
        lambda i: x.shrink(((0, i), (0, 6))).reshape(i, 2, 3).sum((0, 1)),
        lambda n: [float(sum(6 * r + 3 * p + c for r in range(n) for p in range(2))) for c in range(3)],
    )


def test_a_bound_value_in_arithmetic(device):
    x = ramp(device, 4)
    each(device, lambda i: x * i + i, lambda n: [float(k * n + n) for k in range(4)])


def test_padding_back_to_a_fixed_size(device):
    x = ramp(device, 10) + 1
    each(
        device,
        lambda i: x.shrink(((0, i),)).pad(((0, 10 - i),)),
        lambda n: [float(k + 1) if k < n else 0.0 for k in range(10)],
    )


def test_softmax_over_a_bound_axis_rtol_1e_5(device):
    import math

    x = ramp(device, 2, 10)
    i = Variable("i", 1, 10)
    for n in (1, 4, 10):
        out = x.shrink(((0, 2), (0, i.bind(n)))).softmax().pad(((0, 0), (0, 10 - i.bind(n)))).tolist()
        weights = [math.exp(k - n + 1) for k in range(n)]
        assert_close(out, [[w / sum(weights) for w in weights] + [0.0] * (10 - n)] * 2, 1e-5, 1e-7)


def test_writing_at_a_bound_position(device):
    cache = Tensor.zeros(10, 2, device=device).contiguous().realize()
    i, expected = Variable("i", 0, 9), [[0.0, 0.0] for _ in range(10)]
    for n in (0, 3, 9):
        stats.reset()
        at = i.bind(n)
        row = Tensor([[n + 1.0, n + 2.0]], device=device)
        cache.shrink(((at, at + 1), (0, 2))).assign(row).realize()
        expected[n] = [n + 1.0, n + 2.0]
        assert cache.tolist() == expected
        assert n == 0 or stats.kernels_compiled == 0


def test_attention_over_a_growing_cache_rtol_1e_4(device):
    import math

    keys, query = ramp(device, 10, 4) * 0.1, ramp(device, 1, 4) * 0.3
    i = Variable("i", 1, 10)
    for n in (1, 6, 10):
        k = keys.shrink(((0, i.bind(n)), (0, 4)))
        got = ((query @ k.T) * 0.5).softmax() @ k
        rows = [[0.1 * (4 * r + c) for c in range(4)] for r in range(n)]
        scores = [0.5 * sum(0.3 * c * row[c] for c in range(4)) for row in rows]
        weights = [math.exp(s - max(scores)) for s in scores]
        expected = [
            [sum(w * row[c] for w, row in zip(weights, rows, strict=True)) / sum(weights) for c in range(4)]
        ]
        assert_close(got.tolist(), expected, 1e-4, 1e-6)


def test_one_variable_has_one_value_in_one_computation(device):
    x, i = ramp(device, 10), Variable("i", 1, 10)
    with pytest.raises(ArgumentError, match="expected one value"):
        (x.shrink(((0, i.bind(3)),)).sum() + x.shrink(((0, i.bind(4)),)).sum()).tolist()
    with pytest.raises(ArgumentError, match="i expected 1 to 10, got 11"):
        i.bind(11)
    assert x.shrink(((0, i.bind(3)),)).sum().item() == 3.0
