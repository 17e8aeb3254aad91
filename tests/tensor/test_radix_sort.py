"""Sorts of long rows by their digits, against torch and numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from polygrad import Context, Tensor, TinyJit, dtypes, vmap
from polygrad.engine.devices import Device
from polygrad.engine.stats import stats
from polygrad.tensor.core.radix_sort import MAX_DIGIT_BITS, _pass_count
from polygrad.tensor.core.sorting_network import MAX_NETWORK
from polygrad.uop.node import UOp
from tests.schedules import schedule

LONG = MAX_NETWORK + 1
DTYPES = {
    "bool": torch.bool, "int8": torch.int8, "uint8": torch.uint8, "int16": torch.int16, "int32": torch.int32,
    "int64": torch.int64, "float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32,
    "float64": torch.float64,
}  # fmt: skip


def values(shape: tuple[int, ...], dtype: str, kind: str, seed: int) -> torch.Tensor:
    """Numbers of a dtype: few different ones, or of all bits, with the extremes and NaN among them."""
    rng = np.random.default_rng(seed)
    to = DTYPES[dtype]
    if kind == "ties":
        x = torch.tensor(rng.integers(0, 5, shape)).to(to)
    else:
        bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[to.itemsize]
        low, high = torch.iinfo(bits).min, torch.iinfo(bits).max
        x = torch.tensor(rng.integers(low, high, shape, np.int64, endpoint=True)).to(bits)
        x = x.view(to) if dtype != "bool" else x > 0
    if to.is_floating_point:
        special = [float("nan"), float("-inf"), float("inf"), 0.0, -0.0, -1.0]
        x = torch.where(torch.isnan(x), torch.tensor(float("nan"), dtype=to), x)
        x.flatten()[: len(special)] = torch.tensor(special, dtype=to)
    elif dtype != "bool":
        x.flatten()[:2] = torch.tensor([torch.iinfo(to).max, torch.iinfo(to).min])
    return x


def tensor_of(x: torch.Tensor, dtype: str, device: str | None = None) -> Tensor:
    if dtype == "bfloat16":
        return Tensor(x.float().numpy(), device=device).cast(dtypes.bfloat16)
    return Tensor(x.numpy(), device=device)


def check(x: torch.Tensor, dtype: str, dim: int, descending: bool, device: str | None = None) -> None:
    """Sorted as torch does: stably, NaN last, the zeros as equals, which stay as they are."""
    want, order = x.sort(dim=dim, descending=descending, stable=True)
    got, positions = tensor_of(x, dtype, device).sort(dim, descending)
    assert np.array_equal(positions.numpy(), order.numpy())
    wide = torch.float64 if x.is_floating_point() else want.dtype
    ours = (got.cast(dtypes.float64) if x.is_floating_point() else got).numpy()
    np.testing.assert_array_equal(ours, want.to(wide).numpy())
    assert not x.is_floating_point() or np.array_equal(np.signbit(ours), np.signbit(want.to(wide).numpy()))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("kind", ["ties", "all"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: str, kind: str, descending: bool) -> None:
    check(values((2, LONG), dtype, kind, 3), dtype, 1, descending)


@pytest.mark.parametrize("shape", [(300, 256), (300, 257), (3, 257), (1, MAX_NETWORK)])
def test_many_short_rows(shape: tuple[int, ...]) -> None:
    check(values(shape, "float32", "all", 4), "float32", 1, False)
    check(values(shape[::-1], "int32", "ties", 4), "int32", 0, True)


@pytest.mark.parametrize("device", ["CPU", "WASM", "CC"])
@pytest.mark.parametrize("dtype", ["float32", "uint8", "int64"])
def test_devices(device: str, dtype: str) -> None:
    if device not in Device.available():
        pytest.skip(f"this host has no {device}")
    check(values((LONG + 70,), dtype, "all", 5), dtype, 0, True, device)


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64"])
def test_unsigned_numbers(dtype: str) -> None:
    top = np.iinfo(dtype).max
    x = np.random.default_rng(6).integers(0, top, 2 * LONG, dtype, endpoint=True)
    x[:3] = 0, top, top // 2 + 1
    assert np.array_equal(Tensor(x).argsort(0).numpy(), np.argsort(x, stable=True))


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_random_sorts(data: st.DataObject) -> None:
    n = data.draw(st.one_of(st.integers(LONG - 3, LONG + 3), st.integers(LONG, 6000)))
    shape = data.draw(st.sampled_from([(n,), (3, n), (n, 2), (2, n, 2)]))
    dtype, kind = data.draw(st.sampled_from(list(DTYPES))), data.draw(st.sampled_from(["ties", "all"]))
    x = values(shape, dtype, kind, data.draw(st.integers(0, 99)))
    check(x, dtype, shape.index(n), data.draw(st.booleans()))


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize(
    ("n", "k"), [(LONG, 33), (LONG, LONG), (9000, 8000), (70000, 40), (70000, 1500), (70000, 9000)]
)
@pytest.mark.parametrize("kind", ["ties", "all"])
def test_topk_takes_the_first_of_equals(kind: str, n: int, k: int, largest: bool) -> None:
    x = values((2, n), "int32", kind, n).numpy()
    wide = x.astype(np.int64)
    want = np.argsort(-wide if largest else wide, 1, stable=True)[:, :k]
    got, positions = Tensor(x).topk(k, 1, largest)
    assert np.array_equal(positions.numpy(), want)
    assert np.array_equal(got.numpy(), np.take_along_axis(x, want, 1))


def test_methods_that_sort_within_1e_6() -> None:
    x = np.random.default_rng(8).standard_normal(2 * LONG).astype(np.float32).round(2)
    t, theirs = Tensor(x), torch.tensor(x)
    found = t.unique(True, True)
    for got, want in zip(found, np.unique(x, return_inverse=True, return_counts=True), strict=True):
        assert np.array_equal(got.numpy(), want)
    assert t.median().item() == theirs.median().item() and t.mode()[0].item() == theirs.mode()[0].item()
    assert t.kthvalue(1700)[0].item() == theirs.kthvalue(1700)[0].item()
    np.testing.assert_allclose(t.quantile(0.3).numpy(), np.quantile(x, 0.3), rtol=1e-6)


# --- states


def test_views_are_sorted_as_they_show() -> None:
    x = np.random.default_rng(9).integers(0, 50, (LONG + 5, 4)).astype(np.int32)
    t = Tensor(x).realize()
    for got, want in [(t.T, x.T), (t.T.flip(1), x.T[:, ::-1]), (t.T[1:3, 4:], x.T[1:3, 4:])]:
        assert np.array_equal(got.argsort(1).numpy(), np.argsort(want, 1, stable=True))
    assert np.array_equal(Tensor.zeros(LONG).argsort(0).numpy(), np.arange(LONG))


def test_a_write_later_leaves_the_order_as_it_was() -> None:
    x = np.random.default_rng(10).integers(0, 50, LONG).astype(np.int32)
    t = Tensor(x).realize()
    before = t.argsort(0)
    t[3:900] = 7
    assert np.array_equal(before.numpy(), np.argsort(x, stable=True))
    x[3:900] = 7
    assert np.array_equal(t.argsort(0).numpy(), np.argsort(x, stable=True))


def test_a_captured_sort_sorts_what_it_gets() -> None:
    step = TinyJit(lambda x: [t.realize() for t in (x + 1).sort(1, True)])
    for seed in range(5):
        x = np.random.default_rng(seed).integers(-9, 9, (3, LONG)).astype(np.float32)
        got, positions = step(Tensor(x).realize())
        want = torch.tensor(x + 1).sort(dim=1, descending=True, stable=True)
        assert np.array_equal(got.numpy(), want.values) and np.array_equal(positions.numpy(), want.indices)


def test_each_element_gets_the_gradient_of_its_place() -> None:
    x = np.random.default_rng(11).integers(0, 30, (2, LONG)).astype(np.float32)
    weights = np.random.default_rng(12).standard_normal((2, LONG)).astype(np.float32)
    theirs = torch.tensor(x, requires_grad=True)
    (theirs.sort(dim=1, stable=True).values * torch.tensor(weights)).sum().backward()
    ours = Tensor(x, requires_grad=True)
    (ours.sort(1)[0] * Tensor(weights)).sum().backward()
    assert theirs.grad is not None and ours.grad is not None
    np.testing.assert_array_equal(ours.grad.numpy(), theirs.grad.numpy())


def test_vmap_sorts_each_row() -> None:
    x = np.random.default_rng(13).integers(0, 30, (3, LONG)).astype(np.float32)
    got = vmap(lambda row: row.argsort(0))(Tensor(x))
    assert np.array_equal(got.numpy(), np.argsort(x, 1, stable=True))


def test_several_devices_sort_through_the_network() -> None:
    x = np.random.default_rng(14).integers(0, 30, (2, LONG)).astype(np.float32)
    got = Tensor(x).shard(("CPU:1", "CPU:2"), 0).argsort(1)
    assert np.array_equal(got.numpy(), np.argsort(x, 1, stable=True))


# --- the way that is taken


def launches(x: Tensor) -> int:
    before = stats.launches
    x.argsort(x.ndim - 1).realize()
    return stats.launches - before


def test_long_rows_take_few_kernels() -> None:
    long, longer = (Tensor(np.arange(n, dtype=np.int32)[::-1].copy(), device="CPU") for n in (5000, 300_000))
    assert launches(long) < 40 and launches(longer) < 30


def test_rows_that_the_cache_holds_go_through_the_network() -> None:
    """A network of 512 has 45 steps, of 2048 66."""
    rows = [Tensor.zeros(*shape, device="CPU").contiguous().realize() for shape in [(8, 300), (800, 300)]]
    assert launches(rows[0]) >= 45 > 40 > launches(rows[1])


def test_numbers_of_few_bits_take_fewer_passes() -> None:
    few, many = (Tensor(np.zeros(5000, d), device="CPU") for d in (np.int8, np.int32))
    assert launches(few) * 2 < launches(many)


def test_unoptimised_kernels_are_those_of_the_network() -> None:
    x = np.random.default_rng(15).integers(0, 30, LONG).astype(np.int32)
    with Context(NOOPT=1):
        t = Tensor(x, device="CPU")
        order = t.argsort(0)
        calls = schedule(UOp.sink(order.uop.base), True).calls
        assert len(calls) > 60
        assert np.array_equal(order.numpy(), np.argsort(x, stable=True))


@pytest.mark.parametrize("bits", [1, 8, 16, 32])
@pytest.mark.parametrize("n", [LONG, 10_000, 1 << 20, 1 << 28])
def test_digits_are_as_large_as_the_row_is_long(n: int, bits: int) -> None:
    count = _pass_count(n, bits)
    assert 1 <= -(-bits // count) <= MAX_DIGIT_BITS
    assert count >= _pass_count(2 * n, bits)


@pytest.mark.parametrize("device", ["CPU", "WASM"])
def test_sorted_rows_may_be_written_to_what_was_sorted(device: str) -> None:
    expected = np.random.default_rng(5).integers(-9, 9, 20_000).astype(np.int32)
    x = Tensor(expected, device=device).realize()
    view, (values, positions) = x[::3], x.sort()
    x.assign(x + 1)
    np.testing.assert_array_equal(values.numpy(), np.sort(expected))
    np.testing.assert_array_equal(positions.numpy(), np.argsort(expected, kind="stable"))
    x.assign(x.sort(descending=True)[0])
    x[5000:15000] = x[:10000].sort()[0]
    expected = np.sort(expected + 1)[::-1].copy()
    expected[5000:15000] = np.sort(expected[:10000])
    np.testing.assert_array_equal(x.numpy(), expected)
    np.testing.assert_array_equal(view.numpy(), expected[::3])
