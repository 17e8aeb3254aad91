"""vmap: what it gives is what a loop over the examples gives; what has no batched form is refused."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from polygrad import Tensor, TinyJit, custom_gradient, nn, vmap
from polygrad.errors import ArgumentError, AxisError, ShapeError
from polygrad.uop.node import UOp

rng = np.random.default_rng(0)
X, Y = rng.standard_normal((5, 4, 4)).astype(np.float32), rng.standard_normal((5, 4, 4)).astype(np.float32)
W = rng.standard_normal((4, 3)).astype(np.float32)


@pytest.fixture(autouse=True)
def _default(default_device: None) -> None:
    """`device` is the default device of a test that takes it."""


FUNCTIONS = {
    "add": lambda x, y: x + y,
    "a constant": lambda x, y: x * 2 + 1,
    "a result without the example": lambda x, y: Tensor.ones(2),
    "a scalar": lambda x, y: (x * y).sum(),
    "scalars of examples": lambda x, y: x.sum() * y + x[0, 0] * 3,
    "max along an axis": lambda x, y: x.max(0),
    "softmax": lambda x, y: x.softmax(1),
    "product": lambda x, y: x @ y,
    "product with a weight": lambda x, y: x @ Tensor(W),
    "transposed": lambda x, y: x.T + y,
    "slices": lambda x, y: x[1:3, ::2].pad(((1, 1), (0, 2))),
    "flipped": lambda x, y: x.flip(0).reshape(2, 8),
    "joined": lambda x, y: x.cat(y, dim=1),
    "running sums": lambda x, y: x.cumsum(0),
    "running maxima": lambda x, y: x.cummax(1)[0],
    "gathered": lambda x, y: x[Tensor([3, 0])],
    "gathered by the example": lambda x, y: x.gather(0, (y > 0).cast("int32")),
    "compared": lambda x, y: (x < y).where(x, 0.5),
    "sorted": lambda x, y: x.sort(0)[0],
    "convolved": lambda x, y: x.reshape(1, 1, 4, 4).conv2d(y.reshape(1, 1, 4, 4)[:, :, :2, :2]),
    "pooled": lambda x, y: x.reshape(1, 1, 4, 4).max_pool2d(2),
    "inverted": lambda x, y: (x @ x.T + Tensor.eye(4)).inv(),
    "expm1": lambda x, y: x.expm1(),
    "stored": lambda x, y: x.exp().contiguous() + y.clone(),
    "detached": lambda x, y: x.detach() * y,
    "argmax": lambda x, y: x.argmax(1),
    "cast": lambda x, y: x.half().sum(0),
    "gradient inside": lambda x, y: (x * y).tanh().sum().gradient(x)[0],
}


def stacked(f, *args):
    return np.stack([f(*[Tensor(a[i]) for a in args]).numpy() for i in range(len(args[0]))])


@pytest.mark.parametrize("device", ["CPU"])  # the graph is the same on all
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_it_is_a_loop_over_the_examples(name, device):
    f = FUNCTIONS[name]
    got = vmap(f)(Tensor(X), Tensor(Y))
    np.testing.assert_allclose(
        got.numpy(), stacked(f, X, Y), rtol=2e-3 if name == "inverted" else 1e-4, atol=1e-5
    )


def test_axes_of_arguments_and_results():
    f = lambda x, w: x @ w
    want = np.einsum("bij,jk->bik", X, W)
    for axis in (0, 1, 2, -1):
        x = Tensor(np.moveaxis(X, 0, axis))
        for out in (0, 1, 2, -1):
            got = vmap(f, in_axes=(axis, None), out_axes=out)(x, Tensor(W))
            np.testing.assert_allclose(got.numpy(), np.moveaxis(want, 0, out), rtol=1e-4, atol=1e-5)
    two = vmap(lambda x: (x.sum(0), Tensor(W)), out_axes=(1, None))(Tensor(X))
    np.testing.assert_allclose(two[0].numpy(), X.sum(1).T, rtol=1e-5)
    assert two[1].shape == (4, 3)


def test_containers_and_keywords():
    f = lambda batch, rest, *, scale: {"sum": batch["x"] + batch["y"][0], "scaled": [rest * scale]}
    got = vmap(f)({"x": Tensor(X), "y": (Tensor(Y),)}, Tensor(X), scale=3)
    np.testing.assert_allclose(got["sum"].numpy(), X + Y, rtol=1e-6)
    np.testing.assert_allclose(got["scaled"][0].numpy(), X * 3, rtol=1e-6)


def test_one_in_another_is_all_pairs(device):
    dot = lambda a, b: (a * b).sum()
    pairs = vmap(vmap(dot, in_axes=(None, 0)), in_axes=(0, None))
    np.testing.assert_allclose(pairs(Tensor(X[0]), Tensor(Y[0])).numpy(), X[0] @ Y[0].T, rtol=1e-4, atol=1e-5)


def test_gradients_through_it_and_for_each_example(device):
    def loss(x, w):
        return (x @ w).tanh().square().sum()

    def total(batched):
        x, w = Tensor(X, requires_grad=True), Tensor(W, requires_grad=True)
        if batched:
            vmap(loss, in_axes=(0, None))(x, w).sum().backward()
        else:
            (x @ w).tanh().square().sum().backward()
        return x.grad.numpy(), w.grad.numpy()

    for got, want in zip(total(True), total(False), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
    w = Tensor(W, requires_grad=True)
    each = vmap(lambda x: loss(x, w).gradient(w)[0])(Tensor(X))
    want = [loss(Tensor(x), w).gradient(w)[0].numpy() for x in X]
    np.testing.assert_allclose(each.numpy(), np.stack(want), rtol=1e-3, atol=1e-4)


def test_gradients_of_ones_own_are_batched(device):
    halved = custom_gradient(lambda x, w: x * w.sum(), lambda g, value, x, w: (g * 0.5, (g * x).sum() * w))
    x, w = Tensor(X, requires_grad=True), Tensor(W, requires_grad=True)
    vmap(halved, in_axes=(0, None))(x, w).square().sum().backward()
    g = 2 * X * W.sum()
    np.testing.assert_allclose(x.grad.numpy(), g * 0.5, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(w.grad.numpy(), (g * X).sum() * W, rtol=1e-3, atol=1e-3)


def test_in_a_captured_function():
    step = TinyJit(lambda x, y: vmap(lambda a, b: (a @ b).max())(x, y))
    for i in range(4):
        want = (X * i @ Y).max((1, 2))
        np.testing.assert_allclose(
            step(Tensor(X * i).realize(), Tensor(Y).realize()).numpy(), want, rtol=1e-4
        )


def test_over_shards():
    x = Tensor(X[:4]).shard(("CPU", "CPU:1"), 0)
    got = vmap(lambda a: a.softmax(1).sum(0))(x)
    np.testing.assert_allclose(got.numpy(), stacked(lambda a: a.softmax(1).sum(0), X[:4]), rtol=1e-4)


def shift(out, x):
    i = UOp.range(16, 0)
    return out.flatten()[i].store(x.flatten()[i] + 1).end(i).sink()


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (lambda x: x.sum().item(), "expected a function that computes lazily, got a reading of values"),
        (lambda x: (x * 2).realize(), "expected a function that computes lazily"),
        (lambda x: x.assign(x * 2), r"writes to its argument, an example of shape \(.*\): write to a clone"),
        (lambda x: x.flatten()[:2].assign([1.0, 2.0]), "writes to its argument"),
        (lambda x: x.custom_kernel(x, fxn=shift)[0], "got ASSIGN: .*custom kernels"),
        (lambda x: 3, "expected Tensors, got int"),
    ],
)
def test_what_has_no_batched_form_is_refused(f, text):
    with pytest.raises(ArgumentError, match=text):
        vmap(f)(Tensor(X))


@pytest.mark.parametrize("stored", [True, False])
def test_a_write_of_an_example_to_a_tensor_from_outside_is_refused_and_leaves_it_as_it_was(stored):
    outer = Tensor(Y[0]) + 1
    if stored:
        outer.realize()
    view = outer[0]

    def add(x):
        view.assign(view + x[0])
        return x * 2

    with pytest.raises(
        ArgumentError, match=r"writes values of one example to a Tensor of shape .* from outs"
    ):
        vmap(add)(Tensor(X))
    np.testing.assert_array_equal(outer.numpy(), Y[0] + 1)
    np.testing.assert_array_equal(TinyJit(lambda x: (x + 1).realize())(outer).numpy(), Y[0] + 2)


def add_one(x):
    return (x + 1).realize()


def test_after_a_refused_write_to_an_example_functions_are_captured():
    with pytest.raises(ArgumentError) as error:  # which keeps the example alive, as a console does
        vmap(lambda x: x.assign(x * 2))(Tensor(X))
    step = TinyJit(add_one)
    for _ in range(3):
        np.testing.assert_array_equal(step(Tensor(Y[0]).realize()).numpy(), Y[0] + 1)
    del error


def test_a_gradient_of_an_example_stays_in_the_function():
    w, data = Tensor(Y[0], requires_grad=True), Tensor(Y[1])

    def add(x):
        (x[0, 0] * w).sum().backward()
        return x

    with pytest.raises(ArgumentError, match=r"adds to the gradient of a Tensor of shape \(.*\) from outside"):
        vmap(add)(Tensor(X))
    assert w.grad is None
    w.sum().backward()
    with pytest.raises(ArgumentError, match="adds to the gradient"):
        vmap(add)(Tensor(X))
    np.testing.assert_array_equal(w.grad.numpy(), np.ones_like(Y[0]))

    def inner(x):
        leaf = x.clone().detach()
        leaf.requires_grad = True
        (leaf.square() * data[0, 0]).sum().backward()
        return leaf.grad

    np.testing.assert_allclose(vmap(inner)(Tensor(X)).numpy(), 2 * X * Y[1, 0, 0], rtol=1e-5)


def test_data_from_outside_gets_no_gradient_of_an_example():
    data = Tensor(Y[0]).realize()
    earlier = data.grad = Tensor(Y[1])

    def inner(x, fail=False):
        leaf = x.clone().detach()
        leaf.requires_grad = True
        (leaf.square() * data * data).sum().backward()
        assert not fail
        return leaf.grad

    np.testing.assert_allclose(vmap(inner)(Tensor(X)).numpy(), 2 * X * Y[0] ** 2, rtol=1e-5)
    assert data.grad is earlier
    with pytest.raises(AssertionError):
        vmap(inner)(Tensor(X), fail=True)
    assert data.grad is earlier
    data.assign(data * 2).realize()  # after which the lazy values that read it are computed
    np.testing.assert_array_equal(data.numpy(), 2 * Y[0])


def test_batches_without_running_statistics_are_normalized_one_by_one_to_1e_5():
    norm = nn.BatchNorm(X.shape[1], track_running_stats=False)
    x = np.stack([X, Y, X * Y])
    with Tensor.train():
        out = vmap(norm)(Tensor(x)).numpy()
    theirs = torch.func.vmap(torch.nn.BatchNorm1d(X.shape[1], track_running_stats=False))
    np.testing.assert_allclose(out, theirs(torch.tensor(x)).detach().numpy(), rtol=1e-5, atol=1e-5)


def test_statistics_from_outside_stay_as_they_were():
    norm = nn.BatchNorm(X.shape[1])
    with Tensor.train(), pytest.raises(ArgumentError, match="writes values of one example"):
        vmap(lambda x: norm(x.unsqueeze(0)))(Tensor(X))
    assert not norm.running_mean.numpy().any()
    assert norm.num_batches_tracked.item() == 0


def test_a_write_of_the_same_value_for_every_example_happens_once():
    count = Tensor.zeros(2).contiguous().realize()

    def f(x):
        count.assign(count + 1)
        return x * 2

    np.testing.assert_array_equal(vmap(f)(Tensor(X)).numpy(), X * 2)
    np.testing.assert_array_equal(count.numpy(), [1, 1])


def test_an_inner_function_writes_to_nothing_of_the_outer_one():
    def outer(a):
        rows = a.clone()

        def inner(b):
            rows[0] = b
            return b

        return vmap(inner)(a)

    with pytest.raises(ArgumentError, match="writes values of one example"):
        vmap(outer)(Tensor(X))


def test_a_function_that_ends_in_another_thread_changes_nothing_for_this_one():
    outer = Tensor(Y[0]).realize()
    begun, end = threading.Event(), threading.Event()

    def wait(x):
        begun.set()
        assert end.wait(60)
        return x * 2

    thread = threading.Thread(target=vmap(wait), args=(Tensor(X),))
    thread.start()
    assert begun.wait(60)

    def add(x):
        end.set()
        thread.join()
        outer.assign(outer + x)
        return x

    with pytest.raises(ArgumentError, match="writes values of one example"):
        vmap(add)(Tensor(X))
    np.testing.assert_array_equal(outer.numpy(), Y[0])


def test_a_function_may_write_to_tensors_that_it_makes():
    def f(x):
        out = Tensor.zeros(4, 4)
        out[0] = x[1] * 2
        return out

    got = vmap(f)(Tensor(X)).numpy()
    np.testing.assert_array_equal(got[:, 0], X[:, 1] * 2)
    assert not got[:, 1:].any()


def test_arguments_that_do_not_fit_are_refused():
    x, f = Tensor(X), lambda a, b: a + b
    for error, text, call in [
        (ShapeError, "expected batches of one size, got 4 and 5", lambda: vmap(f)(x, Tensor(Y[:4]))),
        (ShapeError, "got no Tensor with an axis", lambda: vmap(f, in_axes=None)(x, x)),
        (AxisError, r"expected an axis of shape \(5, 4, 4\), got 3", lambda: vmap(f, in_axes=3)(x, x)),
        (AxisError, "expected an axis of the results' shape", lambda: vmap(f, out_axes=3)(x, x)),
        (ArgumentError, "expected in_axes for 2 arguments, got 1", lambda: vmap(f, in_axes=(0,))(x, x)),
        (ArgumentError, "expected 2 results", lambda: vmap(f, out_axes=(0, 1))(x, x)),
        (ArgumentError, "the result differs between examples", lambda: vmap(f, out_axes=None)(x, x)),
        (ArgumentError, "expected Tensors, got int", lambda: vmap(f)(x, 3)),
    ]:
        with pytest.raises(error, match=text):
            call()


_SQUARE = [
    name for name, f in FUNCTIONS.items() if f(Tensor(X[0]), Tensor(Y[0])).shape == (4, 4) and name != "cast"
]


@settings(max_examples=15)
@given(st.lists(st.tuples(st.sampled_from(_SQUARE), st.booleans()), min_size=1, max_size=4))
def test_generated_functions(steps):
    def f(x, y):
        for name, turned in steps:
            z = FUNCTIONS[name](x, y).clamp(-4, 4)
            x, y = (y, z) if turned else (z, x)
        return x + y * 0.5

    got = vmap(f)(Tensor(X, device="CPU"), Tensor(Y, device="CPU"))
    np.testing.assert_allclose(got.numpy(), stacked(f, X, Y), rtol=1e-3, atol=1e-4)
