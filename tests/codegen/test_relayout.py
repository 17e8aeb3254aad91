"""Copies of a product's operands, and sums in polyphase form: what they make of kernels, and that random
convolutions, their gradients and products compute the numbers of torch."""

from __future__ import annotations

from dataclasses import replace

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from polygrad import Tensor  # noqa: E402
from polygrad.codegen.target import Target  # noqa: E402
from polygrad.engine.normalize import normalize  # noqa: E402
from polygrad.schedule.kernel_info import kernel_info, rounds  # noqa: E402
from polygrad.uop.node import UOp  # noqa: E402
from polygrad.uop.ops import Ops  # noqa: E402
from tests.codegen.grid_kernels import decided  # noqa: E402
from tests.schedules import schedule  # noqa: E402

TARGET = Target("test", simd_bytes=64, registers=31, fma=True)


def scheduled(*outputs):
    return list(schedule(normalize(UOp.sink(*[t.uop.base for t in outputs])).sink, optimized=True).calls)


def relayout(calls):
    return decided("relayout", calls, TARGET)


def kernels(*outputs):
    return relayout(decided("polyphase", scheduled(*outputs), TARGET))


def empty(*shape):
    return Tensor.zeros(*shape).contiguous().realize()


def guards(call):
    """Loads under conditions."""
    return [n for n in call.ast.toposort() if n.op is Ops.LOAD and len(n.src) > 1]


def sizes(call):
    return sorted(n.src[0].arg for n in call.ast.toposort() if n.op is Ops.RANGE)


def test_padding_is_looked_at_once_for_each_element():
    copy, product = kernels(empty(1, 32, 28, 28).conv2d(empty(32, 32, 3, 3), padding=1))
    assert guards(copy) and not guards(product)
    assert copy.args[0].arg.size == 32 * 30 * 30  # the windows overlap: each element is there once


def test_one_copy_serves_all_that_read_it():
    x, a, b = empty(1, 32, 28, 28), empty(32, 32, 3, 3), empty(32, 32, 3, 3)
    made = kernels(x.conv2d(a, padding=1), x.conv2d(b, padding=1))
    assert len(made) == 3 and sum(bool(guards(call)) for call in made) == 1


def test_a_copy_is_made_anew_after_what_it_copies_was_written():
    product = scheduled(empty(1, 32, 28, 28).conv2d(empty(32, 32, 3, 3), padding=1))
    writer = replace(*scheduled(empty(1, 32, 28, 28) + 1), args=(product[0].args[1], product[0].args[1]))
    assert len(relayout([*product, *product])) == 3
    assert len(relayout([*product, writer, *product])) == 5


def test_arguments_that_the_algebra_needs_no_more_keep_their_places():
    (product,) = scheduled(empty(1, 32, 28, 28).conv2d(empty(32, 32, 3, 3), padding=1))
    unused = empty(1).uop.buffer
    copy, made = relayout([replace(product, args=(*product.args, unused))])
    assert made.args == (product.args[0], product.args[2], copy.args[0])


def test_a_left_operand_that_is_summed_over_its_rows_is_transposed():
    a, b = empty(1024, 1024), empty(1024, 1024)
    assert [len(kernels(x)) for x in (a @ b, a.T @ b, a @ b.T)] == [1, 2, 1]


def test_a_product_of_transposes_goes_along_rows_where_columns_of_the_output_evict_each_other():
    def count(m, k, n):
        return len(kernels(empty(k, m).T @ empty(n, k).T))

    assert [count(512, 512, 512), count(512, 1024, 512), count(512, 512, 500)] == [2, 1, 1]


def test_small_products_are_left_alone():
    assert len(kernels(empty(1, 2, 8, 8).conv2d(empty(2, 2, 3, 3), padding=1))) == 1


def test_a_transposed_convolution_reads_no_zeros_between_the_elements():
    *_, product = kernels(empty(1, 32, 14, 14).conv_transpose2d(empty(32, 32, 4, 4), stride=2, padding=1))
    assert sizes(product) == [2, 2, 2, 2, 14, 14, 32, 32]  # both phases and both taps of each axis
    assert not guards(product)


def test_taps_that_do_not_divide_are_filled_up_with_zeros():
    *_, weights, product = kernels(
        empty(1, 32, 14, 14).conv_transpose2d(empty(32, 32, 3, 3), stride=2, padding=1, output_padding=1)
    )
    assert sizes(product) == [2, 2, 2, 2, 14, 14, 32, 32]
    assert guards(weights) and not guards(product)


def strided_gradient(taps):
    x = empty(2, 32, 28, 28)
    return gradient_of(x.conv2d(empty(64, 32, taps, taps), stride=2, padding=1), x)


@pytest.mark.parametrize(
    "taps, phases", [(3, {(1, 1), (1, 2), (2, 1), (2, 2)}), (5, {(2, 2), (2, 3), (3, 2), (3, 3)})]
)
def test_phases_of_a_large_product_have_kernels_and_their_own_taps(taps, phases):
    made = kernels(strided_gradient(taps))
    products = [call for call in made if kernel_info(call.ast).has(Ops.REDUCE)]
    found = [sorted(r.src[0].arg for r in only_sum(call).loops if 1 < r.src[0].arg < 4) for call in products]
    assert sorted(found) == sorted(sorted(n for n in p if n > 1) for p in phases)
    assert not any(guards(call) for call in products)


def test_phases_with_as_many_taps_each_are_one_kernel():
    made = kernels(strided_gradient(4))
    assert sum(kernel_info(call.ast).has(Ops.REDUCE) for call in made) == 1


def only_sum(call):
    return kernel_info(call.ast).nests[0].only_sum


def gradient_of(y, x):
    return y.gradient(x, gradient=empty(*y.shape))[0]


@pytest.mark.parametrize("pooled", [lambda x: x.avg_pool2d((3, 3), 2), lambda x: x.max_pool2d((3, 3), 2)])
def test_the_gradient_of_a_pooling_with_a_stride_skips_no_terms(pooled):
    x = empty(8, 32, 28, 28)
    last = kernels(gradient_of(pooled(x), x))[-1]
    assert sizes(last) == [2, 2, 2, 2, 8, 14, 14, 32]
    assert all(n.op is not Ops.MOD or n.src[0].ranges <= phases(last) for n in last.ast.toposort())


def phases(call):
    (end,) = call.ast.src
    return {r for r in end.src[1:] if r.src[0].arg == 2}


@pytest.mark.parametrize(
    ("width", "period", "expected"), [(28, 2, {28}), (27, 2, {1, 26}), (28, 3, {1, 27}), (29, 3, {2, 27})]
)
def test_what_a_period_leaves_of_an_axis_is_a_kernel_of_its_own(width, period, expected):
    x = empty(64, 32, 280, width)
    calls = kernels(gradient_of(x.avg_pool2d((1, 4), (1, period)), x))
    stored = [call for call in calls if call.args[0] is calls[-1].args[0]]
    elements = [rounds(call.ast.src[0].src[1:]) for call in stored]
    assert {n // (64 * 32 * 280) for n in elements} == expected


# --- against torch

DEVICES = ["CPU", "WASM"]


@st.composite
def convolutions(draw):
    dims = draw(st.integers(1, 2))
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    kernel = [draw(st.integers(1, 4)) for _ in range(dims)]
    return {
        "input": (draw(st.integers(1, 2)), groups * draw(st.integers(1, 3)),
                  *[draw(st.integers(6, 11)) for _ in range(dims)]),
        "out": groups * draw(st.sampled_from([1, 2, 5, 17])),
        "kernel": tuple(kernel),
        "groups": groups,
        "stride": draw(st.integers(1, 3)),
        "padding": draw(st.integers(0, min(kernel) - 1)),
        "dilation": draw(st.integers(1, 2)) if max(kernel) < 4 else 1,
        "transposed": draw(st.booleans()),
    }  # fmt: skip


@pytest.mark.usefixtures("eager_copies")
@pytest.mark.parametrize("device", DEVICES)
@given(convolutions(), st.integers(0, 2**31))
@settings(max_examples=settings().max_examples // 3)
def test_random_convolutions_and_their_gradients(device, case, seed):
    rng = np.random.default_rng(seed)
    dims, groups, channels = len(case["kernel"]), case["groups"], case["input"][1]
    inputs = rng.standard_normal(case["input"]).astype(np.float32)
    options = {k: case[k] for k in ("stride", "padding", "dilation", "groups")}
    if case["transposed"]:
        shape = (channels, case["out"] // groups, *case["kernel"])
        theirs = [torch.nn.functional.conv_transpose1d, torch.nn.functional.conv_transpose2d][dims - 1]
    else:
        shape = (case["out"], channels // groups, *case["kernel"])
        theirs = [torch.nn.functional.conv1d, torch.nn.functional.conv2d][dims - 1]
    weights = rng.standard_normal(shape).astype(np.float32)
    tx, tw = torch.from_numpy(inputs).requires_grad_(), torch.from_numpy(weights).requires_grad_()
    expected = theirs(tx, tw, **options)
    grad = rng.standard_normal(expected.shape).astype(np.float32)
    expected.backward(torch.from_numpy(grad))
    x, w = Tensor(inputs, device=device), Tensor(weights, device=device)
    x.requires_grad = w.requires_grad = True
    y = (x.conv_transpose2d if case["transposed"] else x.conv2d)(w, **options)
    dx, dw = y.gradient(x, w, gradient=Tensor(grad, device=device))
    for got, wanted in ((y, expected.detach()), (dx, tx.grad), (dw, tw.grad)):
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("eager_copies")
@pytest.mark.parametrize("device", DEVICES)
@given(
    st.tuples(st.integers(5, 12), st.integers(5, 12)),
    st.integers(1, 4),
    st.integers(1, 3),
    st.booleans(),
    st.integers(0, 2**31),
)
@settings(max_examples=20, deadline=None)
def test_random_poolings_and_their_gradients(device, size, kernel, stride, largest, seed):
    rng = np.random.default_rng(seed)
    inputs = rng.standard_normal((2, 3, *size)).astype(np.float32)
    pool = torch.nn.functional.max_pool2d if largest else torch.nn.functional.avg_pool2d
    tx = torch.from_numpy(inputs).requires_grad_()
    expected = pool(tx, kernel, stride)
    grad = rng.standard_normal(expected.shape).astype(np.float32)
    expected.backward(torch.from_numpy(grad))
    x = Tensor(inputs, device=device, requires_grad=True)
    y = (x.max_pool2d if largest else x.avg_pool2d)((kernel, kernel), stride)
    (dx,) = y.gradient(x, gradient=Tensor(grad, device=device))
    for got, wanted in ((y, expected.detach()), (dx, tx.grad)):
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("eager_copies")
@pytest.mark.parametrize("device", DEVICES)
@given(
    st.tuples(*[st.integers(1, 40)] * 3),
    st.booleans(),
    st.booleans(),
    st.integers(0, 3),
    st.integers(0, 2**31),
)
@settings(max_examples=40, deadline=None)
def test_random_products(device, size, left, right, padding, seed):
    rng = np.random.default_rng(seed)
    m, n, k = size
    a, b = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)
    x = Tensor(np.ascontiguousarray(a.T) if left else a, device=device).realize()
    y = Tensor(np.ascontiguousarray(b.T) if right else b, device=device).realize()
    x, y = x.T if left else x, y.T if right else y
    p = ((0, 0), (padding, padding))
    got = x.pad(p) @ y.pad(p[::-1])
    np.testing.assert_allclose(got.numpy(), a @ b, rtol=1e-4, atol=1e-4)


# --- reductions that are no products


POOLINGS = {
    "max": lambda x: x.max_pool2d((3, 3), 1, padding=1),
    "average": lambda x: x.avg_pool2d((3, 3), 1, padding=1),
    "stride": lambda x: x.max_pool2d((3, 3), 2, padding=1),
    "wide": lambda x: x.max_pool2d((5, 5), 1, padding=2),
    "dilation": lambda x: x.max_pool2d((3, 3), 1, 2, padding=1),
    "a side": lambda x: x.max_pool2d((3, 3), 1, padding=(1, 0, 0, 1)),
}


@pytest.mark.parametrize("name", POOLINGS)
def test_the_padding_of_a_pooling_is_copied(name):
    x = empty(4, 32, 58, 58)
    copy, pooling = kernels(POOLINGS[name](x))
    assert guards(copy) and not guards(pooling)


@pytest.mark.parametrize(
    "make",
    [
        lambda: empty(4, 32, 58, 58).max_pool2d((3, 3), 1),  # nothing is padded
        lambda: empty(4, 32, 58, 58).avg_pool2d((2, 2), 2, padding=1),  # each element is read once
        lambda: empty(1, 2, 32, 32).max_pool2d((3, 3), 1, padding=1),  # few elements
        lambda: (empty(512, 512) > 0).where(empty(512, 512), 0.0).sum(1),
    ],
)
def test_other_reductions_read_memory(make):
    assert len(kernels(make())) == 1


@pytest.mark.parametrize("dtype", ["float32", "int32", "float16"])
def test_padded_poolings_have_the_values_of_torch(dtype):
    x = (np.random.default_rng(3).standard_normal((2, 8, 61, 67)) * 50).astype(dtype)
    ours, theirs = Tensor(x), torch.tensor(x.astype(np.float32))
    paddings = ({"padding": 1}, {"padding": 1, "stride": 1}, {"padding": 1, "stride": 2, "dilation": 2})
    for kwargs in paddings:
        got = ours.max_pool2d((3, 3), **kwargs).numpy()
        want = torch.nn.functional.max_pool2d(theirs, 3, **kwargs).numpy()
        np.testing.assert_array_equal(got.astype(np.float32), want)
    if dtype == "float32":
        got = ours.avg_pool2d((5, 5), 1, padding=2).numpy()
        want = torch.nn.functional.avg_pool2d(theirs, 5, 1, 2).numpy()
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)
