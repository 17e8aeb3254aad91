"""Decompositions of matrices: cholesky, qr, eigh, svd.

Steps and gradients are as in `linear_systems.py`; the gradient of cholesky is Murray's ("Differentiation of
the Cholesky decomposition", 2016). The last two axes are a matrix, leading axes a batch.
"""

from __future__ import annotations

import math
from typing import Any, Literal, Self

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError, GradientError, ShapeError
from polygrad.tensor.core.base import broadcast_constant
from polygrad.tensor.core.checks import check_matrix, checking
from polygrad.tensor.core.jacobi import next_pairing, pairs, rotate_pairs, sweeps, tangent
from polygrad.tensor.core.loops import repeat
from polygrad.tensor.core.sizes import fits
from polygrad.tensor.linear_systems import LinearSystemsMixin
from polygrad.tensor.sorting import SortingMixin

# what the number of `check_matrix` means
_NOT_POSITIVE = "expected a positive definite matrix, got one whose leading minor of order {k} is not"


class DecompositionsMixin(LinearSystemsMixin, SortingMixin):
    """Decompositions of matrices of fixed sizes; 16-bit floats go through float32."""

    __slots__ = ()

    def cholesky(self, upper: bool = False) -> Self:
        """The lower triangular L with L @ Lᵀ = self, which is symmetric and positive definite (`upper`: Lᵀ).

        self: (..., n, n); only its lower triangle is used. The result is NaN where self is not positive
        definite; with `CHECK=1` that is a LinAlgError. The gradient is symmetric. Raises ShapeError.

        >>> Tensor([[4.0, 2.0], [2.0, 5.0]]).cholesky().tolist()
        [[2.0, 0.0], [1.0, 2.0]]
        """
        factor, info = self._cholesky(upper, "cholesky", with_info=checking())
        if info is not None:
            check_matrix(info, "cholesky", _NOT_POSITIVE)
        return factor

    def cholesky_ex(self, upper: bool = False, check_errors: bool = False) -> tuple[Self, Self]:
        """`cholesky`, and an error code for each matrix (...), int32: 0, or the order of the first leading
        minor that is not positive definite. From that column on, the factor is NaN.

        `check_errors`: read the codes now, and raise LinAlgError if one is not 0. Raises ShapeError.

        >>> factor, info = Tensor([[[4.0, 2.0], [2.0, 5.0]], [[1.0, 2.0], [2.0, 1.0]]]).cholesky_ex()
        >>> info.tolist()
        [0, 2]
        """
        factor, info = self._cholesky(upper, "cholesky_ex", with_info=True)
        assert info is not None
        if check_errors:
            check_matrix(info, "cholesky_ex", _NOT_POSITIVE)
        return factor, info

    def _cholesky(self, upper: bool, what: str, with_info: bool) -> tuple[Self, Self | None]:
        a = self._matrix(what)
        n = int(a.shape[-1])

        def step(x: Self, free: Self) -> tuple[Self, ...]:
            column = free.where(x._part(None, (0, 1)) / x._part((0, 1), (0, 1)).sqrt(), 0.0)._compute_once()
            trailing = x._part(None, (1, n)) - column.dot(column._part((1, n), None).mT)
            x = trailing.cat(column, dim=-1).roll(-1, -2)
            return x, free._part((1, n), None)._pad_matrix(1, 0)

        factor = a
        if n:
            x = a._detached().tril()
            free = self._of(broadcast_constant(dtypes.bool, True, (*a.shape[:-1], 1)), self._device)
            factor = repeat(n, step, x, free)[0].tril()

        def backward(g: Self, y: Self, _: Self) -> Self:
            inner = y.mT.dot(g.tril()).tril()
            inner = inner - inner * y._identity(n) * 0.5
            half = y.mT.triangular_solve(inner, True)
            half = y.mT.triangular_solve(half.mT, True).mT
            return (half + half.mT) * 0.5

        info: Self | None = None
        if with_info:
            info = factor._diagonal_info(lambda d: (d > 0).logical_not()) if n else a._no_info()
        out = self._in_result_dtype(factor._with_backward([a], backward))
        return out.mT if upper else out, info

    def qr(self, mode: Literal["reduced", "complete"] = "reduced") -> tuple[Self, Self]:
        """Q, of orthonormal columns, and R, upper triangular, with Q @ R = self (..., m, n).

        'reduced': Q (..., m, k), R (..., k, n) for k = min(m, n); 'complete': Q (..., m, m), R (..., m, n).
        Signs are LAPACK's. By Householder's reflections. The complete Q of m > n has no gradient
        (GradientError). Raises ShapeError, ArgumentError.

        >>> q, r = Tensor([[0.0, 2.0], [-1.0, 3.0]]).qr()
        >>> (q @ r).round().abs().tolist()
        [[0.0, 2.0], [1.0, 3.0]]
        """
        if mode not in ("reduced", "complete"):
            raise ArgumentError(f"qr: expected mode 'reduced' or 'complete', got {mode!r}")
        a = self._matrix("qr", square=False)
        m, n = int(a.shape[-2]), int(a.shape[-1])
        if m < n:  # the first m columns determine Q, and Q determines the other columns of R
            q, r = a._part(None, (0, m)).qr()
            r = r.cat(q.mT.dot(a._part(None, (m, n))), dim=-1)
            return self._in_result_dtype(q), self._in_result_dtype(r)
        q, r = a._detached()._householder()
        if mode == "complete" and m > n:
            message = f"qr: the complete Q of shape {(*q.shape,)} has no gradient: use mode 'reduced'"
            q, r = q._without_gradient(a, message), r._without_gradient(a, message)
            return self._in_result_dtype(q), self._in_result_dtype(r)
        q, r = q._part(None, (0, n)), r._part((0, n), None)

        def of_q(g: Self, q: Self, a: Self) -> Self:
            r = q.mT.dot(a)
            product = -g.mT.dot(q)
            return _right_divide(g + q.dot(_from_lower(product)), r)

        def of_r(g: Self, r: Self, a: Self) -> Self:
            q = r.mT.triangular_solve(a.mT).mT
            return _right_divide(q.dot(_from_lower(r.dot(g.triu().mT))), r)

        q, r = q._with_backward([a], of_q), r._with_backward([a], of_r)
        return self._in_result_dtype(q), self._in_result_dtype(r)

    def _without_gradient(self, a: Self, message: str) -> Self:
        """This result of `a`, whose differentiation raises GradientError with `message`."""

        def refuse(*_: Any) -> Any:
            raise GradientError(message)

        return self._with_backward([a], refuse)

    def _householder(self) -> tuple[Self, Self]:
        """The complete Q and R, by Householder reflections. Each step moves the finished row behind the
        others and drops the first column of R's part, so rows of R come out shifted to the left."""
        m, n = int(self.shape[-2]), int(self.shape[-1])
        steps = min(m, n)
        w = self._identity(m)._expand_batch(self.shape[:-2])  # becomes the transpose of Q
        if not steps:
            return w, self
        free = self._of(broadcast_constant(self.dtype, 1.0, (*self.shape[:-2], m, 1)), self._device)

        def step(x: Self, w: Self, free: Self) -> tuple[Self, ...]:
            column = x._part(None, (0, 1)) * free
            top = column._part((0, 1), None)
            below = column._part((1, m), None).square().sum(-2, keepdim=True)
            norm = (top.square() + below).sqrt()
            pivot = (top < 0).where(norm, -norm)  # the sign that avoids cancellation
            pivot = below.eq(0.0).where(top, pivot)
            head = (top - pivot) if m == 1 else (top - pivot).cat(column._part((1, m), None), dim=-2)
            length = head.square().sum(-2, keepdim=True)
            v = (length.eq(0.0).where(0.0, head * length.eq(0.0).where(1.0, length).rsqrt()))._compute_once()
            x = (x - v * v.mT.dot(x) * 2.0)._compute_once()
            w = (w - v * v.mT.dot(w) * 2.0)._compute_once()
            return x.roll((-1, -1), (-2, -1)), w.roll(-1, -2), free._part((1, m), None)._pad_matrix(1, 0)

        r, w, _ = repeat(steps, step, self, w, free)
        return w.roll(steps, -2).mT, r.roll((steps, steps), (-2, -1)).triu()

    def eigh(self) -> tuple[Self, Self]:
        """The eigenvalues (..., n), ascending, and the orthonormal eigenvectors (..., n, n), as columns, of a
        symmetric matrix (..., n, n). Only the lower triangle is used.

        Signs of eigenvectors are not determined; their gradient is infinite where eigenvalues are equal. By
        Jacobi's method, n / 2 rotations at a time (Brent and Luk, 1985). Raises ShapeError.

        >>> values, vectors = Tensor([[2.0, 0.0], [0.0, 1.0]]).eigh()
        >>> values.tolist()
        [1.0, 2.0]
        """
        a = self._matrix("eigh")
        n = int(a.shape[-1])
        lower = a.tril()
        a = lower + a.tril(-1).mT
        fixed = a._detached()
        # singular vectors of a positive semidefinite matrix are its eigenvectors
        shift = fixed.abs().sum(-1, keepdim=True).max(-2, keepdim=True) if n else fixed
        vectors = (fixed + fixed._identity(n) * shift)._orthogonalize_columns(descending=False)

        def backward(g: Self, v: Self, a: Self) -> Self:
            values = _diagonal_of_product(v, a.dot(v))
            gaps = values.unsqueeze(-2) - values.unsqueeze(-1)
            is_diagonal = v._identity(n).ne(0.0)
            inner = is_diagonal.where(0.0, v.mT.dot(g) / is_diagonal.where(1.0, gaps))
            out = v.dot(inner).dot(v.mT)
            return (out + out.mT) * 0.5

        vectors = vectors._with_backward([a], backward)
        values = _diagonal_of_product(vectors, a.dot(vectors))
        return self._in_result_dtype(values), self._in_result_dtype(vectors)

    def svd(self, full_matrices: bool = True) -> tuple[Self, Self, Self]:
        """U, S, Vᵀ with U @ diag(S) @ Vᵀ = self (..., m, n); S (..., k) descends, k = min(m, n).

        U is (..., m, m) and Vᵀ (..., n, n), or (..., m, k) and (..., k, n) if not `full_matrices`. Signs are
        not determined; the gradient of U and V is infinite where singular values are equal, and that of the
        columns beyond k does not exist (GradientError). By Hestenes' one-sided Jacobi method. torch's default
        is `full_matrices=False` (its `some`). Raises ShapeError.

        >>> u, s, vt = Tensor([[0.0, 2.0], [1.0, 0.0]]).svd()
        >>> s.tolist()
        [2.0, 1.0]
        """
        a = self._matrix("svd", square=False)
        m, n = int(a.shape[-2]), int(a.shape[-1])
        if m < n:
            u, s, vt = self.mT.svd(full_matrices)
            return vt.mT, s, u.mT
        if n == 0:
            u = a._identity(m)._expand_batch(a.shape[:-2])._part(None, None if full_matrices else (0, 0))
            return self._results(u, a.sum(-2), a._part((0, 0), None))
        v = a._detached()._orthogonalize_columns(descending=True)
        scaled_u = a._detached().dot(v)
        norms = scaled_u.square().sum(-2, keepdim=True).sqrt()
        q, r = (scaled_u / norms.eq(0.0).where(1.0, norms))._compute_once()._householder()
        signs = (r.diagonal(0, -2, -1) < 0).where(-1.0, 1.0).unsqueeze(-2)
        u = q._part(None, (0, n)) * signs

        def of_u(g: Self, u: Self, a: Self) -> Self:
            scaled_u = a.mT.dot(u)
            s = scaled_u.square().sum(-2, keepdim=True).sqrt()
            vt = (scaled_u / s).mT
            inner = _antisymmetric(u, g, s)
            out = u.dot(inner * s).dot(vt)
            complement = g - u.dot(u.mT.dot(g))
            return out + (complement / s).dot(vt) if m > n else out

        def of_v(g: Self, v: Self, a: Self) -> Self:
            scaled_u = a.dot(v)
            s = scaled_u.square().sum(-2, keepdim=True).sqrt()
            return (scaled_u / s).dot(s.mT * _antisymmetric(v, g, s)).dot(v.mT)

        u, v = u._with_backward([a], of_u), v._with_backward([a], of_v)
        values = _diagonal_of_product(u, a.dot(v))
        if full_matrices and m > n:
            null_columns = q._part(None, (n, m))
            message = f"svd: columns of U beyond {n} have no gradient: use full_matrices=False"
            u = u.cat(null_columns._without_gradient(a, message), dim=-1)
        return self._results(u, values, v.mT)

    def _results(self, u: Self, s: Self, vt: Self) -> tuple[Self, Self, Self]:
        return self._in_result_dtype(u), self._in_result_dtype(s), self._in_result_dtype(vt)

    def _orthogonalize_columns(self, descending: bool) -> Self:
        """V, orthogonal, for which the columns of self @ V are orthogonal, by length.

        Pairs of columns are rotated until all are orthogonal. A round rotates disjoint pairs at once; the
        next round pairs the columns differently, as in a round-robin tournament.
        """
        m, n = int(self.shape[-2]), int(self.shape[-1])
        size = n + n % 2  # an odd number gets a column of zeros, which is never rotated
        scale = self.abs().max((-2, -1), keepdim=True)
        x = (self / scale.eq(0.0).where(1.0, scale)).mT._pad_matrix(size - n, 0)  # as rows; beside them V's
        x = x.cat(self._identity(size)._expand_batch(self.shape[:-2]), dim=-1)._compute_once()

        def turn(x: Self) -> tuple[Self, ...]:
            left = pairs(x._part(None, (0, m)))
            products = (left.unsqueeze(-2) * left.unsqueeze(-3)).sum(-1)._compute_once()
            return (next_pairing(rotate_pairs(x, tangent(products)._compute_once())),)

        (x,) = repeat(sweeps(n, self.dtype) * (size - 1), turn, x)
        v = x._part(None, (m, m + n))._compute_once()
        lengths = v.dot(self.mT).square().sum(-1)
        if size > n:  # drop the row of the added column, which comes last
            lengths = (v.square().sum(-1) < 0.5).where(-1.0 if descending else math.inf, lengths)
        order = lengths.argsort(-1, descending)
        ordered_columns = v.gather(-2, order.unsqueeze(-1).expand(*order.shape, n))
        return ordered_columns._part((0, n), None).mT._compute_once()

    def newton_schulz(self, steps: int, params: tuple[float, ...], eps: float = 1e-7) -> Self:
        """The odd polynomial params[0] x + params[1] x³ + ... of the singular values, `steps` times over.

        self (..., m, n) is first divided by its Frobenius norm + `eps`. With the parameters of Muon it leads
        to the nearest orthogonal matrix. Raises ShapeError, ArgumentError.

        >>> Tensor([[3.0, 0.0], [0.0, 1.0]]).newton_schulz(20, (1.5, -0.5)).round().tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        if self.ndim < 2:
            raise ShapeError(f"newton_schulz: expected at least 2 axes, got shape {self.shape}")
        if steps < 0 or not params:
            raise ArgumentError(f"newton_schulz: expected steps >= 0 and params, got {steps} and {params}")
        if not fits(self.shape[-2], self.shape[-1]):
            return self.mT.newton_schulz(steps, params, eps).mT
        x = self / (self.square().sum((-2, -1), keepdim=True).sqrt() + eps)
        for _ in range(steps):
            square = x.dot(x.mT)
            power, out = x, x * params[0]
            for coefficient in params[1:]:
                power = square.dot(power)
                out = out + power * coefficient
            x = out
        return x


def _right_divide(x: Any, r: Any) -> Any:
    """x @ inverse of rᵀ, for an upper triangular r."""
    return r.triangular_solve(x.mT, True).mT


def _from_lower(x: Any) -> Any:
    """The symmetric matrix with the lower triangle of x."""
    return x.tril() + x.tril(-1).mT


def _diagonal_of_product(u: Any, w: Any) -> Any:
    """The diagonal of uᵀ @ w."""
    return (u * w).sum(-2)


def _antisymmetric(u: Any, g: Any, s: Any) -> Any:
    """(uᵀ g - gᵀ u) / (s_j² - s_i²), 0 on the diagonal; s: (..., 1, n)."""
    n = u.shape[-1]
    is_diagonal = u._identity(n).ne(0.0)
    squares = s.square()
    gaps = is_diagonal.where(1.0, squares - squares.mT)
    product = u.mT.dot(g)
    return is_diagonal.where(0.0, (product - product.mT) / gaps)
