"""Linear systems and decompositions: solve, inv, det, cholesky, qr, eigh, svd.

Each takes a number of steps that depends on the sizes alone, so it is lazy, and the same on every device.
All steps are alike: finished rows move to the end of the matrix, and the next pivot is always in the first
row and column. So the steps are one FOR, and only its body is built and compiled. Gradients are closed
formulas of the result (Giles, "An extended collection of matrix derivative results", 2008; Murray,
"Differentiation of the Cholesky decomposition", 2016). They do not differentiate the steps, and can be
differentiated again.

The last two axes are a matrix, leading axes a batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

from polygrad.dtype import DType, dtypes, promote
from polygrad.errors import ArgumentError, GradientError, ShapeError
from polygrad.tensor.core.base import broadcast_constant, broadcast_to
from polygrad.tensor.core.checks import check_matrix, checking
from polygrad.tensor.core.sizes import fits, fixed_size
from polygrad.tensor.linalg import LinalgMixin
from polygrad.tensor.sorting import SortingMixin
from polygrad.uop.for_loop import for_loop, placeholder
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.shapes import broadcast_shape

# what the numbers of `check_matrix` mean
_SINGULAR = "expected an invertible matrix, got one whose pivot {k} is 0"
_NOT_POSITIVE = "expected a positive definite matrix, got one whose leading minor of order {k} is not"


class DecompositionsMixin(LinalgMixin, SortingMixin):
    """Linear systems and decompositions, of matrices of fixed sizes; 16-bit floats go through float32."""

    __slots__ = ()

    def _matrix(self, what: str, square: bool = True) -> Self:
        """self in floats of at least 32 bits. Raises ShapeError unless it is a (square) matrix."""
        sizes = self.shape[-2:]
        if self.ndim < 2 or not all(isinstance(n, int) for n in sizes) or (square and sizes[0] != sizes[1]):
            kind = "a square matrix" if square else "a matrix"
            raise ShapeError(f"{what}: expected {kind} (the last two axes), got shape {self.shape}")
        return self._in_accumulation_dtype()

    @property
    def mT(self) -> Self:
        """The last two axes swapped: each matrix of a batch transposed.

        >>> Tensor([[[1, 2], [3, 4]]]).mT.tolist()
        [[[1, 3], [2, 4]]]
        """
        return self.transpose(-2, -1)

    def _part(self, rows: tuple[int, int] | None, columns: tuple[int, int] | None) -> Self:
        """These rows and columns (None: all) of each matrix."""
        return self.shrink([*[None] * (self.ndim - 2), rows, columns])

    def _pad_matrix(self, rows: int, columns: int) -> Self:
        """Each matrix with `rows` zero rows appended, and `columns` zero columns."""
        return self.pad([*[None] * (self.ndim - 2), (0, rows), (0, columns)])

    def _identity(self, n: int) -> Self:
        """The (n, n) identity matrix in this dtype."""
        i = self._of(UOp(Ops.ARANGE, dtypes.int32, (), n), self._device)
        return i.unsqueeze(1).eq(i).cast_like(self)

    def _expand_batch(self, lead: tuple[Any, ...]) -> Self:
        return self._result(broadcast_to(self.uop, (*lead, *self.shape[-2:])))

    # --- linear systems

    def _solve_with_det(self, b: Self) -> tuple[Self, Self]:
        """The solution of self @ x = b, and the determinant."""
        x, det, _ = self._eliminate(b, with_info=False)
        return x, det

    def _eliminate(self, b: Self, with_info: bool) -> tuple[Self, Self, Self | None]:
        """The solution of self @ x = b, the determinant and, if `with_info`, the 1-based index (int32) of the
        first zero pivot (0: there is none). Gauss-Jordan elimination with row pivots.

        Each step moves the scaled row of the pivot behind the others and drops the first column.
        """
        n, m = int(self.shape[-1]), int(b.shape[-1])
        x = self.cat(b, dim=-1)._compute_once()
        index = self._of(UOp(Ops.ARANGE, dtypes.int32, (), n).reshape((n, 1)), self._device)
        free = x._part(None, (0, 1)).const_like(
            1.0
        )  # 1 for the rows, always the first ones, not used as pivots yet
        det = x._part((0, 1), (0, 1)).const_like(1.0)

        def step(x: Self, det: Self, free: Self, *info: Self) -> tuple[Self, ...]:
            pivot = (x._part(None, (0, 1)).abs() * free + free * 1e-37).argmax(-2, keepdim=True)
            pivot_mask = index.eq(pivot)
            row = pivot_mask.where(x, 0.0).sum(-2, keepdim=True)._compute_once()
            p = row._part(None, (0, 1))
            det = det * pivot.eq(0).where(p, -p)
            number = (n + 1) - free.sum(-2, keepdim=True)
            info = tuple([(i.eq(0.0) & p.eq(0.0)).where(number, i) for i in info])
            row = row / p
            other_rows = pivot_mask.where(x._part((0, 1), None), x)._part((1, n), None)
            other_rows = other_rows - other_rows._part(None, (0, 1)) * row
            x = other_rows.cat(row, dim=-2)._part(None, (1, n + m))._pad_matrix(0, 1)
            return x, det, free._part((1, n), None)._pad_matrix(1, 0), *info

        extra = [det.const_like(0.0)] if with_info else []
        x, det, _, *info = _repeat(n, step, x, det, free, *extra)
        lead = self.shape[:-2]
        first = info[0].reshape(lead)._as_info() if with_info else None
        return x._part(None, (0, m)), det.reshape(lead), first

    def _as_info(self) -> Self:
        return self._with(self.uop.cast(dtypes.int32).detach())

    def _no_info(self) -> Self:
        """0 for each matrix: no fault."""
        return self._of(broadcast_constant(dtypes.int32, 0, self.shape[:-2]), self._device)

    def solve(self, b: Self) -> Self:
        """x with self @ x = b. self: (..., n, n), b: (..., n, m), or (n,); batches broadcast.

        A singular matrix gives infinities or NaN; with `CHECK=1` it is a LinAlgError. Raises ShapeError.

        >>> Tensor([[2.0, 0.0], [0.0, 4.0]]).solve(Tensor([2.0, 2.0])).tolist()
        [1.0, 0.5]
        """
        a, b, is_vector = self._system(b, "solve")

        def backward(g: Self, x: Self, a: Self, _: Self) -> tuple[Self, Self]:
            of_b = a.mT.solve(g)
            return -of_b.dot(x.mT), of_b

        x = a._detached()._solution(b._detached(), "solve") if a.shape[-1] else b
        x = x._with_backward([a, b], backward)
        return self._in_result_dtype(x.squeeze(-1) if is_vector else x)

    def _solution(self, b: Self, what: str) -> Self:
        """The solution of self @ x = b; singular matrices are an error with `CHECK=1`."""
        x, _, info = self._eliminate(b, with_info=checking())
        if info is not None:
            check_matrix(info, what, _SINGULAR)
        return x

    def _system(self, b: Self, what: str) -> tuple[Self, Self, bool]:
        """self and b as matrices of one dtype and batch, and whether b was one vector."""
        a, is_vector = self._matrix(what), b.ndim == 1
        right = b.unsqueeze(-1) if is_vector else b
        if right.ndim < 2 or right.shape[-2] != a.shape[-1]:
            raise ShapeError(f"{what}: expected {a.shape[-1]} rows for shape {self.shape}, got {b.shape}")
        right = right._in_accumulation_dtype()
        dtype = promote(a.dtype, right.dtype)
        lead = broadcast_shape((a.shape[:-2], right.shape[:-2]))
        a, right = (x._with(x.uop.cast(dtype))._expand_batch(lead) for x in (a, right))
        return a, right, is_vector

    def inv(self) -> Self:
        """The inverse of each matrix (..., n, n); infinities or NaN for a singular one, which is a
        LinAlgError with `CHECK=1`. Raises ShapeError.

        >>> Tensor([[2.0, 0.0], [0.0, 4.0]]).inv().tolist()
        [[0.5, 0.0], [0.0, 0.25]]
        """
        inverse, info = self._inverse("inv", with_info=checking())
        if info is not None:
            check_matrix(info, "inv", _SINGULAR)
        return inverse

    inverse = inv

    def inv_ex(self, check_errors: bool = False) -> tuple[Self, Self]:
        """The inverse of each matrix (..., n, n), and an error code (...), int32. The code is 0, or the
        1-based index of the first zero pivot: such a matrix is singular, and its inverse holds infinities or
        NaN. A matrix that is singular only up to rounding has the code 0.

        `check_errors`: read the codes now, and raise LinAlgError if one is not 0. Raises ShapeError.

        >>> inverse, info = Tensor([[[2.0, 0.0], [0.0, 4.0]], [[1.0, 1.0], [1.0, 1.0]]]).inv_ex()
        >>> info.tolist()
        [0, 2]
        """
        inverse, info = self._inverse("inv_ex", with_info=True)
        assert info is not None
        if check_errors:
            check_matrix(info, "inv_ex", _SINGULAR)
        return inverse, info

    def _inverse(self, what: str, with_info: bool) -> tuple[Self, Self | None]:
        a = self._matrix(what)
        n = int(a.shape[-1])
        x, info = a, a._no_info()
        if n:
            eye = a._identity(n)._expand_batch(a.shape[:-2])
            x, _, first_zero_pivot = a._detached()._eliminate(eye, with_info)
            info = info if first_zero_pivot is None else first_zero_pivot
        x = x._with_backward([a], lambda g, x, _: -x.mT.dot(g).dot(x.mT))
        return self._in_result_dtype(x), info if with_info else None

    def matrix_power(self, n: int) -> Self:
        """The n-th power of each matrix; of its inverse if n is less than 0. Raises ShapeError.

        >>> Tensor([[1, 1], [0, 1]]).matrix_power(5).tolist()
        [[1, 5], [0, 1]]
        """
        if self.ndim < 2 or self.shape[-1] != self.shape[-2]:
            raise ShapeError(f"matrix_power: expected square matrices, got shape {self.shape}")
        square = self.inv() if n < 0 else self._with(self.uop)
        eye = type(self).eye(fixed_size(self.shape[-1], "matrix_power"), dtype=self.dtype, device=self.device)
        out: Self | None = None
        exponent = abs(n)
        while exponent:
            if exponent & 1:
                out = square if out is None else out.matmul(square)
            exponent >>= 1
            square = square.matmul(square) if exponent else square
        return eye.expand(self.shape) if out is None else out

    def det(self) -> Self:
        """The determinant of each matrix (..., n, n), (...). Raises ShapeError.

        Its gradient needs the inverse: that of a singular matrix is NaN.

        >>> Tensor([[2.0, 0.0], [1.0, 4.0]]).det().item()
        8.0
        """
        a = self._matrix("det")
        if not a.shape[-1]:
            return self._in_result_dtype(a._of(broadcast_constant(a.dtype, 1.0, a.shape[:-2]), a._device))
        det = a._detached()._solve_with_det(a._detached()._part(None, (0, 1)))[1]
        # a singular matrix has a zero pivot, and all later values are NaN
        det = det.isnan().where(a.isnan().any((-2, -1)).where(math.nan, 0.0), det)

        def backward(g: Self, y: Self, a: Self) -> Self:
            return (g * y).unsqueeze(-1).unsqueeze(-1) * a.inv().mT

        return self._in_result_dtype(det._with_backward([a], backward))

    def triangular_solve(self, b: Self, upper: bool = False) -> Self:
        """x with self @ x = b, where only the lower triangle of self is used (`upper`: the upper one).

        self: (..., n, n), b: (..., n, m), or (n,); batches broadcast. A 0 on the diagonal gives infinities or
        NaN; with `CHECK=1` it is a LinAlgError. Raises ShapeError.

        >>> Tensor([[2.0, 0.0], [1.0, 1.0]]).triangular_solve(Tensor([2.0, 3.0])).tolist()
        [1.0, 2.0]
        """
        a, b, is_vector = self._system(b, "triangular_solve")

        def backward(g: Self, x: Self, a: Self, _: Self) -> tuple[Self, Self]:
            of_b = a.mT.triangular_solve(g, not upper)
            of_a = -of_b.dot(x.mT)
            return of_a.triu() if upper else of_a.tril(), of_b

        if checking() and a.shape[-1]:
            check_matrix(a._diagonal_info(lambda d: d.eq(0.0)), "triangular_solve", _SINGULAR)
        x = a._detached()._substitute(b._detached(), upper)._with_backward([a, b], backward)
        return self._in_result_dtype(x.squeeze(-1) if is_vector else x)

    def _substitute(self, b: Self, upper: bool) -> Self:
        """Forward substitution; backward, if `upper`."""
        if upper:
            return self.flip(-1, -2)._substitute(b.flip(-2), False).flip(-2)
        n = int(self.shape[-1])
        if not n:
            return b

        def step(a: Self, remaining: Self) -> tuple[Self, ...]:
            row = remaining._part((0, 1), None) / a._part((0, 1), (0, 1))
            below = remaining._part((1, n), None) - a._part((1, n), (0, 1)) * row
            return a.roll((-1, -1), (-2, -1)), below.cat(row, dim=-2)

        return _repeat(n, step, self.tril(), b)[1]

    # --- decompositions

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
            factor = _repeat(n, step, x, free)[0].tril()

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

    def _diagonal_info(self, is_wrong: Callable[[Self], Self]) -> Self:
        """The 1-based index (int32) of the first wrong element on each matrix's diagonal; 0: there is
        none."""
        n = int(self.shape[-1])
        wrong = is_wrong(self._detached().diagonal(0, -2, -1))
        place = self._of(UOp(Ops.ARANGE, dtypes.int32, (), n), self._device)
        after = wrong.where(n - place, 0).max(
            -1
        )  # the number of elements from the first wrong one to the end
        return (after > 0).where(n + 1 - after, 0)

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

        r, w, _ = _repeat(steps, step, self, w, free)
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
            left = _pairs(x._part(None, (0, m)))
            products = (left.unsqueeze(-2) * left.unsqueeze(-3)).sum(-1)._compute_once()
            return (_next_pairing(_rotate_pairs(x, _tangent(products)._compute_once())),)

        (x,) = _repeat(_sweeps(n, self.dtype) * (size - 1), turn, x)
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


def _repeat(trip_count: int, step: Callable[..., Sequence[Any]], *values: Any) -> list[Any]:
    """Apply `step`, which maps values to their next values, `trip_count` times to `values`.

    `step` is called once, with placeholders for the values, and may use constants besides.
    """
    placeholders = [x._of(placeholder(i, x.shape, x.dtype), x._device, False) for i, x in enumerate(values)]
    results = for_loop(trip_count, [r.uop for r in step(*placeholders)], [x.uop for x in values])
    return [x._result(r) for x, r in zip(values, results, strict=True)]


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


# --- Jacobi rotations: rows 2k and 2k + 1 are a pair; each round ends by reordering the rows to new pairs


def _sweeps(n: int, dtype: DType) -> int:
    """The number of sweeps, in each of which every pair is rotated once: convergence is quadratic at the
    end."""
    return n.bit_length() + (3 if dtype is dtypes.float32 else 4)


def _pairs(x: Any) -> Any:
    """(..., n, k) as (..., n / 2, 2, k)."""
    return x.reshape(*x.shape[:-2], x.shape[-2] // 2, 2, x.shape[-1])


def _tangent(products: Any) -> Any:
    """The tangents (..., 1, 1) of the angles, of at most 45 degrees, that make pairs orthogonal.

    products: the inner products (..., 2, 2) of the rows of each pair.
    """
    p, q, off = (products._part((i, i + 1), (j, j + 1)) for i, j in ((0, 0), (1, 1), (0, 1)))
    is_zero = off.eq(0.0)
    ratio = (q - p) / (is_zero.where(1.0, off) * 2.0)
    is_large = ratio.abs() > 1e15
    bounded = is_large.where(1.0, ratio)
    t = (ratio < 0).where(-1.0, 1.0) / (bounded.abs() + (bounded * bounded + 1.0).sqrt())
    return is_zero.where(0.0, is_large.where(0.5 / is_large.where(ratio, 1.0), t))


def _rotate_pairs(x: Any, t: Any) -> Any:
    """Rows 2k and 2k + 1 become c row - s next, s row + c next; t: the tangents s / c."""
    pairs = _pairs(x)
    first, second = pairs._part((0, 1), None), pairs._part((1, 2), None)
    c = (t * t + 1.0).rsqrt()
    return ((first - second * t) * c).cat((first * t + second) * c, dim=-2).reshape(x.shape)


def _next_pairing(x: Any) -> Any:
    """Rows in the order of the next round of a round-robin tournament: row 0 stays, the others rotate.

    Top places are 0, 2, 4, ..., bottom places 1, 3, 5, ...: top rows move right, bottom rows left.
    """
    n = x.shape[-2]
    if n == 2:
        return x
    half = n // 2
    pairs = _pairs(x)
    keep = [None] * (pairs.ndim - 3)

    def rows(lo: int, hi: int, side: int) -> Any:
        return pairs.shrink([*keep, (lo, hi), (side, side + 1), None])

    top = rows(0, 1, 0).cat(rows(0, 1, 1), rows(1, half - 1, 0), dim=-3)
    bottom = rows(1, half, 1).cat(rows(half - 1, half, 0), dim=-3)
    return top.cat(bottom, dim=-2).reshape(x.shape)
