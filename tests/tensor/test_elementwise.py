"""Elementwise ops against torch, values and gradients, to 1e-5 unless a case says otherwise."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tensor.differential import agree, sample

from polygrad import Tensor, dtypes
from polygrad.errors import OverflowError_

SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-40, 3e38], np.float32
)

# name: (ours, torch's, low, high)
UNARY = {
    "neg": (lambda x: -x, None, -2, 2),
    "exp": (lambda x: x.exp(), None, -4, 4),
    "exp2": (lambda x: x.exp2(), None, -4, 4),
    "log": (lambda x: x.log(), None, 0.1, 4),
    "log2": (lambda x: x.log2(), None, 0.1, 4),
    "log10": (lambda x: x.log10(), None, 0.1, 4),
    "sqrt": (lambda x: x.sqrt(), None, 0.1, 4),
    "rsqrt": (lambda x: x.rsqrt(), None, 0.1, 4),
    "reciprocal": (lambda x: x.reciprocal(), None, 0.1, 4),
    "sin": (lambda x: x.sin(), None, -6, 6),
    "cos": (lambda x: x.cos(), None, -6, 6),
    "tan": (lambda x: x.tan(), None, -1.2, 1.2),
    "asin": (lambda x: x.asin(), None, -0.9, 0.9),
    "acos": (lambda x: x.acos(), None, -0.9, 0.9),
    "atan": (lambda x: x.atan(), None, -3, 3),
    "sinh": (lambda x: x.sinh(), None, -2, 2),
    "cosh": (lambda x: x.cosh(), None, -2, 2),
    "asinh": (lambda x: x.asinh(), None, -2, 2),
    "acosh": (lambda x: x.acosh(), None, 1.2, 4),
    "atanh": (lambda x: x.atanh(), None, -0.9, 0.9),
    "square": (lambda x: x.square(), None, -2, 2),
    "abs": (lambda x: x.abs(), None, -2, 2),
    "sign": (lambda x: x.sign(), None, -2, 2),
    "floor": (lambda x: x.floor(), None, -5, 5),
    "ceil": (lambda x: x.ceil(), None, -5, 5),
    "round": (lambda x: x.round(), None, -5, 5),
    "trunc": (lambda x: x.trunc(), None, -5, 5),
    "erf": (lambda x: x.erf(), None, -3, 3),
    "clip": (lambda x: x.clip(-1, 0.5), None, -2, 2),
    "clamp_min": (lambda x: x.clamp(min_=0.5), lambda x: x.clamp(min=0.5), -2, 2),
    "relu": (lambda x: x.relu(), None, -2, 2),
    "relu6": (lambda x: x.relu6(), F.relu6, -8, 8),
    "leaky_relu": (lambda x: x.leaky_relu(), F.leaky_relu, -2, 2),
    "hardtanh": (lambda x: x.hardtanh(), F.hardtanh, -2, 2),
    "hardsigmoid": (lambda x: x.hardsigmoid(), F.hardsigmoid, -5, 5),
    "hardswish": (lambda x: x.hardswish(), F.hardswish, -5, 5),
    "sigmoid": (lambda x: x.sigmoid(), None, -6, 6),
    "logsigmoid": (lambda x: x.logsigmoid(), F.logsigmoid, -6, 6),
    "tanh": (lambda x: x.tanh(), None, -4, 4),
    "gelu": (lambda x: x.gelu(), lambda x: F.gelu(x, approximate="tanh"), -4, 4),
    "gelu_erf": (lambda x: x.gelu("none"), F.gelu, -4, 4),
    "quick_gelu": (lambda x: x.quick_gelu(), lambda x: x * torch.sigmoid(1.702 * x), -4, 4),
    "silu": (lambda x: x.silu(), F.silu, -4, 4),
    "swish": (lambda x: x.swish(), F.silu, -4, 4),
    "elu": (lambda x: x.elu(), F.elu, -3, 3),
    "celu": (lambda x: x.celu(1.5), lambda x: F.celu(x, 1.5), -3, 3),
    "selu": (lambda x: x.selu(), F.selu, -3, 3),
    "softplus": (lambda x: x.softplus(), F.softplus, -5, 5),
    "softplus_beta": (lambda x: x.softplus(2.0), lambda x: F.softplus(x, 2.0), -5, 5),
    "mish": (lambda x: x.mish(), F.mish, -4, 4),
    "softsign": (lambda x: x.softsign(), F.softsign, -4, 4),
    "pow2": (lambda x: x**2, None, -2, 2),
    "pow3": (lambda x: x**3, None, -2, 2),
    "pow5": (lambda x: x**5, None, -2, 2),
    "pow_minus2": (lambda x: x**-2, None, 0.3, 2),
    "pow_half": (lambda x: x**0.5, None, 0.1, 2),
    "pow_1.5": (lambda x: x**1.5, None, 0.1, 2),
    "pow_0.7": (lambda x: x**0.7, None, 0.1, 2),
    "pow_2.2": (lambda x: x**2.2, None, 0.1, 2),
    "rpow": (lambda x: 3**x, None, -2, 2),
    "rsub": (lambda x: 1 - x, None, -2, 2),
    "rdiv": (lambda x: 1 / x, None, 0.3, 2),
    "div3": (lambda x: x / 3, None, -2, 2),
    "mod": (lambda x: x % 0.7, None, -2, 2),
    "floordiv": (lambda x: x // 0.7, lambda x: (x / 0.7).detach().floor() + x * 0, -2, 2),
}


@pytest.mark.parametrize("name", UNARY)
def test_unary_agrees_with_torch_to_1e_5(name):
    ours, theirs, low, high = UNARY[name]
    tolerance = (
        3e-4 if name in ("pow5", "tan", "asin", "acos", "atan", "atanh", "erf", "gelu_erf", "selu") else 2e-5
    )
    agree(ours, sample(3, 17, low=low, high=high), reference=theirs, rtol=tolerance, atol=tolerance)


BINARY = {
    "add": (lambda x, y: x + y, None),
    "sub": (lambda x, y: x - y, None),
    "mul": (lambda x, y: x * y, None),
    "div": (lambda x, y: x / y, None),
    "maximum": (lambda x, y: x.maximum(y), None),
    "minimum": (lambda x, y: x.minimum(y), None),
    "pow": (lambda x, y: x**y, None),
    "logaddexp": (lambda x, y: x.logaddexp(y), None),
    "lerp": (lambda x, y: x.lerp(y, 0.3), None),
    "where": (lambda x, y: (x > y).where(x, y), lambda x, y: torch.where(x > y, x, y)),
    "fmod": (lambda x, y: x.fmod(y), None),
    "mod": (lambda x, y: x % y, None),
    "copysign": (lambda x, y: x.copysign(y), None),
}


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("shapes", [((4, 5), (4, 5)), ((4, 1), (5,)), ((3, 1, 5), (4, 1))])
def test_binary_broadcasts_and_agrees_with_torch_to_1e_5(name, shapes):
    ours, theirs = BINARY[name]
    a, b = (sample(*s, low=0.3, high=2.0, seed=i) for i, s in enumerate(shapes))
    agree(ours, a, b, reference=theirs, rtol=3e-5, atol=3e-5)


@pytest.mark.parametrize("name", ["lt", "gt", "le", "ge", "eq", "ne"])
def test_comparisons_give_bool_and_treat_nan_as_ieee(name):
    a, b = np.repeat(SPECIAL, len(SPECIAL)), np.tile(SPECIAL, len(SPECIAL))
    got = getattr(Tensor(a), name)(Tensor(b))
    assert got.dtype == "bool"
    np.testing.assert_array_equal(got.numpy(), getattr(torch, name)(torch.tensor(a), torch.tensor(b)).numpy())


@pytest.mark.parametrize(
    "name", ["isnan", "isinf", "isfinite", "floor", "ceil", "trunc", "round", "abs", "sign"]
)
def test_special_values(name):
    want = getattr(torch, name)(torch.tensor(SPECIAL)).numpy()
    if name == "sign":
        want = np.where(np.isnan(SPECIAL), np.nan, want)  # torch has 0 there
    np.testing.assert_array_equal(getattr(Tensor(SPECIAL), name)().numpy(), want)


def test_maximum_and_minimum_give_nan_and_share_ties():
    a, b = np.array([1, np.nan, 2, 3], np.float32), np.array([2, 1, np.nan, 3], np.float32)
    np.testing.assert_array_equal(Tensor(a).maximum(Tensor(b)).numpy(), [2, np.nan, np.nan, 3])
    np.testing.assert_array_equal(Tensor(a).minimum(Tensor(b)).numpy(), [1, np.nan, np.nan, 3])
    x, y = Tensor([3.0]), Tensor([3.0])
    assert [g.item() for g in x.maximum(y).sum().gradient(x, y)] == [0.5, 0.5]


def test_relu_and_abs_have_gradient_0_at_0():
    x = Tensor([0.0, -1.0, 2.0])
    assert x.relu().sum().gradient(x)[0].tolist() == [0, 0, 1]
    assert x.abs().sum().gradient(x)[0].tolist() == [0, -1, 1]


def test_pow_at_0_has_finite_values_and_gradients():
    x = Tensor([0.0, 2.0])
    assert (x**0).tolist() == [1, 1]
    assert (x**2.2).sum().gradient(x)[0].tolist()[0] == 0
    e = Tensor([0.0, 2.0, -1.0])
    assert (Tensor([0.0, 0.0, 0.0]) ** e).tolist() == [1, 0, math.inf]
    np.testing.assert_allclose(
        (Tensor([-2.0, -2.0, -2.0]) ** Tensor([2.0, 3.0, -1.0])).numpy(), [4, -8, -0.5], rtol=1e-6
    )
    assert math.isnan((Tensor([-2.0]) ** Tensor([0.5])).item())


INTS = np.array([-7, -6, -1, 0, 1, 5, 6, 7, 100], np.int32)


def test_integer_division_and_remainder_agree_with_python():
    a, b = np.repeat(INTS, len(INTS)), np.tile(INTS, len(INTS))
    nonzero = b != 0
    a, b = a[nonzero], b[nonzero]
    x, y = Tensor(a), Tensor(b)
    np.testing.assert_array_equal((x // y).numpy(), a // b)
    np.testing.assert_array_equal((x % y).numpy(), a % b)
    np.testing.assert_array_equal(x.div(y, rounding_mode="trunc").numpy(), np.trunc(a / b).astype(np.int32))
    np.testing.assert_array_equal(x.fmod(y).numpy(), np.fmod(a, b))
    assert (x / y).dtype == "float32"


def test_division_of_integers_by_0_gives_0():
    assert (Tensor([5, -5]) // 0).tolist() == [0, 0]
    assert (Tensor([5, -5]) % 0).tolist() == [0, 0]


def test_bits_agree_with_numpy():
    a, b = INTS, INTS[::-1].copy()
    x, y = Tensor(a), Tensor(b)
    for got, want in [
        (x & y, a & b),
        (x | y, a | b),
        (x ^ y, a ^ b),
        (~x, ~a),
        (x << 3, a << 3),
        (x >> 1, a >> 1),
    ]:
        np.testing.assert_array_equal(got.numpy(), want)
    assert (~Tensor([True, False])).tolist() == [False, True]
    assert (Tensor([True, False]) & True).tolist() == [True, False]


def test_integer_pow_is_exact():
    np.testing.assert_array_equal((Tensor(INTS) ** 3).numpy(), INTS**3)
    np.testing.assert_array_equal((Tensor(INTS) ** Tensor([2])).numpy(), INTS**2)


def test_where_takes_scalars():
    c = Tensor([True, False])
    assert c.where(1, 0).tolist() == [1, 0] and c.where(1, 0).dtype == "int32"
    assert c.where(1.5, 0).dtype == "float32"
    assert c.where(Tensor([[1.0], [2.0]]), 0).tolist() == [[1, 0], [2, 0]]
    assert Tensor([1.0, 2.0]).masked_fill(c, -1).tolist() == [-1, 2]
    for call in (lambda: c.where(1, 2**31), lambda: c.where(-(2**40), 0), lambda: c.where(True, 2**31)):
        with pytest.raises(OverflowError_, match="operand of a int32 tensor"):
            call()
    assert c.where(0.5, 2**40).tolist() == [0.5, 2**40]


def test_isclose():
    a, b = Tensor([1.0, 1.0, math.inf, math.nan]), Tensor([1.0 + 1e-7, 1.1, math.inf, math.nan])
    assert a.isclose(b).tolist() == [True, False, True, False]
    assert a.isclose(b, equal_nan=True).tolist() == [True, False, True, True]


def test_numpy_operands_on_either_side():
    a = np.array([1.0, 2.0], np.float32)
    for out in (a + Tensor([1.0, 1.0]), Tensor([1.0, 1.0]) + a, Tensor([1.0, 1.0]) + [1, 2]):
        assert isinstance(out, Tensor) and out.tolist() == [2, 3]
    assert (Tensor([1, 2]) * np.int64(3)).tolist() == [3, 6]


def test_cos_keeps_precision_for_large_arguments():
    x = np.array([1e3, 12345.678, 1e5], np.float32)
    np.testing.assert_allclose(Tensor(x).cos().numpy(), np.cos(x.astype(np.float64)), atol=3e-7)


def test_bitcast():
    assert Tensor([1.0]).bitcast(dtypes.uint32).item() == 0x3F800000
    assert Tensor([0x3F800000], dtype="int32").bitcast("float32").item() == 1.0
