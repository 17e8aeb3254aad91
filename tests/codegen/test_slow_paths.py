"""Slow paths: a branch for a tile of values, and values that depend on their own argument alone."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
import pytest

from polygrad import Tensor
from polygrad.codegen.lower.passes import LoweringContext, run_passes
from polygrad.codegen.lower.slow_paths import branch_slow_paths
from polygrad.codegen.opts.tile import is_tile
from polygrad.codegen.target import Target, Workgroups
from polygrad.dtype import DType, dtypes
from polygrad.engine.normalize import normalize
from polygrad.uop.args import Magnitude
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.spec import verify
from tests.schedules import schedule

TARGET = Target("test", simd_bytes=64, registers=32, fma=True, scalar_fma=True)
NEAR = Magnitude.NEAR
RNG = np.random.default_rng(8)
DTYPES = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)


def before(out: Tensor) -> UOp:
    """The kernel of a Tensor as it comes to the pass."""
    (call,) = schedule(normalize(UOp.sink(out.uop.base)).sink, optimized=True).calls
    kernel = run_passes(call.ast, LoweringContext(TARGET), through="lower-stages")
    assert isinstance(kernel, UOp)
    return kernel


def zeros(*shape: int) -> Tensor:
    return Tensor.zeros(*shape).contiguous().realize()


def test_every_sine_has_a_branch_of_its_own() -> None:
    x = zeros(100)
    kernel = branch_slow_paths(before(x.sin() + (x * 2).sin()), fused=True)
    verify(kernel.toposort(), "kernel")
    sines = [n for n in kernel.toposort() if n.op is Ops.SIN]
    assert [n.arg for n in sines].count(Magnitude.NEAR) == 2
    assert [n.arg for n in sines].count(None) == 2
    loops = [n for n in kernel.toposort() if n.op is Ops.RANGE and not n.src[0].is_const]
    assert len({n.arg for n in loops}) == 2
    assert all(n.src[0].vmax == 1 for n in loops)
    assert len({n.arg for n in kernel.toposort() if n.op is Ops.DEFINE_REG}) == 2


@pytest.mark.parametrize("workgroups", [None, Workgroups()])
def test_where_a_tile_has_no_lanes_one_value_at_a_time_has_the_long_reduction(
    workgroups: Workgroups | None,
) -> None:
    """It is the code of one value then, and of no tile."""
    context = LoweringContext(Target("test", simd_bytes=16, workgroups=workgroups))
    (call,) = schedule(normalize(UOp.sink(zeros(4096).sin().uop.base)).sink, optimized=True).calls
    kernel = run_passes(call.ast, context, through="branch-slow-paths")
    assert isinstance(kernel, UOp)
    verify(kernel.toposort(), "kernel")
    near, far = ([n for n in kernel.toposort() if n.op is Ops.SIN and n.arg is m] for m in (NEAR, None))
    tiles = [prod(r.src[0].arg for r in n.ranges if is_tile(r)) for n in (*near, *far)]
    assert tiles == [4, 1] if workgroups else tiles[0] == tiles[1] >= 4
    (loop,) = [n for n in kernel.toposort() if n.op is Ops.RANGE and not n.src[0].is_const]
    assert loop.src[0].src[0].arg is (
        Ops.ADD if workgroups else Ops.MAX
    )  # how many are far, or whether any is


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_power_has_a_branch_for_special_cases(dtype: DType, fused: bool) -> None:
    x = zeros(100).cast(dtype).contiguous().realize()
    kernel = branch_slow_paths(before(x**x), fused)
    verify(kernel.toposort(), "kernel")
    assert not any(n.op is Ops.POW for n in kernel.toposort())
    (loop,) = [n for n in kernel.toposort() if n.op is Ops.RANGE and not n.src[0].is_const]
    assert loop.src[0].src[0].arg is Ops.MAX  # whether any power of the tile is special
    inside = [n for n in kernel.toposort() if loop in n.ranges]
    assert Ops.TRUNC in {n.op for n in inside}  # of exponents: only negative numbers need them
    assert all(loop in n.ranges for n in kernel.toposort() if n.op is Ops.TRUNC)


@pytest.mark.parametrize("power", [lambda x: x**2.5, lambda x: 3.0**x, lambda x: x**-7.0])
def test_a_power_without_the_logarithm_of_a_value_has_no_branch(power: Callable[[Tensor], Tensor]) -> None:
    kernel = before(power(zeros(100)))
    assert branch_slow_paths(kernel, fused=True) is kernel


def test_where_a_branch_saves_nothing_a_power_has_none() -> None:
    x = zeros(100)
    kernel = before(x**x)
    assert branch_slow_paths(kernel, fused=True, serial=True) is kernel


def test_a_kernel_without_a_sine_or_a_power_is_left_alone() -> None:
    kernel = before(zeros(100).exp().log())
    assert branch_slow_paths(kernel, fused=True) is kernel


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", [1, 7, 64, 1000])
def test_a_value_does_not_depend_on_its_neighbours(device: str, dtype: DType, n: int) -> None:
    """The same bits among near arguments and among far ones, infinities and NaN."""
    near = RNG.uniform(-100, 100, n)
    beside = np.where(np.arange(n) % 3 == 1, RNG.choice([1e4, 3e37, -5e8, np.inf, np.nan], n), near)
    a, b = (
        Tensor(x.astype(np.float32), device=device).cast(dtype).sin().float().numpy() for x in (near, beside)
    )
    kept = np.arange(n) % 3 != 1
    np.testing.assert_array_equal(a[kept].view(np.int32), b[kept].view(np.int32))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", [1, 7, 64, 1000])
def test_a_power_does_not_depend_on_its_neighbours(device: str, dtype: DType, n: int) -> None:
    """The same bits among ordinary powers and among zeros, negative numbers, infinities and NaN."""
    base, exponent = RNG.uniform(0.5, 4, n), RNG.uniform(-3, 3, n)
    special = np.where(np.arange(n) % 3 == 1, RNG.choice([0.0, -2.0, np.inf, np.nan, 1e-30, 3e37], n), base)
    found = []
    for x in (base, special):
        a, e = (Tensor(y.astype(np.float32), device=device).cast(dtype) for y in (x, exponent))
        found.append((a**e).float().numpy())
    kept = np.arange(n) % 3 != 1
    np.testing.assert_array_equal(found[0][kept].view(np.int32), found[1][kept].view(np.int32))


def test_powers_in_sums_and_behind_one_another(device: str) -> None:
    """Inside a summing loop, of what a sum gives, and of a power; within 1e-5 of float64."""
    x = RNG.uniform(-0.5, 2, (33, 70)).astype(np.float32)
    t, wide = Tensor(x, device=device), np.maximum(x, 0).astype(np.float64)
    e = Tensor(np.float32(1.7), device=device).realize()
    np.testing.assert_allclose((t.relu() ** e).sum(1).numpy(), (wide**1.7).sum(1), rtol=1e-5)
    np.testing.assert_allclose((t.relu().sum(0) ** e).numpy(), wide.sum(0) ** 1.7, rtol=1e-5)
    np.testing.assert_allclose(((t.relu() ** e) ** e).numpy(), wide ** (1.7 * 1.7), rtol=1e-5)


def test_sines_in_sums_and_behind_one_another(device: str) -> None:
    """Inside a summing loop, of what a sum gives, and of a sine; within 2e-6 of float64."""
    x = (RNG.standard_normal((33, 70)) * 10.0 ** RNG.integers(0, 9, (33, 70))).astype(np.float32)
    t, wide = Tensor(x, device=device), x.astype(np.float64)
    np.testing.assert_allclose(t.sin().sum(1).numpy(), np.sin(wide).sum(1), rtol=2e-6, atol=2e-5)
    np.testing.assert_allclose(
        (t.sin() * 1000).sin().numpy()[:1], np.sin(np.sin(x[:1]) * np.float32(1000)), atol=2e-4
    )
    small = np.sign(x) * np.minimum(np.abs(x), 3)
    total = Tensor(small, device=device).sum(0).sin().numpy()
    np.testing.assert_allclose(total, np.sin(small.astype(np.float64).sum(0)), atol=2e-5)
