"""Kernels with several results: which are joined, which must not be, and that values stay the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polygrad import Context, Tensor, TinyJit
from polygrad.codegen.kernels.apply import apply
from polygrad.codegen.kernels.kernel_opt import parse_kernel_opts
from polygrad.codegen.kernels.passes import decide_kernels, schedule_graph
from polygrad.codegen.target import Target
from polygrad.engine.devices import Device
from polygrad.engine.normalize import normalize
from polygrad.errors import OptError
from polygrad.schedule.schedule import Schedule
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.spec import verify
from tests.codegen.grid_kernels import data
from tests.codegen.test_tensor_cores import CUDA

CPU = Device.backend("CPU").target
RNG = np.random.default_rng(3)


def planned(*outputs: Tensor, target: Target = CPU) -> Schedule:
    """The kernels of a graph."""
    sink = normalize(UOp.sink(*[t.uop.base for t in outputs])).sink
    plan = decide_kernels(*schedule_graph(sink, target, True), None)
    for call in plan.calls:
        verify(call.ast.toposort(), "kernel")
        stored = {n.src[0].src[0] for n in call.ast.toposort() if n.op is Ops.STORE}
        params = {p.src[0] if p.op is Ops.AFTER else p for p in stored}
        assert {p.arg.slot for p in params} == set(range(call.results))
    return plan


def results(*outputs: Tensor, target: Target = CPU) -> list[int]:
    return [call.results for call in planned(*outputs, target=target).calls]


def test_statistics_that_are_asked_for_are_stored_on_the_way() -> None:
    x = data(64, 300)
    mean = x.mean(1, keepdim=True)
    deviation = (x - mean).square().mean(1, keepdim=True).sqrt()
    assert results((x - mean) / deviation) == [1]
    assert results((x - mean) / deviation, mean, deviation) == [3]
    assert results((x - mean) / deviation, mean, deviation, target=CUDA) == [1, 1, 1]


def test_what_only_such_a_kernel_reads_is_not_stored() -> None:
    x = data(64, 300)
    mean = x.mean(1, keepdim=True)
    deviation = (x - mean).square().mean(1, keepdim=True).sqrt()
    assert results((x - mean) / deviation, deviation) == [2]


def test_into_the_first_reader_and_others_load_it() -> None:
    x, w = data(64, 300), data(300, 64)
    top = x.max(1, keepdim=True)
    assert results((x - top).exp(), (w * top.reshape(1, 64)).contiguous()) == [2, 1]


def test_siblings_that_reduce_the_same_rows() -> None:
    x, y = data(64, 300), data(64, 300)
    assert results(x.sum(1), (x * y).sum(1), x.max(1)) == [3]
    totals = [data(64).assign(t) for t in (x.sum(1), x.max(1))]
    assert results(*totals) == [1, 1]  # memory that was there before
    assert results(x.sum(1), y.sum(1)) == [1, 1]  # no memory is read again
    assert set(results(x.sum(0), (x * y).sum(0))) == {1}  # columns
    assert results(x @ data(8, 300).T, x @ data(8, 300).T) == [1, 1]  # products
    assert results(data(2, 1 << 20).sum(1), data(2, 1 << 20).max(1))[-1] == 1  # few rows are divided


def test_rows_that_no_cache_holds_stay_apart() -> None:
    x = data(16, 1 << 19)
    mean = x.mean(1, keepdim=True)
    assert set(results(x - mean, mean)) == {1}


def test_a_kernel_with_opts_by_hand_gets_no_further_results() -> None:
    x = data(64, 300)
    mean = x.mean(1, keepdim=True)
    assert results((x - mean).contiguous(opts="UPCAST r0 4"), mean) == [1, 1]


def test_not_past_a_write_to_what_it_reads() -> None:
    """The sum of the old rows, and a kernel that reads it after the rows are overwritten."""
    rows = RNG.standard_normal((16, 300)).astype(np.float32)
    x, y = Tensor(rows).realize(), Tensor(rows + 1).realize()
    total = x.sum(-1, keepdim=True)
    x.assign(x * 2)
    out = y - total
    Tensor.realize(x, out, total)
    np.testing.assert_allclose(total.numpy(), rows.sum(-1, keepdims=True), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(out.numpy(), rows + 1 - rows.sum(-1, keepdims=True), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("graph", "text", "message"),
    [
        (lambda x: (x - x.sum(0), x.sum(0)), "MULTI_OUTPUT k0 k1", "expected two kernels with reductions"),
        (lambda x: (x + 1, x * 2), "MULTI_OUTPUT k0 k1", "expected two kernels with reductions"),
        (lambda x: (x.sum(1), x.max(1)), "MULTI_OUTPUT k1 k0", "expected a kernel that stores memory of its"),
        (
            lambda x: ((x.max(1) - 1).contiguous(), x - x.max(1, keepdim=True)),
            "MULTI_OUTPUT k0 k2",
            "expected a kernel that stores memory of its own, and one behind it that reads it first",
        ),
    ],
)
def test_what_does_not_apply_says_why(
    graph: Callable[[Tensor], Sequence[Tensor]], text: str, message: str
) -> None:
    sink = normalize(UOp.sink(*[t.uop.base for t in graph(data(64, 300))])).sink
    plan, context = schedule_graph(sink, CPU, True)
    with pytest.raises(OptError, match=message):
        apply(list(plan.calls), parse_kernel_opts(text)[0], context)


def test_other_opts_leave_such_a_kernel_whole() -> None:
    x = data(64, 300)
    sink = normalize(UOp.sink(x.sum(1).uop.base, x.max(1).uop.base)).sink
    plan, context = schedule_graph(sink, CPU, True)
    calls = apply(list(plan.calls), parse_kernel_opts("MULTI_OUTPUT k0 k1")[0], context)
    assert [call.results for call in calls] == [2]
    with pytest.raises(OptError, match="expected a kernel with one result, got one with 2"):
        apply(calls, parse_kernel_opts("SPLIT_REDUCE k0 r1 3")[0], context)


# --- values


def statistics(x: Tensor) -> list[Tensor]:
    top = x.max(-1, keepdim=True)
    weights = (x - top).exp()
    total = weights.sum(-1, keepdim=True)
    mean = x.mean(-1, keepdim=True)
    of_rows = [total, top, mean, (x - mean).square().mean(-1), (x * weights).sum(-1)]
    return [weights / total, x - mean, *of_rows]


@given(
    rows=st.integers(8, 40),
    columns=st.integers(1, 300),
    batch=st.sampled_from([(), (1,), (3,)]),
    kept=st.sets(st.integers(0, 6), min_size=1),
    dtype=st.sampled_from(["float32", "float16"]),
)
def test_any_of_several_results_are_those_of_separate_kernels(
    device: str, rows: int, columns: int, batch: tuple[int, ...], kept: set[int], dtype: str
) -> None:
    if device == "INTERP":
        rows, columns = 8, min(columns, 20)
    values = RNG.standard_normal((*batch, rows, columns)).astype(np.float32)
    with Context(SPEC=1):
        x = Tensor(values, device=device).cast(dtype).realize()
        found = [statistics(x)[i] for i in sorted(kept)]
        Tensor.realize(*found)
    with Context(NOOPT=1):
        y = Tensor(values, device="CPU").cast(dtype).realize()
        expected = [statistics(y)[i] for i in sorted(kept)]
        Tensor.realize(*expected)
    tolerance = 1e-4 if dtype == "float32" else 2e-2
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.float().numpy(), b.float().numpy(), rtol=tolerance, atol=tolerance)


def test_a_captured_call_computes_all_results_anew(device: str) -> None:
    """Also those that a later kernel reads; results of the call before are copied, as it overwrites them."""

    @TinyJit
    def step(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        mean = x.mean(1, keepdim=True)
        out = (x - mean).contiguous()
        rest = w * mean.reshape(1, 8)
        Tensor.realize(out, mean, rest)
        return out, mean, rest

    w = RNG.standard_normal((5, 8)).astype(np.float32)
    for i in range(4):
        x = RNG.standard_normal((8, 20)).astype(np.float32) + i
        found = [t.numpy() for t in step(Tensor(x, device=device), Tensor(w, device=device))]
        mean = x.mean(1, keepdims=True)
        for a, b in zip(found, (x - mean, mean, w * mean.reshape(1, 8)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
