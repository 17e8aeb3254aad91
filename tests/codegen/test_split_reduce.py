"""Long reductions to few elements are two kernels, the first of which threads divide; others stay one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from polygrad import Tensor, TinyJit, get_num_threads, set_num_threads
from polygrad.codegen.kernels.kernel_opt import Kind, render_kernel_opts
from polygrad.codegen.kernels.passes import schedule_graph, steps
from polygrad.engine.devices import Device
from polygrad.engine.normalize import normalize
from polygrad.uop.node import UOp

RNG = np.random.default_rng(3)


@pytest.fixture
def any_number_of_threads() -> Iterator[None]:
    before = get_num_threads()
    yield
    set_num_threads(before)


def stored(*shape: int) -> Tensor:
    return Tensor(np.zeros(shape, dtype=np.float32), device="CPU")


def parts(x: Tensor) -> str:
    """What the pass decides about a graph for a CPU, and no other before it."""
    sink = normalize(UOp.sink(x.uop.base)).sink
    plan, context = schedule_graph(sink, Device.backend("CPU").target, True)
    before, step = next(
        pair for pair in itertools.pairwise(steps(plan.calls, context)) if pair[1].name == "split-reduce"
    )
    assert all(opt.kind is Kind.SPLIT_REDUCE for opt in step.opts)
    assert len(step.calls) == len(before.calls) + len(step.opts)
    return render_kernel_opts(step.opts)


SPLIT = [
    ("all of a matrix", lambda: stored(512, 512).sum(), "SPLIT_REDUCE k0 r0 64"),
    ("the longer of odd sizes", lambda: stored(1023, 1001).max(), "SPLIT_REDUCE k0 r0 33"),
    ("an axis that has no parts is passed over", lambda: stored(521, 1024).sum(), "SPLIT_REDUCE k0 r1 64"),
    ("few columns", lambda: stored(1 << 17, 4).sum(0), "SPLIT_REDUCE k0 r1 64"),
    ("a product of long sums", lambda: stored(64, 8192) @ stored(8192, 64), "SPLIT_REDUCE k0 r2 8"),
    ("a product of a prime number", lambda: stored(64, 8191) @ stored(8191, 64), "SPLIT_REDUCE k0 r2 8"),
    (
        "a product whose parts are large",
        lambda: stored(999, 8192) @ stored(8192, 999),
        "SPLIT_REDUCE k0 r2 2",
    ),
    ("a short axis is one of two", lambda: stored(8, 1 << 16).sum(), "SPLIT_REDUCE k0 r0 r1 8 8"),
    (
        "two sums of few long rows",
        lambda: stored(8, 1 << 17).softmax(1),
        "SPLIT_REDUCE k0 r3 64, SPLIT_REDUCE k1 r2 64",
    ),
    ("what is computed on the way", lambda: (stored(512, 512) * 2).exp().sum(), "SPLIT_REDUCE k0 r0 64"),
]
WHOLE = [
    ("a product of sums that are not long", lambda: stored(64, 4095) @ stored(4095, 64)),
    ("a convolution whose sums are not long", lambda: stored(1, 512, 7, 7).conv2d(stored(64, 512, 3, 3))),
    ("a matrix times a vector", lambda: stored(64, 8192) @ stored(8192)),
    ("a short one", lambda: stored(1 << 16).sum()),
    ("many outputs", lambda: stored(1 << 14, 32).sum(0)),
    ("a prime size", lambda: stored(262_147).sum()),
    ("a histogram", lambda: stored(1 << 18).cast("int32").one_hot(4).sum(0)),
    ("counting, which needs no loop", lambda: (Tensor.arange(1 << 18, device="CPU") < 7).sum()),
]


@pytest.mark.parametrize(("x", "expected"), [c[1:] for c in SPLIT], ids=[c[0] for c in SPLIT])
def test_long_reductions_are_split(x, expected):
    assert parts(x()) == expected


@pytest.mark.parametrize("x", [c[1] for c in WHOLE], ids=[c[0] for c in WHOLE])
def test_others_are_not(x):
    assert parts(x()) == "none"


@pytest.mark.parametrize("name", ["sum", "max", "mean", "var"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((512, 512), None), ((1023, 1001), None), ((3, 1 << 17), 1), ((64, 8, 512), (0, 2))]
)
def test_they_are_the_same_by_the_bit_with_any_number_of_threads_and_within_1e_6(
    name, shape, axis, any_number_of_threads
):
    a = RNG.standard_normal(shape).astype(np.float32)
    results = []
    for threads in (1, 2, 3, 4):
        set_num_threads(threads)
        results.append(getattr(Tensor(a, device="CPU"), name)(axis).numpy())
    assert all(r.tobytes() == results[0].tobytes() for r in results)
    more = {"ddof": 1} if name == "var" else {}
    expected = getattr(np, name)(a.astype(np.float64), axis=axis, **more)
    scale = np.abs(a).sum() if name == "sum" else 1
    np.testing.assert_allclose(results[0], expected, rtol=1e-5, atol=1e-6 * scale)


def test_the_first_kernel_is_divided_between_threads():
    x = stored(1024, 1024).realize()
    step = TinyJit(lambda: x.sum())
    step(), step()
    assert step.program is not None
    assert [step.program.kernels[launch.kernel].parallel for launch in step.program.launches] == [True, False]


def test_their_gradients_and_others_of_the_graph_are_as_before():
    a = RNG.standard_normal((512, 512)).astype(np.float32)
    x = Tensor(a, device="CPU", requires_grad=True)
    (x * x).sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), 2 * a, rtol=1e-6)
    centred = Tensor(a, device="CPU")
    np.testing.assert_allclose((centred - centred.mean()).numpy(), a - a.mean(), atol=1e-6)
