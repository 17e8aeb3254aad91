"""Random graphs of movement, elementwise ops, reductions, shared nodes, and of families (running values,
sorting, indices, padding, windows, products): the engine against the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from adapter import SLOW_WEBGPU
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tensor.oracle import evaluate

from polygrad import Tensor

# continuous, so that rounding cannot decide what is compared; SMOOTH have continuous slopes too
SMOOTH = [
    lambda x: x * 0.5,
    lambda x: x + 1,
    lambda x: x.sin(),
    lambda x: x.sigmoid(),
    lambda x: x.contiguous(),
    lambda x: (x * x + 1).sqrt(),
]
UNARY = [
    *SMOOTH,
    lambda x: x.relu(),
    lambda x: x.abs(),
    lambda x: x.clip(-1, 1).exp(),
    lambda x: x.bitcast("int32").bitcast("float32"),
]
SMOOTH_BINARY = [lambda x, y: x + y, lambda x, y: x * y, lambda x, y: x / (y * y + 1)]
BINARY = [*SMOOTH_BINARY, lambda x, y: x.maximum(y), lambda x, y: (x < y).where(y, x)]


def _move(draw, x):
    kind = draw(
        st.sampled_from(["permute", "flip", "pad", "shrink", "flatten", "split", "expand", "stride", "pick"])
    )
    if kind == "permute":
        return x.permute(draw(st.permutations(range(x.ndim))))
    if kind == "flatten" or x.ndim == 0:
        return x.flatten() if x.ndim else x.reshape(1)
    axis = draw(st.integers(0, x.ndim - 1))
    n = x.shape[axis]
    if kind == "flip":
        return x.flip(axis)
    if kind == "pad":
        around = draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
        return x.pad(
            [around if i == axis else None for i in range(x.ndim)], value=draw(st.sampled_from([0, 2.0]))
        )
    if kind == "shrink":
        lo = draw(st.integers(0, n - 1))
        hi = draw(st.integers(lo + 1, n))
        return x.shrink([(lo, hi) if i == axis else None for i in range(x.ndim)])
    if kind == "split":
        k = draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0]))
        return x.unflatten(axis, (k, n // k)) if x.ndim < 5 else x
    if kind == "stride":
        return x[
            tuple(
                slice(None, None, draw(st.sampled_from([2, 3, -2]))) if i == axis else slice(None)
                for i in range(x.ndim)
            )
        ]
    if kind == "pick":
        chosen = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=3))
        return x[tuple(Tensor(chosen) if i == axis else slice(None) for i in range(x.ndim))]
    return (
        x.unsqueeze(axis).expand([*x.shape[:axis], 2, *x.shape[axis:]])
        if x.numel() < 200 and x.ndim < 5
        else x
    )


# --- families: what is made of many ops. Sorting and maxima have jumps in their slopes only.


def _axis(draw, x):
    return draw(st.integers(0, x.ndim - 1))


def _positions(draw, x, axis, count):
    """Integers of the shape of `x`, `count` of them along `axis`."""
    shape = [count if i == axis else n for i, n in enumerate(x.shape)]
    rng = np.random.default_rng(draw(st.integers(0, 1 << 16)))
    return Tensor(rng.integers(0, x.shape[axis], shape).astype(np.int32))


def _gather(draw, x):
    axis = _axis(draw, x)
    return x.gather(axis, _positions(draw, x, axis, draw(st.integers(1, 4))))


def _scatter(draw, x):
    axis = _axis(draw, x)
    return (x * 0.5).scatter_reduce(
        axis,
        _positions(draw, x, axis, x.shape[axis]),
        x,
        draw(st.sampled_from(["sum", "mean"])),
        draw(st.booleans()),
    )


def _padded(draw, x):
    mode = draw(st.sampled_from(["reflect", "replicate", "circular"]))
    most = {"reflect": x.shape[-1] - 1, "replicate": 3, "circular": x.shape[-1]}[mode]
    return x.pad((draw(st.integers(0, min(most, 3))), draw(st.integers(0, min(most, 3)))), mode)


def _as_image(x):
    """The last two axes as an image of one channel; small ones grow."""
    image = x.reshape(-1, 1, *((1,) * (2 - x.ndim) + tuple(x.shape))[-2:])
    h, w = image.shape[-2:]
    return image.pad((0, max(3 - w, 0), 0, max(3 - h, 0)))


def _convolved(draw, x):
    weights = np.random.default_rng(draw(st.integers(0, 1 << 16))).uniform(-0.5, 0.5, (2, 1, 3, 2))
    return _as_image(x).conv2d(
        Tensor(weights.astype(np.float32)),
        stride=draw(st.integers(1, 2)),
        dilation=draw(st.integers(1, 2)) if min(_as_image(x).shape[-2:]) > 4 else 1,
        padding=draw(st.integers(0, 1)),
    )


def _pooled(draw, x):
    pool = draw(st.sampled_from(["max_pool2d", "avg_pool2d"]))
    return getattr(_as_image(x), pool)(draw(st.integers(1, 3)), draw(st.integers(1, 2)))


def _product(draw, x):
    weights = np.random.default_rng(draw(st.integers(0, 1 << 16))).uniform(
        -0.5, 0.5, (x.shape[-1], draw(st.integers(1, 4)))
    )
    return x @ Tensor(weights.astype(np.float32))


def _widest(x):
    return "float32" if x.device == "WEBGPU" else "float64"


SMOOTH_FAMILIES = [
    lambda draw, x: x.cumsum(_axis(draw, x)) * 0.5,
    lambda draw, x: x.softmax(_axis(draw, x)),
    lambda draw, x: x.logsumexp(_axis(draw, x)),
    lambda draw, x: (x * 0.25).sin().cast(_widest(x)).exp2().cast("float32"),
    lambda draw, x: x.roll(draw(st.integers(-3, 3)), _axis(draw, x)),
    lambda draw, x: x.repeat([draw(st.integers(1, 2)) for _ in range(x.ndim)]),
    lambda draw, x: x.tril() if x.ndim > 1 else x.diag(),
    lambda draw, x: x.cat(x * 0.25, dim=_axis(draw, x)),
    _gather,
    _scatter,
    _padded,
    _convolved,
    _product,
]
FAMILIES = [
    *SMOOTH_FAMILIES,
    lambda draw, x: x.sort(_axis(draw, x), draw(st.booleans()))[0],
    lambda draw, x: x.topk(1 + x.shape[-1] // 2)[0],
    lambda draw, x: x.cummax(_axis(draw, x))[0],
    lambda draw, x: x.median(_axis(draw, x))[0],
    _pooled,
]


@st.composite
def graphs(draw, smooth=False):
    """The last of a few Tensors made from each other, another one of them, and the first."""
    rng = np.random.default_rng(draw(st.integers(0, 1 << 16)))
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    pool = [Tensor(rng.uniform(-2, 2, shape).astype(np.float32)) for _ in range(2)]
    for _ in range(draw(st.integers(2, 10))):
        x = draw(st.sampled_from(pool))
        kind = draw(st.sampled_from(["unary", "binary", "move", "move", "reduce", "normalise", "family"]))
        if kind == "unary":
            x = draw(st.sampled_from(SMOOTH if smooth else UNARY))(x)
        elif kind == "binary":
            same = [y for y in pool if y.shape == x.shape or y.shape == ()]
            x = draw(st.sampled_from(SMOOTH_BINARY if smooth else BINARY))(x, draw(st.sampled_from(same)))
        elif kind == "move":
            x = _move(draw, x)
        elif kind == "family":
            family = draw(st.sampled_from(SMOOTH_FAMILIES if smooth else FAMILIES))
            x = family(draw, x) if x.ndim and x.numel() <= 100 and x.ndim < 5 else x
        elif x.ndim:
            axis = draw(st.integers(0, x.ndim - 1))
            if kind == "normalise":
                x = x - x.mean(axis, keepdim=True)
            else:
                name = "sum" if smooth else draw(st.sampled_from(["sum", "max", "min"]))
                x = getattr(x, name)(axis, keepdim=draw(st.booleans()))
        if x.numel() <= 400:
            pool.append(x)
    return [pool[-1], draw(st.sampled_from(pool)), pool[0]]


@pytest.mark.parametrize(
    "device", ["CPU", "WASM", pytest.param("INTERP", marks=pytest.mark.slow), SLOW_WEBGPU]
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(outputs=graphs())
def test_random_graphs_agree_with_the_oracle_to_1e_4(device, default_device, outputs):
    want = [evaluate(t.uop) for t in outputs]
    outputs[0].realize(*outputs[1:])
    for t, w in zip(outputs, want, strict=True):
        np.testing.assert_allclose(t.numpy(), w, rtol=1e-4, atol=1e-4)


@given(graphs(smooth=True))
def test_gradients_of_random_graphs_agree_with_the_oracle_to_1e_3(outputs):
    leaf, y = outputs[2], outputs[0]
    (g,) = (y * y).sum().gradient(leaf)
    want = evaluate(g.uop)
    np.testing.assert_allclose(g.numpy(), want, rtol=1e-3, atol=1e-3 * max(1.0, np.abs(want).max()))
