"""Matrix products."""

from __future__ import annotations

from polygrad.dtype import dtypes
from polygrad.onnx.op_table import op
from polygrad.onnx.ops.elementwise_ops import aligned
from polygrad.tensor.tensor import Tensor


@op("MatMul", 1, 9, 13)
def matmul(a: Tensor, b: Tensor) -> Tensor:
    return a.dot(b)


@op("Gemm", 7, 9, 11, 13)
def gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor:
    out = (a.T if transA else a).dot(b.T if transB else b)
    out = out if alpha == 1.0 else (out * alpha).cast(a.dtype)
    if c is None or beta == 0.0:
        return out
    return out + (c if beta == 1.0 else (c * beta).cast(c.dtype))


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
) -> Tensor:
    return gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)


@op("Einsum", 12, 28)
def einsum(*xs: Tensor, equation: str) -> Tensor:
    return Tensor.einsum(equation.replace(" ", ""), *xs)


@op("MatMulInteger", 10)
def matmul_integer(
    a: Tensor, b: Tensor, a_zero: Tensor | None = None, b_zero: Tensor | None = None
) -> Tensor:
    """Products of 8-bit integers, exact. A zero point is of all, or of each row of a or column of b."""
    x, y = a.cast(dtypes.int32), b.cast(dtypes.int32)
    if a_zero is not None:
        x = x - (aligned(a_zero, a.ndim, -2) if a_zero.ndim == 1 else a_zero).cast(dtypes.int32)
    if b_zero is not None:
        y = y - b_zero.cast(dtypes.int32)
    return x.dot(y)
