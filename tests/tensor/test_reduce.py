"""Reductions, softmax, losses, matrix products, convolution: against torch, values and gradients."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tensor.differential import agree, sample

from polygrad import Tensor
from polygrad.errors import ArgumentError, AxisError, ShapeError

AXES = [None, 0, -1, (0, 2)]


def test_axes_are_integers_of_any_kind() -> None:
    x = Tensor([[1, 2, 3], [4, 5, 6]])
    kinds = IntEnum("Axis", ["row", "column"], start=0)
    for axis in (np.int64(1), np.int8(-1), kinds.column, True):
        assert x.sum(axis).tolist() == x.sum((axis,)).tolist() == [6, 15]
        assert x.flip(axis).tolist() == [[3, 2, 1], [6, 5, 4]] and x.unsqueeze(axis).shape[axis] == 1
    assert x.sum(np.arange(2)).item() == 21
    assert Tensor(3).sum(np.int64(-1)).item() == Tensor(3).sum(np.int64(0)).item() == 3
    with pytest.raises(AxisError, match="got 2"):
        x.sum(np.int64(2))
    for axis in (Tensor(1), Tensor([1]), np.float32(1), "1"):
        with pytest.raises(ArgumentError, match="axis: expected an int"):
            x.unsqueeze(axis)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin", "var", "std", "logsumexp"])
def test_reductions_agree_with_torch_to_1e_5(name, axis, keepdim):
    ours = {"amax": "max", "amin": "min"}.get(name, name)
    dims = (0, 1, 2) if axis is None else axis
    agree(
        lambda x: getattr(x, ours)(axis, keepdim),
        sample(3, 4, 5),
        reference=lambda x: getattr(x, name)(dims, keepdim=keepdim),
    )


def test_prod_and_its_gradient_with_zeros():
    a = np.array([[1.0, 2.0, 3.0], [0.0, 2.0, 3.0], [0.0, 0.0, 3.0]], np.float32)
    agree(lambda x: x.prod(1), a)


def test_max_shares_its_gradient_between_equals():
    x = Tensor([1.0, 3.0, 3.0])
    assert x.max().gradient(x)[0].tolist() == [0, 0.5, 0.5]


def test_any_and_all():
    a = np.array([[0, 1], [0, 0], [1, 1]])
    np.testing.assert_array_equal(Tensor(a).any(1).numpy(), a.any(1))
    np.testing.assert_array_equal(Tensor(a).all(0).numpy(), a.all(0))
    assert Tensor(a).any().item() is True and Tensor(a).all().item() is False


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_argmax_and_argmin_give_the_first(axis):
    a = np.random.default_rng(0).integers(0, 4, (5, 6)).astype(np.float32)
    np.testing.assert_array_equal(Tensor(a).argmax(axis).numpy(), a.argmax(axis))
    np.testing.assert_array_equal(Tensor(a).argmin(axis).numpy(), a.argmin(axis))
    np.testing.assert_array_equal(Tensor(a.astype(np.int8)).argmin(axis).numpy(), a.argmin(axis))
    assert Tensor(a).argmax(axis, keepdim=True).shape == torch.tensor(a).argmax(axis, keepdim=True).shape


def test_integer_sums_widen():
    assert (
        Tensor([200, 100], dtype="uint8").sum().dtype == "uint32"
        and Tensor([200, 100], dtype="uint8").sum().item() == 300
    )
    assert Tensor([True, True]).sum().item() == 2 and Tensor([100, 100], dtype="int8").sum().item() == 200
    assert Tensor([1, 2], dtype="int64").sum().dtype == "int64" and Tensor([3, 4]).max().item() == 4


def test_half_sums_add_up_in_float32():
    assert Tensor.ones(4096, dtype="float16").sum().item() == 4096
    assert Tensor.ones(4096, dtype="float16").mean().item() == 1


def test_reductions_of_nothing():
    assert (
        Tensor.zeros(0, 3).sum(0).tolist() == [0, 0, 0]
        and Tensor([]).sum().item() == 0
        and Tensor([]).prod().item() == 1
    )
    with pytest.raises(ShapeError, match="at least one"):
        Tensor([]).max()


@pytest.mark.parametrize("n", [1, 5, 600])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
def test_cumulative_ops_agree_with_torch(name, n):
    a = sample(2, n, low=0.9, high=1.1)
    want = getattr(torch, name)(torch.tensor(a), 1)
    got = getattr(Tensor(a), name)(1)
    if not isinstance(want, torch.Tensor):
        np.testing.assert_array_equal(got[1].numpy(), want[1].numpy())
        got, want = got[0], want[0]
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=2e-5)


def test_cumsum_gradient_and_axis():
    agree(lambda x: x.cumsum(0), sample(4, 3))
    agree(lambda x: x.logcumsumexp(1), sample(4, 3))


# name: (shapes, ours, torch's)
CASES = {
    "softmax": ([(3, 7)], lambda x: x.softmax(), lambda x: x.softmax(-1)),
    "softmax_axis0": ([(3, 7)], lambda x: x.softmax(0), None),
    "log_softmax": ([(3, 7)], lambda x: x.log_softmax(), lambda x: x.log_softmax(-1)),
    "layernorm": ([(3, 7)], lambda x: x.layernorm(), lambda x: F.layer_norm(x, (7,))),
    "normalize": ([(3, 7)], lambda x: x.normalize(), F.normalize),
    "dot_vectors": ([(5,), (5,)], lambda x, y: x.dot(y), None),
    "matmul": ([(3, 5), (5, 4)], lambda x, y: x @ y, None),
    "matmul_batch": ([(2, 1, 3, 5), (3, 5, 4)], lambda x, y: x @ y, None),
    "matmul_vector": ([(2, 3, 5), (5,)], lambda x, y: x @ y, None),
    "vector_matmul": ([(5,), (2, 5, 3)], lambda x, y: x @ y, None),
    "linear": ([(3, 5), (5, 4), (4,)], lambda x, w, b: x.linear(w, b), lambda x, w, b: x @ w + b),
    "einsum": (
        [(2, 3, 4), (2, 4, 5)],
        lambda x, y: Tensor.einsum("bij,bjk->bik", x, y),
        lambda x, y: torch.einsum("bij,bjk->bik", x, y),
    ),
    "einsum_implicit": (
        [(3, 4), (4, 5)],
        lambda x, y: Tensor.einsum("ij,jk", x, y),
        lambda x, y: torch.einsum("ij,jk", x, y),
    ),
    "einsum_dots": (
        [(2, 3, 4), (4, 5)],
        lambda x, y: Tensor.einsum("...j,jk->...k", x, y),
        lambda x, y: torch.einsum("...j,jk->...k", x, y),
    ),
    "einsum_trace": ([(4, 4)], lambda x: Tensor.einsum("ii->", x), lambda x: torch.einsum("ii->", x)),
    "einsum_permute": (
        [(2, 3, 4)],
        lambda x: Tensor.einsum("ijk->kij", x),
        lambda x: torch.einsum("ijk->kij", x),
    ),
    "attention": (
        [(2, 4, 8)] * 3,
        lambda q, k, v: q.scaled_dot_product_attention(k, v),
        F.scaled_dot_product_attention,
    ),
    "attention_causal": (
        [(2, 2, 4, 8)] * 3,
        lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    ),
    "conv2d": ([(2, 3, 7, 6), (4, 3, 3, 2), (4,)], lambda x, w, b: x.conv2d(w, b), F.conv2d),
    "conv2d_stride_padding": (
        [(1, 3, 7, 6), (4, 3, 3, 2)],
        lambda x, w: x.conv2d(w, stride=2, padding=1),
        lambda x, w: F.conv2d(x, w, stride=2, padding=1),
    ),
    "conv2d_groups_dilation": (
        [(1, 4, 7, 7), (6, 2, 2, 3)],
        lambda x, w: x.conv2d(w, groups=2, dilation=2),
        lambda x, w: F.conv2d(x, w, groups=2, dilation=2),
    ),
    "conv1d": (
        [(2, 3, 9), (4, 3, 3)],
        lambda x, w: x.conv2d(w, padding=1),
        lambda x, w: F.conv1d(x, w, padding=1),
    ),
    "conv_transpose2d": (
        [(1, 4, 3, 3), (4, 2, 3, 3)],
        lambda x, w: x.conv_transpose2d(w, stride=2, padding=1, output_padding=1),
        lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1),
    ),
    "max_pool2d": ([(2, 3, 7, 6)], lambda x: x.max_pool2d(), lambda x: F.max_pool2d(x, 2)),
    "max_pool2d_stride": (
        [(2, 3, 7, 6)],
        lambda x: x.max_pool2d(3, stride=1, padding=1),
        lambda x: F.max_pool2d(x, 3, 1, 1),
    ),
    "max_pool2d_ceil": (
        [(2, 3, 7, 6)],
        lambda x: x.max_pool2d(3, ceil_mode=True),
        lambda x: F.max_pool2d(x, 3, ceil_mode=True),
    ),
    "avg_pool2d": ([(2, 3, 7, 6)], lambda x: x.avg_pool2d(), lambda x: F.avg_pool2d(x, 2)),
    "avg_pool2d_ceil": (
        [(1, 2, 7, 6)],
        lambda x: x.avg_pool2d(3, stride=2, padding=1, ceil_mode=True),
        lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
    ),
    "avg_pool2d_uncounted": (
        [(1, 2, 7, 6)],
        lambda x: x.avg_pool2d(3, padding=1, count_include_pad=False),
        lambda x: F.avg_pool2d(x, 3, padding=1, count_include_pad=False),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_composites_agree_with_torch_to_2e_5(name):
    shapes, ours, theirs = CASES[name]
    agree(
        ours,
        *[sample(*s, low=-1, high=1, seed=i) for i, s in enumerate(shapes)],
        reference=theirs,
        rtol=2e-5,
        atol=2e-5,
    )


def test_softmax_does_not_overflow():
    x = Tensor([[1e4, 1e4 - 1, -1e4]])
    np.testing.assert_allclose(x.softmax().numpy(), torch.tensor(x.numpy()).softmax(-1).numpy(), rtol=1e-6)
    np.testing.assert_allclose(
        x.log_softmax().numpy(), torch.tensor(x.numpy()).log_softmax(-1).numpy(), rtol=1e-6
    )


def test_attention_masks_and_grouped_queries():
    q, k, v = (sample(2, 4, 5, 8, seed=i) for i in range(3))
    mask = sample(5, 5, seed=7) > -1
    for m in (mask, sample(5, 5, seed=8)):
        want = F.scaled_dot_product_attention(
            *map(torch.tensor, (q, k, v)), attn_mask=torch.tensor(m)
        ).numpy()
        np.testing.assert_allclose(
            Tensor(q).scaled_dot_product_attention(Tensor(k), Tensor(v), Tensor(m)).numpy(),
            want,
            rtol=2e-5,
            atol=1e-6,
        )
    k, v = k[:, :2], v[:, :2]
    want = F.scaled_dot_product_attention(*map(torch.tensor, (q, k, v)), enable_gqa=True).numpy()
    got = Tensor(q).scaled_dot_product_attention(Tensor(k), Tensor(v), enable_gqa=True)
    np.testing.assert_allclose(got.numpy(), want, rtol=2e-5, atol=1e-6)


LABELS = np.array([0, 2, 1, 2])


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_agrees_with_torch(reduction, smoothing):
    y, probabilities = LABELS, np.eye(3, dtype=np.float32)[LABELS]
    kwargs = {"reduction": reduction, "label_smoothing": smoothing}
    agree(
        lambda x: x.cross_entropy(Tensor(y), **kwargs),
        sample(4, 3),
        reference=lambda x: F.cross_entropy(x, torch.tensor(y), **kwargs),
    )
    agree(
        lambda x: x.cross_entropy(Tensor(probabilities), **kwargs),
        sample(4, 3),
        reference=lambda x: F.cross_entropy(x, torch.tensor(probabilities), **kwargs),
    )
    if reduction != "mean" or not smoothing:
        agree(
            lambda x: x.sparse_categorical_crossentropy(
                Tensor(y), reduction=reduction, label_smoothing=smoothing
            ),
            sample(4, 3),
            reference=lambda x: F.cross_entropy(x, torch.tensor(y), **kwargs),
        )


def test_cross_entropy_with_classes_along_axis_1_of_more():
    y = np.array([[0, 1], [2, 0]])
    agree(
        lambda x: x.cross_entropy(Tensor(y)),
        sample(2, 3, 2),
        reference=lambda x: F.cross_entropy(x, torch.tensor(y)),
    )
    assert Tensor.zeros(2, 3, 2).cross_entropy(Tensor(y)).item() == pytest.approx(
        1.0986123085021973, abs=1e-6
    )


def test_ignore_index():
    agree(
        lambda x: x.sparse_categorical_crossentropy(Tensor(LABELS), ignore_index=2),
        sample(4, 3),
        reference=lambda x: F.cross_entropy(x, torch.tensor(LABELS), ignore_index=2),
    )


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_nll_and_binary_losses_agree_with_torch(reduction):
    w = np.array([0.5, 1.0, 2.0], np.float32)
    for weight, ignored in ((None, None), (w, None), (w, 2)):

        def ours(x, weight=weight, ignored=ignored):
            scale = None if weight is None else Tensor(weight)
            return x.log_softmax(1).nll_loss(Tensor(LABELS), scale, ignored, reduction)

        def theirs(x, weight=weight, ignored=-100 if ignored is None else ignored):
            scale = None if weight is None else torch.tensor(weight)
            return F.nll_loss(x.log_softmax(1), torch.tensor(LABELS), scale, None, ignored, None, reduction)

        agree(ours, sample(4, 3), reference=theirs)
    y = (sample(4, 3, seed=5) > 0).astype(np.float32)
    agree(
        lambda x: x.binary_crossentropy_logits(Tensor(y), reduction),
        sample(4, 3),
        reference=lambda x: F.binary_cross_entropy_with_logits(x, torch.tensor(y), reduction=reduction),
    )
    agree(
        lambda x: x.binary_crossentropy(Tensor(y), reduction),
        sample(4, 3, low=0.1, high=0.9),
        reference=lambda x: F.binary_cross_entropy(x, torch.tensor(y), reduction=reduction),
    )


def test_bad_losses_are_refused():
    x = Tensor.zeros(4, 3)
    with pytest.raises(ShapeError, match="cross_entropy"):
        x.cross_entropy(Tensor([1, 2]))
    with pytest.raises(ArgumentError, match="reduction"):
        x.cross_entropy(Tensor(LABELS), reduction="median")
    with pytest.raises(ArgumentError, match="label_smoothing"):
        x.cross_entropy(Tensor(LABELS), label_smoothing=2)
    with pytest.raises(ArgumentError, match="einsum"):
        Tensor.einsum("ij,jk->ik", x)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32"])
def test_linear_computes_in_the_dtype_asked_for(dtype):
    x, w, b = Tensor([[1.7, 2.0]]), Tensor([[1.9], [3.0]]), Tensor([0.6])
    kind = getattr(torch, dtype)
    want = torch.tensor([[1.7, 2.0]]).to(kind) @ torch.tensor([[1.9], [3.0]]).to(kind)
    for bias, added in ((b, torch.tensor([0.6]).to(kind)), (None, torch.zeros(1, dtype=kind))):
        got = x.linear(w, bias, dtype=dtype)
        assert got.dtype == dtype
        assert got.tolist() == (want + added).tolist()
    scaled = Tensor([1.7, 2.0]).linear(Tensor([1.9, 3.0]), dtype=dtype)
    assert scaled.dtype == dtype
    assert scaled.tolist() == (torch.tensor([1.7, 2.0]).to(kind) * torch.tensor([1.9, 3.0]).to(kind)).tolist()
