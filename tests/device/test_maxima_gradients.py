"""The gradient of a maximum goes where the forward pass found it, whatever is rounded on the way."""

from __future__ import annotations

import pytest

np = pytest.importorskip("numpy", reason="it holds the arrays")
torch = pytest.importorskip("torch", reason="it is the judge")

from polygrad import Tensor, TinyJit  # noqa: E402

X = np.random.default_rng(0).normal(size=(200, 7)).astype(np.float32)
IMAGES = np.random.default_rng(1).normal(size=(2, 3, 12, 12)).astype(np.float32)

# expressions whose roundings depended on what a kernel saw of them
EXPRESSIONS = {
    "sigmoid": lambda x: (x * 2).sigmoid(),
    "scaled twice": lambda x: x * 0.7 * 1.3,
    "divided": lambda x: x / (x * x + 1.1) * 0.3,
    "inverse of a product": lambda x: 1 / ((x * x + 1) * 0.7),
    "silu": lambda x: x * x.sigmoid(),
    "tanh": lambda x: (x * 0.3).tanh() * 0.77 * 1.1,
}
READERS = {
    "amax": lambda x: x.amax(1),
    "amin": lambda x: x.amin(0),
    "max": lambda x: x.max(),
    "max and min": lambda x: x.amax(1) * 3 + x.amin(1),
    "maximum": lambda x: x.amax(1, keepdim=True).maximum(x * 2),
    "logsumexp": lambda x: x.logsumexp(1),
    "softmax": lambda x: x.softmax(1) * 3,
    "clamp": lambda x: x.clamp(-0.1, 0.4),
    "relu": lambda x: (x - 0.3).relu(),
    "topk": lambda x: x.topk(3, 1)[0],
    "sort": lambda x: x.sort(1)[0] * torch_arange(x),
    "cummax": lambda x: x.cummax(1)[0],
}


def torch_arange(x):
    row = [[float(i) for i in range(x.shape[1])]]
    return Tensor(row, device=x.device) if isinstance(x, Tensor) else torch.tensor(row)


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("reader", READERS)
def test_gradients_are_torchs_to_1e_5(device, expression, reader):
    x, t = Tensor(X[:40], device=device, requires_grad=True), torch.tensor(X[:40], requires_grad=True)
    READERS[reader](EXPRESSIONS[expression](x)).sum().backward()
    READERS[reader](EXPRESSIONS[expression](t)).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("requires_grad", [True, None])
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_no_term_of_many_is_lost(device, expression, requires_grad):
    x, t = Tensor(X, device=device, requires_grad=requires_grad), torch.tensor(X, requires_grad=True)
    y = EXPRESSIONS[expression](x)
    y.amax(1).realize()  # a kernel of its own
    (g,) = EXPRESSIONS[expression](x).amax(1).sum().gradient(x)
    EXPRESSIONS[expression](t).amax(1).sum().backward()
    np.testing.assert_allclose(g.numpy(), t.grad.numpy(), rtol=1e-5, atol=2e-6)


def test_the_gradient_of_a_maximum_of_two_sigmoids(device):
    a = Tensor([1.7764239, 0.0], device=device, requires_grad=True)
    Tensor.stack(a, a * 2).sigmoid().amax(1).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), [0.1779340, 0.0], rtol=1e-5)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_pooled_images_to_1e_5(device, expression):
    x, t = Tensor(IMAGES, device=device, requires_grad=True), torch.tensor(IMAGES, requires_grad=True)
    EXPRESSIONS[expression](x).max_pool2d((3, 3), 2, padding=1).square().sum().backward()
    want = EXPRESSIONS[expression](t)
    torch.nn.functional.max_pool2d(want, 3, 2, 1).square().sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), rtol=1e-5, atol=2e-6)


def test_a_captured_step_and_second_derivatives(device):
    x, t = Tensor(X[:20], device=device, requires_grad=True), torch.tensor(X[:20], requires_grad=True)

    def gradient(x):
        (g,) = (x * 0.7 * 1.3).sigmoid().amax(1).sum().gradient(x)
        return g

    jit = TinyJit(lambda: gradient(x).realize())
    (want,) = torch.autograd.grad((t * 0.7 * 1.3).sigmoid().amax(1).sum(), t, create_graph=True)
    for _ in range(3):
        np.testing.assert_allclose(jit().numpy(), want.detach().numpy(), rtol=1e-5, atol=2e-6)
    (second,) = gradient(x).square().sum().gradient(x)
    (want,) = torch.autograd.grad(want.square().sum(), t)
    np.testing.assert_allclose(second.numpy(), want.numpy(), rtol=1e-4, atol=2e-6)
