"""Producers computed inside of their readers' loops: which are, and that random attention computes what torch
does."""

from __future__ import annotations

from collections import Counter

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from polygrad import Tensor  # noqa: E402
from polygrad.codegen.opts import cost  # noqa: E402
from polygrad.codegen.opts.heuristics import choose  # noqa: E402
from polygrad.codegen.opts.opt import OptKind  # noqa: E402
from polygrad.codegen.target import Target  # noqa: E402
from polygrad.engine.normalize import normalize  # noqa: E402
from polygrad.engine.programs import clear_caches  # noqa: E402
from polygrad.uop.node import UOp  # noqa: E402
from polygrad.uop.ops import Ops  # noqa: E402
from tests.codegen.grid_kernels import arranged, decided  # noqa: E402
from tests.schedules import schedule  # noqa: E402

TARGET = Target("test", simd_bytes=64, registers=31, fma=True, threads=4, cache=(32 << 10, 1 << 20))


def empty(*shape):
    return Tensor.zeros(*shape).contiguous().realize()


def kernels(*outputs):
    plan = schedule(normalize(UOp.sink(*[t.uop.base for t in outputs])).sink, optimized=True)
    return decided("compute-at", list(plan.calls), TARGET, plan.roots)


def stages(call):
    return [n.arg.size for n in call.ast.toposort() if n.op is Ops.STAGE]


def attention(batch, length, width=64):
    q, k, v = (empty(batch, length, width) for _ in range(3))
    return q.scaled_dot_product_attention(k, v)


def test_attention_is_one_kernel_that_has_its_weights_in_blocks_of_rows():
    (call,) = kernels(attention(8, 512))
    assert stages(call) == [64 * 512, 64 * 512]  # scores and weights: an eighth of the cache each


def test_a_block_is_a_whole_head_where_that_fits():
    (call,) = kernels(attention(32, 128))
    assert stages(call) == [128 * 128, 128 * 128]


def test_what_fits_in_the_cache_goes_through_memory():
    assert len(kernels(attention(2, 64))) == 3


def test_weights_that_are_asked_for_are_stored():
    q, k, v = (empty(8, 512, 64) for _ in range(3))
    weights = (q @ k.transpose(-1, -2)).softmax(-1)
    assert len(kernels(weights, weights @ v)) > 1


def test_weights_of_a_layer_are_not_read_again_for_each_block_of_rows():
    x, a, b = empty(4096, 512), empty(512, 1024), empty(1024, 512)
    assert len(kernels((x @ a).relu() @ b)) == 2


def test_a_product_is_not_computed_element_by_element_in_another():
    pairs = [(empty(1, 64, 56, 56), empty(256, 64, 1, 1)) for _ in range(2)]
    (x, w), (y, u) = pairs
    assert len(kernels(x.conv2d(w) + y.conv2d(u))) == 2


def test_fewer_rounds_than_threads_stay_apart():
    assert len(kernels(attention(1, 512))) == 1 and len(kernels(attention(1, 520))) == 1
    assert len(kernels(attention(1, 509))) == 3  # a prime: no blocks


@pytest.mark.parametrize("width, rows", [(768, 2), (1024, 2), (2048, 1), (3000, 1)])
def test_rows_that_share_no_operand_are_few_at_a_time(width, rows):
    x = empty(1 << 10, width).requires_grad_()
    centred = x - x.mean(1, keepdim=True)
    (centred * centred.square().mean(1, keepdim=True).rsqrt()).backward(empty(1 << 10, width))
    found = [stages(call) for call in arranged(x.grad, target=TARGET)]
    assert [sizes for sizes in found if sizes] == [[rows * width]]


def test_both_products_and_the_rows_between_are_tiled():
    (call,) = kernels(attention(8, 512))
    kinds = Counter(opt.kind for opt in choose(call.ast, TARGET))
    assert kinds[OptKind.SIMD] >= 5 and kinds[OptKind.UPCAST] >= 2 and kinds[OptKind.PARALLEL] == 1


def convolution(images, channels, size, filters=32):
    """The kernels of one whose operand has to be padded."""
    x, w = empty(images, channels, size, size), empty(filters, channels, 3, 3)
    return arranged(x.conv2d(w, padding=1), target=TARGET)


def test_each_image_is_padded_before_its_convolution():
    (call,) = convolution(8, 32, 60)
    assert stages(call) == [32 * 62 * 62]


def test_each_channel_is_padded_before_its_depthwise_convolution():
    x, w = empty(8, 32, 60, 60), empty(32, 1, 3, 3)
    (call,) = arranged(x.conv2d(w, padding=1, groups=32), target=TARGET)
    assert stages(call) == [62 * 62]


@pytest.mark.parametrize(
    "sizes",
    [
        (2, 32, 60),  # fewer images than threads
        (8, 8, 32),  # the cache holds all of them
        (8, 256, 64),  # ... and not one of them
        (8, 64, 20, 256),  # weights of which each image would copy far more than itself
    ],
)
def test_other_batches_are_padded_first(sizes):
    copy, product = convolution(*sizes)
    assert not stages(copy) and not stages(product)


def test_sums_at_positions_are_computed_before_all_rounds_of_their_reader():
    """There are as many terms as rows, but the rows are not written in order."""
    x = empty(1 << 16, 4)
    index = x.cast("int32").contiguous().realize()
    calls = arranged(x.scatter_reduce(0, index, x * 2, "sum"), target=TARGET)
    assert len(calls) == 3 and not any(stages(call) for call in calls)


# --- against torch


@pytest.fixture
def small_caches(monkeypatch):
    """Kernels are joined for any size, in blocks of a few rows."""
    monkeypatch.setattr(cost, "worth_staging", lambda target: 1)
    monkeypatch.setattr(cost, "stage_bytes", lambda target: 4096)
    monkeypatch.setattr(cost, "MIN_BLOCK_ROWS", 2)
    monkeypatch.setattr(cost, "MIN_COPIED_FOR", 1)
    clear_caches()
    yield
    clear_caches()


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("device", ["CPU", "WASM"])
@given(
    st.tuples(*[st.integers(1, 4)] * 2),
    st.tuples(*[st.integers(1, 70)] * 2),
    st.sampled_from([1, 3, 8, 16, 20]),
    st.booleans(),
    st.integers(0, 2**31),
)
@settings(max_examples=40, deadline=None)
def test_random_attention(device, batch, lengths, width, causal, seed):
    rng = np.random.default_rng(seed)
    queries, keys = (lengths[0], lengths[0]) if causal else lengths
    q, k, v = (rng.standard_normal((*batch, n, width)).astype(np.float32) for n in (queries, keys, keys))
    got = [Tensor(x, device=device).realize() for x in (q, k, v)]
    got = got[0].scaled_dot_product_attention(*got[1:], is_causal=causal).numpy()
    theirs = torch.nn.functional.scaled_dot_product_attention
    expected = theirs(*map(torch.from_numpy, (q, k, v)), is_causal=causal).numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("device", ["CPU", "WASM"])
@given(st.tuples(*[st.integers(1, 12)] * 3), st.integers(5, 20), st.integers(1, 2), st.integers(0, 2**31))
@settings(max_examples=30, deadline=None)
def test_random_convolutions_of_batches(device, channels, size, stride, seed):
    rng = np.random.default_rng(seed)
    images, into, out = channels
    x = rng.standard_normal((images, into, size, size + 3)).astype(np.float32)
    w = rng.standard_normal((out, into, 3, 3)).astype(np.float32)
    got = Tensor(x, device=device).conv2d(Tensor(w, device=device), stride=stride, padding=1).numpy()
    expected = torch.nn.functional.conv2d(*map(torch.from_numpy, (x, w)), stride=stride, padding=1).numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("device", ["CPU", "WASM"])
@given(st.tuples(*[st.integers(1, 40)] * 4), st.integers(5, 9), st.integers(0, 2**31))
@settings(max_examples=30, deadline=None)
def test_random_chains_of_products(device, size, batch, seed):
    rng = np.random.default_rng(seed)
    m, k, n, p = size
    a, b, c = (rng.standard_normal((batch, *s)).astype(np.float32) for s in ((m, k), (k, n), (n, p)))
    x, y, z = (Tensor(t, device=device).realize() for t in (a, b, c))
    got = ((x @ y).relu() @ z).numpy()
    np.testing.assert_allclose(got, np.maximum(a @ b, 0) @ c, rtol=1e-4, atol=1e-4)
