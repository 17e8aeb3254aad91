"""Activation functions, softmax and related ops."""

from __future__ import annotations

from typing import Any

from polygrad.errors import OnnxError
from polygrad.helpers import prod
from polygrad.onnx.op_table import op
from polygrad.tensor.tensor import Tensor


@op("Relu", 1, 6, 13, 14)
def relu(x: Tensor, *, consumed_inputs: Any = None) -> Tensor:
    return x.relu()


@op("Sigmoid", 1, 6, 13)
def sigmoid(x: Tensor, *, consumed_inputs: Any = None) -> Tensor:
    return x.sigmoid()


@op("Softplus", 1, 22)
def softplus(x: Tensor) -> Tensor:
    return x.softplus()


@op("Softsign", 1, 22)
def softsign(x: Tensor) -> Tensor:
    return x.softsign()


@op("HardSwish", 14, 22)
def hard_swish(x: Tensor) -> Tensor:
    return x.hardswish()


@op("Mish", 18, 22)
def mish(x: Tensor) -> Tensor:
    return x.mish()


@op("Elu", 1, 6, 22)
def elu(x: Tensor, *, alpha: float = 1.0, consumed_inputs: Any = None) -> Tensor:
    return x.elu(alpha)


@op("Celu", 12, 28)
def celu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return x.celu(alpha)


@op("Selu", 6, 22)
def selu(
    x: Tensor, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875
) -> Tensor:
    return x.selu(alpha, gamma)


@op("Selu", 1)
def selu_1(x: Tensor, *, alpha: float = 1.6732, gamma: float = 1.0507, consumed_inputs: Any = None) -> Tensor:
    return x.selu(alpha, gamma)


@op("LeakyRelu", 1, 6, 16)
def leaky_relu(x: Tensor, *, alpha: float = 0.01, consumed_inputs: Any = None) -> Tensor:
    return x.leaky_relu(alpha)


@op("PRelu", 7, 9, 16)
def prelu(x: Tensor, slope: Tensor) -> Tensor:
    return (x < 0).where(x * slope, x)


@op("PRelu", 1, 6)
def prelu_1(x: Tensor, slope: Tensor, *, consumed_inputs: Any = None) -> Tensor:
    """A slope for each channel, axis 1."""
    return prelu(x, slope.reshape(-1, *[1] * (x.ndim - 2)) if slope.numel() > 1 else slope)


@op("ThresholdedRelu", 10, 22)
def thresholded_relu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return (x > alpha).where(x, 0)


@op("HardSigmoid", 1, 6, 22)
def hard_sigmoid(x: Tensor, *, alpha: float = 0.2, beta: float = 0.5, consumed_inputs: Any = None) -> Tensor:
    return x.hardsigmoid(alpha, beta)


@op("Shrink", 9)
def shrink(x: Tensor, *, bias: float = 0.0, lambd: float = 0.5) -> Tensor:
    return ((x < -lambd).where(x + bias, (x > lambd).where(x - bias, 0))).cast(x.dtype)


@op("Gelu", 20)
def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    return x.gelu(approximate)


@op("Swish", 24)
def swish(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return x * (x * alpha).sigmoid()


@op("SwiGLU", 28)
def swiglu(gate: Tensor, value: Tensor, *, alpha: float = 1.0) -> Tensor:
    return swish(gate, alpha=alpha) * value


# --- along an axis


@op("Softmax", 13)
def softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    return x.softmax(axis)


@op("LogSoftmax", 13)
def log_softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    return x.log_softmax(axis)


@op("Hardmax", 13)
def hardmax(x: Tensor, *, axis: int = -1) -> Tensor:
    """1 at the first of the greatest elements."""
    top = x.argmax(axis).cast("int64")
    return top.is_class(x.shape[axis], axis).cast(x.dtype)


def _as_matrix(x: Tensor, axis: int) -> Tensor:
    """Before version 13, these ops are of rows: all axes from `axis` on are one."""
    at = axis + x.ndim if axis < 0 else axis
    return x.reshape(prod(x.shape[:at]), -1)


@op("Softmax", 1, 11)
def softmax_1(x: Tensor, *, axis: int = 1) -> Tensor:
    return _as_matrix(x, axis).softmax(-1).reshape(x.shape)


@op("LogSoftmax", 1, 11)
def log_softmax_1(x: Tensor, *, axis: int = 1) -> Tensor:
    return _as_matrix(x, axis).log_softmax(-1).reshape(x.shape)


@op("Hardmax", 1, 11)
def hardmax_1(x: Tensor, *, axis: int = 1) -> Tensor:
    return hardmax(_as_matrix(x, axis)).reshape(x.shape)


# The activations of recurrent layers: by name, of x and two numbers.
RECURRENT: dict[str, Any] = {
    "relu": lambda x, a, b: x.relu(),
    "tanh": lambda x, a, b: x.tanh(),
    "sigmoid": lambda x, a, b: x.sigmoid(),
    "affine": lambda x, a, b: x * (1.0 if a is None else a) + (0.0 if b is None else b),
    "leakyrelu": lambda x, a, b: x.leaky_relu(0.01 if a is None else a),
    "thresholdedrelu": lambda x, a, b: thresholded_relu(x, alpha=1.0 if a is None else a),
    "scaledtanh": lambda x, a, b: (x * (1.0 if b is None else b)).tanh() * (1.0 if a is None else a),
    "hardsigmoid": lambda x, a, b: x.hardsigmoid(0.2 if a is None else a, 0.5 if b is None else b),
    "elu": lambda x, a, b: x.elu(1.0 if a is None else a),
    "softsign": lambda x, a, b: x.softsign(),
    "softplus": lambda x, a, b: x.softplus(),
}


def recurrent_activation(name: str) -> Any:
    """An activation by its name, in any case. Raises OnnxError."""
    activation = RECURRENT.get(name.lower())
    if activation is None:
        raise OnnxError(f"expected an activation of {', '.join(RECURRENT)}, got {name!r}")
    return activation
