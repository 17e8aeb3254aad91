"""Indexing and setting against numpy; gather and scatter against torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from adapter import WEBGPU
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tensor.differential import agree, sample

from polygrad import Tensor
from polygrad.engine.stats import stats
from polygrad.errors import ArgumentError, AxisError, DTypeError, GradientError, ShapeError

BASIC = [
    np.s_[1],
    np.s_[-1],
    np.s_[1:3],
    np.s_[::2],
    np.s_[::-1],
    np.s_[3:0:-2],
    np.s_[-3:],
    np.s_[:-1],
    np.s_[5:2],
    np.s_[None],
    np.s_[..., 1],
    np.s_[1, ..., 2],
    np.s_[:, None, 2],
    np.s_[1:3, ::2, ::-3],
    np.s_[None, ..., None],
    np.s_[1, 2, 3],
    np.s_[:, :, 4:1:-1],
    np.s_[...],
    np.s_[()],
    np.s_[3:100],
    np.s_[:, 1:2, None, -1],
    np.s_[::3, ::2],
]


@pytest.mark.parametrize("index", BASIC, ids=str)
def test_basic_indexing_agrees_with_numpy(index):
    a = sample(4, 5, 6)
    got = Tensor(a)[index]
    assert got.shape == a[index].shape
    np.testing.assert_array_equal(got.numpy(), a[index])


@pytest.mark.parametrize("index", [np.s_[1:3, ::-2], np.s_[::3], np.s_[-1, None]], ids=str)
def test_gradient_of_basic_indexing(index):
    x = Tensor(sample(4, 5))
    want = np.zeros((4, 5))
    want[index] = 2
    np.testing.assert_array_equal((x[index] * 2).sum().gradient(x)[0].numpy(), want)


I, J = np.array([0, 3, 1]), np.array([[1], [-1]])
ADVANCED = [
    (I,),
    (slice(None), I),
    (slice(None), slice(None), I),
    (I, I),
    (I, J),
    (slice(None), I, I),
    (I, slice(None), I),
    (J,),
    (Ellipsis, J),
    (1, I),
    (I, 2),
    (I, None),
    (None, I, slice(1, 3)),
    (slice(None, None, -1), J, slice(None, None, 2)),
    (I, slice(1, 4), J),
]


@pytest.mark.parametrize("index", ADVANCED, ids=str)
def test_indexing_by_tensors_agrees_with_numpy(index):
    a = sample(4, 5, 6)
    got = Tensor(a)[tuple(Tensor(i) if isinstance(i, np.ndarray) else i for i in index)]
    want = a[index]
    assert got.shape == want.shape
    np.testing.assert_array_equal(got.numpy(), want)


def moved(draw, t, a):
    """One movement op of a Tensor and of an array."""
    axis = draw(st.integers(0, a.ndim - 1))
    n, rest = a.shape[axis], (slice(None),) * axis
    match draw(st.sampled_from(["flatten", "split", "transpose", "pad", "shrink", "step", "expand"])):
        case "flatten":
            return t.reshape(-1), a.reshape(-1)
        case "split" if a.ndim < 5:
            d = draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0]))
            shape = (*a.shape[:axis], d, n // d, *a.shape[axis + 1 :])
            return t.reshape(shape), a.reshape(shape)
        case "pad" if a.size < 1000:
            widths = [
                (draw(st.integers(0, 3)), draw(st.integers(0, 3))) if i == axis else (0, 0)
                for i in range(a.ndim)
            ]
            return t.pad(widths), np.pad(a, widths)
        case "shrink":
            start = draw(st.integers(0, n - 1))
            part = (*rest, slice(start, draw(st.integers(start + 1, n))))
            return t[part], a[part]
        case "step":
            part = (*rest, slice(None, None, draw(st.sampled_from([-1, -3, 2]))))
            return t[part], a[part]
        case "expand" if a.size < 300 and a.ndim < 5:
            return t.unsqueeze(0).expand(3, *t.shape), np.broadcast_to(a, (3, *a.shape))
    return t.transpose(0, axis), a.swapaxes(0, axis)


@pytest.mark.parametrize("device", ["CPU", "WASM", WEBGPU])
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_elements_of_views_are_picked(device, data):
    """Of reshaped, flipped, padded views the place of an element is found by divisions."""
    a = np.arange(1, 71, dtype=np.float32).reshape(7, 2, 5)
    t = Tensor(a, device=device)
    for _ in range(data.draw(st.integers(1, 6))):
        t, a = moved(data.draw, t, a)
        if data.draw(st.booleans()):
            axis = data.draw(st.integers(0, a.ndim - 1))
            n = a.shape[axis]
            places = np.array(
                data.draw(st.lists(st.integers(-n, n - 1), min_size=1, max_size=3)), dtype=np.int32
            )
            rest = (slice(None),) * axis
            t, a = t[(*rest, Tensor(places, device=device))], a[(*rest, places)]
    np.testing.assert_array_equal(t.numpy(), a)


@pytest.mark.parametrize("device", ["CPU", "WASM", WEBGPU])
def test_an_element_of_a_flipped_part(device):
    """Before its condition, the place may be any number of 32 bits: no term may go beyond them."""
    t = Tensor(np.arange(70, dtype=np.float32).reshape(7, 2, 5), device=device).realize()
    assert t[:1, :, :3].reshape(-1)[::-1][Tensor([0, 4], device=device)].tolist() == [7.0, 1.0]


def test_indexing_by_tensors_gradient_adds_up():
    i = np.array([0, 2, 0])
    agree(lambda x: x[Tensor(i)], sample(3, 4), reference=lambda x: x[torch.tensor(i)])


def test_lists_and_numpy_arrays_index_as_tensors_do():
    a = sample(4, 5)
    np.testing.assert_array_equal(Tensor(a)[[0, 2]].numpy(), a[[0, 2]])
    np.testing.assert_array_equal(Tensor(a)[:, np.array([1, -1])].numpy(), a[:, [1, -1]])
    np.testing.assert_array_equal(Tensor(a)[np.int64(2)].numpy(), a[2])


def test_an_index_out_of_range_that_was_computed_gives_0():
    assert Tensor([1.0, 2.0])[Tensor([0, 4, -4]) + Tensor([0, 1, 1])].tolist() == [1, 0, 0]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16"])
def test_indexing_keeps_the_dtype(dtype):
    got = Tensor([1, 0, 1], dtype=dtype)[Tensor([2, 1])]
    assert got.dtype == dtype and got.tolist() == [1, 0]


SETS = [
    (np.s_[1], 5.0),
    (np.s_[1:3], 7.0),
    (np.s_[::-2, 1], np.arange(2, dtype=np.float32)),
    (np.s_[:, ::3], np.ones((4, 2), np.float32) * 3),
    (np.s_[..., -1], np.arange(4, dtype=np.float32)),
    (np.s_[2, 3], 1.0),
    (np.s_[:], 0.0),
    (np.s_[1:1], 9.0),
]


@pytest.mark.parametrize("realized", [False, True])
@pytest.mark.parametrize(("index", "value"), SETS, ids=str)
def test_setitem_agrees_with_numpy(index, value, realized):
    a = sample(4, 5)
    t = Tensor(a) if realized else Tensor(a) * 1
    before = t + 0
    t[index] = Tensor(value) if isinstance(value, np.ndarray) else value
    want = a.copy()
    want[index] = value
    np.testing.assert_array_equal(before.numpy(), a)
    np.testing.assert_array_equal(t.numpy(), want)


@pytest.mark.parametrize(
    "index", [(np.array([0, 2, 0]),), (slice(None), np.array([1, 3])), (np.array([1, 1]), np.array([2, 2]))]
)
def test_setitem_by_tensors_agrees_with_numpy(index):
    a = sample(4, 5)
    want = a.copy()
    value = np.arange(want[index].size, dtype=np.float32).reshape(want[index].shape)
    want[index] = value
    t = Tensor(a)
    t[tuple(Tensor(i) if isinstance(i, np.ndarray) else i for i in index)] = Tensor(value)
    np.testing.assert_array_equal(t.numpy(), want)


def test_setitem_converts_the_value_and_keeps_the_memory():
    t = Tensor([1, 2, 3]).realize()
    t[0] = 2.9
    t[1:] = Tensor([[7.0, 8.0]])
    assert t.tolist() == [2, 7, 8] and t.dtype == "int32"


def test_setitem_lets_gradients_through_a_lazy_tensor():
    x, v = Tensor([1.0, 2.0, 3.0], requires_grad=True), Tensor([5.0], requires_grad=True)
    y = x * 2
    y[1:2] = v * 3
    y.sum().backward()
    assert x.grad.tolist() == [2, 0, 2] and v.grad.tolist() == [3]


def test_setitem_of_a_leaf_that_requires_a_gradient_is_refused():
    x = Tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(GradientError, match="leaf"):
        x[0] = 1


@pytest.mark.parametrize(
    ("index", "error"),
    [
        (4, AxisError),
        (-5, AxisError),
        ((0, 0, 0), AxisError),
        ((..., ...), ArgumentError),
        (slice(0, 1, 0), ArgumentError),
        (1.5, DTypeError),
        ("a", DTypeError),
        (True, DTypeError),
    ],
    ids=str,
)
def test_bad_indices_are_refused(index, error):
    t = Tensor(sample(4, 5))
    with pytest.raises(error):
        t[index]
    with pytest.raises(ShapeError, match="broadcast"):
        t[0] = Tensor([1.0, 2.0])


INDEX = np.random.default_rng(0).integers(0, 4, (3, 5))


LISTS = [
    ([slice(None), [0, 2]], np.s_[:, [0, 2]]),
    ([None, 1, slice(None, None, 2)], np.s_[None, 1, ::2]),
    ([Ellipsis, [1, 0]], np.s_[..., [1, 0]]),
    ([Tensor([0, 2]), Tensor([1, 3])], np.s_[np.array([0, 2]), np.array([1, 3])]),
    ([Tensor([[0], [2]]), 1], np.s_[np.array([[0], [2]]), 1]),
    ([0, 2], np.s_[np.array([0, 2])]),  # numbers alone are an array
    ([[0, 2], [1, 3]], np.s_[np.array([[0, 2], [1, 3]])]),
]


@pytest.mark.parametrize(("index", "same"), LISTS, ids=str)
def test_a_list_with_a_slice_none_ellipsis_or_tensor_is_a_tuple(index, same):
    a = sample(4, 5, 6)
    np.testing.assert_array_equal(Tensor(a)[index].numpy(), a[same])
    x = Tensor(a)
    x[index] = 7.0
    a[same] = 7.0
    np.testing.assert_array_equal(x.numpy(), a)


@pytest.mark.parametrize("shape", [(5,), (4, 5), (4, 4, 4), (3, 4, 5), (2, 3, 4, 5)])
@pytest.mark.parametrize("less", [0, 1])
def test_gather_with_an_index_of_other_sizes_agrees_with_torch(shape, less):
    a = sample(*shape)
    for axis in range(len(shape)):
        sizes = [n + 2 if k == axis else max(1, n - less) for k, n in enumerate(shape)]
        index = np.random.default_rng(axis).integers(0, shape[axis], sizes)
        x, t = Tensor(a), torch.tensor(a, requires_grad=True)
        got, want = x.gather(axis, Tensor(index)), t.gather(axis, torch.tensor(index))
        (slope,) = (got * got).sum().gradient(x)
        (want * want).sum().backward()
        np.testing.assert_array_equal(got.numpy(), want.detach().numpy())
        np.testing.assert_allclose(slope.numpy(), t.grad.numpy(), rtol=1e-6)


def test_gather_agrees_with_torch():
    agree(
        lambda x: x.gather(0, Tensor(INDEX)),
        sample(4, 5),
        reference=lambda x: x.gather(0, torch.tensor(INDEX)),
    )
    agree(
        lambda x: x.gather(1, Tensor(INDEX)),
        sample(6, 4),
        reference=lambda x: x.gather(1, torch.tensor(INDEX)),
    )


@pytest.mark.parametrize("reduce", [None, "add", "multiply"])
def test_scatter_agrees_with_torch(reduce):
    a, src = sample(4, 5), sample(3, 5, seed=1)
    index = np.stack([np.random.default_rng(i).permutation(4)[:3] for i in range(5)], 1)
    want = torch.tensor(a).scatter(
        0, torch.tensor(index), torch.tensor(src), **({"reduce": reduce} if reduce else {})
    )
    np.testing.assert_allclose(
        Tensor(a).scatter(0, Tensor(index), Tensor(src), reduce).numpy(), want.numpy(), rtol=1e-6
    )
    want = torch.tensor(a).scatter(0, torch.tensor(index), 3.0)
    np.testing.assert_array_equal(Tensor(a).scatter(0, Tensor(index), 3.0).numpy(), want.numpy())


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_scatter_reduce_agrees_with_torch(reduce, include_self):
    a, src = sample(4, 5), sample(3, 6, seed=1)
    args = (torch.tensor(INDEX), torch.tensor(src), reduce)
    want = torch.tensor(a).scatter_reduce(0, *args, include_self=include_self).numpy()
    got = Tensor(a).scatter_reduce(0, Tensor(INDEX), Tensor(src), reduce, include_self).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_one_hot():
    assert Tensor([0, 2]).one_hot(3).tolist() == [[1, 0, 0], [0, 0, 1]]


# --- axes longer than the index's dtype counts


@pytest.mark.parametrize("device", ["CPU", "WASM", "INTERP", WEBGPU])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "amin"])
def test_a_narrow_index_writes_no_position_256_above_another(reduce, dtype, device):
    index, a, src = np.array([1, 0, 1], dtype), sample(300), sample(3, seed=1)
    want = torch.tensor(a).scatter_reduce(0, torch.tensor(index).long(), torch.tensor(src), reduce).numpy()
    at, values = Tensor(index, device=device), Tensor(src, device=device)
    got = Tensor(a, device=device).scatter_reduce(0, at, values, reduce)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_a_narrow_index_reads_writes_and_differentiates_the_elements_that_a_wide_one_does(dtype):
    index, w = np.array([3, 0, 127], dtype), sample(40_000)
    x = Tensor(w, requires_grad=True)
    picked = x[Tensor(index)]
    np.testing.assert_array_equal(picked.numpy(), w[index])
    picked.sum().backward()
    assert np.nonzero(x.grad.numpy())[0].tolist() == [0, 3, 127]
    written = Tensor.zeros(40_000).contiguous()
    written[Tensor(index)] = 1.0
    assert np.nonzero(written.numpy())[0].tolist() == [0, 3, 127]
    filled = Tensor.zeros(40_000).index_fill(0, Tensor(index), 1.0)
    assert np.nonzero(filled.numpy())[0].tolist() == [0, 3, 127]
    if not dtype.startswith("u"):
        last = Tensor(np.array([-1], dtype))
        assert x[last].item() == w[-1] and x.index_fill(0, last, 2.0)[-1].item() == 2


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8"])
def test_narrow_classes_have_one_column_each(dtype):
    classes = np.array([1, 0], dtype)
    assert np.argwhere(Tensor(classes).one_hot(300).numpy()).tolist() == [[0, 1], [1, 0]]
    if dtype != "bool":
        logits = Tensor.zeros(2, 300, requires_grad=True)
        logits.cross_entropy(Tensor(classes)).backward()
        assert np.argwhere(logits.grad.numpy() < 0).tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("device", ["CPU", "WASM"])
@pytest.mark.parametrize("shape", [(5000,), (20, 300)])
def test_positions_are_counted_and_written_by_one_kernel(device, shape):
    a = (np.arange(np.prod(shape)) % 3).astype(np.int32).reshape(shape)
    x = Tensor(a, device=device).realize()
    before = stats.launches
    found = x.nonzero()
    assert stats.launches - before <= 3 + 2 * len(shape)
    np.testing.assert_array_equal(found.numpy(), np.argwhere(a))
    np.testing.assert_array_equal(x.masked_select(x > 1).numpy(), a[a > 1])
