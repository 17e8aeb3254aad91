"""What `kernel_info` says of kernels."""

from __future__ import annotations

import pytest

from polygrad import Context, Tensor, Variable
from polygrad.codegen.kernels.passes import kernels_of
from polygrad.engine.devices import Device
from polygrad.engine.normalize import normalize
from polygrad.schedule.kernel_info import KernelInfo, NestInfo, kernel_info, nest_info, rounds
from polygrad.uop.node import UOp
from tests.codegen.grid_kernels import asts_of, data


def info_of(tensor: Tensor) -> KernelInfo:
    (ast,) = asts_of(tensor)
    return kernel_info(ast)


def nest_of(tensor: Tensor) -> NestInfo:
    nest = info_of(tensor).only_nest
    assert nest is not None
    return nest


def test_a_description_is_made_once() -> None:
    info = info_of(data(8, 4) + 1)
    assert kernel_info(info.ast) is info and nest_info(info.ast.src[0]) is info.nests[0]


def test_loops_and_accesses_of_a_transpose() -> None:
    nest = nest_of(data(8, 4).T.contiguous())
    rows, columns = nest.loops
    (load,) = nest.loads
    assert [nest.write.stride(r) for r in (rows, columns)] == [8, 1]
    assert [load.stride(r) for r in (rows, columns)] == [1, 4]
    assert (nest.write.slot, load.slot, load.offset, load.condition) == (0, 1, 0, None)
    assert nest.parallel == nest.loops and not nest.is_ordered and not nest.is_in_place and not nest.sums


def test_a_padded_read_has_a_condition_and_a_slice_an_offset() -> None:
    (padded,) = nest_of(data(8).pad((1, 1)).contiguous()).loads
    (sliced,) = nest_of(data(8)[3:6] * 2).loads
    assert padded.condition is not None and padded.offset == -1
    assert sliced.condition is None and sliced.offset == 3


def test_a_matrix_product_has_rows_columns_and_factors() -> None:
    nest = nest_of(data(8, 16) @ data(16, 4))
    rows, columns = nest.loops
    total = nest.only_sum
    assert total is not None and total.terms == 16 and total.outer == {rows, columns}
    a, b = total.factors or ()
    assert (rows in a.ranges, columns in a.ranges, rows in b.ranges, columns in b.ranges) == (
        True,
        False,
        False,
        True,
    )
    pairs = [(p.rows, p.columns) for p in nest.products(4)]
    assert pairs == [(rows, columns), (columns, rows)] and not list(nest.products(5))


def test_a_table_of_distances_is_a_product_without_factors() -> None:
    nest = nest_of((data(8, 1, 16) - data(1, 4, 16)).abs().sum(2))
    assert nest.only_sum is not None and nest.only_sum.factors is None
    assert len(list(nest.products(4))) == 2


@pytest.mark.parametrize(
    "tensor", [lambda: data(8, 16).sum(1), lambda: data(8, 16) @ data(16), lambda: (data(8, 16) * 2).sum(0)]
)
def test_a_sum_that_reads_everything_once_is_no_product(tensor) -> None:
    nest = nest_of(tensor())
    assert nest.only_sum is not None and not list(nest.products(1))


def test_a_sum_of_a_variable_size_is_no_product() -> None:
    n = Variable("n", 1, 16).bind(8)
    nest = nest_of(data(8, 16)[:, :n] @ data(16, 4)[:n])
    assert nest.only_sum is not None and not list(nest.products(1))


def test_a_product_that_is_added_to_memory_in_place_is_none() -> None:
    x = data(8, 4)
    x.assign(x + data(8, 16) @ data(16, 4))
    nest = nest_of(x)
    assert nest.is_in_place and nest.only_sum is not None and not list(nest.products(1))


def test_a_scan_is_ordered() -> None:
    nest = nest_of(data(8, 16).cumsum(1))
    assert nest.is_ordered and len(nest.parallel) == 1 and len(nest.loops) == 2


def test_a_write_that_reads_its_memory_is_in_place() -> None:
    x = data(8, 4)
    x.assign(x * 2)
    assert nest_of(x).is_in_place


def test_a_kernel_with_opts_by_hand_has_no_nest_for_passes() -> None:
    (ast,) = asts_of(data(8, 16).sum(1))
    assert kernel_info(ast.replace(arg=())).only_nest is None


def test_what_passes_over_reductions_are_for() -> None:
    assert info_of(data(64, 64).sum(0)).is_sum_of(64 * 64)
    assert not info_of(data(64, 64).sum(0)).is_sum_of(64 * 64 + 1)
    assert not info_of(data(64, 64) + 1).is_sum_of(1)
    assert rounds(info_of(data(6, 7) + 1).ranges) == 42


def test_softmax_has_two_sums_in_one_nest() -> None:

    with Context(SPEC=1):
        sink = normalize(UOp.sink(data(64, 128).softmax().uop.base)).sink
        (call,) = kernels_of(sink, Device.backend("CPU").target, True).calls
    nest = kernel_info(call.ast).only_nest
    assert nest is not None and len(nest.sums) == 2 and nest.only_sum is None
