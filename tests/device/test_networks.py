"""What networks are made of: softmax, layernorm, attention, matrix products of odd shapes, convolution, a
training step."""

from __future__ import annotations

import math

import pytest
from plain import Plain, assert_close, assert_same

from polygrad import Tensor, nn


def wave(shape, step=0.7, scale=1.0):
    return Plain(shape, [scale * math.sin(step * i + 0.3) for i in range(math.prod(shape))])


def whole(shape, spread=4):
    return Plain(
        shape, [float((i * 29 + i * i * 5) % (2 * spread + 1) - spread) for i in range(math.prod(shape))]
    )


def tensor(plain, device, **kwargs):
    return Tensor(plain.elements, device=device, **kwargs).reshape(plain.shape)


def softmax(x):
    last = (len(x.shape) - 1,)
    e = x.map(lambda a, m: math.exp(a - m), x.max(last, True))
    return e.map(lambda a, s: a / s, e.sum(last, True))


def layernorm(x, eps=1e-5):
    last, n = (len(x.shape) - 1,), x.shape[-1]
    centred = x.map(lambda a, s: a - s / n, x.sum(last, True))
    variance = centred.map(lambda a: a * a).sum(last, True)
    return centred.map(lambda a, v: a / math.sqrt(v / n + eps), variance)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (4, 16), (2, 3, 33)])
def test_softmax_rtol_1e_5(device, shape):
    x = wave(shape, scale=5)
    assert_close(tensor(x, device).softmax().tolist(), softmax(x).tolist(), 1e-5, 1e-7)
    logs = softmax(x).map(math.log)
    assert_close(tensor(x, device).log_softmax().tolist(), logs.tolist(), 1e-5, 1e-5)


def test_softmax_of_large_and_infinite_numbers(device):
    x = Tensor([[1000.0, 1000.0], [-1000.0, -math.inf], [0.0, 1000.0]], device=device)
    assert_close(x.softmax().tolist(), [[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]], 1e-6)


@pytest.mark.parametrize("shape", [(2, 4), (3, 17), (2, 3, 32)])
def test_layernorm_rtol_1e_4(device, shape):
    x = wave(shape)
    assert_close(tensor(x, device).layernorm().tolist(), layernorm(x).tolist(), 1e-4, 1e-5)


@pytest.mark.parametrize(("heads", "time", "width"), [(1, 1, 1), (2, 5, 3), (3, 8, 4)])
def test_attention_rtol_1e_4(device, heads, time, width):
    q, k, v = (wave((heads, time, width), step) for step in (0.7, 0.3, 1.1))
    scores = (q @ k.permute((0, 2, 1))).map(lambda s: s / math.sqrt(width))
    expected = softmax(scores) @ v
    got = tensor(q, device).scaled_dot_product_attention(tensor(k, device), tensor(v, device))
    assert_close(got.tolist(), expected.tolist(), 1e-4, 1e-5)
    hidden = scores.map(
        lambda s, allowed: s if allowed else -math.inf,
        Plain((time, time), [j <= i for i in range(time) for j in range(time)]),
    )
    causal = tensor(q, device).scaled_dot_product_attention(
        tensor(k, device), tensor(v, device), is_causal=True
    )
    assert_close(causal.tolist(), (softmax(hidden) @ v).tolist(), 1e-4, 1e-5)


SIZES = [
    (1, 1, 1),
    (1, 40, 1),
    (40, 1, 40),
    (2, 3, 4),
    (5, 7, 3),
    (7, 13, 5),
    (4, 16, 8),
    (17, 9, 33),
    (13, 40, 19),
    (31, 2, 6),
]


@pytest.mark.parametrize(("m", "k", "n"), SIZES)
def test_matmul_of_whole_numbers_is_exact(device, m, k, n):
    a, b = whole((m, k)), whole((k, n), 3)
    expected = (a @ b).tolist()
    x, y = tensor(a, device), tensor(b, device)
    xt, yt = tensor(a.permute((1, 0)), device).T, tensor(b.permute((1, 0)), device).T
    outs = {"a@b": x @ y, "aT": xt @ y, "bT": x @ yt, "both": xt @ yt, "fused": (x * 2) @ (y + 1) - 1}
    first, *others = outs.values()
    first.realize(*others)
    for name in ("a@b", "aT", "bT", "both"):
        assert_same(outs[name].tolist(), expected, name)
    fused = (a.map(lambda v: v * 2) @ b.map(lambda v: v + 1)).map(lambda v: v - 1)
    assert_same(outs["fused"].tolist(), fused.tolist(), "fused")


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float16", "bfloat16", "float64", "uint8"])
def test_matmul_of_other_dtypes(device, dtype):
    a, b = (p.map(abs) if dtype == "uint8" else p for p in (whole((5, 9), 3), whole((9, 7), 2)))
    cast = float if "float" in dtype else int
    got = tensor(a, device).cast(dtype) @ tensor(b, device).cast(dtype)
    assert_same(got.tolist(), [[cast(x) for x in row] for row in (a @ b).tolist()])


@pytest.mark.parametrize(
    ("left", "right"),
    [((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (4, 5)), ((1, 3, 4), (6, 4, 2)), ((2, 1, 3, 4), (3, 4, 3))],
)
def test_batched_and_broadcast_matmul(device, left, right):
    a, b = whole(left), whole(right)
    assert_same((tensor(a, device) @ tensor(b, device)).tolist(), (a @ b).tolist())


def test_chained_matmuls(device):
    a, b, c = whole((6, 5), 2), whole((5, 9), 2), whole((9, 3), 2)
    assert_same((tensor(a, device) @ tensor(b, device) @ tensor(c, device)).tolist(), (a @ b @ c).tolist())


def test_vectors_and_matrices(device):
    a, v = whole((6, 5)), whole((5,))
    expected = (a @ v.reshape((5, 1))).reshape((6,))
    assert_same((tensor(a, device) @ tensor(v, device)).tolist(), expected.tolist())
    assert (tensor(v, device) @ tensor(v, device)).item() == sum(x * x for x in v.elements)


def test_convolution_of_whole_numbers_is_exact(device):
    x, w = whole((2, 3, 6, 5)), whole((4, 3, 3, 3), 2)
    got = tensor(x, device).conv2d(tensor(w, device), padding=1)
    padded = x.pad(((0, 0), (0, 0), (1, 1), (1, 1)))
    expected = [
        [[[sum(padded[b, c, i + p, j + q] * w[o, c, p, q]
               for c in range(3) for p in range(3) for q in range(3))
           for j in range(5)] for i in range(6)] for o in range(4)] for b in range(2)
    ]  # fmt: skip
    assert_same(got.tolist(), expected)


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_a_training_step_lowers_the_loss(device, optimizer):
    x, y = tensor(wave((8, 5)), device), Tensor([i % 3 for i in range(8)], device=device)
    Tensor.manual_seed(3)
    first, second = nn.Linear(5, 16), nn.Linear(16, 3)
    for layer in (first, second):
        for p in nn.state.get_parameters(layer):
            p.to_(device)
    step = getattr(nn.optim, optimizer)(
        [*nn.state.get_parameters(first), *nn.state.get_parameters(second)], lr=0.05
    )
    losses = []
    with Tensor.train():
        for _ in range(5):
            step.zero_grad()
            loss = second(first(x).relu()).sparse_categorical_crossentropy(y).backward()
            step.step()
            losses.append(loss.item())
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0]


def test_gradients_of_a_softmax_rtol_1e_4(device):
    x = wave((3, 4))
    t = Tensor(x.tolist(), device=device, requires_grad=True)
    weights = wave((3, 4), 1.3)
    (t.softmax() * tensor(weights, device)).sum().backward()
    p = softmax(x)
    dot = p.map(lambda a, b: a * b, weights).sum((1,), True)
    expected = p.map(lambda a, w, d: a * (w - d), weights, dot)
    assert_close(t.grad.tolist(), expected.tolist(), 1e-4, 1e-6)
