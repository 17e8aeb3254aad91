"""Kernels of the GPU code generator, run on the CPU in both languages, every access checked (device.py)."""

from __future__ import annotations

import itertools
import shutil
from dataclasses import replace

import bench_package  # noqa: F401
import numpy as np
import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from bench.traffic import traffic_of
from polygrad import Device, Tensor, TinyJit
from polygrad.codegen.lower.passes import UNOPTIMIZED, LoweringContext, lower, run_passes
from polygrad.codegen.opts import cost
from polygrad.codegen.opts.heuristics import choose
from polygrad.codegen.opts.opt import apply, render_opts
from polygrad.codegen.opts.search_space import actions
from polygrad.engine.normalize import normalize
from polygrad.engine.programs import clear_caches
from polygrad.engine.stats import stats
from polygrad.errors import OptError
from polygrad.tensor.variable import Variable
from polygrad.uop.node import UOp
from tests.codegen.grid_kernels import kernel_of
from tests.gpu_emulation.device import checked, target_of
from tests.schedules import schedule

DEVICES = ["EMULATED_CUDA", "EMULATED_MSL"]
both = pytest.mark.parametrize("device", DEVICES)
rng = np.random.default_rng(0)


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def close(got, want, tolerance=1e-5):
    """Within a tolerance that is relative to the greatest element."""
    want = np.asarray(want, np.float64)
    scale = max(float(np.abs(want).max(initial=0.0)), 1e-30)
    assert got.shape == want.shape
    assert np.abs(got.numpy().astype(np.float64) - want).max(initial=0.0) <= tolerance * scale


@pytest.fixture
def check(device):
    with checked(Device[device]):
        yield


pytestmark = [
    pytest.mark.usefixtures("check"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++"),
]

# --- products


@both
@pytest.mark.parametrize(
    ("m", "k", "n"),
    [
        (64, 64, 64),  # tiles divide
        (100, 70, 90),  # none does
        (33, 37, 35),
        (8, 8, 8),  # a tile of one invocation's elements
        (9, 300, 11),
        (16, 1024, 16),  # the sums in four parts
        (17, 516, 19),
        (256, 40, 128),
        (3, 50, 200),  # too narrow for a tile
    ],
)
def test_products_within_1e_5(device, m, k, n):
    a, b = normal(m, k), normal(k, n)
    close(Tensor(a, device=device) @ Tensor(b, device=device), a.astype(np.float64) @ b)


@both
def test_products_of_batches_with_an_epilogue_within_1e_5(device):
    a, b, c = normal(3, 40, 36), normal(3, 36, 44), normal(44)
    got = (Tensor(a, device=device) @ Tensor(b, device=device) + Tensor(c, device=device)).relu()
    close(got, np.maximum(a.astype(np.float64) @ b + c, 0))


@both
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [("float16", 2e-3), ("bfloat16", 1e-2), ("int32", 0), ("int64", 0), ("float32", 1e-5)],
)
def test_products_of_dtypes(device, dtype, tolerance):
    a, b = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((36, 40), (40, 44)))
    x, y = (Tensor(v, device=device).cast(dtype) for v in (a, b))
    close((x @ y).cast("float32"), a @ b.astype(np.float64), tolerance)


@both
def test_a_product_and_its_gradients_within_1e_4(device):
    a, b = normal(40, 33), normal(33, 48)
    x, y = (Tensor(v, device=device, requires_grad=True) for v in (a, b))
    ((x @ y).tanh() ** 2).sum().backward()
    ta, tb = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (a, b))
    ((ta @ tb).tanh() ** 2).sum().backward()
    close(x.grad, ta.grad, 1e-4)
    close(y.grad, tb.grad, 1e-4)


@both
@pytest.mark.parametrize(
    "case",
    [{"padding": 1}, {"stride": 2}, {"padding": 2, "dilation": 2}, {"groups": 2, "padding": 1}],
)
def test_convolutions_and_their_gradients_within_1e_4(device, case):
    x, w = normal(2, 8, 11, 13), normal(16, 8 // case.get("groups", 1), 3, 3)
    got = [Tensor(v, device=device, requires_grad=True) for v in (x, w)]
    want = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (x, w)]
    y, z = got[0].conv2d(got[1], **case), torch.conv2d(*want, **case)
    close(y, z.detach())
    y.square().sum().backward()
    z.square().sum().backward()
    for g, t in zip(got, want, strict=True):
        close(g.grad, t.grad, 1e-4)


@both
@pytest.mark.parametrize(
    ("dtype", "number", "nearest"),
    [("float16", "0x1.0020000001000p+0", "0x1.004p+0"), ("bfloat16", "0x1.0100000400000p+0", "0x1.02p+0")],
)
def test_a_constant_is_rounded_once(device, dtype, number, nearest):
    """As a float32 it would be half way between two, and go to the even one."""
    zeros = Tensor(np.zeros(3, np.float32), device=device).cast(dtype)
    got = (zeros + Tensor(float.fromhex(number), dtype=dtype, device=device)).cast("float32")
    assert got.tolist() == [float.fromhex(nearest)] * 3


# --- reductions


@both
@pytest.mark.parametrize("shape", [(40, 512), (7, 1000), (129, 33), (1, 5000), (512, 3), (4100, 33)])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_reductions_within_1e_5(device, shape, axis):
    x = normal(*shape)
    close(Tensor(x, device=device).sum(axis), x.astype(np.float64).sum(axis))
    close(Tensor(x, device=device).max(axis), x.max(axis))


@both
@pytest.mark.parametrize("dtype", ["int32", "int64", "bool", "float16"])
def test_reductions_of_dtypes(device, dtype):
    x = rng.integers(0, 3, (9, 200)).astype(dtype)
    t = Tensor(x, device=device)
    close(t.max(1).cast("float32"), x.max(1))
    close(t.cast("float32").sum(1), x.astype(np.float64).sum(1))


@both
@pytest.mark.parametrize("shape", [(40, 100), (3, 1024), (200, 32), (2, 5, 64)])
def test_softmax_and_layernorm_within_1e_5(device, shape):
    x = normal(*shape)
    t = torch.tensor(x, dtype=torch.float64)
    close(Tensor(x, device=device).softmax(-1), t.softmax(-1))
    close(Tensor(x, device=device).layernorm(), torch.nn.functional.layer_norm(t, shape[-1:]))


@both
def test_attention_and_its_gradients_within_1e_4(device):
    q, k, v = (normal(2, 3, 24, 16) for _ in range(3))
    got = [Tensor(a, device=device, requires_grad=True) for a in (q, k, v)]
    want = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in (q, k, v)]
    y = got[0].scaled_dot_product_attention(got[1], got[2], is_causal=True)
    z = torch.nn.functional.scaled_dot_product_attention(*want, is_causal=True)
    close(y, z.detach())
    y.square().sum().backward()
    z.square().sum().backward()
    for g, t in zip(got, want, strict=True):
        close(g.grad, t.grad, 1e-4)


# --- elementwise, movement, writes


@both
@pytest.mark.parametrize("n", [1, 3, 4, 255, 256, 257, 4096, 4099])
def test_flat_grids(device, n):
    x, y = normal(n), normal(n)
    close(Tensor(x, device=device) * 2 + Tensor(y, device=device), x.astype(np.float64) * 2 + y)


@both
def test_movement_of_five_axes(device):
    x = normal(2, 3, 4, 5, 6)
    close(Tensor(x, device=device).permute(4, 1, 3, 0, 2).contiguous() + 1, x.transpose(4, 1, 3, 0, 2) + 1.0)
    close(Tensor(x, device=device).pad(((0, 1), (1, 0), (0, 0), (2, 2), (0, 3))).flip(1).contiguous(),
          np.flip(np.pad(x, ((0, 1), (1, 0), (0, 0), (2, 2), (0, 3))), 1))  # fmt: skip


@both
@pytest.mark.parametrize("n", [12, 256, 1001, 1009])
def test_in_place(device, n):
    x = normal(n)
    t = Tensor(x, device=device).realize()
    t.assign(t * 2 + 1)
    close(t, x.astype(np.float64) * 2 + 1)


@both
def test_the_gradient_of_a_gather_adds_in_order(device):
    w, rows = normal(70, 24), rng.integers(0, 70, 300).astype(np.int32)
    x = Tensor(w, device=device, requires_grad=True)
    (x[Tensor(rows, device=device)] ** 2).sum().backward()
    want = np.zeros_like(w, np.float64)
    np.add.at(want, rows, 2.0 * w[rows])
    close(x.grad, want)


@both
def test_running_sums_within_1e_5(device):
    x = normal(30, 50)
    for axis in (0, 1):
        close(Tensor(x, device=device).cumsum(axis), x.astype(np.float64).cumsum(axis))


@both
@pytest.mark.parametrize("bound", [1, 5, 8, 63, 64, 100])
def test_sizes_that_variables_bound(device, bound):
    x = normal(100, 24)
    part = Tensor(x, device=device).shrink(((0, Variable("n", 1, 100).bind(bound)), None))
    close(part.sum(0), x[:bound].astype(np.float64).sum(0))
    close((part.exp().sum()), np.exp(x[:bound].astype(np.float64)).sum())


@both
def test_a_captured_step_descends(device):
    x, y = normal(64, 20), normal(64, 1)
    w = Tensor(normal(20, 32) * 0.1, device=device).realize()
    v = Tensor(normal(32, 1) * 0.1, device=device).realize()

    def step(x, y):
        loss = ((x @ w).relu() @ v - y).square().mean()
        for p, g in zip((w, v), loss.gradient(w, v), strict=True):
            p.assign(p - 0.05 * g)
        return loss.realize()

    captured = TinyJit(step)
    losses = [captured(Tensor(x, device=device), Tensor(y, device=device)).item() for _ in range(8)]
    assert all(b < a for a, b in itertools.pairwise(losses))


# --- random kernels: whatever the shape, no race, nothing out of bounds, nothing undefined

sizes = st.integers(1, 70)


@settings(max_examples=12)
@given(m=sizes, k=sizes, n=sizes, seed=st.integers(0, 9))
@pytest.mark.parametrize("device", DEVICES[:1])
def test_random_products(device, m, k, n, seed):
    values = np.random.default_rng(seed)
    a, b = (values.integers(-4, 5, s).astype(np.float32) for s in ((m, k), (k, n)))
    got = (Tensor(a, device=device) @ Tensor(b, device=device)).numpy()
    assert (got == a @ b).all()


@settings(max_examples=12)
@given(shape=st.lists(st.integers(1, 40), min_size=1, max_size=4), data=st.data())
@pytest.mark.parametrize("device", DEVICES[:1])
def test_random_reductions(device, shape, data):
    x = np.random.default_rng(1).integers(-4, 5, shape).astype(np.int32)
    axes = tuple(data.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1)))
    order = data.draw(st.permutations(range(len(shape))))
    t = Tensor(x, device=device).permute(*order)
    assert (t.sum(axes).numpy() == x.transpose(order).sum(axes)).all()
    assert (
        (t - t.max(axes, keepdim=True)).numpy()
        == x.transpose(order) - x.transpose(order).max(axes, keepdims=True)
    ).all()


def expressions(device):
    values = np.random.default_rng(2)
    a, b = (values.integers(-4, 5, s).astype(np.float32) for s in ((12, 10), (10, 14)))
    x, y = (Tensor(v, device=device).realize() for v in (a, b))
    return [
        (lambda: x @ y, a @ b),
        (lambda: x.sum(1), a.sum(1)),
        (lambda: (x - x.max(1, keepdim=True)) * 2, (a - a.max(1, keepdims=True)) * 2),
        (lambda: y.permute(1, 0) + 1, b.T + 1),
    ]


@settings(
    max_examples=25, phases=[Phase.explicit, Phase.reuse, Phase.generate]
)  # shrinking compiles too long
@given(which=st.integers(0, 3), picks=st.lists(st.integers(0, 999), min_size=1, max_size=5))
@pytest.mark.parametrize("device", DEVICES[:1])
def test_random_opts(device, which, picks):
    """Whatever Opts are given by hand, a kernel computes the same, or an OptError says why not."""
    target = target_of("cuda")
    make, want = expressions(device)[which]
    (call,) = schedule(normalize(UOp.sink(make().uop.base)).sink, True).calls
    kernel = run_passes(call.ast.replace(arg=None), LoweringContext(target), through=UNOPTIMIZED)
    opts = []
    for pick in picks:
        choices = actions(kernel, target)
        opt = choices[pick % len(choices)]
        try:
            kernel = apply(kernel, opt)
        except OptError:
            continue
        opts.append(opt)
    try:
        got = make().contiguous(opts=render_opts(opts)).numpy()
    except OptError:  # more than a workgroup has, or a barrier in divergent control flow
        return
    assert (got == want).all(), render_opts(opts)


# --- sums in parts, as if little was much


@pytest.fixture
def few_are_many(monkeypatch):
    sizes = {"MIN_COPIED_FOR": 1 << 8, "MIN_PART_TERMS": 8, "MIN_PART_ROW": 32, "MIN_LONG_ROW": 64}
    for name, value in sizes.items():
        monkeypatch.setattr(cost, name, value)
    clear_caches()
    yield
    clear_caches()


IN_PARTS = {
    "columns": (lambda x, w: x.sum(0), (300, 40), (1,)),
    "columns, an odd number": (lambda x, w: x.max(0), (301, 5), (1,)),
    "rows": (lambda x, w: x.sum(1), (5, 640), (1,)),
    "all": (lambda x, w: (x * 2).sum(), (30, 50), (1,)),
    "a bias": (lambda x, w: x.sum((0, 2, 3)), (4, 6, 8, 12), (1,)),
    "a product": (lambda x, w: (x @ w).tanh(), (20, 600), (600, 24)),
    "a product of odd sizes": (lambda x, w: x @ w, (9, 123), (123, 17)),
    "a matrix and a vector": (lambda x, w: x @ w, (12, 512), (512,)),
    "a vector and a matrix": (lambda x, w: x @ w, (512,), (512, 12)),
    "a softmax of long rows": (lambda x, w: x.softmax(1), (3, 400), (1,)),
    "a normalisation of long rows": (lambda x, w: (x - x.mean(1, keepdim=True)) * x.std(), (3, 400), (1,)),
    "a product and a sum": (lambda x, w: (x.T @ w) + x.sum(), (160, 9), (160, 10)),
}


@pytest.mark.parametrize("device", DEVICES[:1])
@pytest.mark.parametrize("which", IN_PARTS)
def test_sums_in_parts_within_1e_5(device, which, few_are_many):
    make, *shapes = IN_PARTS[which]
    x, w = (normal(*shape) for shape in shapes)
    want = make(*(torch.tensor(v, dtype=torch.float64) for v in (x, w)))
    want = want[0] if isinstance(want, tuple) else want  # values and positions of a maximum
    before = stats.kernels_compiled
    got = make(Tensor(x, device=device).realize(), Tensor(w, device=device).realize()).realize()
    assert stats.kernels_compiled - before >= 2
    close(got, want.numpy())


@pytest.mark.parametrize("device", DEVICES[:1])
def test_a_convolutions_gradients_in_parts_within_1e_4(device, few_are_many):
    x, w, b = normal(4, 8, 9, 9), normal(8, 8, 3, 3), normal(8)
    got = [Tensor(v, device=device, requires_grad=True) for v in (x, w, b)]
    want = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (x, w, b)]
    got[0].conv2d(got[1], got[2], padding=1).square().sum().backward()
    torch.conv2d(*want, padding=1).square().sum().backward()
    for g, t in zip(got, want, strict=True):
        close(g.grad, t.grad.numpy(), 1e-4)


# --- reductions in registers

GROUPED = {
    "rows": lambda x: x.sum(1),
    "few long rows": lambda x: x[:3].reshape(1, -1).sum(),
    "columns": lambda x: x.sum(0),
    "maxima": lambda x: x.max(1),
    "a softmax": lambda x: x.softmax(1),
    "a normalisation": lambda x: x.layernorm(),
    "doubles": lambda x: (x.double() if x.device == "EMULATED_CUDA" else x).sum(1),
    "a matrix and a vector": lambda x: x @ x[0],
    "sums in four parts": lambda x: x[:16].reshape(16, -1) @ x[:16].reshape(-1, 16),
}


@both
@pytest.mark.parametrize("which", GROUPED)
def test_registers_give_the_same_bits_as_shared_memory(device, which, monkeypatch):
    make, x = GROUPED[which], Tensor(normal(40, 256), device=device).realize()
    got = make(x).numpy()
    backend = Device.backend(device)
    limits = replace(backend.target.workgroups, shuffle_bytes=0)
    target = replace(backend.target, workgroups=limits)
    monkeypatch.setitem(Device._backends, device, replace(backend, target=target))
    clear_caches()
    assert make(x).numpy().tobytes() == got.tobytes()


# --- how much memory is read


def product_kernel(n):
    a, b = (Tensor.zeros(n, n, device="INTERP").contiguous().realize() for _ in range(2))
    (call,) = schedule(normalize(UOp.sink((a @ b).uop.base)).sink, True).calls
    return call.ast.replace(arg=None)


@pytest.mark.parametrize("device", DEVICES[:1])
@pytest.mark.parametrize("n", [32, 128])
def test_counted_traffic_is_that_of_the_machine(device, n):
    counted = traffic_of(lower(product_kernel(n), target_of("cuda")))
    a, b = (Tensor(normal(n, n), device=device).realize() for _ in range(2))
    with checked(Device[device]) as traffic:
        (a @ b).realize()
    assert (traffic.read, traffic.written) == counted


@pytest.mark.parametrize("device", DEVICES[:1])
def test_a_product_of_1024_reads_a_sixteenth_of_what_the_naive_kernel_does(device):
    kernel, target = product_kernel(1024), target_of("cuda")
    naive = run_passes(kernel, LoweringContext(target, True, ()))
    (tiled_read, tiled_written), (naive_read, naive_written) = map(traffic_of, (lower(kernel, target), naive))
    assert naive_read == 2 * 4 * 1024**3 and tiled_written == naive_written == 4 << 20
    assert tiled_read <= naive_read / 16


# --- where a processor does a GPU's work


@pytest.mark.parametrize("device", DEVICES[:1])
@pytest.mark.parametrize(
    ("shapes", "make", "kinds"),
    [
        ([(40, 33), (33, 4)], lambda a, b: a @ b, "SIMD"),  # few columns
        ([(50, 64), (64, 7)], lambda a, b: a @ b, "UPCAST"),  # tiles that overlap
        ([(1, 6, 9, 9), (5, 6, 3, 3)], lambda a, w: a.conv2d(w), "UPCAST"),  # narrow images
        ([(1, 40, 9, 9), (40, 1, 3, 3)], lambda a, w: a.conv2d(w, padding=1, groups=40), "UNROLL"),
        ([(60, 160)], lambda a: a.sum(0), "SIMD UNROLL"),  # four neighbours' sums
        ([(47, 160)], lambda a: a.sum(1), "SIMD UNROLL"),  # along memory
        ([(70, 46)], lambda a: a.sum(1), "UNROLL"),  # and a rest
        ([(40, 100)], lambda a: a.softmax(1), "SIMD"),
        ([(9, 130)], lambda a: a.softmax(1), "GROUP"),  # few rows
        ([(300, 3)], lambda a: a.max(0), "GROUP UNROLL"),
        ([(37, 41)], lambda a: a.permute(1, 0) * 2, "UPCAST"),  # blocks
        ([(130, 261), (261,)], lambda a, b: a + b, "UPCAST"),  # four rows
        ([(130, 256)], lambda a: a.flip(1) * 2, "SIMD"),
    ],
)
def test_what_is_chosen_there_is_as_right_and_as_safe_elsewhere(device, shapes, make, kinds):
    """The Opts of such a Target, on the checked machine: no races, nothing out of bounds; within 1e-5."""
    found = target_of("cuda")
    software = replace(found, workgroups=replace(found.workgroups, software=True))
    values = [normal(*shape) for shape in shapes]
    opts = choose(kernel_of(make(*(Tensor(v, device="INTERP") for v in values)), software), software)
    assert set(kinds.split()) <= {opt.kind.value for opt in opts}
    got = make(*(Tensor(v, device=device) for v in values)).contiguous(opts=render_opts(opts))
    close(got, make(*(Tensor(v, device="CPU") for v in values)).numpy())
