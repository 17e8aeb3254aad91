"""Symbolic sizes in the API: indices, slices, arithmetic, and captured calls replayed with other values."""

from __future__ import annotations

import itertools

import pytest

np = pytest.importorskip("numpy", reason="it judges the results")

from plain import dtypes_of  # noqa: E402

from polygrad import Tensor, TinyJit, Variable, compile_step, nn  # noqa: E402
from polygrad.dtype import dtypes  # noqa: E402
from polygrad.engine.devices import Device  # noqa: E402
from polygrad.errors import ArgumentError, AxisError, CaptureError, OverflowError_, ShapeError  # noqa: E402
from polygrad.tensor.core.sizes import value_with  # noqa: E402

A = np.arange(30, dtype=np.float32).reshape(3, 10)
I, J = Variable("i", 1, 10), Variable("j", 0, 9)


@pytest.fixture
def a(device):
    return Tensor(A, device=device).realize()


def read(x):
    """The elements, with the Variables of the shape at what they are bound to."""
    return x.shrink([(0, value_with(n)) for n in x.shape]).numpy()


# --- indices and slices


@pytest.mark.parametrize("n", [1, 3, 10])
def test_an_index_on_a_symbolic_axis_is_checked_against_the_bound_size(a, n):
    x = a[:, : I.bind(n)]
    for k in range(-12, 12):
        if -n <= k < n:
            np.testing.assert_array_equal(x[:, k].numpy(), A[:, :n][:, k])
        else:
            with pytest.raises(AxisError, match="axis 1 of shape"):
                x[:, k]


def test_a_variable_as_an_index(a):
    for n, k in ((3, 0), (3, 2), (10, 9)):
        x = a[:, : I.bind(n)]
        np.testing.assert_array_equal(x[:, J.bind(k)].numpy(), A[:, k])
        np.testing.assert_array_equal(x[:, -J.bind(k) - 1].numpy(), A[:, :n][:, -k - 1])
        np.testing.assert_array_equal(x[:, I.bind(n) - 1].numpy(), A[:, n - 1])
    with pytest.raises(AxisError, match=r"expected -i to i - 1 for axis 1 of shape \(3, i=3\), got j=3"):
        a[:, : I.bind(3)][:, J.bind(3)]
    with pytest.raises(AxisError):
        a[J.bind(3)]


@pytest.mark.parametrize("n", [1, 4])
def test_slices_are_clamped_as_python_s(a, n):
    ends = (None, -9, -4, -2, -1, 0, 1, 3, 4, 5, 12)
    x, expected = a[:, : I.bind(n)], A[:, :n]
    for start, stop, step in itertools.product(ends, ends, (1, 2, -1, -3)):
        cut = slice(start, stop, step)
        got = x[:, cut]
        assert tuple(value_with(s) for s in got.shape) == expected[:, cut].shape, cut
        if device_is_quick(a) or step != 1:
            np.testing.assert_array_equal(read(got), expected[:, cut], err_msg=str(cut))


def device_is_quick(x):
    return x.device == "CPU"


def test_slices_between_variables(a):
    for i, j in ((1, 0), (4, 2), (9, 9), (3, 7)):
        vi, vj = I.bind(i), J.bind(j)
        np.testing.assert_array_equal(read(a[:, vj:]), A[:, j:])
        np.testing.assert_array_equal(read(a[:, vj : vj + 1]), A[:, j : j + 1])
        np.testing.assert_array_equal(read(a[:, :vi][:, vj:]), A[:, :i][:, j:])
        np.testing.assert_array_equal(read(a[:, -vi:]), A[:, -i:])
        np.testing.assert_array_equal(read(a[:, :-vi]), A[:, :-i])
        np.testing.assert_array_equal(read(a[:, vj:vi:2]), A[:, j:i:2])
        np.testing.assert_array_equal(read(a[:, vi::-1]), A[:, i::-1])


def test_ints_cut_a_symbolic_axis_to_a_fixed_size(a):
    x = a[:, : I.bind(4)]
    assert [x[:, cut].shape[1] for cut in (slice(4), slice(1, 3), slice(-2, None))] == [4, 2, 2]
    assert [str(x[:, cut].shape[1]) for cut in (slice(5), slice(1, None), slice(-1))] == [
        "i=4",
        "i - 1",
        "i - 1",
    ]
    np.testing.assert_array_equal(x[:3, :4].numpy(), A[:, :4])
    np.testing.assert_array_equal(x.reshape(3, 4).numpy(), A[:, :4])
    with pytest.raises(ShapeError, match=r"symbolic.*t\[:, :3\]"):
        x.numpy()
    with pytest.raises(ShapeError, match=r"reshape: expected i\*3 elements"):
        x.reshape(3, 5)


def test_cutting_out_of_range_is_an_error(a):
    with pytest.raises(ShapeError, match="shrink"):
        a.shrink(((0, 3), (0, I.bind(4) + 7)))
    with pytest.raises(ShapeError, match="shrink"):
        a[:, : I.bind(4)].shrink(((0, 3), (0, 5)))
    with pytest.raises(ShapeError, match="at least 0"):
        Tensor.ones(I.bind(2) - 3)


# --- equal sizes


def test_sizes_written_differently_are_one_size(a):
    i, j = I.bind(3), J.bind(2)
    x, y = a[:, :i], a[:, :j]
    assert x.cat(x, dim=1).shape == x.repeat(1, 2).shape
    np.testing.assert_array_equal(read(x.cat(x, dim=1) + Tensor.ones(3, i + i)), np.tile(A[:, :3], 2) + 1)
    np.testing.assert_array_equal(read(x.cat(y, dim=1) + y.cat(x, dim=1)).shape, (3, 5))
    assert (Tensor.ones(25 * i) + Tensor.ones(i * 25)).sum().item() == 150
    assert (Tensor.ones(i, j) + Tensor.ones(j, i).T).sum().item() == 12
    assert x.reshape(-1).reshape(i, -1).shape == (i, 3)
    with pytest.raises(ShapeError, match="j"):
        x + y


# --- arithmetic


@pytest.mark.parametrize("value", [1, 3])
def test_a_variable_and_a_tensor_in_every_operator(device, value):
    i, data = I.bind(value), np.array([1.0, 2.0, 4.0, 7.0], np.float32)
    x, whole = Tensor(data, device=device), Tensor([1, 2, 4, 7], device=device)
    numbers = data.astype(np.int32)
    table = [
        lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b, lambda a, b: a % b,
        lambda a, b: a // b, lambda a, b: a**b, lambda a, b: a < b, lambda a, b: a <= b, lambda a, b: a > b,
        lambda a, b: a >= b, lambda a, b: a == b, lambda a, b: a != b,
    ]  # fmt: skip
    power = table[6]
    for f in table:
        np.testing.assert_allclose(f(x, i).numpy(), f(data, np.float32(value)), rtol=1e-5)
        np.testing.assert_allclose(f(i, x).numpy(), f(np.float32(value), data), rtol=1e-5)
        if f is power and dtypes.float64 not in dtypes_of(device):  # integers' powers are computed in it
            continue
        np.testing.assert_allclose(f(whole, i).numpy(), f(numbers, value), rtol=1e-5)
        np.testing.assert_allclose(f(i, whole).numpy(), f(value, numbers), rtol=1e-5)
    for f in (lambda a, b: a & b, lambda a, b: a | b, lambda a, b: a ^ b, lambda a, b: a << b):
        np.testing.assert_array_equal(f(whole, i).numpy(), f(numbers, value))
        np.testing.assert_array_equal(f(i, whole).numpy(), f(value, numbers))
    np.testing.assert_allclose((6 / i * x + i / 2).numpy(), 6 / value * data + value / 2, rtol=1e-6)
    np.testing.assert_allclose((x * (i * 1.5 - 0.5)).numpy(), data * (value * 1.5 - 0.5), rtol=1e-6)
    np.testing.assert_array_equal((x > i).where(i, i + 1).numpy(), np.where(data > value, value, value + 1))


def test_a_variable_meets_dtypes_as_a_python_number(device):
    i = I.bind(3)
    for dtype in ("float16", "float32", "float64", "int8", "uint8", "int64"):
        x = Tensor([1, 2], dtype=dtype, device=device)
        assert (x * i).dtype == (x * 3).dtype == dtype and (i - x).dtype == dtype
        assert (x * (6 / i)).dtype == (x * 2.0).dtype
    assert (Tensor([True]) + i).dtype == "int32"
    with pytest.raises(OverflowError_):
        Tensor([1], dtype="int8") * Variable("k", 1, 1000).bind(3)


def test_creation_with_symbolic_sizes_and_values(device):
    for n in (2, 7):
        i = I.bind(n)
        np.testing.assert_array_equal(read(Tensor.full((i, 2), i, device=device)), np.full((n, 2), n))
        np.testing.assert_array_equal(read(Tensor.arange(i, device=device)), np.arange(n))
        np.testing.assert_array_equal(read(Tensor.arange(1, i, 2, device=device)), np.arange(1, n, 2))
        np.testing.assert_array_equal(read(Tensor.arange(i, 0, -1, device=device)), np.arange(n, 0, -1))
        np.testing.assert_array_equal(read(Tensor.arange(0, 20, i, device=device)), np.arange(0, 20, n))
        np.testing.assert_array_equal(read(Tensor.eye(i, 4, device=device)), np.eye(n, 4))
        np.testing.assert_array_equal(read(Tensor.zeros(i, device=device) + Tensor.ones(i)), np.ones(n))
        drawn = read(Tensor.rand(i, 5, device=device))
        assert drawn.shape == (n, 5) and 0 <= drawn.min() < drawn.max() < 1
    with pytest.raises(ArgumentError, match="Variables"):
        Tensor.arange(0, I.bind(3), 0.5)


def test_a_condition_that_pins_a_variable_leaves_loops_alone(device):
    i, j = Variable("i", 1, 7), Variable("j", 2, 5)
    base = Tensor(list(range(70)), device=device).reshape(7, 2, 5).realize()
    x = base[: i.bind(1), :, : j.bind(2)]
    picked = x.pad(((j.bind(2), i.bind(1)), None, None))[2]  # of the padding, unless j is 2
    assert picked.contiguous().shrink(((0, 2), (0, 2))).tolist() == [[0, 1], [5, 6]]


def test_unbound_variables_are_an_error_where_a_value_is_needed(a):
    for needs_value in (
        lambda: Tensor.ones(I).sum().item(),
        lambda: a[:, :I][:, 4],
        lambda: a[:, :I][:, :4],
        lambda: (a.sum() * I).item(),
        lambda: a[:, :I].contiguous().realize(),
    ):
        with pytest.raises(ArgumentError, match=r"bind\(value\)"):
            needs_value()
    assert a[:, :I].shape == (3, I)  # a shape needs none
    assert a[:, :I][:, -1].shape == (3,)


# --- windows


@pytest.mark.parametrize("stride, padding, dilation", [(1, 0, 1), (2, 1, 1), (1, 2, 2), (3, 0, 1)])
def test_convolution_and_pooling_over_symbolic_axes_rtol_1e_5(device, stride, padding, dilation):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 3, 10, 10)).astype(np.float32)
    t, w = (
        Tensor(x, device=device).realize(),
        Tensor(rng.normal(size=(4, 3, 3, 2)).astype(np.float32), device=device),
    )
    for i, j in ((5, 9), (10, 5)):
        views = t[:, :, : I.bind(i), : J.bind(j)], Tensor(x[:, :, :i, :j], device=device)
        got, expected = [v.conv2d(w, stride=stride, padding=padding, dilation=dilation) for v in views]
        np.testing.assert_allclose(read(got), expected.numpy(), rtol=1e-5, atol=1e-5)
        for ceil in (False, True):
            got, expected = [v.max_pool2d((3, 2), stride, dilation, min(padding, 1), ceil) for v in views]
            np.testing.assert_array_equal(read(got), expected.numpy())
            got, expected = [v.avg_pool2d((3, 2), stride, dilation, min(padding, 1), ceil) for v in views]
            np.testing.assert_allclose(read(got), expected.numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(ArgumentError, match="windows that fit"):
        t[:, :, : I.bind(2)].conv2d(w)


# --- captured calls


def test_results_of_a_replay_have_its_sizes(a):
    f = TinyJit(lambda x: (x + 1).realize())
    for n in (1, 2, 3, 4, 10, 1):
        got = f(a[:, : I.bind(n)])
        assert got.shape == (3, I.bind(n))
        np.testing.assert_array_equal(got[:3, :n].numpy(), A[:, :n] + 1)
        np.testing.assert_array_equal(got[:, -1].numpy(), A[:, n - 1] + 1)
        np.testing.assert_array_equal((got * 2).sum(1).numpy(), (2 * A[:, :n] + 2).sum(1))


def test_views_of_results_follow_the_replay_and_values_do_not(a):
    f = TinyJit(lambda x: {"sum": x.sum(0), "all": [(x * 2).realize()]})
    views = None
    for n in (3, 4, 6, 2, 9):
        out = f(a[:, : I.bind(n)])
        np.testing.assert_array_equal(read(out["sum"]), A[:, :n].sum(0))
        np.testing.assert_array_equal(read(out["all"][0]), A[:, :n] * 2)
        if n == 4:  # the first replay's
            d = out["all"][0]
            views, value = [d.T, d.flip(1), d.reshape(-1)], d + 1
        elif views is not None:
            assert [v.shape for v in views] == [
                (I.bind(n), 3),
                (3, I.bind(n)),
                (I.bind(n) * 3,),
            ]
    np.testing.assert_array_equal(read(views[0]), A[:, :9].T * 2)
    np.testing.assert_array_equal(read(views[1]), A[:, 8::-1] * 2)
    np.testing.assert_array_equal(read(views[2]), A[:, :9].ravel() * 2)
    np.testing.assert_array_equal(read(value), A[:, :4] * 2 + 1)


def test_the_result_of_one_capture_is_the_argument_of_another(a):
    f = TinyJit(lambda x: (x + 1).realize())
    g = TinyJit(lambda x: (x * 2).sum(1))
    for n in (2, 5, 3, 8):
        np.testing.assert_array_equal(g(f(a[:, : I.bind(n)])).numpy(), (2 * A[:, :n] + 2).sum(1))


def test_several_variables_and_two_captures_of_one_function(a):
    def outer(x, y):
        return x.unsqueeze(1) * y.unsqueeze(2), x.sum() * y.shape[1]

    f, g = TinyJit(outer), TinyJit(outer)
    for i, j in ((2, 3), (4, 1), (1, 9), (3, 3)):
        x, y = a[:, : I.bind(i)], a[:, : J.bind(j)]
        for call, left, right, m, n in ((f, x, y, i, j), (g, y, x, j, i)):
            got, total = call(left, right)
            np.testing.assert_array_equal(read(got), A[:, None, :m] * A[:, :n, None])
            assert total.item() == A[:, :m].sum() * n
    with pytest.raises(ShapeError, match="as captured"):
        f(a[:, : J.bind(3)], a[:, : I.bind(2)])


def test_a_replay_whose_values_decide_otherwise_is_refused(a):
    f = TinyJit(lambda x: x[:, 2].realize())
    for n in (3, 4, 5, 10):
        np.testing.assert_array_equal(f(a[:, : I.bind(n)]).numpy(), A[:, 2])
    with pytest.raises(CaptureError, match=r"\{'i': 2\}: expected i - 3 to be at least 0"):
        f(a[:, : I.bind(2)])
    np.testing.assert_array_equal(f(a[:, : I.bind(7)]).numpy(), A[:, 2])
    h = TinyJit(lambda x: x[:, :5].sum(1).realize())
    for n in (3, 4, 1):
        np.testing.assert_array_equal(h(a[:, : I.bind(n)]).numpy(), A[:, :n].sum(1))
    with pytest.raises(CaptureError, match="below 0"):
        h(a[:, : I.bind(6)])


def test_decisions_that_all_values_share_need_no_guard(a):
    f = TinyJit(lambda x: (x[:, 0] + x[:, -1] + x[:, :20].sum(1)).realize())
    for n in (5, 4, 1, 10):
        expected = A[:, 0] + A[:, n - 1] + A[:, :n].sum(1)
        np.testing.assert_array_equal(f(a[:, : I.bind(n)]).numpy(), expected)


def test_training_steps_with_a_symbolic_batch_rtol_1e_5(device):
    rng = np.random.default_rng(1)
    data, labels = rng.normal(size=(10, 4)).astype(np.float32), rng.integers(0, 3, 10).astype(np.int32)
    x, y = Tensor(data, device=device).realize(), Tensor(labels, device=device).realize()
    weights = rng.normal(size=(3, 4)).astype(np.float32)

    def fresh():
        model = nn.Linear(4, 3)
        model.weight.assign(Tensor(weights, device="CPU").to(device)).realize()
        model.bias.assign(Tensor.zeros(3, device=device)).realize()
        return model, nn.optim.SGD(nn.state.get_parameters(model), 0.1)

    before = Device.DEFAULT
    Device.DEFAULT = device
    try:
        model, opt = fresh()
        batch = lambda n: (x[: I.bind(n)], y[: I.bind(n)])
        step = compile_step(lambda m, x, y: (m(x).cross_entropy(y), m(x).argmax(1)), model, opt, *batch(4))
        other, plain = fresh()
        for n in (4, 7, 1, 10, 3):
            loss, guess = step.run(*batch(n))
            with Tensor.train():
                logits = other(Tensor(data[:n]))
                expected = logits.cross_entropy(Tensor(labels[:n]))
                plain.zero_grad()
                expected.backward()
                wanted = logits.argmax(1).numpy()
                plain.step()
            np.testing.assert_allclose(loss.item(), expected.item(), rtol=1e-5)
            np.testing.assert_array_equal(guess[:n].numpy(), wanted)
        np.testing.assert_allclose(model.weight.numpy(), other.weight.numpy(), rtol=1e-5, atol=1e-6)
        with pytest.raises(ShapeError, match="as captured"):
            step.run(x[:4], y[:4])
    finally:
        Device.DEFAULT = before


def test_tensors_made_of_variables_alone_follow_the_replay(device):
    f = TinyJit(
        lambda x, i: (
            (x + Tensor.arange(i, device=device)).realize(),
            (Tensor.arange(i, i + x.shape[0], device=device) * 2).contiguous().realize() + x,
            Tensor.full((2,), i, device=device).realize() + Tensor.ones(2, device=device),
        )
    )
    x = Tensor(A[0], device=device).realize()
    for n in (1, 1, 1, 4, 2):
        first, second, third = f(x[: I.bind(n)], I.bind(n))
        np.testing.assert_array_equal(read(first), A[0, :n] + np.arange(n))
        np.testing.assert_array_equal(read(second), A[0, :n] + 2 * np.arange(n, 2 * n))
        np.testing.assert_array_equal(third.numpy(), [n + 1, n + 1])
