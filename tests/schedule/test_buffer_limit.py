"""Kernels keep to a target's number of buffers, and compute what they did."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from polygrad import Device, Tensor
from polygrad.codegen.lower.passes import lower, parameters
from polygrad.codegen.target import Target
from polygrad.engine.normalize import normalize
from polygrad.errors import InternalError
from polygrad.schedule.buffer_limit import limit_buffers
from polygrad.uop.node import UOp
from tests.schedules import schedule


def calls_of(outputs, max_buffers, optimized=True):
    sink = normalize(UOp.sink(*[t.uop.base for t in outputs])).sink
    return schedule(sink, optimized, max_buffers).calls


def inputs(n, shape=(4, 4)):
    return [Tensor(np.full(shape, i + 1.0, np.float32), device="INTERP").realize() for i in range(n)]


def balanced(xs):
    while len(xs) > 1:
        xs = [a + b for a, b in zip(xs[::2], xs[1::2], strict=False)] + ([xs[-1]] if len(xs) % 2 else [])
    return xs[0]


GRAPHS = {
    "chain": lambda xs: sum(xs[1:], xs[0]),
    "tree": balanced,
    "views": lambda xs: sum(
        (x.T.reshape(2, 8).pad(((0, 1), (0, 0))) for x in xs[1:]), xs[0].reshape(2, 8).pad(((0, 1), (0, 0)))
    ),
    "where": lambda xs: (balanced(xs) > 3).where(sum(xs[5:], xs[0]), balanced(xs[::-2])),
    "softmax of a sum": lambda xs: balanced(xs).softmax(),
    "products": lambda xs: balanced([a @ b for a, b in itertools.pairwise(xs)]),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("limit", [5, 8, 10])
@pytest.mark.parametrize("optimized", [False, True])
def test_no_kernel_has_more(name, limit, optimized):
    xs = inputs(24)
    free = calls_of([GRAPHS[name](xs)], 0, optimized)
    limited = calls_of([GRAPHS[name](xs)], limit, optimized)
    assert max(len(call.args) for call in limited) <= limit
    assert max(len(call.args) for call in free) > limit or name == "products"
    for call in limited:
        assert len(parameters(lower(call.ast, Target("INTERP"), optimized=False))) <= limit


def test_where_there_is_room_nothing_changes():
    xs = inputs(6)
    for graph in GRAPHS.values():
        assert calls_of([graph(xs)], 64) == calls_of([graph(xs)], 0)


def test_a_chain_is_cut_as_seldom_as_possible():
    assert len(calls_of([GRAPHS["chain"](inputs(24))], 8)) == 4  # 7 buffers, then 6 more each time


def test_an_assignment_counts_what_it_writes():
    xs = inputs(9)
    target = xs[0]
    target.assign(sum(xs[1:], xs[0]) * 2)
    assert max(len(call.args) for call in calls_of([target], 6)) <= 6


def test_a_limit_that_is_too_small_is_an_internal_error():
    with pytest.raises(InternalError, match="at least 5, got 2"):
        limit_buffers([], set(), 2)


def test_results_are_those_without_a_limit(monkeypatch):
    backend = Device.backend("INTERP")
    xs = inputs(24)
    expected = [graph(xs).numpy() for graph in GRAPHS.values()]
    limited = Target("LIMITED", max_buffers=5)
    monkeypatch.setitem(
        Device._backends,
        "INTERP",
        type(backend)(
            target=limited,
            compile=backend.compile,
            open=backend.open,
            language=backend.language,
            optimized=False,
        ),
    )
    for graph, values in zip(GRAPHS.values(), expected, strict=True):
        np.testing.assert_allclose(graph([x + 0 for x in xs]).numpy(), values, rtol=1e-6)
