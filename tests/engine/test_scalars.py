"""Constants that change from run to run: nothing is compiled again, and the results stay, to the bit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polygrad import Tensor, TinyJit, Variable
from polygrad.engine.pending import PendingGraph
from polygrad.engine.programs import clear_caches
from polygrad.engine.scalar_arguments import is_structural, replaceable_constants
from polygrad.engine.stats import stats
from polygrad.uop.ops import Ops

DATA = np.random.default_rng(3).standard_normal((6, 8)).astype(np.float32)
VALUES = (0.3, -1.7, 2.6, 11.25, 0.0625)


def bits(t: Tensor) -> bytes:
    return bytes(t.contiguous().data().cast("B"))


def operands(device, dtype="float32"):
    x, y = Tensor(DATA * 7, device=device).cast(dtype), Tensor(DATA[::-1].copy(), device=device).cast(dtype)
    return x.realize(y)[:], y


REPLACED = {
    "product": lambda x, y, v: x * v,
    "sum": lambda x, y, v: x + v,
    "difference": lambda x, y, v: v - x,
    "quotient": lambda x, y, v: x / v,
    "update": lambda x, y, v: x - y * v,
    "maximum": lambda x, y, v: x.maximum(v),
    "comparison": lambda x, y, v: (x < v).where(x, y),
    "choice": lambda x, y, v: (x < y).where(x, v),
    "row sums": lambda x, y, v: (x * v).sum(1),
    "scaled product": lambda x, y, v: (x @ y.T) * v,
    "temperature": lambda x, y, v: (x / v).softmax(-1),
    "both": lambda x, y, v: x * v + y * (v * 3.1),
    "two factors": lambda x, y, v: x * 2.5 * v,
    "of a reciprocal": lambda x, y, v: (x * v).reciprocal(),
    "in a sine": lambda x, y, v: (x * v).sin(),
    "moved in between": lambda x, y, v: (x * v).T * 2.5,
    "of what is repeated": lambda x, y, v: x[:1].expand(6, 8).sum(0) * v,
    "moved": lambda x, y, v: (x * v).reshape(8, 6).T.pad(((1, 0), (0, 0))) + 1,
}


@pytest.mark.parametrize("name", REPLACED)
def test_a_scalar_that_changes_is_compiled_for_twice_at_most(device, name):
    function = REPLACED[name]
    x, y = operands(device)
    clear_caches()
    got = []
    for i, v in enumerate(VALUES):
        if i == 2:
            programs, kernels = stats.programs, stats.kernels_compiled + stats.kernels_found
        got.append(bits(function(x, y, v).realize()))
    assert (stats.programs, stats.kernels_compiled + stats.kernels_found) == (programs, kernels)
    for v, out in zip(VALUES, got, strict=True):
        clear_caches()
        assert bits(function(x, y, v).realize()) == out


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int32", "uint8"])
def test_scalars_of_other_dtypes_are_arguments_too(device, dtype):
    x, _ = operands(device, "int32" if dtype == "uint8" else dtype)
    x = x.cast(dtype).realize()
    values = (3, 5, 77) if "int" in dtype else (0.3, 5.1, 77.7)
    clear_caches()
    got = [bits((x * v + x).realize()) for v in values[:2]]
    programs = stats.programs
    got.append(bits((x * values[2] + x).realize()))
    assert stats.programs == programs
    for v, out in zip(values, got, strict=True):
        clear_caches()
        assert bits((x * v + x).realize()) == out


KEPT = {
    "exponent": lambda x, y, v: x.abs() ** v,
    "made of constants": lambda x, y, v: x * (Tensor.ones(6, 8, device=x.device) * v),
    "choice by position": lambda x, y, v: (Tensor.arange(8, device=x.device) < 3).where(x, v),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_the_algebra_may_combine_stays_a_constant(name):
    x, y = operands("CPU")
    root = KEPT[name](x, y, 3.3).uop
    while root.op is not Ops.BUFFER and root.op in (Ops.NOOP, Ops.RESHAPE):
        root = root.src[0]
    pending = PendingGraph([root])
    found = replaceable_constants(pending, [root])
    assert [c.arg for c in pending.constants if c in found and not is_structural(c)] == []


@pytest.mark.parametrize("name", KEPT)
def test_what_stays_a_constant_is_right_for_every_value(device, name):
    x, y = operands(device)
    clear_caches()
    got = [bits(KEPT[name](x, y, v).realize()) for v in VALUES[:3]]
    for v, out in zip(VALUES, got, strict=False):
        clear_caches()
        assert bits(KEPT[name](x, y, v).realize()) == out


def test_values_that_the_algebra_knows_are_compiled_for_exactly(device):
    """-0.0 + 0.0 is -0.0 here, by the rulebook; infinity * 0 is NaN."""
    x = Tensor([-0.0, math.inf, 1.5], device=device)
    clear_caches()
    for v in (0.3, 0.7, 0.0, 1.0, -1.0, 2.0, 0.4):
        with np.errstate(invalid="ignore"):
            want = x.numpy() * np.float32(v)
        np.testing.assert_array_equal((x * v).numpy(), want)
        assert (x + v).tolist()[1:] == [math.inf, float(np.float32(1.5) + np.float32(v))]
    assert math.copysign(1.0, (x + 0.0).tolist()[0]) == -1.0


def test_only_what_changes_becomes_an_argument(device):
    x, _ = operands(device)
    clear_caches()
    for v in VALUES:
        out = ((x + 0.123) * (x < 0.456).where(x, v)).realize()
    programs = stats.programs
    ((x + 0.125) * (x < 0.456).where(x, 9.5)).realize()  # another one changes
    assert stats.programs == programs + 1 and out.shape == (6, 8)
    ((x + 0.127) * (x < 0.456).where(x, 19.5)).realize()
    assert stats.programs == programs + 1


def test_integers_of_masks_and_indices_stay(device):
    x, _ = operands(device)
    for k in (1, 2, 3, 4):
        np.testing.assert_array_equal(x.triu(k).numpy(), np.triu(x.numpy(), k))
        index = Tensor([0, 1, 2], device=device) * 3 % 6
        np.testing.assert_array_equal(x[(index + k) % 6].numpy(), x.numpy()[(np.arange(3) * 3 % 6 + k) % 6])


def test_an_update_by_hand_with_a_rate_that_falls_compiles_nothing(device):
    p = Tensor(DATA, device=device).contiguous().realize()
    g = Tensor(DATA[::-1].copy(), device=device).realize()
    want, rate = DATA.copy(), 0.1
    clear_caches()
    for i in range(6):
        if i == 2:
            programs = stats.programs
        p.assign(p - g * rate).realize()
        want = want - DATA[::-1] * np.float32(rate)
        rate *= 0.9
    assert stats.programs == programs
    np.testing.assert_allclose(p.numpy(), want, rtol=1e-6, atol=1e-6)


def test_scalars_beside_variables(device):
    x = Tensor(np.arange(32, dtype=np.float32), device=device).realize()
    n = Variable("n", 1, 32)
    clear_caches()
    for i, k in enumerate((3, 5, 8, 13, 21)):
        if i == 2:
            programs = stats.programs
        out = (x[: n.bind(k)] * (0.1 + i)).sum().item()
        assert out == pytest.approx(sum(range(k)) * (0.1 + i), rel=1e-5)
    assert stats.programs == programs


def test_a_captured_step_keeps_its_constants(device):
    x, y = operands(device)
    for v in (0.3, 0.7):
        (x * v + y).realize()

    step = TinyJit(lambda a: (a * 0.9 + y).realize())
    for _ in range(3):
        out = step(x)
    np.testing.assert_allclose(out.numpy(), x.numpy() * np.float32(0.9) + y.numpy(), rtol=1e-6)


UNARY = {
    "exp": lambda a, c: a.exp(),
    "times": lambda a, c: a * c,
    "plus": lambda a, c: a + c,
    "minus": lambda a, c: c - a,
    "over": lambda a, c: a / c,
    "under": lambda a, c: c / (a.abs() + 1.5),
    "max": lambda a, c: a.maximum(c),
    "less": lambda a, c: (a < c).where(a, c),
    "sums": lambda a, c: a.sum(0, keepdim=True).expand(*a.shape),
    "transposed": lambda a, c: a.reshape(a.shape[::-1]).T,
    "own": lambda a, c: a * a,
}


@given(
    steps=st.lists(st.tuples(st.sampled_from(sorted(UNARY)), st.integers(0, 2)), min_size=1, max_size=6),
    values=st.lists(
        st.tuples(*[st.floats(-4, 4, width=32).filter(lambda v: abs(v) > 1e-3)] * 3), min_size=3, max_size=3
    ),
)
@settings(max_examples=25, deadline=None)
def test_random_graphs_compute_the_same_bits_with_arguments_as_with_constants(steps, values):
    x = Tensor(DATA, device="CPU").realize()

    def compute(constants) -> bytes:
        out = x
        for name, i in steps:
            out = UNARY[name](out, constants[i])
        return bits(out.realize())

    clear_caches()
    got = [compute(v) for v in values]
    for v, out in zip(values, got, strict=True):
        clear_caches()
        assert compute(v) == out
