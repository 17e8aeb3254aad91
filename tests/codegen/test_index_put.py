"""Writes at positions as loops over the writers: which kernels are, and that they write what numpy does."""

from __future__ import annotations

from dataclasses import replace

import pytest

np = pytest.importorskip("numpy")
hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from polygrad import Tensor, TinyJit, dtypes  # noqa: E402
from polygrad.codegen.opts import cost  # noqa: E402
from polygrad.codegen.target import Workgroups  # noqa: E402
from polygrad.uop.args import AxisKind  # noqa: E402
from tests.codegen.grid_kernels import decided  # noqa: E402
from tests.codegen.test_relayout import empty, scheduled  # noqa: E402
from tests.codegen.test_scatter import CPU, GPU, integers  # noqa: E402

ROWS, COLUMNS, WRITERS = 50, 8, 5


def carried_out(calls, target):
    return decided("index-put", calls, target)


def written(index, values, *, reads=False):
    """The kernels of a write to rows of a table."""
    table = empty(ROWS, COLUMNS).contiguous().realize()
    table[index] = values
    return scheduled(table + 1 if reads else table)


def loops(call):
    """The sizes of a kernel's output loops, by their kind."""
    return sorted((r.arg.kind, r.src[0].arg) for r in call.ast.src[0].src[1:])


# --- what becomes of kernels


@pytest.mark.parametrize("value", ["rows", "a number", "zero"])
def test_rows_are_written_one_after_the_other(value):
    values = {"rows": empty(WRITERS, COLUMNS), "a number": 5.0, "zero": 0.0}[value]
    (write,) = carried_out(written(integers(WRITERS), values), CPU)
    assert loops(write) == [(AxisKind.LOOP, COLUMNS), (AxisKind.SCAN, WRITERS)]


def test_one_row_is_no_loop_over_rows():
    (write,) = carried_out(written(integers(1), empty(1, COLUMNS)), CPU)
    assert loops(write) == [(AxisKind.LOOP, COLUMNS)]


def test_a_table_that_is_kept_is_copied_first():
    out = empty(ROWS, COLUMNS).scatter(0, integers(WRITERS, COLUMNS), empty(WRITERS, COLUMNS))
    copy, write = carried_out(scheduled(out), CPU)
    assert copy.args[0] is write.args[0]
    assert loops(copy) == [(AxisKind.LOOP, COLUMNS), (AxisKind.LOOP, ROWS)]
    assert loops(write) == [(AxisKind.LOOP, COLUMNS), (AxisKind.SCAN, WRITERS)]


def test_two_scatters_are_a_copy_and_two_writes():
    once = empty(ROWS, COLUMNS).scatter(0, integers(WRITERS, COLUMNS), empty(WRITERS, COLUMNS))
    calls = carried_out(scheduled(once.scatter(0, integers(3, COLUMNS), empty(3, COLUMNS))), CPU)
    assert [len(loops(call)) for call in calls] == [2, 2, 2]
    assert [kind for call in calls for kind, _ in loops(call)].count(AxisKind.SCAN) == 2


def test_a_clone_is_copied_once():
    table = empty(ROWS, COLUMNS).clone()
    table[integers(WRITERS)] = empty(WRITERS, COLUMNS)
    assert len(scheduled(table)) == 1
    copy, write = carried_out(scheduled(table), CPU)
    assert [kind for kind, _ in loops(copy)] == [AxisKind.LOOP] * 2
    assert loops(write) == [(AxisKind.LOOP, COLUMNS), (AxisKind.SCAN, WRITERS)]


def test_parts_that_are_written_after_rows_are_loops_over_these():
    table = Tensor.zeros(ROWS, COLUMNS).contiguous()
    table[integers(WRITERS)] = empty(WRITERS, COLUMNS)
    table[7] = 2.0
    table[3:6, 2:5] = empty(3, 3)
    fill, rows, row, part = carried_out(scheduled(table), CPU)
    assert loops(fill) == [(AxisKind.LOOP, COLUMNS), (AxisKind.LOOP, ROWS)]
    assert loops(rows) == [(AxisKind.LOOP, COLUMNS), (AxisKind.SCAN, WRITERS)]
    assert loops(row) == [(AxisKind.LOOP, COLUMNS)]
    assert loops(part) == [(AxisKind.LOOP, 3), (AxisKind.LOOP, 3)]


@pytest.mark.parametrize(
    "out",
    [
        pytest.param(lambda: empty(ROWS, COLUMNS)[integers(WRITERS)], id="a gather"),
        pytest.param(
            lambda: (integers(ROWS) == integers(ROWS)).where(empty(ROWS), empty(ROWS)), id="no position"
        ),
        pytest.param(lambda: empty(ROWS, COLUMNS).index_fill(0, integers(1), 5), id="all and one row"),
    ],
)
def test_others_stay_as_they_are(out):
    calls = scheduled(out())
    assert carried_out(calls, CPU) == calls


def test_a_gpu_compares_unless_elements_are_very_many():
    calls = written(integers(WRITERS), empty(WRITERS, COLUMNS))
    assert carried_out(calls, GPU) == calls
    assert carried_out(calls, replace(GPU, workgroups=Workgroups(software=True))) != calls
    one = written(integers(1), empty(1, COLUMNS))
    assert carried_out(one, GPU) != one
    many = empty(cost.MAX_COMPARED // COLUMNS + 1, COLUMNS).contiguous().realize()
    many[integers(WRITERS)] = 5
    assert loops(*carried_out(scheduled(many), GPU)) == [(AxisKind.LOOP, COLUMNS), (AxisKind.SCAN, WRITERS)]


# --- numbers

TYPES = {"float32": np.float32, "int32": np.int32, "uint8": np.uint8, "bool": np.bool_}


def data(rng, shape, dtype):
    return rng.integers(0, 2 if dtype == "bool" else 100, shape).astype(TYPES[dtype])


@pytest.mark.parametrize("dtype", TYPES)
@settings(max_examples=max(settings().max_examples // 10, 3))
@given(st.data())
def test_what_is_written_at_indices(device, dtype, data_):
    """Of several writers the last one stays; other elements are what they were."""
    rng = np.random.default_rng(data_.draw(st.integers(0, 1000)))
    shape = data_.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    axes = data_.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))
    many = data_.draw(st.lists(st.integers(1, 5), max_size=2))
    key = tuple([rng.integers(-n, n, many) if i in axes else slice(None) for i, n in enumerate(shape)])
    array = data(rng, shape, dtype)
    table = Tensor(array.copy(), device=device).realize()
    values = data(rng, array[key].shape, dtype)
    places = tuple([k if isinstance(k, slice) else Tensor(k.astype(np.int32), device=device) for k in key])
    table[places] = Tensor(values, device=device)
    array[key] = values
    np.testing.assert_array_equal(table.numpy(), array)
    table[places] = 1
    array[key] = 1
    np.testing.assert_array_equal(table.numpy(), array)


@settings(max_examples=max(settings().max_examples // 5, 5))
@given(st.data())
def test_what_scatter_writes(device, data_):
    """Positions outside of the table are no one's, where a device has computed them."""
    rng = np.random.default_rng(data_.draw(st.integers(0, 1000)))
    shape = data_.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    axis = data_.draw(st.integers(0, len(shape) - 1))
    many = [data_.draw(st.integers(1, 8 if i == axis else n)) for i, n in enumerate(shape)]
    table, values = (rng.standard_normal(s).astype(np.float32) for s in (shape, many))
    index = rng.integers(-2, shape[axis] + 2, many).astype(np.int32)

    def scattered(table, index):
        for place in np.ndindex(*many):
            if 0 <= index[place] < shape[axis]:
                table[*place[:axis], index[place], *place[axis + 1 :]] = values[place]
        return table

    x, i, v = (Tensor(a, device=device) for a in (table, index, values))
    i = i + 0
    expected = scattered(table.copy(), index)
    np.testing.assert_array_equal(x.scatter(axis, i, v).numpy(), expected)
    np.testing.assert_array_equal((x.scatter(axis, i, v) * 2).numpy(), expected * 2)
    twice = (x + 1).scatter(axis, i, v).scatter(axis, i - 1, v)
    np.testing.assert_array_equal(twice.numpy(), scattered(scattered(table + 1, index), index - 1))


@settings(max_examples=max(settings().max_examples // 3, 10))
@given(st.data())
def test_writes_to_lazy_values(device, data_):
    """Rows, elements, parts and masks, one after the other, before anything is computed."""
    rng = np.random.default_rng(data_.draw(st.integers(0, 1000)))
    array = rng.standard_normal((7, 5)).astype(np.float32)
    x = Tensor(array.copy(), device=device).realize()
    start = data_.draw(st.sampled_from(["clone", "zeros", "sum", "view"]))
    lazy = {
        "clone": lambda: x.clone(),
        "zeros": lambda: Tensor.zeros(7, 5, device=device).contiguous(),
        "sum": lambda: x + 1,
        "view": lambda: x.T.contiguous().T,
    }[start]()
    expected = {"zeros": np.zeros_like(array), "sum": array + 1}.get(start, array.copy())
    old = lazy * 2 if data_.draw(st.booleans()) else None
    before = expected * 2
    for _ in range(data_.draw(st.integers(1, 4))):
        value = rng.standard_normal(5).astype(np.float32)
        i, k = rng.integers(0, 7, 3).astype(np.int32), sorted(rng.integers(0, 8, 2).tolist())
        match data_.draw(st.sampled_from(["rows", "row", "part", "column", "mask", "more"])):
            case "rows":
                lazy[Tensor(i, device=device)] = Tensor(value, device=device)
                expected[i] = value
            case "row":
                lazy[int(i[0])] = Tensor(value, device=device)
                expected[i[0]] = value
            case "part":
                lazy[slice(*k), 1:4] = Tensor(value[:3], device=device)
                expected[slice(*k), 1:4] = value[:3]
            case "column":
                lazy[:, Tensor(i[:1] % 5, device=device)] = 3.0
                expected[:, i[:1] % 5] = 3.0
            case "mask":
                lazy[lazy > 0.5] = -1.0
                expected[expected > 0.5] = -1.0
            case "more":
                lazy += 0.5
                expected += 0.5
    np.testing.assert_array_equal(lazy.numpy(), expected)
    np.testing.assert_array_equal(x.numpy(), array)
    if old is not None:
        np.testing.assert_array_equal(old.numpy(), before)


def test_a_cache_that_a_captured_step_writes_to(device):
    """One row at a position that is a value; what was computed of the memory before stays what it was."""
    cache = Tensor.zeros(6, 3, device=device).contiguous().realize()

    @TinyJit
    def step(position, row):
        cache[position] = row
        return cache.sum(1)

    expected = np.zeros((6, 3), np.float32)
    for n in (4, 0, -1, 2, 4):
        before = cache.clone()
        row = np.full((1, 3), n + 10, np.float32)
        sums = step(Tensor([n], dtype=dtypes.int32, device=device), Tensor(row, device=device))
        np.testing.assert_array_equal(before.numpy(), expected)
        expected[n] = row
        np.testing.assert_array_equal(sums.numpy(), expected.sum(1))
    np.testing.assert_array_equal(cache.numpy(), expected)


def test_rows_that_are_read_and_written(device):
    """What is written is made of the memory that it is written to."""
    array = np.arange(24, dtype=np.float32).reshape(8, 3)
    table = Tensor(array.copy(), device=device).realize()
    rows, others = np.array([1, 6, 1]), np.array([6, 1, 0])
    i, j = (Tensor(a.astype(np.int32), device=device) for a in (rows, others))
    table[i] = table[j] + 100
    array[rows] = array[others] + 100
    np.testing.assert_array_equal(table.numpy(), array)
    table[i] = table[i] + 1
    array[rows] = array[rows] + 1
    np.testing.assert_array_equal(table.numpy(), array)


@pytest.mark.parametrize("dtype", TYPES)
def test_selected_values_are_written(device, dtype):
    """Where the condition does not hold, 0 is written."""
    rng = np.random.default_rng(1)
    array, values = data(rng, (8, 3), dtype), data(rng, (4, 3), dtype)
    rows, kept = np.array([1, 6, 1, 3], np.int32), np.arange(12).reshape(4, 3) % 3 != 1
    table, v, i, k = (Tensor(a.copy(), device=device).realize() for a in (array, values, rows, kept))
    table[i] = k.where(v, 0)
    array[rows] = np.where(kept, values, 0)
    np.testing.assert_array_equal(table.numpy(), array)


def test_gradients_of_what_is_written_and_kept(device):
    table, values, weights = (np.arange(n, dtype=np.float32).reshape(-1, 2) for n in (12, 8, 12))
    index = np.array([[4, 1], [0, 1], [4, 5], [3, 1]], np.int32)
    x, v = (Tensor(a, device=device, requires_grad=True) for a in (table, values))
    out = x.scatter(0, Tensor(index, device=device), v)
    grads = (out * Tensor(weights, device=device)).sum().gradient(x, v)
    kept, last = np.ones_like(table), np.zeros_like(values)
    for column in range(2):
        for row in range(6):
            writers = [i for i in range(4) if index[i, column] == row]
            if writers:
                kept[row, column], last[writers[-1], column] = 0, weights[row, column]
    np.testing.assert_array_equal(grads[0].numpy(), kept * weights)
    np.testing.assert_array_equal(grads[1].numpy(), last)
