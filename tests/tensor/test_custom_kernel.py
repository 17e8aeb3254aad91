"""Kernels written by hand: what they compute on every device, their gradients, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from polygrad import Tensor, TinyJit, Variable, dtypes, nn
from polygrad.engine.stats import stats
from polygrad.errors import ArgumentError, DeviceError, GradientError, ShapeError
from polygrad.schedule.custom_kernel import custom_kernels
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

rng = np.random.default_rng(0)
A, B = rng.standard_normal((20, 12)).astype(np.float32), rng.standard_normal((12, 24)).astype(np.float32)


@pytest.fixture(autouse=True)
def _default(default_device: None) -> None:
    """`device` is the default device of a test that takes it."""


def product(c, a, b):
    i, j, k = UOp.range(c.shape[0], 0), UOp.range(c.shape[1], 1), UOp.range(a.shape[1], 2)
    return c[i, j].store((a[i, k] * b[k, j]).reduce(k)).end(i, j).sink()


def copy_of(view):
    """A kernel that copies a view of its second operand, by loops over all axes."""

    def kernel(out, x):
        source = view(x)
        loops = [UOp.range(n, i) for i, n in enumerate(source.shape)]
        return out[tuple(loops)].store(source[tuple(loops)]).end(*loops).sink()

    return kernel


# --- results


def test_a_product(device):
    c = Tensor.empty(20, 24).custom_kernel(Tensor(A), Tensor(B), fxn=product)[0]
    np.testing.assert_allclose(c.numpy(), A @ B, rtol=1e-4, atol=1e-5)


def test_it_is_part_of_the_graph_around_it(device):
    a = Tensor(A.T.copy()).T * 2
    c = Tensor.empty(20, 24).custom_kernel(a, Tensor(B) + 1, fxn=product)[0]
    np.testing.assert_allclose(
        (c.relu() + 1).sum(0).numpy(), (np.maximum(2 * A @ (B + 1), 0) + 1).sum(0), rtol=1e-4
    )


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.permute((1, 0)),
        lambda x: x.reshape((5, 48)),
        lambda x: x.flatten(),
        lambda x: x.pad(((1, 2), (0, 3))),
        lambda x: x.shrink(((3, 9), (2, 12))),
        lambda x: x.flip((0,)),
        lambda x: x.reshape((20, 1, 12)).expand((20, 3, 12)),
    ],
)
def test_views_of_placeholders(view, device):
    x = UOp.buffer_of(Tensor(A).realize().uop.base.arg, dtypes.float32).reshape(A.shape)
    want = Tensor(view(x))
    got = Tensor.empty(*want.shape).custom_kernel(Tensor(A), fxn=copy_of(view))[0]
    np.testing.assert_array_equal(got.numpy(), want.numpy())


def test_other_tensors_come_back_as_they_are(device):
    x, out = Tensor(A), Tensor.zeros(20, 12).contiguous().realize()
    done, same = out.custom_kernel(x, fxn=copy_of(lambda x: x))
    assert same is x
    np.testing.assert_array_equal(done.numpy(), A)
    assert out.sum().item() == 0


def test_what_is_read_of_what_is_written_is_what_it_held(device):
    """The last row is shifted into the first, which no order of rounds would do in place."""

    def roll(x, y):
        i, j = UOp.range(20, 0), UOp.range(12, 1)
        return x[i, j].store(x[(i + 19) % 20, j] + y[i, j]).end(i, j).sink()

    x = Tensor(A).realize()
    for _ in range(2):
        got = x.custom_kernel(x, fxn=roll)[0]
        np.testing.assert_allclose(got.numpy(), np.roll(A, 1, 0) + A, rtol=1e-6)
    x.assign(x * 2)
    np.testing.assert_allclose(x.custom_kernel(x, fxn=roll)[0].numpy(), 2 * (np.roll(A, 1, 0) + A), rtol=1e-6)


def test_what_is_not_written_is_what_it_was(device):
    def evens(x):
        i = UOp.range(6, 0)
        return x[i * 2].store(-1).end(i).sink()

    for x in (Tensor.arange(12), Tensor.arange(12).contiguous().realize(), Tensor.arange(24)[:12]):
        assert x.custom_kernel(fxn=evens)[0].tolist() == [-1 if i % 2 == 0 else i for i in range(12)]
        assert x.tolist() == list(range(12))


def test_several_stores_and_outputs(device):
    def kernel(small, large, x):
        i, j, k = UOp.range(20, 0), UOp.range(12, 1), UOp.range(12, 2)
        most = small[i].store(x[i, k].reduce(k, arg=Ops.MAX)).end(i)
        p, q = UOp.range(10, 3), UOp.range(12, 4)
        first = large[i, j].store(x[i, j] * 2).end(i, j)
        second = large[p + 10, q].store(x[p, q]).end(p, q)
        return most.sink(first, second)

    small, large, _ = Tensor.empty(20).custom_kernel(Tensor.empty(20, 12), Tensor(A), fxn=kernel)
    np.testing.assert_array_equal(small.numpy(), A.max(1))
    np.testing.assert_array_equal(large.numpy(), np.concatenate([A[:10] * 2, A[:10]]))


def test_positions_that_are_loaded_are_clipped(device):
    def gather(out, x, index):
        i, j = UOp.range(out.shape[0], 0), UOp.range(12, 1)
        return out[i, j].store(x[index[i].clip(0, 19), j]).end(i, j).sink()

    index = np.array([3, 19, -5, 99, 0], np.int32)
    got = Tensor.empty(5, 12).custom_kernel(Tensor(A), Tensor(index), fxn=gather)[0]
    np.testing.assert_array_equal(got.numpy(), A[np.clip(index, 0, 19)])


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.int64, dtypes.float16, dtypes.bool])
def test_dtypes(dtype, device):
    x = Tensor([[1, 0, 3]]).cast(dtype)
    got = Tensor.empty(1, 3, dtype=dtype).custom_kernel(x, fxn=copy_of(lambda x: x))[0]
    assert got.dtype is dtype and got.tolist() == x.tolist()


def test_equal_kernels_are_compiled_once():
    def scaled(out, x):
        i = UOp.range(77, 0)
        return out[i].store(x[i] * 3 + 0.125).end(i).sink()

    x = Tensor.arange(77).float().realize()
    Tensor.empty(77).custom_kernel(x, fxn=scaled)[0].realize()
    stats.reset()
    Tensor.empty(77).custom_kernel(x, fxn=scaled)[0].realize()
    assert (stats.programs, stats.kernels_compiled, stats.launches) == (0, 0, 1)


# --- gradients


def product_gradients(g, call):
    _, a, b = call.src[1:]
    g, a, b = Tensor(g), Tensor(a), Tensor(b)
    return None, g @ b.T, a.T @ g


def test_the_gradient_is_what_grad_fxn_says(device):
    def gradients(by_hand):
        a, b = Tensor(A, requires_grad=True), Tensor(B, requires_grad=True)
        if by_hand:
            c = Tensor.empty(20, 24).custom_kernel(a * 2, b, fxn=product, grad_fxn=product_gradients)[0]
        else:
            c = (a * 2) @ b
        c.tanh().sum().backward()
        return a.grad.numpy(), b.grad.numpy()

    for got, want in zip(gradients(True), gradients(False), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


def test_without_grad_fxn_a_gradient_is_refused():
    a = Tensor(A, requires_grad=True)
    c = Tensor.empty(20, 24).custom_kernel(a, Tensor(B), fxn=product)[0]
    with pytest.raises(GradientError, match="it has no gradient: give grad_fxn"):
        c.sum().backward()
    with pytest.raises(GradientError, match="expected 3 gradients, one for each Tensor, got 1"):
        Tensor.empty(20, 24).custom_kernel(a, Tensor(B), fxn=product, grad_fxn=lambda g, c: None)[
            0
        ].sum().backward()
    with pytest.raises(GradientError, match=r"expected a gradient of \(20, 12\) float32, got \(20, 24\)"):
        grad_fxn = lambda g, call: (None, g, None)
        Tensor.empty(20, 24).custom_kernel(a, Tensor(B), fxn=product, grad_fxn=grad_fxn)[0].sum().backward()


# --- captures


def test_in_a_captured_function_and_a_training_step(device):
    step = TinyJit(lambda a, b: Tensor.empty(20, 24).custom_kernel(a, b, fxn=product)[0] + 1)
    for i in range(4):
        got = step(Tensor(A * i).realize(), Tensor(B).realize())
        np.testing.assert_allclose(got.numpy(), A @ B * i + 1, rtol=1e-4, atol=1e-4)
    weight, count = Tensor(B, requires_grad=True), Tensor.zeros(3).contiguous().realize()

    def add(x):
        i = UOp.range(3, 0)
        return x[i].store(x[i] + 1).end(i).sink()

    optimizer = nn.optim.SGD([weight], lr=0.1)

    @TinyJit
    def train(a):
        with Tensor.train():
            optimizer.zero_grad()
            c = Tensor.empty(20, 24).custom_kernel(a, weight, fxn=product, grad_fxn=product_gradients)[0]
            loss = c.square().mean().backward()
            optimizer.step()
            count.assign(count.custom_kernel(fxn=add)[0]).realize()
            return loss

    losses = [train(Tensor(A).realize()).item() for _ in range(5)]
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0]
    assert count.tolist() == [5, 5, 5]


# --- what is refused

i4, j4 = UOp.range(4, 0), UOp.range(4, 1)
REFUSED = [
    (lambda o, x: None, "expected a function that returns a SINK .*, got NoneType"),
    (lambda o, x: o[i4, j4].store(0), "got a STORE"),
    (lambda o, x: UOp.sink(), "expected a function that returns a SINK"),
    (lambda o, x: x[i4, j4].load().sink(), "expected a STORE to an element, and its loops ended, got a LOAD"),
    (lambda o, x: o[i4, j4].store(0).end(i4).sink(), "axis 1 open"),
    (lambda o, x: o[i4, 0].store(x[i4, j4]).end(i4).sink(), "axis 1 open"),
    (lambda o, x: o[i4, 0].store(x[i4, j4]).end(i4, j4).sink(), "writes another element in each round"),
    (lambda o, x: o[0, (i4 + j4) % 4].store(1.0).end(i4, j4).sink(), "expected a store at a sum of loops"),
    (lambda o, x: o[0, x[0, i4].cast(dtypes.int32).clip(0, 3)].store(1.0).end(i4).sink(), "a sum of loops"),
    (
        lambda o, x: o[i4, j4].store(x[i4, j4 + 1]).end(i4, j4).sink(),
        r"proved to be in 0 to 3, got one from 1 to 4",
    ),
    (lambda o, x: o[i4 + 1, j4].store(x[i4, j4]).end(i4, j4).sink(), r"proved to be in 0 to 3"),
    (lambda o, x: o[i4, j4].store(x[i4, x[0, 0].cast(dtypes.int32)]).end(i4, j4).sink(), "clip"),
    (lambda o, x: o[i4].store(0).end(i4).sink(), r"1 indices into \(4, 4\): expected 2"),
    (lambda o, x: o[i4, 0.5].store(0).end(i4).sink(), "expected an index that is an int or a UOp"),
    (
        lambda o, x: o[i4, j4].store(x[i4, j4].cast(dtypes.int32)).end(i4, j4).sink(),
        "the dtype that is written",
    ),
    (lambda o, x: o.pad(((1, 0), (0, 0)))[i4, j4].store(0.0).end(i4, j4).sink(), "one to padding"),
    (lambda o, x: o[i4, j4].store(0.0).end(i4, UOp.range(4, 0), j4).sink(), "ended once"),
    (lambda o, x: o[i4, j4].store(0.0).end(i4, j4, UOp.range(2, 0)).sink(), "axis numbers of their own"),
    (lambda o, x: o[i4, 0].store(x[i4, 0].reduce(i4)).end(i4).sink(), "axis 0, which is both"),
    (lambda o, x: o[i4, 0].store(x[i4, 0].reduce(x[0, 0])).end(i4).sink(), "a reduction over RANGEs"),
    (
        lambda o, x: o[i4, 0].store(UOp(Ops.SQRT, dtypes.float32, (i4,))).end(i4).sink(),
        "legal IR, got kernel IR: SQRT",
    ),
    (lambda o, x: o[i4, 0].store(UOp(Ops.ADD, dtypes.float32, (x[0, 0],))).end(i4).sink(), "has 2 sources"),
    (
        lambda o, x: o[i4, j4].store(x[i4, j4]).end(i4, j4).sink(x[i4, j4].store(o[i4, j4]).end(i4, j4)),
        "stores that do not read what others write",
    ),
    (
        lambda o, x: (
            UOp(Ops.INDEX, dtypes.float32, (UOp(Ops.ARANGE, dtypes.float32, (), 4), i4)).store(0).sink()
        ),
        "an operand",
    ),
]


@pytest.mark.parametrize(("kernel", "text"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_kernel_is_refused(kernel, text):
    with pytest.raises(ArgumentError, match=text):
        Tensor.empty(4, 4).custom_kernel(Tensor.ones(4, 4), fxn=kernel)


def test_what_a_refused_kernel_differs_from_is_taken():
    """The last form of each refusal above without its fault."""
    shapes = [((4, 4), dtypes.float32)] * 2
    (kernel,) = custom_kernels(lambda o, x: o[i4, j4].store(x[i4, j4]).end(i4, j4).sink(), shapes)
    assert (kernel.output, kernel.reads, kernel.is_whole) == (0, (1,), True)
    (part,) = custom_kernels(lambda o, x: x[i4, 2].store(o[3, i4]).end(i4).sink(), shapes)
    assert (part.output, part.reads, part.is_whole) == (1, (0,), False)


def test_tensors_that_do_not_go_together_are_refused():
    kernel = copy_of(lambda x: x)
    with pytest.raises(DeviceError, match="expected one device"):
        Tensor.empty(2, device="CPU").custom_kernel(Tensor([1.0, 2.0], device="INTERP"), fxn=kernel)
    with pytest.raises(DeviceError, match="expected Tensors on one device, got one on CPU, CPU:1"):
        Tensor.empty(2).custom_kernel(Tensor([1.0, 2.0]).shard(("CPU", "CPU:1"), 0), fxn=kernel)
    n = Variable("n", 1, 4).bind(2)
    with pytest.raises(ShapeError, match="expected sizes that are ints"):
        Tensor.empty(4).custom_kernel(Tensor.ones(4)[:n], fxn=kernel)
    with pytest.raises(ArgumentError, match="expected one Tensor that is written to with grad_fxn, got 2"):
        two = lambda a, b: a[0].store(1.0).sink(b[0].store(2.0))
        Tensor.empty(1).custom_kernel(Tensor.empty(1), fxn=two, grad_fxn=lambda g, c: (None, None))
