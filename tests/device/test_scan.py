"""Running values: against numpy, their gradients against torch, and the same values in parts."""

from __future__ import annotations

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from polygrad import Tensor, TinyJit, Variable, dtypes  # noqa: E402
from polygrad.codegen.opts.opt import apply_opts, parse_opts  # noqa: E402
from polygrad.engine.normalize import normalize  # noqa: E402
from polygrad.errors import OptError  # noqa: E402
from polygrad.uop.node import UOp  # noqa: E402
from polygrad.uop.ops import Ops  # noqa: E402
from tests.schedules import schedule  # noqa: E402

RNG = np.random.default_rng(5)
MODELS = {
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "cummax": np.maximum.accumulate,
    "cummin": np.minimum.accumulate,
}
SHAPES = [
    ((5,), 0),
    ((1,), 0),
    ((3, 17), 1),
    ((17, 3), 0),
    ((2, 33, 20), 1),
    ((4, 1), 1),
    ((0, 3), 0),
    ((3, 0), 0),
]
SHAPES += [((5000,), 0), ((2, 4099), 1), ((4099, 2), 0), ((70, 130), 1), ((130, 70), 0)]


def near_one(*shape):
    return (1 + 0.1 * RNG.standard_normal(shape)).astype(np.float32)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_running_values(device, name, shape, axis):
    if device == "INTERP" and np.prod(shape) > 2000:
        shape = tuple(min(n, 40) for n in shape)
    x = near_one(*shape)
    out = getattr(Tensor(x, device=device), name)(axis)
    out = out[0] if isinstance(out, tuple) else out  # the values; the positions beside
    np.testing.assert_allclose(out.numpy(), MODELS[name](x, axis=axis), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.float16, dtypes.bool])
def test_dtypes(device, dtype):
    x = RNG.integers(0, 2, (3, 50))
    t = Tensor(x.tolist(), dtype=dtype, device=device)
    assert t.cumsum(1).cast(dtypes.int32).tolist() == np.cumsum(x, 1).tolist()
    assert t.cummax(1)[0].cast(dtypes.int32).tolist() == np.maximum.accumulate(x, 1).tolist()


def test_a_nan_stays(device):
    x = [1.0, float("nan"), 2.0, float("-inf")]
    assert [v != v for v in Tensor(x, device=device).cummax(0)[0].tolist()] == [False, True, True, True]
    assert [v != v for v in Tensor(x, device=device).cumsum(0).tolist()] == [False, True, True, True]


def test_what_is_before_and_after_it(device):
    """Computed values that it goes along, reductions of both, views of what it made."""
    x = near_one(6, 40)
    t = Tensor(x, device=device)
    np.testing.assert_allclose((t * 2 + 1).cumsum(1).numpy(), np.cumsum(x * 2 + 1, 1), rtol=1e-5)
    np.testing.assert_allclose(t.sum(1).cumsum(0).numpy(), np.cumsum(x.sum(1)), rtol=1e-5)
    np.testing.assert_allclose(t.softmax(1).cumsum(1)[:, -1].numpy(), np.ones(6), rtol=1e-5)
    np.testing.assert_allclose(t.cumsum(0).cumsum(1).T.numpy(), np.cumsum(np.cumsum(x, 0), 1).T, rtol=1e-5)
    np.testing.assert_allclose(t.T.flip(0).cumsum(0).numpy(), np.cumsum(x.T[::-1], 0), rtol=1e-5)
    broadcast = t[:1].expand(6, 40)
    np.testing.assert_allclose(broadcast.cumsum(1).numpy(), np.cumsum(np.repeat(x[:1], 6, 0), 1), rtol=1e-5)


def test_in_place(device):
    x = near_one(3, 9)
    t = Tensor(x, device=device).realize()
    view = t[1]
    t.assign(t.cumsum(1)).realize()
    np.testing.assert_allclose(t.numpy(), np.cumsum(x, 1), rtol=1e-5)
    np.testing.assert_allclose(view.numpy(), np.cumsum(x, 1)[1], rtol=1e-5)


def test_a_length_that_varies(device):
    n = Variable("n", 1, 50)
    x = near_one(4, 50)
    t = Tensor(x, device=device).realize()

    @TinyJit
    def step(length):
        return t[:, :length].cumsum(1).sum().realize()

    for length in (3, 50, 7, 31):
        expected = np.cumsum(x[:, :length], 1).sum()
        np.testing.assert_allclose(step(n.bind(length)).item(), expected, rtol=1e-4)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("shape", "axis"), [((7,), 0), ((3, 9), 1), ((9, 3), 0), ((2, 3, 5), 1)])
def test_gradients(device, name, shape, axis):
    x, g = near_one(*shape), RNG.standard_normal(shape).astype(np.float32)
    x.flat[2] = x.flat[6] = 0.0  # no division by what a product is made of
    t = Tensor(x, device=device, requires_grad=True)
    (first,) = (getattr(t, name)(axis) * Tensor(g, device=device)).sum().gradient(t)
    (second,) = (first * first).sum().gradient(t)
    theirs = torch.tensor(x, requires_grad=True)
    out = getattr(theirs, name)(axis)
    out = out if isinstance(out, torch.Tensor) else out[0]
    (expected,) = torch.autograd.grad((out * torch.tensor(g)).sum(), theirs, create_graph=True)
    np.testing.assert_allclose(first.numpy(), expected.detach().numpy(), rtol=1e-3, atol=1e-4)
    if name == "cumprod":
        (expected,) = torch.autograd.grad((expected * expected).sum(), theirs)
        np.testing.assert_allclose(second.numpy(), expected.numpy(), rtol=1e-2, atol=1e-3)
    else:
        assert not second.numpy().any()  # they are linear


def test_a_linear_recurrence(device):
    """y[i] = factor[i] * y[i-1] + x[i], the scan that gradients are made of."""
    x, factor, y = near_one(3, 20), near_one(3, 20), np.zeros(3, np.float32)
    expected = np.stack([y := y * factor[:, i] + x[:, i] for i in range(20)], 1)
    a, b = (Tensor(v, device=device) for v in (x, factor))
    out = a._with(a.uop.scan_axis(Ops.MULACC, 1, factor=b.uop))
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4)


# --- in parts


def kernels(out):
    return schedule(normalize(UOp.sink(out.uop.base)).sink, optimized=True).calls


def test_long_running_values_of_few_rows_go_in_parts():
    calls = kernels(Tensor.zeros(65536).contiguous().realize().cumsum(0))
    assert [call.args[0].shape for call in calls] == [(64, 1), (64,), (64, 1024)]
    assert len(kernels(Tensor.zeros(64, 65536).contiguous().realize().cumsum(1))) == 1
    assert len(kernels(Tensor.zeros(1000).contiguous().realize().cumsum(0))) == 1


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 9000), st.integers(1, 5), st.sampled_from([0, 1]), st.sampled_from(sorted(MODELS)))
def test_parts_compute_what_the_whole_does(n, rows, axis, name):
    shape = (n, rows) if axis == 0 else (rows, n)
    x = (1 + 0.001 * np.random.default_rng(n).standard_normal(shape)).astype(np.float32)
    out = getattr(Tensor(x), name)(axis)
    out = out[0] if isinstance(out, tuple) else out
    np.testing.assert_allclose(out.numpy(), MODELS[name](x.astype(np.float64), axis=axis), rtol=1e-3)


# --- its loop


@pytest.mark.parametrize(
    "opts", ["SIMD r1 4 1", "UPCAST r1 4", "PARALLEL r1 2", "SPLIT r1 4", "MERGE r0 r1", "REORDER r1 r0"]
)
def test_its_loop_goes_in_order(opts):
    (call,) = kernels(Tensor.zeros(8, 16).contiguous().realize().cumsum(1))
    with pytest.raises(OptError, match=r"SCAN|expected loops$"):
        apply_opts(call.ast, parse_opts(opts))


@pytest.mark.parametrize("opts", ["SIMD r0 4 2", "UPCAST r0 4", "PARALLEL r0 2", "UPCAST r0 3"])
def test_other_loops_are_tiled_and_divided(opts):
    x = near_one(8, 16)
    (call,) = kernels(Tensor(x).realize().cumsum(1))
    assert apply_opts(call.ast, parse_opts(opts))
    out = Tensor(x).cumsum(1).contiguous()
    np.testing.assert_allclose(out.numpy(), np.cumsum(x, 1), rtol=1e-5)


@pytest.mark.parametrize("factors", [(2.0**-40, 2.0**40), (2.0**40, 2.0**-40)])
def test_long_products_that_leave_the_range_are_numpys(device, factors):
    """What has become 0 stays 0, whatever the product of what follows is."""
    values = np.repeat(np.float32(factors), 2500)  # and none of the products is denormal
    with np.errstate(over="ignore"):
        expected = np.cumprod(values)
    x = Tensor(values, device=device, requires_grad=True)
    np.testing.assert_array_equal(x.cumprod(0).numpy(), expected)
    (gradient,) = x.cumprod(0)[:3].sum().gradient(x)
    t = torch.tensor(values[:3], requires_grad=True)
    t.cumprod(0).sum().backward()
    np.testing.assert_allclose(gradient.numpy()[:3], t.grad.numpy(), rtol=1e-6)
