"""Kernels explained: each pass as it was, and what they have to do, counted by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from polygrad import Tensor, TinyJit, Variable, nn
from polygrad.codegen.lower.passes import PASSES, kernel_name, signature
from polygrad.codegen.opts.opt import render_opts
from polygrad.engine.compile import Origin, _kernels
from polygrad.engine.explain import Work, opts_of, pass_results, work
from polygrad.engine.profile import profile
from polygrad.engine.programs import clear_caches
from polygrad.uop.node import UOp

pytestmark = pytest.mark.usefixtures("default_device")


def origins(compute: Callable[[], Tensor]) -> list[Origin]:
    """What the kernels of a function were compiled from."""
    return [launch.origin for launch in profile(TinyJit(compute), 0).launches]


def rand(*shape: int) -> Tensor:
    return Tensor.rand(*shape).realize()


def test_the_passes_end_in_the_kernel_that_ran(device: str) -> None:
    a, b = rand(12, 20), rand(20, 16)
    (origin,) = origins(lambda: (a @ b).relu())
    results = pass_results(origin)
    passes, opts = [p.name for p in PASSES], render_opts(opts_of(origin))
    assert [r.name for r in results if r.name in passes] == passes
    assert ", ".join(r.name for r in results if r.name not in passes) == opts
    assert bool(opts) == (device != "INTERP")
    linear = results[-1].code
    assert isinstance(linear, list)
    assert kernel_name(linear, signature(linear)) == origin.kernel.name


def test_a_pass_is_marked_as_changed_exactly_when_its_graph_differs(device: str) -> None:
    a, b = rand(12, 20), rand(20, 16)
    (origin,) = origins(lambda: (a @ b).relu())
    before: object = origin.ast
    for result in pass_results(origin):
        assert result.changed == (result.code is not before)
        before = result.code
    changed = [r.changed for r in pass_results(origin)]
    assert 3 <= sum(changed) < len(changed)


@pytest.mark.usefixtures("cold_cache")
def test_a_searched_kernel_is_lowered_by_its_opts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEAM", "1")
    _kernels.clear()
    clear_caches()
    a, b = rand(37, 41), rand(41, 29)
    for origin in origins(lambda: a @ b):
        linear = pass_results(origin)[-1].code
        assert isinstance(linear, list)
        assert kernel_name(linear, signature(linear)) == origin.kernel.name


def test_a_matrix_product_is_two_operations_for_each_element_of_each_sum() -> None:
    a, b = rand(12, 20), rand(20, 16)
    (origin,) = origins(lambda: a @ b)
    assert work(origin) == Work(2 * 12 * 20 * 16, 4 * (12 * 20 + 20 * 16 + 12 * 16))


def test_an_elementwise_kernel_counts_each_operation_once_for_each_element() -> None:
    a, b = rand(30, 50), rand(50)
    (origin,) = origins(lambda: (a + b) * a)
    assert work(origin) == Work(2 * 30 * 50, 4 * (30 * 50 + 50 + 30 * 50))


def test_a_convolution_reads_its_input_once_however_often_it_is_used() -> None:
    image, weight = rand(1, 8, 32, 32), rand(16, 8, 3, 3)
    (origin,) = origins(lambda: image.conv2d(weight))
    assert work(origin) == Work(2 * 16 * 30 * 30 * 72, 4 * (8 * 32 * 32 + 16 * 72 + 16 * 30 * 30))


def test_what_is_read_of_a_large_buffer_counts_and_not_the_buffer() -> None:
    a = rand(1000, 8)
    (origin,) = origins(lambda: a[:10] * 2.0)
    assert work(origin) == Work(80, 4 * 160)


def test_memory_of_a_kernel_s_own_is_no_buffer() -> None:
    a = rand(64, 1000)
    (origin,) = origins(lambda: a.softmax(1))
    assert work(origin).nbytes == 4 * 2 * 64 * 1000


def test_an_embedding_is_no_product_with_one_hot_rows() -> None:
    table, rows = rand(100, 8), Tensor([1, 5, 7]).realize()
    layer = nn.Embedding(100, 8)
    layer.weight = table
    (origin,) = origins(lambda: layer(rows))
    assert work(origin).flops == 0


def test_integers_are_no_floating_point_operations() -> None:
    a = Tensor([1, 2, 3, 4]).realize()
    (origin,) = origins(lambda: a * a + 1)
    assert work(origin) == Work(0, 4 * 8)


def test_variables_count_with_their_largest_value() -> None:
    a = rand(64, 4)
    n = Variable("n", 1, 64)
    (origin,) = origins(lambda: (a[: n.bind(10)] * 2.0).sum())
    assert work(origin).flops >= 2 * 64 * 4
    assert isinstance(origin.ast, UOp)
