"""Sums of columns in blocks of rows: which reductions become two kernels, and that they compute numpy's."""

from __future__ import annotations

from dataclasses import replace

import pytest

np = pytest.importorskip("numpy")

from polygrad import Tensor, dtypes  # noqa: E402
from polygrad.codegen.rfactor import rfactor  # noqa: E402
from polygrad.uop.args import AxisKind  # noqa: E402
from tests.codegen.test_relayout import TARGET, empty, scheduled  # noqa: E402

SMALL_PAGES = replace(TARGET, pages=64)


def kernels(*outputs):
    return rfactor(scheduled(*outputs), SMALL_PAGES)


def test_a_sum_of_columns_takes_in_a_block_of_rows_at_a_time():
    parts, total = kernels(empty(1024, 1024).sum(0))
    assert parts.args[0].arg.size == 1024 // 64 * 1024
    assert total.args == (total.args[0], parts.args[0])


def test_rows_that_share_a_page_share_a_block():
    assert kernels(empty(4096, 256).sum(0))[0].args[0].arg.size == 4096 // 256 * 256


def test_rows_beyond_the_last_block_are_read_where_they_are():
    parts, total = kernels(empty(1023, 1024).max(0))
    assert parts.args[0].arg.size == 15 * 1024
    assert total.args[1:] == (parts.args[1], parts.args[0])  # what it sums up, and the blocks


def test_a_vector_and_a_matrix_are_multiplied_in_blocks_of_its_rows():
    assert len(kernels(empty(1024) @ empty(1024, 1024))) == 2


def test_each_of_two_sums_goes_through_memory_in_blocks():
    mean_parts, mean, parts, variance = kernels(empty(1024, 1024).var(0))
    assert mean_parts.args[0].arg.size == parts.args[0].arg.size == 1024 // 64 * 1024
    assert mean.args[0].arg.size == 1024 and mean.args[0] in parts.args
    assert parts.args[0] in variance.args


def test_a_sum_of_what_columns_have_is_over_loops_of_its_own():
    calls = kernels(empty(1024, 32, 40).max(0).exp().sum(-1))
    for call in calls:
        (end,) = call.ast.src
        assert {r.arg.kind for r in end.src[1:]} <= {AxisKind.LOOP}
    assert len({call.args[0] for call in calls}) == len(calls) == 3


def test_no_two_kernels_store_in_the_same_memory():
    x = empty(1024, 1024)
    calls = kernels(x.var(0), (x - x.mean(0) - x.max(0)).square().sum(0))
    assert len({call.args[0] for call in calls}) == len(calls)


def test_a_sum_of_equal_rows_is_none_of_columns():
    repeated = empty(1, 1024).expand(2048, 1024).sum(0)
    assert len(kernels((repeated.exp() * empty(1024)).sum())) == 1


def test_two_sums_of_rows_stay_one_kernel():
    assert len(kernels(empty(1024, 1024).var(1))) == 1


@pytest.mark.parametrize(
    "tensor",
    [
        pytest.param(lambda: empty(1024, 1024).sum(1), id="rows"),
        pytest.param(lambda: empty(1024, 1024).sum(), id="to a scalar"),
        pytest.param(lambda: empty(128, 4096).sum(0), id="few rows"),
        pytest.param(lambda: empty(8192, 32).sum(0), id="short rows"),
    ],
)
def test_other_sums_stay_one_kernel(tensor):
    out = tensor()
    assert len(kernels(out)) == len(scheduled(out))


def test_a_matrix_product_reads_again_what_it_read():
    out = empty(512, 512) @ empty(512, 512)
    assert len(kernels(out)) == 1


def test_large_pages_need_no_blocks():
    assert len(rfactor(scheduled(empty(1024, 1024).sum(0)), TARGET)) == 1


@pytest.mark.parametrize("rows", [1024, 1023, 257, 513])
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.int32, dtypes.float16])
def test_columns_on_every_device(device, rows, dtype):
    columns = 1030
    if device == "INTERP":
        rows, columns = rows // 8, 70
    values = np.random.default_rng(rows).integers(-9, 10, (rows, columns))
    x = Tensor(values.tolist(), dtype=dtype, device=device)
    assert x.sum(0).cast(dtypes.int32).tolist() == values.sum(0).tolist()
    assert (x * 2).max(0).cast(dtypes.int32).tolist() == (2 * values.max(0)).tolist()
    spread = x.cast(dtypes.float32).std(0).tolist()
    np.testing.assert_allclose(spread, values.std(0, ddof=1), rtol=1e-5)


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda t: t.max(0).exp().sum(-1), id="sum of exp of max"),
        pytest.param(lambda t: (t - t.mean(0)).square().sum((0, 2)), id="spread"),
        pytest.param(lambda t: t.var((0, 2)), id="var"),
        pytest.param(lambda t: ((t - t.max(0)).exp().sum(0) * t.sum(0)).sum(-1), id="three sums"),
        pytest.param(lambda t: t.softmax(0), id="softmax"),
    ],
)
def test_sums_of_sums_on_every_device(device, function):
    shape = (1024, 32, 40) if device != "INTERP" else (1024, 4, 5)
    x = np.random.default_rng(1).random(shape, dtype=np.float32)
    expected = function(Tensor(x, device="CPU").cast(dtypes.float64)).numpy()
    np.testing.assert_allclose(function(Tensor(x, device=device)).numpy(), expected, rtol=1e-4, atol=1e-7)


def test_the_rest_of_the_rows_keeps_a_nan(device):
    x = Tensor.zeros(260, 1030, device=device).contiguous().realize()
    x[259, 3] = float("nan")
    out = x.max(0).tolist()
    assert out[3] != out[3] and out[4] == 0
