"""Reductions, contractions, and how tensors are padded, cut and joined."""

from __future__ import annotations

from typing import Any

from tests.parity.inputs import Inputs
from tests.parity.programs.registry import program, with_gradients


@program
def moments(lib: Any, make: Inputs) -> list[Any]:
    x = make.normal(8, 20)
    return [x.var(1), x.std(0), x.mean(), x.var_mean(0)[0]]


@program
def extremes(lib: Any, make: Inputs) -> list[Any]:
    x = make.normal(8, 20)
    return [x.max(1), x.min(0), x.max() - x.min(), (x > 0).any(1), x.abs().prod(1)]


@program
def sum_of_large(lib: Any, make: Inputs) -> list[Any]:
    """More elements than tinygrad sums in one kernel."""
    return [make.normal(40000).sum()]


@program
def matmul_chain(lib: Any, make: Inputs) -> list[Any]:
    return [make.normal(6, 8) @ make.normal(8, 10) @ make.normal(10, 7) @ make.normal(7, 4)]


@program
def matmul_batched_backward(lib: Any, make: Inputs) -> list[Any]:
    a, b = make.normal(3, 6, 8), make.normal(8, 5)
    return with_gradients(make, a @ b, a, b)


@program
def einsum(lib: Any, make: Inputs) -> list[Any]:
    einsum_ = lib.Tensor.einsum
    a, b, c = make.normal(4, 6), make.normal(6, 5), make.normal(3, 4, 6)
    turned = einsum_("bij->jb", c)
    return [einsum_("ij,jk->ik", a, b), einsum_("bij,jk->bki", c, b), einsum_("ij,ij->", a, a), turned]


@program
def pairwise_distance_backward(lib: Any, make: Inputs) -> list[Any]:
    a, b = make.normal(7, 5), make.normal(6, 5)
    return with_gradients(make, ((a.unsqueeze(1) - b).square().sum(-1) + 1e-6).sqrt(), a, b)


@program
def pad_modes(lib: Any, make: Inputs) -> list[Any]:
    x = make.normal(2, 3, 6, 6)
    return [
        x.pad((1, 2, 2, 1), mode=m).contiguous() for m in ("constant", "reflect", "replicate", "circular")
    ]


@program
def concatenate_and_stack(lib: Any, make: Inputs) -> list[Any]:
    a, b, c = make.normal(3, 4), make.normal(2, 4), make.normal(3, 4)
    return [
        a.cat(b, c, dim=0).contiguous(),
        a.stack(c, dim=1).contiguous(),
        (a * 2).cat(c + 1, dim=1).softmax(-1),
    ]


@program
def split_and_roll(lib: Any, make: Inputs) -> list[Any]:
    x = make.normal(6, 12)
    a, b, c = x.split([3, 4, 5], dim=1)
    return [a.sum(1) + b.sum(1) * c.max(1), x.roll(3, 1) - x, x.flip(0) * x.roll((1, 2), (0, 1))]


@program
def repeat_and_interleave(lib: Any, make: Inputs) -> list[Any]:
    x = make.normal(3, 4)
    return [x.repeat(2, 3) + 1, x.repeat_interleave(2, 0) * 2, x.diagonal() + 0.5, x.triu(1) + x.tril(-1)]


@program
def finite_differences_backward(lib: Any, make: Inputs) -> list[Any]:
    """Total variation of an image."""
    x = make.normal(10, 10)
    loss = (x[1:] - x[:-1]).abs().sum() + (x[:, 1:] - x[:, :-1]).square().sum()
    return [loss, *loss.gradient(x)]


@program
def heat_steps(lib: Any, make: Inputs) -> list[Any]:
    """Five steps of a five-point stencil."""
    u = make.normal(12, 12)
    for _ in range(5):
        p = u.pad((1, 1, 1, 1))
        u = u + 0.1 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u)
    return [u]


@program
def fourier_transform(lib: Any, make: Inputs) -> list[Any]:
    """A discrete Fourier transform as a matrix product: real and imaginary part."""
    x, n = make.normal(16), 16
    angle = lib.Tensor.arange(n).reshape(n, 1) * lib.Tensor.arange(n).reshape(1, n) * (6.283185307179586 / n)
    return [(angle.cos() * x).sum(1), (angle.sin() * x).sum(1)]


@program
def power_iteration(lib: Any, make: Inputs) -> list[Any]:
    a, v = make.normal(10, 10), make.positive(10)
    a = a @ a.transpose()
    for _ in range(4):
        v = a @ v
        v = v / v.square().sum().sqrt()
    return [v, v @ (a @ v)]


@program
def normal_equations_gradient_descent(lib: Any, make: Inputs) -> list[Any]:
    """Three steps of least squares, unrolled: gradients as ordinary graphs."""
    x, y, w = make.normal(20, 5), make.normal(20), make.zeros(5)
    for _ in range(3):
        (g,) = (x @ w - y).square().mean().gradient(w)
        w = w - 0.1 * g
    return [w]


@program
def monte_carlo_estimate(lib: Any, make: Inputs) -> list[Any]:
    x, y = make.normal(200), make.normal(200)
    return [(x * x + y * y < 1).cast("float32").mean(), (x * x + y * y).sqrt().mean()]
