"""Movement ops against torch or numpy: values and gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tensor.differential import agree, sample

from polygrad import Tensor
from polygrad.errors import ArgumentError, AxisError, ShapeError

# name: (shape, ours, torch's)
CASES = {
    "reshape": ((2, 3, 4), lambda x: x.reshape(4, 6), None),
    "reshape_minus1": ((2, 3, 4), lambda x: x.reshape((3, -1)), None),
    "reshape_none": ((2, 3, 4), lambda x: x.reshape(None, -1), lambda x: x.reshape(2, -1)),
    "view": ((2, 3, 4), lambda x: x.view(-1), None),
    "permute": ((2, 3, 4), lambda x: x.permute(2, 0, -2), None),
    "transpose": ((2, 3, 4), lambda x: x.transpose(0, -1), None),
    "T": ((2, 3), lambda x: x.T, None),
    "expand": ((3, 1), lambda x: x.expand(2, -1, 4), None),
    "flip": ((3, 4), lambda x: x.flip((0, 1)), None),
    "shrink": ((3, 4), lambda x: x.shrink(((1, 3), None)), lambda x: x[1:3]),
    "pad_pairs": ((3, 4), lambda x: x.pad(((1, 2), None)), lambda x: F.pad(x, (0, 0, 1, 2))),
    "pad_flat": ((3, 4), lambda x: x.pad((1, 2)), lambda x: F.pad(x, (1, 2))),
    "pad_value": (
        (3, 4),
        lambda x: x.pad((1, 2, 3, 0), value=7.0),
        lambda x: F.pad(x, (1, 2, 3, 0), value=7.0),
    ),
    "pad_negative": ((3, 5), lambda x: x.pad((-1, 2)), lambda x: F.pad(x, (-1, 2))),
    "pad_reflect": (
        (2, 3, 5),
        lambda x: x.pad((2, 1), mode="reflect"),
        lambda x: F.pad(x, (2, 1), mode="reflect"),
    ),
    "pad_replicate": (
        (2, 3, 5),
        lambda x: x.pad((2, 1), mode="replicate"),
        lambda x: F.pad(x, (2, 1), mode="replicate"),
    ),
    "pad_circular": (
        (2, 3, 5),
        lambda x: x.pad((2, 1), mode="circular"),
        lambda x: F.pad(x, (2, 1), mode="circular"),
    ),
    "pad_to": ((2, 3), lambda x: x.pad_to(4, None), lambda x: F.pad(x, (0, 0, 0, 2))),
    "shrink_to": ((4, 3), lambda x: x.shrink_to(2, None), lambda x: x[:2]),
    "squeeze": ((1, 3, 1), lambda x: x.squeeze(), None),
    "squeeze_dim": ((1, 3, 1), lambda x: x.squeeze(-1), None),
    "unsqueeze": ((2, 3), lambda x: x.unsqueeze(-1), None),
    "flatten": ((2, 3, 4), lambda x: x.flatten(1), None),
    "unflatten": ((2, 12), lambda x: x.unflatten(1, (3, -1)), None),
    "cat": ((2, 3), lambda x: x.cat(x * 2, x, dim=1), lambda x: torch.cat([x, x * 2, x], 1)),
    "stack": ((2, 3), lambda x: x.stack(x * 2, dim=-1), lambda x: torch.stack([x, x * 2], -1)),
    "repeat": ((2, 3), lambda x: x.repeat(2, 1, 3), None),
    "repeat_interleave": ((2, 3), lambda x: x.repeat_interleave(2, 1), None),
    "roll": ((3, 4), lambda x: x.roll(1, 0), None),
    "roll_many": ((3, 4), lambda x: x.roll((2, -5), (0, 1)), None),
    "roll_flat": ((3, 4), lambda x: x.roll(5), None),
    "split": ((7, 2), lambda x: x.split(3)[2], None),
    "split_sizes": ((7, 2), lambda x: x.split([2, 5])[1], None),
    "chunk": ((7, 2), lambda x: x.chunk(3)[1], None),
    "diag": ((3,), lambda x: x.diag(), None),
    "diagonal": ((3, 4, 5), lambda x: x.diagonal(1, 0, 2), None),
    "diagonal_below": ((4, 3), lambda x: x.diagonal(-2), None),
    "unfold": ((2, 9), lambda x: x.unfold(1, 4, 3), None),
    "unfold_overlapping": ((9, 2), lambda x: x.unfold(0, 4, 2), None),
    "triu": ((3, 4), lambda x: x.triu(1), None),
    "tril": ((2, 4, 4), lambda x: x.tril(-1), None),
}


@pytest.mark.parametrize("name", CASES)
def test_movement_agrees_with_torch_to_1e_6(name):
    shape, ours, theirs = CASES[name]
    agree(ours, sample(*shape), reference=theirs, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("k", "stride", "dilation"), [(2, 2, 1), (3, 1, 1), (3, 2, 1), (2, 1, 3), (2, 3, 2), (2, 4, 1), (1, 2, 1)]
)
def test_pool_gives_the_windows(k, stride, dilation):
    a = sample(2, 11)
    got = Tensor(a).pool((k,), stride, dilation).numpy()
    count = (11 - dilation * (k - 1) - 1) // stride + 1
    want = np.stack(
        [a[:, i * stride : i * stride + dilation * (k - 1) + 1 : dilation] for i in range(count)], 1
    )
    np.testing.assert_array_equal(got, want)


def test_meshgrid():
    a, b = np.arange(3), np.arange(4)
    for indexing in ("ij", "xy"):
        got = Tensor(a).meshgrid(Tensor(b), indexing=indexing)
        for g, w in zip(got, np.meshgrid(a, b, indexing=indexing), strict=True):
            np.testing.assert_array_equal(g.numpy(), w)


def test_cat_promotes_and_joins_bools():
    assert Tensor([1]).cat(Tensor([1.5])).tolist() == [1.0, 1.5]
    assert Tensor([True, False]).cat(Tensor([True])).tolist() == [True, False, True]


@pytest.mark.parametrize("several", [tuple, list])
def test_cat_and_stack_take_a_tuple(several):
    a, b = sample(2, 3), sample(2, 3) + 1
    pair = several((Tensor(a), Tensor(b)))
    np.testing.assert_array_equal(Tensor.stack(pair).numpy(), np.stack((a, b)))
    np.testing.assert_array_equal(Tensor.stack(pair, dim=-1).numpy(), np.stack((a, b), -1))
    np.testing.assert_array_equal(Tensor.cat(pair).numpy(), np.concatenate((a, b)))
    np.testing.assert_array_equal(Tensor.cat(pair, dim=1).numpy(), np.concatenate((a, b), 1))
    np.testing.assert_array_equal(Tensor.cat(pair[:1], dim=1).numpy(), a)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda x: Tensor.stack(()), ArgumentError, "got none"),
        (lambda x: Tensor.cat((x, 3)), ArgumentError, "got a int"),
        (lambda x: x.reshape(5, 5), ShapeError, "6 elements"),
        (lambda x: x.reshape(4, -1), ShapeError, "sizes that divide"),
        (lambda x: x.reshape(-1, -1), ShapeError, "at most one -1"),
        (lambda x: x.reshape(-2, -3), ShapeError, "at least 0"),
        (lambda x: x.expand(3, 3), ShapeError, "expand: expected"),
        (lambda x: x.permute(0, 0), ArgumentError, "every axis"),
        (lambda x: x.transpose(0, 2), AxisError, "axis"),
        (lambda x: x.sum(2), AxisError, "expected -2 to 1"),
        (lambda x: x.sum((0, 0)), ArgumentError, "distinct"),
        (lambda x: x.shrink(((0, 3), None)), ShapeError, "0 <= lo <= hi <= 2"),
        (lambda x: x.pad((1,)), ArgumentError, "pairs"),
        (lambda x: x.cat(Tensor([1.0])), ShapeError, "cat"),
        (lambda x: x.stack(Tensor([1.0])), ShapeError, "stack"),
        (lambda x: x.split(0), ArgumentError, "above 0"),
        (lambda x: x.split([1, 2]), ShapeError, "add up"),
        (lambda x: x + Tensor([1.0, 2.0]), ShapeError, "broadcast"),
        (lambda x: x @ x, ShapeError, "dot"),
        (lambda x: x.unflatten(1, (2, 2)), ShapeError, "multiply to 3"),
        (lambda x: x.squeeze(5), AxisError, "axis"),
        (lambda x: x.pad((5, 5), mode="reflect"), ShapeError, "reflect"),
        (lambda x: x.pad((1, 1), mode="odd"), ArgumentError, "mode"),
        (lambda x: x.item(), ShapeError, "one element"),
        (lambda x: bool(x), ShapeError, "any"),
    ],
)
def test_errors_name_what_was_expected_and_the_next_call_works(call, error, said):
    x = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with pytest.raises(error, match=said):
        call(x)
    assert x.shape == (2, 3)


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_pool_and_its_gradient_agree_with_torch_unfold(stride: int, dilation: int, k: int) -> None:
    x = np.random.default_rng(3).standard_normal((2, 3, 11)).astype(np.float32)
    ours, theirs = Tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    reach = dilation * (k - 1) + 1
    windows = theirs.unfold(-1, reach, stride)[..., ::dilation]
    got = ours.pool((k,), stride, dilation)
    np.testing.assert_array_equal(got.numpy(), windows.detach().numpy())
    weights = np.random.default_rng(4).standard_normal(got.shape).astype(np.float32)
    (got * Tensor(weights)).sum().backward()
    (windows * torch.tensor(weights)).sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "bool"])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_hundred_tensors_are_joined_in_groups(dtype, axis):
    values = [np.full((1 + i % 2, 1 + i % 2), i % 3).astype(dtype)[: 1 + i % 2, :1] for i in range(100)]
    values = [v.T if axis else v for v in values]
    xs = [Tensor(v, requires_grad=dtype == "float32") for v in values]
    joined = xs[0].cat(*xs[1:], dim=axis)
    np.testing.assert_array_equal(joined.numpy(), np.concatenate(values, axis))
    if dtype == "float32":
        weights = np.arange(joined.shape[axis], dtype=np.float32)
        grads = (joined * Tensor(weights).reshape(joined.shape)).sum().gradient(*xs)
        got = np.concatenate([g.numpy().ravel() for g in grads[:5]])
        np.testing.assert_array_equal(got, weights[: len(got)])


def test_the_axis_may_follow_the_tuple_as_in_torch() -> None:
    x, y = Tensor([[1, 2]]), Tensor([[3, 4]])
    assert Tensor.cat((x, y), 1).tolist() == [[1, 2, 3, 4]]
    assert Tensor.stack([x, y], -1).tolist() == [[[1, 3], [2, 4]]]
    assert Tensor.cat((x, y), dim=0).tolist() == Tensor.cat((x, y)).tolist() == [[1, 2], [3, 4]]
