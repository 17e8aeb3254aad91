"""Matrix products."""

from __future__ import annotations

from dataclasses import replace

from polygrad.onnx.integer_products import dequantized_matmul, integer_matmul, zero_of
from polygrad.onnx.op_table import Known, Quantizable, op
from polygrad.onnx.ops.elementwise_ops import aligned
from polygrad.onnx.values import Dequantized, Scaled, floats_of
from polygrad.tensor.tensor import Tensor


@op("MatMul", 1, 9, 13)
def matmul(a: Quantizable, b: Quantizable) -> Tensor | Scaled:
    return product(a, b)


def product(a: Quantizable, b: Quantizable) -> Tensor | Scaled:
    """a @ b; of quantised operands by their integers."""
    if isinstance(a, Dequantized) and isinstance(b, Dequantized):
        out = dequantized_matmul(a, b)
        if out is not None:
            return out
    return floats_of(a).dot(floats_of(b))


@op("Gemm", 7, 9, 11, 13)
def gemm(
    a: Quantizable,
    b: Quantizable,
    c: Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor | Scaled:
    out = product(_transposed(a) if transA else a, _transposed(b) if transB else b)
    if alpha != 1.0:
        out = floats_of(out)
        out = (out * alpha).cast(out.dtype)
    if c is None or beta == 0.0:
        return out
    added = c if beta == 1.0 else (c * beta).cast(c.dtype)
    return (
        out.plus(added)
        if isinstance(out, Scaled) and c.numel() < out.total.numel()
        else floats_of(out) + added
    )


def _transposed(x: Quantizable) -> Quantizable:
    if isinstance(x, Dequantized):
        return replace(x.rearrange(lambda t: t.T), axis=1 - x.axis)
    return floats_of(x).T


@op("Gemm", 1, 6)
def gemm_1(
    a: Tensor,
    b: Tensor,
    c: Tensor,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    broadcast: int = 0,
) -> Tensor | Scaled:
    return gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)


@op("Einsum", 12, 28)
def einsum(*xs: Tensor, equation: str) -> Tensor:
    return Tensor.einsum(equation.replace(" ", ""), *xs)


@op("MatMulInteger", 10)
def matmul_integer(a: Tensor, b: Tensor, a_zero: Known = None, b_zero: Known = None) -> Tensor:
    """Products of 8-bit integers, exact. A zero point is of all, or of each row of a or column of b."""
    zero = zero_of(a_zero, a.device)
    if isinstance(zero, Tensor) and zero.ndim == 1:
        zero = aligned(zero, a.ndim, -2)
    return integer_matmul(a, b, zero, zero_of(b_zero, b.device))
