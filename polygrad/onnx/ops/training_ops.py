"""The domain ai.onnx.preview.training: gradients, and steps of optimizers (tensors, their gradients, and
states).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from polygrad.errors import OnnxError
from polygrad.onnx.op_table import op
from polygrad.onnx.values import Value, tensor_of
from polygrad.tensor.tensor import Tensor

DOMAIN = "ai.onnx.preview.training"


def _columns(xs: tuple[Tensor, ...], count: int) -> list[tuple[Tensor, ...]]:
    """Each tensor that is optimized, with its gradient and its states."""
    if len(xs) % count:
        raise OnnxError(f"expected {count} inputs for each tensor, got {len(xs)}")
    n = len(xs) // count
    return [tuple(xs[i + k * n] for k in range(count)) for i in range(n)]


def _join(rows: Sequence[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """The new tensors, then the new states."""
    return tuple(x for column in zip(*rows) for x in column)


@op("Gradient", 1, domain=DOMAIN)
def gradient(
    *values: Tensor,
    xs: list[str],
    y: str,
    zs: list[str] | None = None,
    find: Callable[[str], Value],
    device: str | None,
) -> tuple[Tensor, ...]:
    """The gradients of the value named `y` with respect to those named `xs`, at the values that the graph
    has.
    """
    names = [*xs, *(zs or [])]
    if len(values) != len(names) or any(find(n) is not v for n, v in zip(names, values)):
        raise OnnxError(f"the inputs are not the values that xs and zs name: expected {', '.join(names)}")
    return tuple(tensor_of(find(y), device).sum().gradient(*values[: len(xs)]))


@op("Adagrad", 1, domain=DOMAIN)
def adagrad(
    rate: Tensor,
    count: Tensor,
    *xs: Tensor,
    decay_factor: float = 0.0,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
) -> tuple[Tensor, ...]:
    r = rate / (1.0 + count.cast(rate.dtype) * decay_factor)
    rows = []
    for x, g, h in _columns(xs, 3):
        g = g + x * norm_coefficient
        h = h + g.square()
        rows.append((x - r * g / (h.sqrt() + epsilon), h))
    return _join(rows)


@op("Adam", 1, domain=DOMAIN)
def adam(
    rate: Tensor,
    count: Tensor,
    *xs: Tensor,
    alpha: float = 0.9,
    beta: float = 0.999,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
) -> tuple[Tensor, ...]:
    t = count.cast(rate.dtype)
    adjusted = rate * (1.0 - t.pow(beta, reverse=True)).sqrt() / (1.0 - t.pow(alpha, reverse=True))
    r = (count > 0).where(adjusted, rate)
    rows = []
    for x, g, v, h in _columns(xs, 4):
        g = g + x * norm_coefficient
        v = v * alpha + g * (1.0 - alpha)
        h = h * beta + g.square() * (1.0 - beta)
        x = x - r * v / (h.sqrt() + epsilon)
        rows.append((x * (1.0 - norm_coefficient_post), v, h))
    return _join(rows)


@op("Momentum", 1, domain=DOMAIN)
def momentum(
    rate: Tensor, count: Tensor, *xs: Tensor, alpha: float, beta: float, mode: str, norm_coefficient: float
) -> tuple[Tensor, ...]:
    if mode not in ("standard", "nesterov"):
        raise OnnxError(f"expected mode standard or nesterov, got {mode!r}")
    share = (count > 0).where(beta, 1.0)
    rows = []
    for x, g, v in _columns(xs, 3):
        g = g + x * norm_coefficient
        v = v * alpha + g * share
        rows.append((x - rate * (v if mode == "standard" else g + v * alpha), v))
    return _join(rows)
