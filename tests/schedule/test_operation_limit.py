"""Expressions of very many operations: they become kernels that compilers do well with, few different ones,
and the results are numpy's."""

from __future__ import annotations

import numpy as np
import pytest
from adapter import WEBGPU

from polygrad import Tensor, Variable
from polygrad.engine.normalize import normalize
from polygrad.engine.programs import clear_caches
from polygrad.schedule import cost
from polygrad.schedule.cost import MAX_OPERATIONS
from polygrad.schedule.kernels import KernelCall
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from tests.schedules import schedule

N = 50


def kernels(*outputs: Tensor) -> tuple[KernelCall, ...]:
    return schedule(normalize(UOp.sink(*[t.uop for t in outputs])).sink, True).calls


def operations(call: KernelCall) -> int:
    return sum(cost.compile_cost(n.op) for n in call.ast.toposort() if n.src and n.op is not Ops.CAST)


def data(*shape: int, seed: int = 0) -> Tensor:
    return Tensor(np.random.default_rng(seed).uniform(-1, 1, shape).astype("float32")).realize()


def swing(x: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """A pendulum."""
    v = Tensor.zeros(*x.shape, device=x.device).contiguous().realize()
    for _ in range(steps):
        v = v - 0.01 * x.sin()
        x = x + 0.01 * v
    return x, v


def stored(call: KernelCall) -> int:
    """How many elements a kernel stores."""
    return next(n.arg.size for n in call.ast.toposort() if n.op is Ops.PARAM and n.arg.slot == 0)


def test_steps_of_a_recurrence_are_few_kernels_many_times():
    calls = kernels(*swing(data(N), 300))
    assert 50 < len(calls) < 100
    assert len({call.ast for call in calls}) <= 6
    assert max(map(operations, calls)) < 1.2 * MAX_OPERATIONS


def test_a_wide_sum_of_expensive_terms_is_divided():
    x = data(N)
    total = x.sin()
    for i in range(1, 60):
        total = total + (x * i).sin()
    calls = kernels(total)
    assert 6 <= len(calls) <= 9
    assert max(map(operations, calls)) < 1.2 * MAX_OPERATIONS


def test_a_deep_expression_of_cheap_operations_is_divided():
    x = data(N)
    for i in range(3 * MAX_OPERATIONS):
        x = (x + i).maximum(0) if i % 2 else x * i
    assert 3 <= len(kernels(x)) <= 8


def test_what_is_summed_may_be_divided_too():
    calls = kernels(swing(data(N), 40)[0].sum())
    assert len(calls) > 4
    assert max(map(operations, calls)) < 1.2 * MAX_OPERATIONS


def test_what_is_cheap_is_computed_again():
    x, y = data(N), data(N, seed=1)
    shared, out = x * y, x
    for _ in range(30):
        out = (out + shared).sin()
    calls = kernels(out)
    assert 3 <= len(calls) <= 5  # and none that stores the product alone
    assert min(map(operations, calls)) > 100


def test_one_hots_are_not_stored():
    table, total = data(200, 8), data(N, 8)
    for i in range(400):
        at = Tensor((np.arange(N) * (i + 1) % 200).astype("int32")).realize()
        total = total + table[at]
    calls = kernels(total)
    assert len(calls) > 1 and max(map(stored, calls)) == N * 8


@pytest.mark.parametrize("device", ["CPU", "WASM", "INTERP", WEBGPU])
def test_results_are_numpys_wherever_it_is_divided(device: str, monkeypatch: pytest.MonkeyPatch):
    a, b = (np.random.default_rng(i).uniform(0.5, 1, (4, 6)).astype("float32") for i in range(2))
    expected = None
    for limit in (MAX_OPERATIONS, 150, 40, 7, 2):
        monkeypatch.setattr(cost, "MAX_OPERATIONS", limit)
        clear_caches()
        x, y = Tensor(a, device=device, requires_grad=True), Tensor(b, device=device)
        u, state = x, y.clone()
        for i in range(4):
            u = (u * y).sin() + u.pad(((0, 0), (1, 0)))[:, :6] - (u + i).sum(1, keepdim=True) * 0.1
            u = u.T.contiguous().T if i == 1 else (u > 0.2).where(u, y[:, :1].exp2())
        state[1:3] += u[:2] * u.max()
        picked = u[Tensor([3, 0, 3], device=device)]
        got = [u, u.sum(0), state, picked, u.gradient(x, gradient=y)[0]]
        Tensor.realize(*got)
        arrays = [t.numpy() for t in got]
        if expected is None:
            expected = arrays
            v, w = a, b.copy()
            for i in range(4):
                v = np.sin(v * b) + np.pad(v, ((0, 0), (1, 0)))[:, :6] - (v + i).sum(1, keepdims=True) * 0.1
                v = v if i == 1 else np.where(v > 0.2, v, np.exp2(b[:, :1]))
            w[1:3] += v[:2] * v.max()
            for array, wanted in zip(arrays, (v, v.sum(0), w, v[[3, 0, 3]]), strict=False):
                np.testing.assert_allclose(array, wanted, rtol=1e-5, atol=1e-5)
        for array, wanted in zip(arrays, expected, strict=True):
            np.testing.assert_allclose(array, wanted, rtol=1e-5, atol=1e-5)
    clear_caches()


@pytest.mark.parametrize("limit", range(2, 8))
@pytest.mark.parametrize("device", ["CPU", "WASM", "INTERP", WEBGPU])
def test_sizes_that_are_variables_are_not_stored(device: str, limit: int, monkeypatch: pytest.MonkeyPatch):
    a = np.random.default_rng(0).uniform(0.5, 1, (5, 4)).astype("float32")
    monkeypatch.setattr(cost, "MAX_OPERATIONS", limit)
    clear_caches()
    for rows in (2, 4):
        x = Tensor(a, device=device)[: Variable("rows", 1, 5).bind(rows)]
        v = a[:rows]
        for k in range(2, 7):
            x, v = x * 0.5 + (x.shape[0] * k + 1), v * np.float32(0.5) + (rows * k + 1)
        np.testing.assert_allclose(x.sum().item(), v.sum(), rtol=1e-5)
    clear_caches()


@pytest.mark.parametrize("device", ["CPU", "WASM"])
def test_a_simulation_is_numpys(device: str):
    start = np.linspace(-3, 3, N).astype("float32")
    x, v = swing(Tensor(start, device=device), 1000)
    position, speed = start.astype("float64"), np.zeros(N)
    for _ in range(1000):
        speed = speed - 0.01 * np.sin(position)
        position = position + 0.01 * speed
    np.testing.assert_allclose(x.numpy(), position, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(v.numpy(), speed, rtol=1e-3, atol=1e-3)
