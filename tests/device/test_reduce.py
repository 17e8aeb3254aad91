"""Reductions over every subset of axes, of every dtype, of nothing, of long axes; several in one kernel;
nested."""

from __future__ import annotations

import itertools
import math

import pytest
from plain import Plain, assert_close, assert_same, wrapped

from polygrad import Tensor
from polygrad.dtype import dtypes, sum_dtype
from polygrad.errors import ShapeError

SHAPE = (3, 4, 5)


def subsets(ndim):
    return [axes for n in range(ndim + 1) for axes in itertools.combinations(range(ndim), n)]


def numbers(shape, spread=7):
    """Small whole numbers, so that sums of floats are exact; none repeats in an orderly way."""
    return Plain(shape, [(i * 37 + i * i * 11) % (2 * spread + 1) - spread for i in range(math.prod(shape))])


def tensor(plain, device, dtype="float32"):
    return Tensor(plain.elements, device=device, dtype=dtype).reshape(plain.shape)


def realized(tensors):
    tensors[0].realize(*tensors[1:])
    return tensors


@pytest.mark.parametrize("dtype", ["float32", "int32", "float64", "int64"])
def test_every_subset_of_axes(device, dtype):
    a = numbers(SHAPE, 2)
    t = tensor(a, device, dtype)
    for keepdim in (False, True):
        axes = subsets(3)
        sums = realized([t.sum(axis=s, keepdim=keepdim) for s in axes])
        most = realized([t.max(axis=s, keepdim=keepdim) for s in axes])
        least = realized([t.min(axis=s, keepdim=keepdim) for s in axes])
        for i, s in enumerate(axes):
            assert_same(sums[i].tolist(), a.sum(s, keepdim).tolist(), f"sum {s}")
            assert_same(most[i].tolist(), a.max(s, keepdim).tolist(), f"max {s}")
            assert_same(least[i].tolist(), a.reduce(min, math.inf, s, keepdim).tolist(), f"min {s}")


@pytest.mark.parametrize("axes", subsets(3))
def test_products_of_whole_numbers_are_exact(device, axes):
    a = Plain(SHAPE, [1 + (i % 7 == 0) - 2 * (i % 11 == 3) for i in range(60)])
    expected = a.reduce(lambda x, y: x * y, 1, axes)
    for dtype in ("float32", "int32"):
        assert_same(tensor(a, device, dtype).prod(axis=axes).tolist(), expected.tolist(), dtype)


@pytest.mark.parametrize("dtype", dtypes.all)
def test_dtypes_of_reductions(device, dtype):
    data = [x % 2 == 0 for x in range(19)] if dtype.is_bool else [x % 5 for x in range(19)]
    t = Tensor(data, device=device, dtype=dtype)
    total = t.sum()
    assert total.dtype == (dtype if dtype.is_float else sum_dtype(dtype))
    assert total.item() == sum(data)
    assert t.max().dtype == dtype and t.max().item() == max(data)
    assert t.min().dtype == dtype and t.min().item() == min(data)


@pytest.mark.parametrize("dtype", dtypes.ints)
def test_integer_extremes_and_sums_wrap(device, dtype):
    data = [dtype.min, dtype.max, 3, dtype.max, dtype.min, 1]
    t = Tensor(data, device=device, dtype=dtype)
    assert t.max().item() == dtype.max and t.min().item() == dtype.min
    assert t.sum().item() == wrapped(sum(data), sum_dtype(dtype))
    assert t.sum(dtype=dtype).item() == wrapped(sum(data), dtype)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 130])
def test_rows_and_columns_of_every_length(device, n):
    wide, tall = numbers((3, n)), numbers((n, 3))
    w, t = tensor(wide, device), tensor(tall, device)
    outs = realized([w.sum(1), t.sum(0), w.max(1), t.max(0), w.sum(0), t.sum(1)])
    expected = [
        wide.sum((1,)),
        tall.sum((0,)),
        wide.max((1,)),
        tall.max((0,)),
        wide.sum((0,)),
        tall.sum((1,)),
    ]
    for i, (got, want) in enumerate(zip(outs, expected, strict=True)):
        assert_same(got.tolist(), want.tolist(), f"reduction {i}")


def test_reducing_no_elements(device):
    nothing = Tensor.zeros(2, 0, 3, device=device)
    assert nothing.sum().item() == 0.0
    assert nothing.prod().item() == 1.0
    assert nothing.sum(axis=1).tolist() == [[0.0] * 3] * 2
    assert nothing.prod(axis=1).tolist() == [[1.0] * 3] * 2
    assert nothing.sum(axis=0).shape == (0, 3) and nothing.sum(axis=0).tolist() == []
    assert (nothing + 1).tolist() == [[], []]
    with pytest.raises(ShapeError):
        nothing.max()


def test_tensors_of_one_element(device):
    for shape in ((), (1,), (1, 1, 1)):
        t = Tensor.full(shape, 3.0, device=device).contiguous()
        assert t.sum().item() == t.max().item() == t.prod().item() == t.mean().item() == 3.0


def test_sum_of_no_axes_is_the_tensor(device):
    a = numbers((2, 3))
    assert_same(tensor(a, device).sum(axis=()).tolist(), [[float(x) for x in row] for row in a.tolist()])


def test_several_reductions_in_one_expression(device):
    a = numbers((6, 17))
    t = tensor(a, device)
    out = t.sum(1) + t.max(1) * 2 - t.min(1) + t.abs().sum(1) * (t > 0).sum(1)
    rows = a.tolist()
    expected = [sum(r) + 2 * max(r) - min(r) + sum(map(abs, r)) * sum(x > 0 for x in r) for r in rows]
    assert_same(out.tolist(), [float(x) for x in expected])


def test_reductions_of_reductions(device):
    a = numbers((4, 5, 6))
    t = tensor(a, device)
    assert_same(t.sum(2).max(1).sum().item(), float(a.sum((2,)).max((1,)).sum().tolist()))
    assert_same(t.max(0).sum(0).max().item(), float(a.max((0,)).sum((0,)).max().tolist()))
    centred = t - t.sum(2, keepdim=True)
    expected = a.map(lambda x, s: float(x - s), a.sum((2,), True))
    assert_same(centred.tolist(), expected.tolist())
    assert_same((centred * centred).sum(2).tolist(), expected.map(lambda x: x * x).sum((2,)).tolist())


def test_sum_of_a_broadcast_is_a_multiple(device):
    t = Tensor([1.0, 2.0, 3.0], device=device)
    assert t.reshape(3, 1).expand(3, 7).sum(1).tolist() == [7.0, 14.0, 21.0]
    assert t.reshape(3, 1).expand(3, 7).max(1).tolist() == [1.0, 2.0, 3.0]
    assert t.reshape(3, 1).expand(3, 3).prod(1).tolist() == [1.0, 8.0, 27.0]
    assert Tensor.ones(5, 4, device=device).sum().item() == 20.0


def test_reducing_padded_flipped_and_shrunk(device):
    a = numbers((5, 7))
    t = tensor(a, device)
    assert_same(t.pad(((1, 2), (3, 0))).sum().item(), float(sum(a.elements)))
    assert_same(
        (t + 1).pad(((1, 2), (3, 0))).sum(1).tolist(),
        [float(x) for x in a.map(lambda x: x + 1).pad(((1, 2), (3, 0))).sum((1,)).elements],
    )
    assert_same((t - 100).pad(((1, 1), (0, 0))).max(0).tolist(), [0.0] * 7)
    assert_same(
        t.flip(1).shrink(((1, 4), (2, 7))).sum(1).tolist(),
        [float(x) for x in a.flip((1,)).shrink(((1, 4), (2, 7))).sum((1,)).elements],
    )


def test_where_of_positions_sums_like_a_gather(device):
    table = numbers((9, 4))
    t, picks = tensor(table, device), [3, 0, 8, 3, 5]
    rows = t[Tensor(picks, device=device)]
    assert_same(rows.tolist(), [[float(x) for x in table.tolist()[i]] for i in picks])
    ramp = Tensor.arange(9, device=device)
    hits = (ramp.reshape(1, 9) == Tensor([2, 20, -1], device=device).reshape(3, 1)).where(
        ramp.reshape(1, 9) * 10, 0
    )
    assert hits.sum(1).tolist() == [20, 0, 0]
    less = (ramp.reshape(1, 9) < Tensor([2, 20, -1], device=device).reshape(3, 1)).int().sum(1)
    assert less.tolist() == [2, 9, 0]


def test_argmax_picks_the_first(device):
    t = Tensor([[1.0, 5.0, 5.0], [7.0, 7.0, 0.0]], device=device)
    assert t.argmax(axis=1).tolist() == [1, 0]
    assert t.argmin(axis=1).tolist() == [0, 2]
    assert t.argmax().item() == 3


def test_cumulative_sums(device):
    a = numbers((2, 300))
    expected = [[float(x) for x in itertools.accumulate(row)] for row in a.tolist()]
    assert_same(tensor(a, device).cumsum(1).tolist(), expected)


@pytest.mark.parametrize("n", [3, 16, 37])
def test_mean_and_variance_rtol_1e_5(device, n):
    a = numbers((4, n))
    t = tensor(a, device)
    rows = a.tolist()
    means = [sum(r) / n for r in rows]
    assert_close(t.mean(1).tolist(), means, 1e-5, 1e-6)
    variances = [sum((x - m) ** 2 for x in r) / (n - 1) for r, m in zip(rows, means, strict=True)]
    assert_close(t.var(1).tolist(), variances, 1e-5, 1e-6)
    assert_close(t.std(1).tolist(), [math.sqrt(v) for v in variances], 1e-5, 1e-6)


@pytest.mark.parametrize("n", [2, 4, 8, 12, 16, 40])
def test_reducing_what_is_the_same_everywhere_or_in_parts(device, n):
    assert Tensor.full((n,), -1.0, device=device).prod().item() == 1.0
    assert Tensor.full((n, 3), 2, device=device, dtype="int64").prod(0).tolist() == [2**n] * 3
    halves = Tensor.ones(n, device=device).pad(((0, n),)) + Tensor.ones(n, device=device).pad(((n, 0),)) * 2
    assert (halves * halves).sum().item() == 5 * n
    assert (halves * halves).reshape(1, -1).expand(3, 2 * n).sum(1).tolist() == [5 * n] * 3


def test_a_sum_of_what_is_left_of_sums(device):
    x = Tensor([[[1.0, -2.0], [3.0, 1.0]], [[-1.0, 0.5], [2.0, 2.0]]], device=device)
    assert x.sum(2).relu().sum().item() == 8.0
    assert x.sum(2).relu().sum(1).tolist() == [4.0, 4.0]
