"""Convolutions with an infinity or NaN among weights or pixels, against torch's own kernels."""

from __future__ import annotations

import math

import pytest

np = pytest.importorskip("numpy", reason="it holds the arrays")
torch = pytest.importorskip("torch", reason="it is the judge")

from polygrad import Tensor  # noqa: E402

SHAPES = [(1, 1), (1, 2), (0, 1), (2, 1), (0, 2)]  # padding, stride


def results(x, w, padding, stride, device):
    """(ours, torch's) of the value and of the gradients of input and weight."""
    ours, theirs = (Tensor(x, device=device), Tensor(w, device=device)), (torch.tensor(x), torch.tensor(w))
    for t in theirs:
        t.requires_grad = True
    with torch.backends.mkldnn.flags(enabled=False):  # which leaves padding out of a product with infinity
        want = torch.conv2d(*theirs, padding=padding, stride=stride)
        into = np.arange(want.numel(), dtype=np.float32).reshape(want.shape) % 3 + 1
        want.backward(torch.tensor(into))
    got = ours[0].conv2d(ours[1], padding=padding, stride=stride)
    gradients = got.gradient(*ours, gradient=Tensor(into, device=device))
    values = [got.numpy(), *(g.numpy() for g in gradients)]
    return zip(values, (want.detach().numpy(), *(t.grad.numpy() for t in theirs)), strict=True)


def data(n):
    rng = np.random.default_rng(0)
    images, kernels = rng.integers(1, 5, (2, 2, n, n)), rng.integers(1, 5, (3, 2, 3, 3))
    return images.astype(np.float32), kernels.astype(np.float32)


@pytest.mark.parametrize("special", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize(("padding", "stride"), SHAPES)
def test_a_special_pixel_exactly(device, padding, stride, special):
    n = 6 if device == "INTERP" else 17
    x, w = data(n)
    x[0, 0, 0, 0] = x[1, 1, n // 2, n // 2] = special
    for got, want in results(x, w, padding, stride, device):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("special", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize(("padding", "stride"), SHAPES)
def test_a_special_weight_exactly_but_at_the_border_of_the_inputs_gradient(device, padding, stride, special):
    """Optimised kernels multiply the weight with the 0 outside of the gradient that flows in: NaN may stand
    where torch has a number (codegen.reduce.flatten_reductions). INTERP's are not optimised and are exact."""
    x, w = data(6 if device == "INTERP" else 17)
    w[1, 1, 0, 0] = w[2, 0, 2, 2] = special
    value, of_input, of_weight = results(x, w, padding, stride, device)
    np.testing.assert_array_equal(*value)
    np.testing.assert_array_equal(*of_weight)
    got, want = of_input
    if device == "INTERP":
        np.testing.assert_array_equal(got, want)
    assert np.all(np.isnan(got) | (got == want))
    if stride == 1:
        inner = (..., slice(3, -3), slice(3, -3))
        np.testing.assert_array_equal(got[inner], want[inner])
