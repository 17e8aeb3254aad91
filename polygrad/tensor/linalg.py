"""Matrix products: dot, linear, einsum; triangles."""

from __future__ import annotations

import math
from typing import Any, Self

from polygrad.dtype import DType, dtypes, promote, sum_dtype, to_dtype
from polygrad.errors import ArgumentError, AxisError, ShapeError
from polygrad.helpers import argsort
from polygrad.tensor.core.base import DTypeLike, TensorLike, broadcast_to
from polygrad.tensor.core.contraction import contraction_path
from polygrad.tensor.core.operators import operators
from polygrad.tensor.core.sizes import fixed_size, python_number, same_size
from polygrad.tensor.reduce import ReduceMixin, sum_dtypes
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.shapes import broadcast_shape, sint_max


class LinalgMixin(ReduceMixin):
    """Matrix products."""

    __slots__ = ()

    def dot(self, w: Self, dtype: DTypeLike | None = None) -> Self:
        """The matrix product: (..., m, k) and (..., k, n) give (..., m, n); 1-D is a row or a column.

        Leading axes broadcast. `dtype`: to multiply and accumulate in, and of the result: of int8 operands,
        int32 gives sums that do not wrap around at 127. Raises ShapeError.

        >>> Tensor([[1, 2], [3, 4]]).dot(Tensor([[1, 0], [1, 1]])).tolist()
        [[3, 2], [7, 4]]
        """
        a, b = self.shape, w.shape
        if not a or not b:
            raise ShapeError(f"dot: expected operands with axes, got shapes {a} and {b}: use *")
        k_axis = -min(len(b), 2)
        if not same_size(a[-1], b[k_axis]):
            raise ShapeError(f"dot: expected {a[-1]} rows to match shape {a}, got shape {b}")
        pad = min(len(a) - 1, len(b) - 1, 1)
        x = self.uop.reshape((*a[:-1], *([1] * pad), a[-1]))
        order = list(range(len(b) + pad))
        order[-1], order[k_axis] = order[k_axis], order[-1]
        y = w.uop.reshape((*b[:-2], *([1] * pad), *b[k_axis:])).permute(tuple(order))
        return self._sum_of_products(x, y, w, dtype)

    def _linear_of_rows(self, w: Self, bias: Self | None) -> Self:
        """`linear` with a weight (out, in), for layers. Raises ShapeError."""
        a, b = self.shape, w.shape
        if not a:
            raise ShapeError("linear: expected an input with at least 1 axis, got shape ()")
        if len(b) != 2 or not same_size(a[-1], b[1]):
            raise ShapeError(
                f"linear: expected a weight of {a[-1]} columns for the input's shape {a}, got {b}"
            )
        x = self.uop.reshape((*a[:-1], 1, a[-1])) if len(a) > 1 else self.uop
        out = self._sum_of_products(x, w.uop, w, None)
        return out if bias is None else out._binary(Ops.ADD, bias)

    def _sum_of_products(self, a: UOp, b: UOp, w: Self, dtype: DTypeLike | None) -> Self:
        """The sums along the last axis of a * b. `a` and `b`, which broadcast: views of this Tensor and of
        `w`."""
        common = promote(a.dtype, b.dtype)
        result = common if dtype is None else to_dtype(dtype)
        wide = sum_dtype(result)
        # products in a small dtype would be rounded, or wrap around
        kind = wide if result.is_float or not common.is_float else common
        shape = broadcast_shape((a.shape, b.shape))
        product = UOp(Ops.MUL, kind, (broadcast_to(a.cast(kind), shape), broadcast_to(b.cast(kind), shape)))
        total = product.cast(wide).reduce_axis(Ops.ADD, (len(shape) - 1,)).cast(result)
        return self._join(total.reshape(shape[:-1]), w)

    def matmul(self, x: TensorLike, reverse: bool = False, dtype: DTypeLike | None = None) -> Self:
        """`dot`; x @ self when `reverse`.

        >>> Tensor([[1, 2]]).matmul(Tensor([[3], [4]])).tolist()
        [[11]]
        """
        x = x if isinstance(x, type(self)) else self._lift(x)
        return x.dot(self, dtype) if reverse else self.dot(x, dtype)

    mm = bmm = mv = matmul

    __matmul__, __rmatmul__, __imatmul__ = operators("@", matmul)

    def linear(self, weight: Self, bias: Self | None = None, dtype: DTypeLike | None = None) -> Self:
        """self @ weight + bias; a 1-D weight scales. weight: (in, out).

        `dtype`: all operands are cast to it first, so the result has it too.

        torch.nn.functional's weight is (out, in), as `nn.Linear`'s.

        >>> Tensor([[1.0, 2.0]]).linear(Tensor([[1.0], [10.0]]), Tensor([0.5])).tolist()
        [[21.5]]
        """
        if dtype is not None:
            to = to_dtype(dtype)
            x, w = self._with(self.uop.cast(to)), weight._with(weight.uop.cast(to))
            return x.linear(w, None if bias is None else bias._with(bias.uop.cast(to)))
        out = self * weight if weight.ndim == 1 else self.dot(weight)
        return out if bias is None else out + bias

    @classmethod
    def einsum(cls, formula: str, *operands: Any, dtype: DTypeLike | None = None) -> Self:
        """Einstein summation, as numpy.einsum: letters name axes, '...' the other axes.

        More than two operands are multiplied in the order that takes the fewest products. Raises
        ArgumentError, ShapeError.

        >>> Tensor.einsum("ij,j->i", Tensor([[1, 2], [3, 4]]), Tensor([1, 1])).tolist()
        [3, 7]
        """
        xs: list[Any] = (
            list(operands[0])
            if len(operands) == 1 and isinstance(operands[0], (tuple, list))
            else list(operands)
        )
        inputs, output = _subscripts(formula, xs)
        sizes: dict[str, Any] = {}
        terms: list[tuple[str, Any]] = []
        for s, x in zip(inputs, xs, strict=True):
            s, x = _diagonals(s, x)
            for c, n in zip(s, x.shape, strict=True):
                if c not in sizes or same_size(sizes[c], 1):
                    sizes[c] = n
                elif not same_size(n, 1) and not same_size(sizes[c], n):
                    raise ShapeError(f"einsum: expected one size for {c!r}, got {sizes[c]} and {n}")
            terms.append((s, x))
        if len(set(output)) != len(output) or not set(output) <= set(sizes):
            raise ArgumentError(
                f"einsum: expected an output of distinct letters of the inputs, got {output!r}"
            )
        common = promote(*[x.dtype for _, x in terms])
        accumulate, result = sum_dtypes(common, dtype)
        if result.is_float or dtype is not None:  # products in a small dtype would be rounded, or wrap around
            terms = [(s, x._with(x.uop.cast(accumulate))) for s, x in terms]
        if accumulate is common or result.is_float or dtype is not None:
            if len(terms) > 1:
                terms = _sum_lone_axes(terms, output)
            max_sizes = {c: sint_max(n) for c, n in sizes.items()}
            for i, j in contraction_path([s for s, _ in terms], output, max_sizes):
                pair = [terms[i], terms[j]]
                del terms[j], terms[i]
                later_letters = output + "".join(s for s, _ in terms)
                pair_output = "".join(c for c in dict.fromkeys(pair[0][0] + pair[1][0]) if c in later_letters)
                terms.append((pair_output, _contract(pair, pair_output, sizes, accumulate, accumulate)))
        return _contract(terms, output, sizes, accumulate, result if dtype or result.is_float else None)  # type: ignore[no-any-return]

    def outer(self, other: Self) -> Self:
        """The products of all pairs of elements: (m,) and (n,) give (m, n). Raises ShapeError.

        >>> Tensor([1, 2]).outer(Tensor([3, 4])).tolist()
        [[3, 4], [6, 8]]
        """
        if self.ndim != 1 or other.ndim != 1:
            raise ShapeError(f"outer: expected two 1-D tensors, got shapes {self.shape} and {other.shape}")
        return self.unsqueeze(1) * other.unsqueeze(0)

    ger = outer

    def kron(self, other: Self) -> Self:
        """The Kronecker product: each element of self times the whole of `other`; sizes multiply.

        >>> Tensor([1, 2]).kron(Tensor([1, 10])).tolist()
        [1, 10, 2, 20]
        """
        n = max(self.ndim, other.ndim)
        a, b = ((1,) * (n - x.ndim) + tuple(x.shape) for x in (self, other))
        left = self.reshape([v for s in a for v in (s, 1)])
        right = other.reshape([v for s in b for v in (1, s)])
        return (left * right).reshape([s * t for s, t in zip(a, b, strict=True)])

    def cross(self, other: Self, dim: int = -1) -> Self:
        """The cross product of vectors of 3 elements along `dim`; other axes broadcast. Raises ShapeError.

        >>> Tensor([1, 0, 0]).cross(Tensor([0, 1, 0])).tolist()
        [0, 0, 1]
        """
        a, b = self._broadcast_with(other)
        axis = a._axis(dim)
        if a.shape[axis] != 3 or self.shape[dim] != 3 or other.shape[dim] != 3:
            raise ShapeError(
                f"cross: expected 3 elements along {dim}, got shapes {self.shape} and {other.shape}"
            )
        return a.roll(-1, axis) * b.roll(-2, axis) - a.roll(-2, axis) * b.roll(-1, axis)

    def _broadcast_with(self, other: Self) -> tuple[Self, Self]:
        """Both in one shape and dtype."""
        a, b = self._pair(other)
        return self._with(a), other._with(b)

    def trace(self, offset: int = 0) -> Self:
        """The sum of the diagonal of the last two axes, `offset` above the main one. Raises ShapeError.

        >>> Tensor([[1, 2], [3, 4]]).trace().item()
        5
        """
        if self.ndim < 2:
            raise ShapeError(f"trace: expected at least 2 axes, got shape {self.shape}")
        return self.diagonal(offset, -2, -1).sum(-1)

    def cdist(self, other: Self, p: float = 2.0) -> Self:
        """Distances between rows: (..., m, k) and (..., n, k) give (..., m, n), by the p-norm of differences.

        The gradient of a distance of 0 is 0. Raises ShapeError, ArgumentError for a negative p.

        >>> Tensor([[0.0, 0.0]]).cdist(Tensor([[3.0, 4.0], [0.0, 1.0]])).tolist()
        [[5.0, 1.0]]
        """
        if self.ndim < 2 or other.ndim < 2 or not same_size(self.shape[-1], other.shape[-1]):
            raise ShapeError(f"cdist: expected rows of one size, got shapes {self.shape} and {other.shape}")
        if p < 0:
            raise ArgumentError(f"cdist: expected a norm p of at least 0, got {p}")
        d = (self.unsqueeze(-2) - other.unsqueeze(-3)).abs()
        if p == 0:
            return d.ne(0).sum(-1).cast_like(d)
        if p == 1:
            return d.sum(-1)
        if p == math.inf:
            return d.max(-1)
        total = (d.square() if p == 2 else (d > 0).where(d, 1.0).pow(p) * (d > 0)).sum(-1)
        is_zero = total.eq(0.0)
        return is_zero.where(0.0, is_zero.where(1.0, total).pow(1.0 / p))

    def vander(self, n: int | None = None, increasing: bool = False) -> Self:
        """The Vandermonde matrix of a 1-D Tensor: `n` powers (default: as many as elements), descending.

        `increasing`: from the power 0 on. Raises ShapeError, ArgumentError.

        >>> Tensor([1, 2, 3]).vander().tolist()
        [[1, 1, 1], [4, 2, 1], [9, 3, 1]]
        """
        if self.ndim != 1:
            raise ShapeError(f"vander: expected 1 axis, got shape {self.shape}")
        count = self.shape[0] if n is None else python_number(n)
        if not isinstance(count, int) or count < 0:
            raise ArgumentError(f"vander: expected n of at least 0, got {count!r}")
        if count == 0:
            return self.unsqueeze(1).shrink([None, (0, 0)])
        powers = [self**i for i in range(count)]
        powers = powers if increasing else powers[::-1]
        return powers[0].stack(*powers[1:], dim=1)

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

    def diag(self) -> Self:
        """The square matrix with this 1-D Tensor on its diagonal; of a matrix, its diagonal.

        Raises ShapeError.

        >>> Tensor([1, 2]).diag().tolist()
        [[1, 0], [0, 2]]
        """
        if self.ndim == 2:
            return self.diagonal()
        if self.ndim != 1:
            raise ShapeError(f"diag: expected 1 or 2 axes, got shape {self.shape}")
        n = self.shape[0]
        if same_size(n, 0):
            return self.reshape(0, 0)
        return self.unsqueeze(1).pad([None, (0, n)]).flatten().shrink([(0, n * n)]).reshape(n, n)

    def triu(self, diagonal: int = 0) -> Self:
        """The upper triangle of the last two axes, from `diagonal` on; 0 below.

        >>> Tensor.ones(2, 2).triu().tolist()
        [[1.0, 1.0], [0.0, 1.0]]
        """
        return self._triangular(diagonal, True)

    def tril(self, diagonal: int = 0) -> Self:
        """The lower triangle of the last two axes, up to `diagonal`; 0 above.

        >>> Tensor.ones(2, 2).tril().tolist()
        [[1.0, 0.0], [1.0, 1.0]]
        """
        return self._triangular(diagonal, False)

    # --- combinations and distances

    def addmm(self, mat1: Self, mat2: Self, beta: float = 1.0, alpha: float = 1.0) -> Self:
        """beta * self + alpha * mat1 @ mat2. Raises ShapeError.

        >>> Tensor([[1.0]]).addmm(Tensor([[2.0]]), Tensor([[3.0]]), beta=0.5).tolist()
        [[6.5]]
        """
        product = mat1.matmul(mat2)
        return (self if beta == 1 else self * beta) + (product if alpha == 1 else product * alpha)

    baddbmm = addmv = addmm

    def inner(self, other: Self) -> Self:
        """The sums over the last axes of both. Raises ShapeError.

        >>> Tensor([1, 2]).inner(Tensor([3, 4])).item()
        11
        """
        if not self.ndim or not other.ndim:
            return self * other
        if self.shape[-1] != other.shape[-1]:
            raise ShapeError(f"inner: expected equal last sizes, got {self.shape} and {other.shape}")
        left = self.reshape(*self.shape[:-1], *[1] * (other.ndim - 1), self.shape[-1])
        return (left * other).sum(-1)

    vdot = inner

    def dist(self, other: Self, p: float = 2.0) -> Self:
        """The p-norm of the difference.

        >>> Tensor([1.0, 2.0]).dist(Tensor([4.0, 6.0])).item()
        5.0
        """
        return (self - other).norm(p)

    def pairwise_distance(
        self, other: Self, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False
    ) -> Self:
        """The p-norms of self - other + eps along the last axis.

        >>> Tensor([[0.0, 0.0]]).pairwise_distance(Tensor([[3.0, 4.0]]), eps=0.0).tolist()
        [5.0]
        """
        return (self - other + eps).norm(p, -1, keepdim)

    def cosine_similarity(self, other: Self, dim: int = 1, eps: float = 1e-08) -> Self:
        """The cosine of the angle between vectors along `dim`; each length counts as at least `eps`.

        Raises AxisError, ShapeError.

        >>> Tensor([[3.0, 4.0]]).cosine_similarity(Tensor([[4.0, 3.0]])).tolist()
        [0.9599...]
        """
        if dim not in range(-self.ndim, self.ndim):
            raise AxisError(f"cosine_similarity: expected an axis of {self.ndim}, got {dim}")
        lengths = [(x * x).sum(dim).clamp(eps * eps).sqrt() for x in (self, other)]
        return (self * other).sum(dim) / (lengths[0] * lengths[1])

    def diag_embed(self) -> Self:
        """Matrices with the last axis on their diagonals.

        >>> Tensor([1, 2]).diag_embed().tolist()
        [[1, 0], [0, 2]]
        """
        n = fixed_size(self.shape[self._axis(-1)], "diag_embed")
        at = type(self).arange(n, device=self.device)
        return at.unsqueeze(1).eq(at).where(self.unsqueeze(-1), self.const_like(0).unsqueeze(-1))


# --- einsum


def _subscripts(formula: str, xs: list[Any]) -> tuple[list[str], str]:
    """The letters of each operand and of the output; capitals that are not in it stand for '...'."""
    text = formula.replace(" ", "")
    left, arrow, output = text.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(xs):
        raise ArgumentError(f"einsum: expected {len(inputs)} operands for {formula!r}, got {len(xs)}")
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
    for s, x in zip(inputs, xs, strict=True):
        if len(s) != x.ndim:
            raise ShapeError(f"einsum: expected {len(s)} axes for {s!r} of {formula!r}, got shape {x.shape}")
    if not arrow:
        letters = sorted(set("".join(inputs)) - set(dots))
        output = dots + "".join(c for c in letters if "".join(inputs).count(c) == 1)
    return inputs, output.replace("...", dots)


def _diagonals(letters: str, x: Any) -> tuple[str, Any]:
    """An operand whose letters are distinct: a repeated one names a diagonal."""
    while len(set(letters)) < len(letters):
        c = next(c for c in letters if letters.count(c) > 1)
        i = letters.index(c)
        j = letters.index(c, i + 1)
        if not same_size(x.shape[i], x.shape[j]):
            raise ShapeError(f"einsum: expected one size for {c!r}, got {x.shape[i]} and {x.shape[j]}")
        x = x.diagonal(dim1=i, dim2=j)
        letters = letters[:i] + letters[i + 1 : j] + letters[j + 1 :] + c
    return letters, x


def _sum_lone_axes(terms: list[tuple[str, Any]], output: str) -> list[tuple[str, Any]]:
    """einsum's operands, summed over the axes that occur neither in another operand nor in the output."""
    out = []
    for k, (s, x) in enumerate(terms):
        other_letters = output + "".join(t for i, (t, _) in enumerate(terms) if i != k)
        lone_axes = [i for i, c in enumerate(s) if c not in other_letters]
        out.append(("".join(c for c in s if c in other_letters), x.sum(lone_axes)) if lone_axes else (s, x))
    return out


def _contract(
    terms: list[tuple[str, Any]],
    output: str,
    sizes: dict[str, Any],
    accumulate: DType,
    result: DType | None,
) -> Any:
    """The product of all terms, summed over the letters that are not in `output`.

    `result`: the dtype of the result; None: that of the sums or, if there are none, of the products.
    """
    letters = sorted(set("".join(s for s, _ in terms)))
    out: Any = None
    for s, x in terms:
        x = x.permute(*argsort(s)) if s else x
        x = x.reshape([x.shape[sorted(s).index(c)] if c in s else 1 for c in letters])
        out = x if out is None else out * x
    out = out.expand([sizes[c] for c in letters])
    summed = [i for i, c in enumerate(letters) if c not in output]
    if summed:
        out = out._reduce(Ops.ADD, summed, False, accumulate, accumulate if result is None else result)
    elif result is not None:
        out = out._with(out.uop.cast(result))
    output_letters = [c for c in letters if c in output]
    return out.permute(*[output_letters.index(c) for c in output]) if output else out
