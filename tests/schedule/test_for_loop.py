"""FOR: a body that is scheduled once and carried out many times is what its steps, one by one, are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polygrad import Tensor, TinyJit, Variable, vmap
from polygrad.engine.stats import stats
from polygrad.errors import DeviceError, GradientError, InternalError
from polygrad.tensor.core.loops import repeat
from polygrad.uop.for_loop import for_loop, placeholder
from polygrad.uop.ops import Ops
from polygrad.uop.spec import verify

RNG = np.random.default_rng(0)
X, Y = (RNG.uniform(-1, 1, (2, 3, 3)).astype(np.float32) for _ in range(2))
SHARDS = ("CPU", "CPU:1")

# what a trip makes of two values: some need several kernels, some read what others replace
STEPS = {
    "elementwise": lambda x, y: (x * 0.5 + y, y - 0.25 * x),
    "swapped": lambda x, y: (y, x),
    "one stays": lambda x, y: (x + y, y),
    "products": lambda x, y: ((x @ y) * 0.5, y),
    "stored inside": lambda x, y: ((x.softmax(-1).contiguous() + y).contiguous(), x.sum(-1, True) + 0 * y),
    "moved": lambda x, y: (x.roll(1, -1), y.flip(-2).transpose(-1, -2)),
    "reduced": lambda x, y: (x - x.mean(0), y / (1 + y.abs().max())),
    "ordered": lambda x, y: (x.cumsum(-1) * 0.3, y + x),
}  # fmt: skip


def unrolled(step, trips, *values):
    for _ in range(trips):
        values = step(*values)
    return values


def test_a_value_and_its_reshape_have_memory_of_their_own(device):
    x, y = (Tensor(a, device=device).realize() for a in (X[0], Y[0].reshape(9)))
    a = placeholder(0, (3, 3), x.dtype)
    value = (a + a).contiguous()
    first, second = (x._with(n) for n in for_loop(3, [value, value.reshape((9,))], [x.uop, y.uop]))
    assert np.array_equal(first.numpy(), 8 * X[0])
    assert np.array_equal(second.numpy(), 8 * X[0].reshape(9))


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("trips", [1, 4])
def test_trips_are_the_steps_one_by_one(name, trips, device):
    values = Tensor(X, device=device), Tensor(Y, device=device)
    got = repeat(trips, STEPS[name], *values)
    want = unrolled(STEPS[name], trips, *values)
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


@given(
    st.lists(st.sampled_from(list(STEPS)), min_size=1, max_size=3),
    st.integers(1, 4),
    st.sampled_from(["both", "first", "second", "sum"]),
)
def test_loops_of_loops_and_what_is_made_of_them(names, trips, wanted):
    x, y = values = Tensor(X) + 0.5, Tensor(Y).realize()
    want = values
    for name in names:
        x, y = repeat(trips, STEPS[name], x, y)
        want = unrolled(STEPS[name], trips, *want)
    results = {"both": (x, y), "first": (x,), "second": (y,), "sum": (x + y.sum(),)}[wanted]
    first, second = want
    expected = {"both": want, "first": (first,), "second": (second,), "sum": (first + second.sum(),)}[wanted]
    for a, b in zip(results, expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)


def test_a_body_inside_a_body():
    def step(x, y):
        return repeat(3, STEPS["elementwise"], x, y)

    got = repeat(2, step, Tensor(X), Tensor(Y))
    for a, b in zip(got, unrolled(STEPS["elementwise"], 6, Tensor(X), Tensor(Y)), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)


@pytest.mark.usefixtures("cold_cache")
def test_more_trips_compile_and_build_nothing_more():
    def cost(trips):
        before = stats.kernels_compiled + stats.kernels_found
        x = repeat(trips, lambda x: (x * 0.75 + x.sum() * 0.0625,), Tensor(X.ravel()[:7]))[0]
        nodes = len(x.uop.toposort())
        x.realize()
        return nodes, stats.kernels_compiled + stats.kernels_found - before

    nodes, kernels = cost(5)
    assert kernels > 0 and cost(200) == (nodes, 0)


def test_memory_that_is_written_after_a_loop_reads_it():
    x = Tensor(X.copy()).realize()
    y = repeat(3, lambda a: (a * 2,), x)[0]
    x += 1
    np.testing.assert_allclose(y.numpy(), 8 * X, rtol=1e-6)
    np.testing.assert_allclose(x.numpy(), X + 1, rtol=1e-6)


def test_in_a_captured_function_sizes_may_vary():
    @TinyJit
    def step(a):
        return a.cholesky().realize()

    b = X[0] @ X[0].T + 3 * np.eye(3, dtype=np.float32)
    batch = Tensor(np.stack([b, b + np.eye(3, dtype=np.float32), 2 * b, 3 * b])).realize()
    for n in (2, 3, 4, 1, 3):
        got = step(batch[: Variable("n", 1, 4).bind(n)])
        np.testing.assert_allclose(
            got[:n].numpy(), np.linalg.cholesky(batch.numpy()[:n]), rtol=1e-4, atol=1e-5
        )


def test_examples_of_vmap_take_the_trips_together():
    step, other = STEPS["products"], Tensor(Y[0])
    got = vmap(lambda x: repeat(3, step, x, other)[0])(Tensor(X))
    want = [unrolled(step, 3, Tensor(x), other)[0].numpy() for x in X]
    np.testing.assert_allclose(got.numpy(), np.stack(want), rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "axis"), [("products", 0), ("elementwise", 1), ("stored inside", 0), ("moved", None)]
)
def test_devices_take_the_trips_with_their_parts(name, axis):
    x, y = np.concatenate([X, X + 1], 1)[:, :4], np.concatenate([Y, Y - 1], 1)[:, :4]
    x, y = (v[..., :3] if name == "elementwise" else np.concatenate([v, v], -1)[..., :4] for v in (x, y))
    got = repeat(3, STEPS[name], Tensor(x).shard(SHARDS, axis), Tensor(y).shard(SHARDS, axis))
    want = unrolled(STEPS[name], 3, Tensor(x), Tensor(y))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


def test_what_is_whole_becomes_parts_where_the_body_makes_it_parts():
    x = Tensor(X[:, :2]).shard(SHARDS, 1)
    total, _ = repeat(3, lambda a, b: (a + b, b * 0.5), Tensor.zeros(2, 2, 3), x)
    np.testing.assert_allclose(total.numpy(), X[:, :2] * 1.75, rtol=1e-6)


def test_a_body_that_needs_other_parts_is_refused():
    x = Tensor(X[:, :2]).shard(SHARDS, 1)
    with pytest.raises(
        DeviceError, match=r"FOR of .*: expected a body for which each device needs only its own"
    ):
        repeat(3, lambda a: (a - a.sum(1, keepdim=True),), x)[0].numpy()


def test_a_gradient_through_a_loop_is_refused():
    x = Tensor(X, requires_grad=True)
    with pytest.raises(GradientError, match="gradient of FOR"):
        repeat(3, lambda a: (a * 2,), x)[0].sum().backward()


def test_results_are_each_something_else():
    a = placeholder(0, (3,), Tensor(X).dtype)
    with pytest.raises(InternalError, match="the same node after a trip"):
        for_loop(2, [a * 2, a * 2], [Tensor(X[0, 0]).uop, Tensor(Y[0, 0]).uop])


def test_the_spec_knows_loops():
    (x,) = repeat(2, lambda a: (a * 2,), Tensor(X))
    verify(x.uop.toposort(), "tensor")
    loop = x.uop
    assert loop.op is Ops.FOR
    for broken in (loop.replace(src=(loop.src[0] * 2,)), loop.replace(arg=loop.arg._replace(trips=0))):
        with pytest.raises(InternalError, match="FOR"):
            verify([broken], "tensor")
