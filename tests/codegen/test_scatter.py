"""Reductions over one-hots turned into additions to the elements that they pick: which are, and that they
compute what numpy and torch do."""

from __future__ import annotations

from dataclasses import replace

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from polygrad import Tensor, dtypes  # noqa: E402
from polygrad.codegen.opts import cost  # noqa: E402
from polygrad.codegen.target import Target, Workgroups  # noqa: E402
from polygrad.uop.args import AxisKind  # noqa: E402
from tests.codegen.grid_kernels import decided  # noqa: E402
from tests.codegen.test_relayout import empty, scheduled  # noqa: E402

CPU = Target("CPU", simd_bytes=32)
GPU = Target("GPU", simd_bytes=16, index_bits=32, workgroups=Workgroups())
ROWS, COLUMNS, TERMS = 50, 24, 100


def carried_out(calls, target):
    return decided("scatter", calls, target)


def integers(*shape):
    return empty(*shape).cast(dtypes.int32).contiguous().realize()


def data(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def indices(*shape, size=ROWS, seed=1):
    return np.random.default_rng(seed).integers(0, size, shape).astype(np.int32)


def gradient_of(table, index, g):
    table.requires_grad = True
    return table[index].gradient(table, gradient=g)[0]


# --- what becomes of kernels


def test_the_gradient_of_rows_fills_and_adds():
    fill, add = carried_out(scheduled(gradient_of(empty(ROWS, 8), integers(TERMS), empty(TERMS, 8))), CPU)
    assert fill.args[0] is add.args[0] and len(fill.args) == 1


def test_what_is_done_to_the_result_reads_it():
    fill, add, rest = carried_out(
        scheduled(gradient_of(empty(ROWS, 8), integers(TERMS), empty(TERMS, 8)) * 2 + 1), CPU
    )
    assert fill.args[0] is add.args[0] is rest.args[-1]
    assert rest.args[0] is not fill.args[0]


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_with_positions_of_their_own_are_the_outer_loop_and_columns_the_inner(axis):
    table = empty(ROWS, COLUMNS)
    index = integers(TERMS, COLUMNS) if axis == 0 else integers(ROWS, TERMS)
    table.requires_grad = True
    (gradient,) = table.gather(axis, index).gradient(table, gradient=empty(*index.shape))
    _, add = carried_out(scheduled(gradient), CPU)
    loops = [(r.arg.kind, r.src[0].arg) for r in add.ast.src[0].src[1:]]
    in_order = (AxisKind.SCAN, TERMS)
    assert loops == ([in_order, (AxisKind.LOOP, COLUMNS)] if axis == 0 else [(AxisKind.LOOP, ROWS), in_order])


@pytest.mark.parametrize(
    "out",
    [
        pytest.param(lambda: empty(ROWS, 8)[integers(TERMS)], id="a gather"),
        pytest.param(lambda: gradient_of(empty(4, 8), integers(TERMS), empty(TERMS, 8)), id="few rows"),
        pytest.param(lambda: gradient_of(empty(ROWS, 8), integers(3), empty(3, 8)), id="few terms"),
        pytest.param(lambda: (integers(TERMS, 1) < integers(ROWS)).sum(0), id="no equality"),
        pytest.param(lambda: empty(TERMS, ROWS).sum(0), id="a sum"),
    ],
)
def test_others_stay_as_they_are(out):
    calls = scheduled(out())
    assert carried_out(calls, CPU) == calls


def test_a_gpu_compares_unless_elements_are_very_many():
    def rows(n):
        return scheduled(gradient_of(empty(n, 8), integers(TERMS), empty(TERMS, 8)))

    few, many = rows(ROWS), rows(cost.MAX_COMPARED // 8 + 1)
    assert carried_out(few, GPU) == few
    assert len(carried_out(few, replace(GPU, workgroups=Workgroups(software=True)))) == 2
    assert len(carried_out(many, GPU)) == 2


# --- numbers


def test_rows(device):
    index, g = indices(TERMS), data(TERMS, COLUMNS)
    expected = np.zeros((ROWS, COLUMNS), np.float32)
    np.add.at(expected, index, g)
    table = Tensor.zeros(ROWS, COLUMNS, device=device).contiguous().realize()
    for shift in (0, -ROWS):  # negative ones count from the end
        out = gradient_of(table, Tensor(index + shift, device=device), Tensor(g, device=device))
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose((out * 3 - 1).numpy(), expected * 3 - 1, rtol=1e-4, atol=1e-4)


def test_all_terms_of_one_row_are_added_in_order(device):
    """1e8 + 1 - 1e8 + 1 is 1 in this order, and 2 or 0 in others."""
    g = np.zeros((TERMS, 1), np.float32)
    g[:4, 0] = (1e8, 1, -1e8, 1)
    table = Tensor.zeros(ROWS, 1, device=device).contiguous().realize()
    out = gradient_of(table, Tensor(np.full(TERMS, 7, np.int32), device=device), Tensor(g, device=device))
    if device != "INTERP":  # which sums one-hots
        assert out.tolist()[7] == [1.0]


def test_elements_of_rows_and_columns(device):
    rows, columns, g = indices(TERMS), indices(TERMS, size=COLUMNS, seed=2), data(TERMS)
    expected = np.zeros((ROWS, COLUMNS), np.float32)
    np.add.at(expected, (rows, columns), g)
    table = Tensor.zeros(ROWS, COLUMNS, device=device, requires_grad=True)
    out = table[Tensor(rows, device=device), Tensor(columns, device=device)]
    (got,) = out.gradient(table, gradient=Tensor(g, device=device))
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "amin", "mean"])
def test_scatter_reduce(device, reduce):
    table, index, values = data(ROWS, COLUMNS), indices(TERMS, COLUMNS), data(TERMS, COLUMNS, seed=3)
    expected = torch.tensor(table).scatter_reduce(
        0, torch.tensor(index.astype(np.int64)), torch.tensor(values), reduce
    )
    on_device = [Tensor(a, device=device) for a in (table, index, values)]
    out = on_device[0].scatter_reduce(0, on_device[1], on_device[2], reduce)
    np.testing.assert_allclose(out.numpy(), expected.numpy(), rtol=1e-4, atol=1e-4)


def test_a_histogram(device):
    index = indices(7, TERMS)
    hits = Tensor(index, device=device).reshape(-1, 1) == Tensor.arange(ROWS, device=device)
    assert hits.sum(0).tolist() == np.bincount(index.ravel(), minlength=ROWS).tolist()


def test_an_index_beyond_the_rows_is_for_none(device):
    index = np.array([3, ROWS, ROWS + 9, -1, 3] * 10, np.int32)
    hits = Tensor(index, device=device).reshape(-1, 1) == Tensor.arange(ROWS, device=device)
    expected = np.zeros(ROWS, int)
    expected[3] = 20
    assert hits.sum(0).tolist() == expected.tolist()


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_random_gathers(data_):
    shape = tuple(data_.draw(st.lists(st.integers(1, 20), min_size=1, max_size=3)))
    axis = data_.draw(st.integers(0, len(shape) - 1))
    length = data_.draw(st.integers(1, 60))
    of = (*shape[:axis], length, *shape[axis + 1 :])
    index, g = indices(*of, size=shape[axis], seed=length), data(*of)
    theirs = torch.zeros(shape, requires_grad=True)
    theirs.gather(axis, torch.tensor(index.astype(np.int64))).backward(torch.tensor(g))
    table = Tensor.zeros(*shape, requires_grad=True)
    (out,) = table.gather(axis, Tensor(index)).gradient(table, gradient=Tensor(g))
    np.testing.assert_allclose(out.numpy(), theirs.grad.numpy(), rtol=1e-4, atol=1e-4)
