"""Matrix products: dot, linear, einsum; triangles."""

from __future__ import annotations

from typing import Any, Self

from polygrad.dtype import dtypes, promote, sum_dtype, to_dtype
from polygrad.errors import ArgumentError, ShapeError
from polygrad.helpers import argsort
from polygrad.tensor.base import DTypeLike, TensorLike
from polygrad.tensor.movement import same_size
from polygrad.tensor.operators import operators
from polygrad.tensor.reduce import ReduceMixin, sum_dtypes
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


class LinalgMixin(ReduceMixin):
    """Matrix products."""

    __slots__ = ()

    def dot(self, w: Self, dtype: DTypeLike | None = None) -> Self:
        """The matrix product: (..., m, k) and (..., k, n) give (..., m, n); 1-D is a row or a column.

        Leading axes broadcast. `dtype`: to multiply and accumulate in, and of the result: of int8 operands,
        int32 gives sums that do not wrap around at 127. Raises ShapeError.
        """
        a, b = self.shape, w.shape
        if not a or not b:
            raise ShapeError(f"dot: expected operands with axes, got shapes {a} and {b}: use *")
        k_axis = -min(len(b), 2)
        if not same_size(a[-1], b[k_axis]):
            raise ShapeError(f"dot: expected {a[-1]} rows to match shape {a}, got shape {b}")
        pad = min(len(a) - 1, len(b) - 1, 1)
        x = self._result(self.uop.reshape((*a[:-1], *([1] * pad), a[-1])))
        order = list(range(len(b) + pad))
        y = w._result(w.uop.reshape((*b[:-2], *([1] * pad), *b[k_axis:])))
        order[-1], order[k_axis] = order[k_axis], order[-1]
        y = y._result(y.uop.permute(tuple(order)))
        common = promote(self.dtype, w.dtype)
        result = common if dtype is None else to_dtype(dtype)
        wide = sum_dtype(result)
        if result.is_float or not common.is_float:  # narrow products would be rounded, or wrap around
            x, y = x._with(x.uop.cast(wide)), y._with(y.uop.cast(wide))
        return (x * y)._reduce(Ops.ADD, -1, False, wide, result)

    def matmul(self, x: TensorLike, reverse: bool = False, dtype: DTypeLike | None = None) -> Self:
        """`dot`; x @ self when `reverse`."""
        x = x if isinstance(x, type(self)) else self._lift(x)
        return x.dot(self, dtype) if reverse else self.dot(x, dtype)

    __matmul__, __rmatmul__, __imatmul__ = operators("@", matmul)

    def linear(self, weight: Self, bias: Self | None = None, dtype: DTypeLike | None = None) -> Self:
        """self @ weight + bias; a 1-D weight scales. weight: (in, out).

        `dtype`: what all of them are cast to first, so that of the result too.
        """
        if dtype is not None:
            to = to_dtype(dtype)
            x, w = self._with(self.uop.cast(to)), weight._with(weight.uop.cast(to))
            return x.linear(w, None if bias is None else bias._with(bias.uop.cast(to)))
        out = self * weight if weight.ndim == 1 else self.dot(weight)
        return out if bias is None else out + bias

    @classmethod
    def einsum(cls, formula: str, *operands: Any, dtype: DTypeLike | None = None) -> Self:
        """Einstein's summation, as numpy.einsum: letters name axes, '...' the rest.

        Raises ArgumentError, ShapeError.
        """
        xs: list[Any] = (
            list(operands[0])
            if len(operands) == 1 and isinstance(operands[0], (tuple, list))
            else list(operands)
        )
        text = formula.replace(" ", "")
        left, arrow, right = text.partition("->")
        inputs = left.split(",")
        if len(inputs) != len(xs):
            raise ArgumentError(f"einsum: {formula!r} names {len(inputs)} operands, got {len(xs)}")
        spare = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in text]
        widest = max(
            (x.ndim - len(s.replace("...", "")) for s, x in zip(inputs, xs, strict=True) if "..." in s),
            default=0,
        )
        dots = "".join(spare[:widest])
        inputs = [
            s.replace("...", dots[len(dots) - (x.ndim - len(s.replace("...", ""))) :]) if "..." in s else s
            for s, x in zip(inputs, xs, strict=True)
        ]
        if not arrow:
            letters = sorted(set("".join(inputs)) - set(dots))
            right = dots + "".join(c for c in letters if "".join(inputs).count(c) == 1)
        right = right.replace("...", dots)
        sizes: dict[str, Any] = {}
        aligned = []
        for s, x in zip(inputs, xs, strict=True):
            if len(s) != x.ndim:
                raise ShapeError(f"einsum: {formula!r} names {len(s)} axes for shape {x.shape}")
            while len(set(s)) < len(s):  # a repeated letter is a diagonal
                c = next(c for c in s if s.count(c) > 1)
                i = s.index(c)
                j = s.index(c, i + 1)
                x = x.diagonal(dim1=i, dim2=j)
                s = s[:i] + s[i + 1 : j] + s[j + 1 :] + c
            for c, n in zip(s, x.shape, strict=True):
                if not same_size(n, 1) and not same_size(sizes.setdefault(c, n), n):
                    raise ShapeError(f"einsum: expected one size for {c!r}, got {sizes[c]} and {n}")
                sizes.setdefault(c, n)
            aligned.append((s, x))
        if len(set(right)) != len(right) or not set(right) <= set(sizes):
            raise ArgumentError(
                f"einsum: expected an output of distinct letters of the inputs, got {right!r}"
            )
        letters = sorted(sizes)
        accumulate, result = sum_dtypes(promote(*[x.dtype for _, x in aligned]), dtype)
        if result.is_float or dtype is not None:  # narrow products would be rounded, or wrap around
            aligned = [(s, x._with(x.uop.cast(accumulate))) for s, x in aligned]
        out: Any = None
        for s, x in aligned:
            x = x.permute(*argsort(s)) if s else x
            x = x.reshape([x.shape[sorted(s).index(c)] if c in s else 1 for c in letters])
            out = x if out is None else out * x
        out = out.expand([sizes[c] for c in letters])
        summed = [i for i, c in enumerate(letters) if c not in right]
        if summed:
            out = out._reduce(Ops.ADD, summed, False, accumulate, result)
        elif result.is_float or dtype is not None:
            out = out._with(out.uop.cast(result))
        kept = [c for c in letters if c in right]
        return out.permute(*[kept.index(c) for c in right]) if right else out

    # --- triangles

    def _triangular(self, diagonal: int, upper: bool) -> Self:
        if self.ndim < 2:
            raise ShapeError(
                f"{'triu' if upper else 'tril'}: expected at least 2 axes, got shape {self.shape}"
            )
        m, n = self.shape[-2:]
        rows = self._of(UOp(Ops.ARANGE, dtypes.int32, (), m).reshape((m, 1)))
        columns = self._of(UOp(Ops.ARANGE, dtypes.int32, (), n).reshape((1, n)))
        if upper:
            is_outside = columns - rows < diagonal if diagonal else columns < rows
        else:
            is_outside = rows + diagonal < columns if diagonal else rows < columns
        return is_outside.where(self.const_like(0), self)

    def triu(self, diagonal: int = 0) -> Self:
        """The upper triangle of the last two axes, from `diagonal` on; 0 below."""
        return self._triangular(diagonal, True)

    def tril(self, diagonal: int = 0) -> Self:
        """The lower triangle of the last two axes, up to `diagonal`; 0 above."""
        return self._triangular(diagonal, False)
