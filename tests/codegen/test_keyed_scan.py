"""Sums over the earlier elements that have the same key, as running values: which are, and their numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from polygrad import Context, Tensor, dtypes
from polygrad.codegen.kernels.keyed_scan import keyed_scan
from polygrad.codegen.lower.passes import UNOPTIMIZED, LoweringContext, run_passes
from polygrad.codegen.opts import cost
from polygrad.codegen.opts.heuristics import choose
from polygrad.codegen.opts.opt import OptKind, apply_opts, parse_opts
from polygrad.codegen.opts.search_space import neighbours
from polygrad.codegen.target import Target, Workgroups
from polygrad.dtype import DType
from polygrad.engine.normalize import normalize
from polygrad.errors import OptError
from polygrad.schedule.kernel_info import kernel_info, key_of
from polygrad.schedule.kernels import KernelCall
from polygrad.uop.args import AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from tests.codegen.grid_kernels import data, decided
from tests.schedules import schedule

CPU = Target("CPU", simd_bytes=32, threads=4)
GPU = Target("GPU", simd_bytes=16, index_bits=32, workgroups=Workgroups())
ROWS, N, KEYS = 3, 200, 16


def pairs(x: Tensor) -> tuple[Tensor, Tensor]:
    """Of elements (..., n): the own one and the other one of each pair (..., n, n)."""
    return x.unsqueeze(-1), x.unsqueeze(-2)


def ranks(keys: Tensor, mask: int = KEYS - 1, weights: Tensor | None = None) -> Tensor:
    """How many earlier elements of a row have the same key, or the sum of their weights."""
    own, other = pairs(keys & mask)
    here, there = pairs(Tensor.arange(keys.shape[-1], device=keys.device))
    hit = (there < here) & own.eq(other)
    return hit.sum(-1) if weights is None else hit.where(weights.unsqueeze(-2), 0).sum(-1)


def expected(keys: np.ndarray, weights: np.ndarray) -> np.ndarray:
    n = keys.shape[-1]
    hit = np.tril(np.ones((n, n), bool), -1) & (keys[..., :, None] == keys[..., None, :])
    return (hit * weights[..., None, :]).sum(-1)


def integers(*shape: int) -> Tensor:
    return data(*shape, dtype="int32")


def scheduled(out: Tensor) -> list[KernelCall]:
    return list(schedule(normalize(UOp.sink(out.uop.base)).sink, True).calls)


def carried_out(out: Tensor, target: Target = CPU) -> list[KernelCall]:
    return decided("keyed-scan", scheduled(out), target)


def kernel_of(out: Tensor) -> UOp:
    """The kernel with running values, as Opts are applied to it."""
    (call,) = carried_out(out)
    kernel = run_passes(call.ast, LoweringContext(CPU), through=UNOPTIMIZED)
    assert isinstance(kernel, UOp)
    return kernel


# --- what becomes of kernels


def test_the_elements_go_in_order_inside_of_their_rows() -> None:
    (call,) = carried_out(ranks(integers(ROWS, N)))
    (nest,) = kernel_info(call.ast).nests
    assert [(r.arg.kind, r.src[0].arg) for r in nest.loops] == [(AxisKind.LOOP, ROWS), (AxisKind.SCAN, N)]
    assert not nest.sums and [key.vmax + 1 for n in nest.order if (key := key_of(n)) is not None] == [KEYS]


def test_without_a_key_it_is_a_register() -> None:
    mask = integers(ROWS, N) > 3
    here, there = pairs(Tensor.arange(N))
    (call,) = carried_out(((there < here) & mask.unsqueeze(-2)).sum(-1))
    (nest,) = kernel_info(call.ast).nests
    assert [r.arg.kind for r in nest.loops] == [AxisKind.LOOP, AxisKind.SCAN]
    assert not nest.sums and [key_of(n) for n in nest.order if n.op is Ops.SCAN] == [None]


def test_the_loop_over_the_elements_becomes_the_innermost() -> None:
    (call,) = carried_out(ranks(integers(ROWS, N)).T.contiguous())
    assert [r.src[0].arg for r in call.ast.src[0].src[1:]] == [ROWS, N]


def test_other_sums_of_the_kernel_stay() -> None:
    starts, keys = integers(KEYS), integers(N)
    (call,) = carried_out(ranks(keys) + starts[keys & (KEYS - 1)])
    assert len(kernel_info(call.ast).nests[0].sums) == 1


@pytest.mark.parametrize(
    "out",
    [
        pytest.param(lambda: ranks(integers(N), cost.MAX_KEYS * 2 - 1), id="many keys"),
        pytest.param(lambda: ranks(integers(N), N * N * 2 - 1), id="more keys than pairs"),
        pytest.param(lambda: ranks(integers(cost.MIN_SCATTERED - 1)), id="few elements"),
        pytest.param(lambda: ranks(integers(N), -1), id="keys without bounds"),
        pytest.param(lambda: ranks(integers(N), weights=data(N)), id="floats"),
    ],
)
def test_it_has_to_pay(out: Callable[[], Tensor]) -> None:
    calls = scheduled(out())
    assert decided("keyed-scan", calls, CPU) == calls


def pairs_with(condition: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    own, other = pairs(integers(N) & (KEYS - 1))
    here, there = pairs(Tensor.arange(N))
    return (condition(there, here) & own.eq(other)).sum(-1)


@pytest.mark.parametrize(
    "out",
    [
        pytest.param(lambda: pairs_with(lambda j, i: i < j), id="later elements"),
        pytest.param(lambda: pairs_with(lambda j, i: j < i + 1), id="itself, too"),
        pytest.param(lambda: pairs_with(lambda j, i: (j < i) & (j + 3 > i)), id="another condition"),
        pytest.param(lambda: pairs_with(lambda j, i: j.eq(j)), id="all elements"),
        pytest.param(lambda: data(N).sum(), id="a sum"),
    ],
)
def test_others_stay_as_they_are(out: Callable[[], Tensor]) -> None:
    calls = scheduled(out())
    assert decided("keyed-scan", calls, CPU) == calls
    with pytest.raises(OptError, match="expected a kernel with a sum over the earlier elements"):
        keyed_scan(calls[-1].ast)


def test_other_keys_of_the_other_element_stay() -> None:
    own, other = integers(N) & (KEYS - 1), (integers(N) >> 1) & (KEYS - 1)
    here, there = pairs(Tensor.arange(N))
    calls = scheduled(((there < here) & own.unsqueeze(-1).eq(other.unsqueeze(-2))).sum(-1))
    assert decided("keyed-scan", calls, CPU) == calls


# --- its Opts


@pytest.mark.parametrize("opts", ["SIMD r0 2 1", "UPCAST r0 2"])
def test_rows_are_not_tiled(opts: str) -> None:
    """Each row has running values of its own, and a thread has memory for those of one row."""
    kernel = kernel_of(ranks(integers(4, N)))
    with pytest.raises(OptError, match="expected an axis that no memory is filled inside of, got r0"):
        apply_opts(kernel, parse_opts(opts))


def test_the_heuristics_divide_rows_between_threads_and_nothing_else() -> None:
    kernel = kernel_of(ranks(integers(64, 4000)))
    assert [opt.kind for opt in choose(kernel, CPU)] == [OptKind.PARALLEL]


def test_all_opts_of_a_search_leave_the_loop_in_order() -> None:
    kernel = kernel_of(ranks(integers(4, N)))
    for _, changed in neighbours(kernel, (), CPU):
        assert any(key_of(n) is not None and n.src[0].arg.kind is AxisKind.SCAN for n in changed.toposort())


# --- numbers

RNG = np.random.default_rng(7)


@pytest.mark.parametrize("shape", [(N,), (ROWS, N), (2, ROWS, N), (16,)])
@pytest.mark.parametrize("mask", [0, 1, KEYS - 1])
def test_ranks(device: str, shape: tuple[int, ...], mask: int) -> None:
    keys = RNG.integers(-50, 50, shape).astype(np.int32)
    with Context(SPEC=1):
        got = ranks(Tensor(keys, device=device), mask).numpy()
    assert np.array_equal(got, expected(keys & mask, np.ones(shape, int)))


@pytest.mark.parametrize("shape", [(N,), (ROWS, N)])
def test_counts_of_earlier_elements_with_a_condition(device: str, shape: tuple[int, ...]) -> None:
    x = RNG.integers(0, 9, shape).astype(np.int32)
    here, there = pairs(Tensor.arange(N, device=device))
    mask = Tensor(x, device=device) > 3
    got = ((there < here) & (there > 5) & mask.unsqueeze(-2)).sum(-1).numpy()
    hits = (x > 3) & (np.arange(N) > 5)
    assert np.array_equal(got, hits.cumsum(-1) - hits)


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.int64, dtypes.uint8])
def test_sums_of_weights_wrap_as_their_dtype(device: str, dtype: DType) -> None:
    keys, weights = RNG.integers(0, 50, (2, ROWS, N)).astype(np.int32)
    w = Tensor(weights, device=device).cast(dtype)
    out = ranks(Tensor(keys, device=device), 3, w)
    assert np.array_equal(
        out.cast(dtype).numpy(), expected(keys & 3, weights).astype(out.cast(dtype).numpy().dtype)
    )


def test_a_nest_of_columns_within_a_larger_expression(device: str) -> None:
    keys = RNG.integers(0, 50, (N, ROWS)).astype(np.int32)
    out = ranks(Tensor(keys, device=device).T).T * 2 + 1
    assert np.array_equal(out.numpy(), expected(keys.T & (KEYS - 1), np.ones((ROWS, N), int)).T * 2 + 1)


@pytest.mark.parametrize("device", ["CPU", "WASM"])
def test_each_thread_has_running_values_of_its_own(device: str) -> None:
    keys = RNG.integers(0, 50, (64, 3000)).astype(np.int32)
    out = ranks(Tensor(keys, device=device)).numpy()
    for row in (0, 17, 63):
        assert np.array_equal(out[row], expected(keys[row] & (KEYS - 1), np.ones(3000, int)))


def test_a_search_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYGRAD_CACHE", "off")
    keys = RNG.integers(0, 50, (4, N)).astype(np.int32)
    with Context(BEAM=2):
        out = ranks(Tensor(keys, device="CPU")).numpy()
    assert np.array_equal(out, expected(keys & (KEYS - 1), np.ones((4, N), int)))


@pytest.mark.parametrize("shape", [(N,), (ROWS, N)])
@pytest.mark.parametrize("kept", [False, True])
def test_a_write_at_ranks_computes_them(device: str, shape: tuple[int, ...], kept: bool) -> None:
    """The last writer wins, also if the ranks themselves are a result."""
    keys, values = RNG.integers(0, 50, (2, *shape)).astype(np.int32)
    places = ranks(Tensor(keys, device=device))
    out = Tensor.zeros(*shape, dtype="int32", device=device).scatter(
        -1, places, Tensor(values, device=device)
    )
    if kept:
        Tensor.realize(out, places)
    want, at = np.zeros(shape, np.int32), expected(keys & (KEYS - 1), np.ones(shape, int))
    for i in range(N):
        np.put_along_axis(want, at[..., i : i + 1], values[..., i : i + 1], -1)
    assert np.array_equal(out.numpy(), want) and np.array_equal(places.numpy(), at)


def test_unoptimised_kernels_compare_pairs() -> None:
    keys = RNG.integers(0, 50, N).astype(np.int32)
    with Context(NOOPT=1):
        assert np.array_equal(ranks(Tensor(keys, device="CPU")).numpy(), expected(keys & 15, np.ones(N, int)))
