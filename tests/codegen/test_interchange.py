"""Sums of columns row by row: which reductions become kernels that go in order, and what they compute."""

from __future__ import annotations

from dataclasses import replace

import pytest

np = pytest.importorskip("numpy")

from polygrad import Device, Tensor, dtypes  # noqa: E402
from polygrad.codegen.lower.passes import UNOPTIMIZED, LoweringContext, run_passes  # noqa: E402
from polygrad.codegen.opts import cost  # noqa: E402
from polygrad.codegen.opts.heuristics import choose  # noqa: E402
from polygrad.codegen.opts.opt import OptKind, apply_opts  # noqa: E402
from polygrad.codegen.opts.tile import is_tile  # noqa: E402
from polygrad.engine import compile  # noqa: E402
from polygrad.engine.programs import clear_caches  # noqa: E402
from polygrad.helpers import LRU  # noqa: E402
from polygrad.schedule.kernel_info import kernel_info  # noqa: E402
from polygrad.uop.args import AxisKind  # noqa: E402
from tests.codegen.grid_kernels import decided  # noqa: E402
from tests.codegen.test_relayout import TARGET, empty, scheduled  # noqa: E402

ROWS, PARTS = cost.ROWS_AT_A_TIME, cost.COLUMN_PARTS.most
WIDE = cost.LONG_COLUMNS // 4 + 4  # float32 columns that are enough for threads


def interchange(calls):
    return decided("interchange", calls, TARGET)


def kernels(*outputs):
    return interchange(scheduled(*outputs))


def nest(call):
    """The kinds and sizes of a kernel's loops, outermost first."""
    return [(r.arg.kind, r.src[0].arg) for r in call.ast.src[0].src[1:]]


def test_a_sum_of_columns_goes_from_row_to_row():
    fill, add = kernels(empty(1024, WIDE).sum(0))
    assert nest(fill) == [(AxisKind.LOOP, WIDE)]
    assert nest(add) == [(AxisKind.SCAN, 1024 // ROWS), (AxisKind.LOOP, WIDE)]
    assert fill.args == (add.args[0],)  # the output, which needs no other memory


def test_what_is_summed_up_first_are_the_rows_that_are_left():
    fill, add = kernels(empty(1023, WIDE).max(0))
    assert fill.args == add.args
    assert nest(add) == [(AxisKind.SCAN, 1023 // ROWS), (AxisKind.LOOP, WIDE)]


def test_rows_that_are_looked_up_are_no_sums_of_columns():
    """The embeddings of a token and of its position: sums over one-hots until they are loads."""
    token, place = Tensor([3], dtype="int32").realize(), Tensor([5], dtype="int32").realize()
    assert len(kernels(empty(50_257, 768)[token] + empty(1024, 768)[place])) == 1
    words, places = (np.random.default_rng(i).random((2000, 64), np.float32) for i in (5, 6))
    got = Tensor(words).realize()[token] + Tensor(places).realize()[place]
    np.testing.assert_array_equal(got.numpy(), words[[3]] + places[[5]])


def test_few_columns_have_parts_of_rows_for_threads():
    fill, add, total = kernels(empty(16_400, 200).sum(0))
    rows = 16_400 // PARTS
    assert nest(fill) == [(AxisKind.LOOP, PARTS), (AxisKind.LOOP, 200)]
    assert nest(add) == [(AxisKind.LOOP, PARTS), (AxisKind.SCAN, rows // ROWS), (AxisKind.LOOP, 200)]
    assert add.args[0].arg.size == PARTS * 200 and add.args[0] in total.args
    assert nest(total) == [(AxisKind.LOOP, 200)]


def test_a_middle_axis_is_inside_of_those_before_it():
    _, add = kernels(empty(20, 64, 300).sum(1))
    assert nest(add) == [(AxisKind.LOOP, 20), (AxisKind.SCAN, 64 // ROWS), (AxisKind.LOOP, 300)]


def test_what_is_computed_of_a_sum_reads_it():
    fill, add, rest = kernels(empty(256, WIDE).mean(0) + 1)
    assert fill.args[0] is add.args[0] is rest.args[-1]
    assert nest(rest) == [(AxisKind.LOOP, WIDE)]


def test_a_vector_and_a_matrix_are_multiplied_row_by_row():
    assert [kind for kind, _ in nest(kernels(empty(1024) @ empty(1024, WIDE))[-1])].count(AxisKind.SCAN) == 1


NARROW = replace(TARGET, simd_bytes=16, registers=15)  # WebAssembly's


@pytest.mark.parametrize(("rows", "target"), [(2, NARROW), (12, NARROW), (2, TARGET), (24, TARGET)])
def test_few_rows_are_multiplied_with_a_few_rows_of_a_large_matrix_at_a_time(rows, target):
    fill, add = decided("interchange", scheduled(empty(rows, 4096) @ empty(4096, 1000)), target)
    assert nest(fill) == [(AxisKind.LOOP, 1000), (AxisKind.LOOP, rows)]
    assert nest(add) == [(AxisKind.SCAN, 4096 // cost.PRODUCT_ROWS_AT_A_TIME), *nest(fill)]
    assert fill.args == (add.args[0],)


def test_all_parts_of_a_product_in_place_have_tiles_of_rows():
    """Whole tiles of columns, the vectors beside them as one tile, and the columns beside those."""
    _, add = decided("interchange", scheduled(empty(8, 4096) @ empty(4096, 1000)), TARGET)
    kernel = run_passes(add.ast, LoweringContext(TARGET), through=UNOPTIMIZED)
    nests = apply_opts(kernel, choose(kernel, TARGET))[-1][1].src
    tiles = [sorted(r.src[0].arg for r in n.src[0].src[0].ranges if is_tile(r)) for n in nests]
    assert tiles == [[3, 8, 16], [2, 8, 16], [8]]


def test_what_is_computed_of_a_product_of_few_rows_reads_it():
    *_, add, rest = decided("interchange", scheduled((empty(8, 4096) @ empty(4096, 1000)).relu()), NARROW)
    assert AxisKind.SCAN in [kind for kind, _ in nest(add)] and rest.args[-1] is add.args[0]
    columns = next(r for r in add.ast.src[0].src[1:] if r.src[0].arg == 1000)
    assert kernel_info(add.ast).nests[0].write.terms[columns] == 1  # as the reader goes through it


@pytest.mark.parametrize(
    ("left", "right", "target"),
    [
        ((8, 512), (512, 512), TARGET),  # the matrix stays in the cache
        ((32, 4096), (4096, 1000), TARGET),  # panels
        ((24, 512), (512, 16_384), TARGET),  # the results do not stay in it
        ((8, 512), (512, 512), NARROW),  # the matrix stays in the cache
        ((96, 4096), (4096, 1000), NARROW),  # the results do not
        ((8, 20), (20, 300_000), NARROW),  # few rows of a matrix
    ],
)
def test_other_products_are_tiles_in_registers(left, right, target):
    calls = scheduled(empty(*left) @ empty(*right))
    assert decided("interchange", calls, target) == calls


def test_a_matrix_whose_rows_are_summed_up_is_read_along_them():
    calls = scheduled(empty(8, 4096) @ empty(1000, 4096).T)
    assert decided("interchange", calls, NARROW) == calls


def test_results_that_lie_across_the_rows_of_a_matrix_are_tiles_in_wide_registers():
    calls = scheduled(empty(4096, 1000).T @ empty(4096, 8))
    assert decided("interchange", calls, TARGET) == calls


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float16])
def test_products_of_few_rows_on_every_device(device, dtype):
    """Two of them, of rows and columns that are no multiples of a tile, with what the product is for."""
    rows, terms, columns = (9, 2051, 603) if device != "INTERP" else (3, 70, 5)
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-9, 10, shape) for shape in ((2, rows, terms), (2, terms, columns)))
    x, y = (Tensor(v.astype(np.float32), device=device).cast(dtype).realize() for v in (a, b))
    got = (x.float() @ y.float() * 2).numpy()
    np.testing.assert_array_equal(got, 2 * np.matmul(a, b))


def test_each_of_two_sums_goes_through_memory_row_by_row():
    calls = kernels(empty(1024, WIDE).var(0))
    assert [kind for call in calls for kind, _ in nest(call)].count(AxisKind.SCAN) == 2


def test_a_sum_of_what_columns_have_is_over_loops_of_its_own():
    calls = kernels(empty(1024, 32, 40).max(0).exp().sum(-1))
    assert {r.arg.kind for call in calls for r in call.ast.src[0].src[1:]} == {AxisKind.LOOP, AxisKind.SCAN}


@pytest.mark.parametrize(("rows", "columns"), [(1024, WIDE), (4096, 200)])
def test_what_is_summed_up_of_the_output_stays_one_kernel(rows, columns):
    """Memory that is filled first has no longer what is to be read: nor is it another's in parts."""
    y = empty(columns)
    y.assign((empty(rows, columns) * y).sum(0))
    calls = scheduled(y)
    assert len(calls) == 1 and interchange(calls) == calls


@pytest.mark.parametrize(("rows", "columns"), [(1024, WIDE), (4096, 200)])
def test_a_sum_is_added_to_what_memory_has(rows, columns):
    """What reads the output is the last kernel, after the sum has memory of its own."""
    y = empty(columns)
    y.assign(y + empty(rows, columns).sum(0))
    *_, add, rest = interchange(scheduled(y))
    assert add.args[0] is not rest.args[0] and add.args[0] in rest.args


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
        pytest.param(lambda: empty(16, 40_000).sum(0), id="few rows"),
        pytest.param(lambda: empty(8192, 32).sum(0), id="short rows"),
        pytest.param(lambda: empty(64, 512).sum(0), id="little"),
    ],
)
def test_other_sums_stay_one_kernel(tensor):
    out = tensor()
    assert len(kernels(out)) == len(scheduled(out))


def test_a_matrix_product_reads_again_what_it_read():
    out = empty(512, 512) @ empty(512, 512)
    assert len(kernels(out)) == 1


@pytest.mark.parametrize("rows", [1024, 1023, 257, 513, 64])
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.int32, dtypes.float16])
def test_columns_on_every_device(device, rows, dtype):
    columns = 1030
    if device == "INTERP":
        rows, columns = rows // 8, 70
    values = np.random.default_rng(rows).integers(-9, 10, (rows, columns))
    x = Tensor(values.astype(np.float32), device=device).cast(dtype).realize()
    assert x.sum(0).cast(dtypes.int32).tolist() == values.sum(0).tolist()
    assert (x[:, 3:].sum(0) + 1).cast(dtypes.int32).tolist() == (values[:, 3:].sum(0) + 1).tolist()
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


@pytest.mark.parametrize("columns", [64 * 140 + 16, 64 * 140 + 1])
def test_columns_that_a_tile_leaves_are_one_thread_s(columns):
    """They are a nest of their own: tiles that overlap would add to the same sums."""
    target = replace(TARGET, threads=2)
    add = kernels(empty(200, columns).sum(0))[-1]
    kernel = run_passes(add.ast, LoweringContext(target), through=UNOPTIMIZED)
    opts = choose(kernel, target)
    (parallel,) = [opt for opt in opts if opt.kind is OptKind.PARALLEL]
    nests = apply_opts(kernel, opts)[-1][1].src
    alone = [nest for nest in nests if nest.src[1].src[0].vmin == 0]  # no rounds but in the first part
    assert len(alone) == len(nests) - len(parallel.axes) == 1


@pytest.mark.parametrize("shape", [(2000, 300), (600, 1003), (40, 9000)])
def test_threads_add_the_same_numbers_in_the_same_order(shape, monkeypatch):
    """They divide parts of the rows, or the columns: those that a tile leaves are one thread's."""
    x = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    backend, found = Device.backend("CPU"), []
    for threads in (1, 2, 3):
        target = replace(backend.target, threads=threads)
        monkeypatch.setitem(Device._backends, "CPU", replace(backend, target=target, caches_on_disk=False))
        monkeypatch.setattr(compile, "_kernels", LRU(1 << 24))
        clear_caches()
        found.append((Tensor(x, device="CPU").sum(0) * 2).numpy())
    clear_caches()
    np.testing.assert_allclose(found[0], x.astype(np.float64).sum(0) * 2, rtol=1e-4, atol=1e-4)
    assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()


@pytest.mark.parametrize("rows", [100, 1000])
def test_sums_that_are_written_to_what_they_are_made_of(device, rows):
    rows, columns = (rows, 1000) if device != "INTERP" else (rows, 70)
    x = np.random.default_rng(3).integers(-5, 6, (rows, columns)).astype(np.float32)
    t, scale = Tensor(x.copy(), device=device).realize(), np.arange(columns, dtype=np.float32) % 7
    y = Tensor(scale.copy(), device=device).realize()
    y.assign((t * y).sum(0))
    np.testing.assert_array_equal(y.numpy(), (x * scale).sum(0))
    y += (t * 2).sum(0)
    np.testing.assert_array_equal(y.numpy(), (x * scale).sum(0) + 2 * x.sum(0))
    t[1:3] = t.max(0)
    x[1:3] = x.max(0)
    np.testing.assert_array_equal(t.numpy(), x)
    t -= t.sum(0)
    np.testing.assert_array_equal(t.numpy(), x - x.sum(0))


@pytest.mark.parametrize("rows", [64, 1024])
def test_other_reductions_and_other_ways_through_memory(device, rows):
    columns = 1030 if device != "INTERP" else 70
    x = np.random.default_rng(4).integers(-5, 6, (rows, columns)).astype(np.float32)
    t = Tensor(x, device=device).realize()
    for got, wanted in (
        ((t > 4).any(0), (x > 4).any(0)),
        (t.argmax(0), x.argmax(0)),
        (t.min(0), x.min(0)),
        ((t > 4).where(2, 1)[:64].prod(0), np.where(x > 4, 2, 1)[:64].prod(0)),
        (t.cast(dtypes.int8).sum(0), x.sum(0)),
        (t[::-1].sum(0), x.sum(0)),
        (t[:, ::-2].sum(0), x[:, ::-2].sum(0)),
        (t.reshape(2, -1, columns).sum(1), x.reshape(2, -1, columns).sum(1)),
        (t.reshape(2, -1, columns).sum((0, 1)), x.sum(0)),
        (t.reshape(-1, 4, columns).sum(0), x.reshape(-1, 4, columns).sum(0)),
    ):
        np.testing.assert_array_equal(got.numpy(), wanted)


def test_the_rest_of_the_rows_keeps_a_nan(device):
    x = Tensor.zeros(260, 1030, device=device).contiguous().realize()
    x[259, 3] = float("nan")
    out = x.max(0).tolist()
    assert out[3] != out[3] and out[4] == 0
