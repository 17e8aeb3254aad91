"""An elementwise expression has the same bits however it is computed.

Fused whole, in parts, in the reader of a maximum, captured, or beside others: gradients of maxima, ties and
steps that are captured later rely on that. `SHAPES` are such that vectors, their rests and scalars all occur.
"""

from __future__ import annotations

from random import Random

import pytest

np = pytest.importorskip("numpy", reason="it holds the arrays")

from polygrad import Tensor, TinyJit  # noqa: E402
from polygrad.uop.intern import collect  # noqa: E402

SHAPES = ((1,), (3,), (7,), (16,), (5, 7), (4, 33))
UNARY = (
    lambda x: x * 0.7, lambda x: x * 1.3 * 0.9, lambda x: x + 0.1, lambda x: x / 3.0, lambda x: -x,
    lambda x: 2.0 / (x * x + 1.1), lambda x: x.sigmoid(), lambda x: x.tanh(), lambda x: (x * 0.5).exp(),
    lambda x: (x * x + 0.5).log(), lambda x: x.sin(), lambda x: (x * x + 0.1).sqrt(), lambda x: x.relu(),
    lambda x: x.gelu(), lambda x: x.silu(), lambda x: x.abs() ** 1.5, lambda x: x.softplus(),
    lambda x: x.erf(), lambda x: x.clamp(-0.5, 0.8), lambda x: x.cast("float16").cast("float32"),
    lambda x: x.reciprocal(), lambda x: x.square() - x * 0.3, lambda x: (x * 0.7).exp2(),
    lambda x: x.exp2(), lambda x: x.exp(), lambda x: (x * x + 0.1).log2(),
)  # fmt: skip
BINARY = (
    lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x / (y * y + 0.7),
    lambda x, y: x.maximum(y), lambda x, y: (x < y).where(x * 1.1, y), lambda x, y: x * y + x,
    lambda x, y: x * y - y,
)  # fmt: skip


def expression(random: Random, inputs, stored):
    """A random expression of `inputs`; where `stored` says so, a part of it is computed before the rest."""
    pool = list(inputs)
    for i in range(random.randint(2, 9)):
        if random.random() < 0.6:
            out = random.choice(UNARY)(random.choice(pool[-3:]))
        else:
            out = random.choice(BINARY)(random.choice(pool[-3:]), random.choice(pool))
        how = stored(i)
        pool.append(out.realize() if how == 1 else out.contiguous() if how == 2 else out)
    return pool[-1]


def bits(t):
    x = t.numpy().astype(np.float32)
    return np.where(np.isnan(x), np.float32(np.nan), x + 0.0).view(np.int32)  # one NaN, one zero


def check(seed, device):
    shape = SHAPES[seed % len(SHAPES)]
    arrays = [np.random.default_rng(seed).normal(size=shape).astype(np.float32) for _ in range(2)]

    def made():
        collect()
        return [Tensor(a, device=device).realize() for a in arrays]

    def whole(xs, stored=lambda i: 0):
        return expression(Random(seed), xs, stored)

    want = whole(made()).realize()
    # Compilers of WGSL multiply constants together: x * 1.3 * 0.9 becomes x * 1.17.
    has_bits = device != "WEBGPU"

    def same(name, got):
        if has_bits:
            assert (bits(got) == bits(want)).all(), f"program {seed} on {device}, {name}: the bits differ"
        else:
            np.testing.assert_allclose(
                got.numpy(), want.numpy(), 1e-4, 1e-5, err_msg=f"program {seed}, {name}"
            )

    same("in parts", whole(made(), lambda i: 1))
    parts = Random(seed + 1)
    same("some parts", whole(made(), lambda i: parts.randrange(3)))
    xs = made()
    y = whole(xs)
    beside = (y * 2.0).realize(y.sum(), y.max())
    same("beside others", y)
    assert beside is not None
    y = whole(made())
    top, place = y.max(), y.argmax()
    flat = y.numpy().reshape(-1)
    if has_bits and not np.isnan(flat).any():
        assert top.item() == flat.max() and flat[place.item()] == flat.max(), f"program {seed}: maximum"
        y = whole(made())
        hits = (y == y.max()).sum() if seed % 2 else (y.reshape(-1) == y.reshape(-1).sort()[0][-1]).sum()
        assert hits.item() == (flat == flat.max()).sum(), f"program {seed} on {device}: who is the maximum"
    y = whole(made())
    same("transposed", y.transpose(0, -1).contiguous().transpose(0, -1) if y.ndim > 1 else y.flip(0).flip(0))
    jit = TinyJit(lambda a, b: whole([a, b]).realize())
    for _ in range(3):
        same("captured", jit(*made()))


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_elementwise_expressions_have_the_same_bits_however_they_are_computed(device, first):
    for seed in range(first, first + 20):
        check(seed, device)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 10_400, 100))
def test_many_elementwise_expressions_have_the_same_bits(device, first):
    count = 5 if device.startswith("EMULATED") else 100  # an emulator runs an invocation after the other
    for seed in range(first, first + count):
        check(seed, device)
