"""Elementwise operations of random graphs."""

from __future__ import annotations

import math

import numpy as np
from onnx import helper

from onnx_random.maker import Maker, broadcast, rule

BOUNDED = "Sigmoid Tanh Softsign HardSigmoid Sin Cos Erf".split()
GROWING = "Relu Elu LeakyRelu Selu Celu Softplus HardSwish Mish ThresholdedRelu Gelu Identity Abs Neg".split()
KEEPS_EXACT = ("Relu", "Identity", "Abs", "Neg")
JUMPING = ("Floor", "Ceil", "Round", "Sign")


@rule(6)
def unary(m: Maker) -> None:
    op = m.rng.choice(BOUNDED + GROWING)
    x = m.floats(most=1e3)
    exact = x.exact and op in KEEPS_EXACT
    m.add(
        op,
        [x.name],
        (x.dtype, x.shape, 1 if op in BOUNDED else 2 * x.most + 1 if not exact else x.most, exact),
    )


@rule()
def jumping(m: Maker) -> None:
    x = m.pick(lambda v: v.dtype in ("float32", "float64") and v.exact)
    half = m.constant(0.5, x.dtype)
    m.add("Mul", [x.name, half], (x.dtype, x.shape, x.most, False))
    m.add(m.rng.choice(JUMPING), [m.values[-1].name], (x.dtype, x.shape, x.most, True))


@rule()
def with_a_domain(m: Maker) -> None:
    """Operations of what is at least 0, or not 0."""
    x = m.floats(most=50)
    op = m.rng.choice(("Sqrt", "Log", "Reciprocal", "Exp"))
    if op == "Exp":
        x = m.floats(most=5)
        m.add(op, [x.name], (x.dtype, x.shape, math.exp(x.most), False))
        return
    m.add("Abs", [x.name], (x.dtype, x.shape, x.most, x.exact))
    m.add("Add", [m.values[-1].name, m.constant(0.5, x.dtype)], (x.dtype, x.shape, x.most + 0.5, False))
    m.add(op, [m.values[-1].name], (x.dtype, x.shape, max(x.most, 2), False))


@rule(6)
def arithmetic(m: Maker) -> None:
    a = m.pick(lambda v: v.dtype != "bool" and v.dtype != "uint8")
    b = m.pick(lambda v: v.dtype == a.dtype)
    op = m.rng.choice(("Add", "Sub", "Mul", "Max", "Min", "Sum", "Mean"))
    if a.dtype != "float32" and op in ("Sum", "Mean"):  # onnxruntime has these alone
        op = "Add"
    most = a.most * b.most if op == "Mul" else a.most + b.most
    exact = a.exact and b.exact and op != "Mean"
    m.add(op, [a.name, b.name], (a.dtype, broadcast(a.shape, b.shape), most, exact))


@rule(2)
def with_a_constant(m: Maker) -> None:
    a = m.floats(1)
    shape = a.shape[m.rng.randrange(a.rank) :]
    op = m.rng.choice(("Add", "Mul", "Sub", "PRelu"))
    c = m.random_constant(shape, whole=a.exact)
    most = 4 * a.most if op in ("Mul", "PRelu") else a.most + 4
    m.add(op, [a.name, c], (a.dtype, a.shape, max(most, a.most), a.exact))


@rule()
def division(m: Maker) -> None:
    a, b = m.floats(), m.floats()
    m.add("Abs", [b.name], (b.dtype, b.shape, b.most, b.exact))
    m.add("Add", [m.values[-1].name, m.constant(1, "float32")], (b.dtype, b.shape, b.most + 1, b.exact))
    m.add("Div", [a.name, m.values[-1].name], (a.dtype, broadcast(a.shape, b.shape), a.most, False))


@rule()
def whole_division(m: Maker) -> None:
    a = m.pick(lambda v: v.dtype in ("int32", "int64"))
    c = m.constant(m.rng.choice((2, 3, -2)), a.dtype)
    m.add(m.rng.choice(("Div", "Mod")), [a.name, c], (a.dtype, a.shape, a.most + 3, True))


@rule()
def power(m: Maker) -> None:
    a = m.floats(most=30)
    n = m.rng.choice((2, 3))
    m.add("Pow", [a.name, m.constant(n, "float32")], (a.dtype, a.shape, a.most**n, False))


@rule()
def clip(m: Maker) -> None:
    a = m.pick(lambda v: v.dtype in ("float32", "float64", "int32", "int64"))
    low, high = m.rng.choice(((-1, 2), (0, 3), (None, 1), (-2, None)))
    names = [m.constant(x, a.dtype) if x is not None else "" for x in (low, high)]
    m.add("Clip", [a.name, *names], (a.dtype, a.shape, a.most + 3, a.exact))


@rule(2)
def comparison(m: Maker) -> None:
    a = m.pick(lambda v: v.exact and v.dtype in ("float32", "int32", "int64", "float64"))
    b = m.pick(lambda v: v.exact and v.dtype == a.dtype)
    op = m.rng.choice(("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"))
    m.add(op, [a.name, b.name], ("bool", broadcast(a.shape, b.shape), 1, True))


@rule(2)
def logic(m: Maker) -> None:
    a, b = m.pick(lambda v: v.dtype == "bool"), m.pick(lambda v: v.dtype == "bool")
    op = m.rng.choice(("And", "Or", "Xor", "Not"))
    names = [a.name] if op == "Not" else [a.name, b.name]
    m.add(op, names, ("bool", a.shape if op == "Not" else broadcast(a.shape, b.shape), 1, True))


@rule(2)
def where(m: Maker) -> None:
    c, a = m.pick(lambda v: v.dtype == "bool"), m.pick(lambda v: v.dtype in ("float32", "int64"))
    b = m.pick(lambda v: v.dtype == a.dtype)
    shape = broadcast(c.shape, a.shape, b.shape)
    m.add("Where", [c.name, a.name, b.name], (a.dtype, shape, max(a.most, b.most), a.exact and b.exact))


@rule(2)
def cast(m: Maker) -> None:
    x = m.pick(lambda v: v.exact or v.dtype.startswith("float"))
    to = m.rng.choice(("float32", "float64", "int32", "int64", "bool") if x.exact else ("float32", "float64"))
    number = helper.np_dtype_to_tensor_dtype(np.dtype(to))
    m.add("Cast", [x.name], (to, x.shape, max(x.most, 1) if to != "bool" else 1, x.exact), to=number)


@rule()
def quantized(m: Maker) -> None:
    """To 8 bits and back, with a scale that is a power of 2."""
    x = m.pick(lambda v: v.dtype == "float32" and v.exact)
    scale, zero = (
        m.constant(m.rng.choice((0.5, 1, 2)), "float32"),
        m.constant(m.rng.choice((0, 100)), "uint8"),
    )
    m.add("QuantizeLinear", [x.name, scale, zero], ("uint8", x.shape, 255, True))
    m.add("DequantizeLinear", [m.values[-1].name, scale, zero], ("float32", x.shape, 512, False))
