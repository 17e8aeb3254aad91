"""Linear systems: solve, inv, det, triangular_solve, matrix_power; and the parts of matrices that
`decompositions.py` needs, too.

Each takes a number of steps that depends on the sizes alone, so it is lazy, and the same on every device.
All steps are alike: finished rows move to the end of the matrix, and the next pivot is always in the first
row and column. So the steps are one FOR, and only its body is built and compiled. Gradients are closed
formulas of the result (Giles, "An extended collection of matrix derivative results", 2008). They do not
differentiate the steps, and can be differentiated again.

The last two axes are a matrix, leading axes a batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

from polygrad.dtype import dtypes, promote
from polygrad.errors import ShapeError
from polygrad.tensor.core.base import broadcast_constant, broadcast_to
from polygrad.tensor.core.checks import check_matrix, checking
from polygrad.tensor.core.loops import repeat
from polygrad.tensor.core.sizes import fixed_size
from polygrad.tensor.linalg import LinalgMixin
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.shapes import broadcast_shape

# what the number of `check_matrix` means
_SINGULAR = "expected an invertible matrix, got one whose pivot {k} is 0"


class LinearSystemsMixin(LinalgMixin):
    """Linear systems, of matrices of fixed sizes; 16-bit floats go through float32."""

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
        x, det, _, *info = repeat(n, step, x, det, free, *extra)
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

        return repeat(n, step, self.tril(), b)[1]

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
