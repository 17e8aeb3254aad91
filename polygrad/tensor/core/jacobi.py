"""Jacobi rotations: rows 2k and 2k + 1 of a matrix are a pair; each round ends by reordering the rows to new
pairs. Hestenes' one-sided method for `svd` and `eigh` is made of them.
"""

from __future__ import annotations

from typing import Any

from polygrad.dtype import DType, dtypes


def sweeps(n: int, dtype: DType) -> int:
    """The number of sweeps, in each of which every pair is rotated once: convergence is quadratic at the
    end."""
    return n.bit_length() + (3 if dtype is dtypes.float32 else 4)


def pairs(x: Any) -> Any:
    """(..., n, k) as (..., n / 2, 2, k)."""
    return x.reshape(*x.shape[:-2], x.shape[-2] // 2, 2, x.shape[-1])


def tangent(products: Any) -> Any:
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


def rotate_pairs(x: Any, t: Any) -> Any:
    """Rows 2k and 2k + 1 become c row - s next, s row + c next; t: the tangents s / c."""
    paired = pairs(x)
    first, second = paired._part((0, 1), None), paired._part((1, 2), None)
    c = (t * t + 1.0).rsqrt()
    return ((first - second * t) * c).cat((first * t + second) * c, dim=-2).reshape(x.shape)


def next_pairing(x: Any) -> Any:
    """Rows in the order of the next round of a round-robin tournament: row 0 stays, the others rotate.

    Top places are 0, 2, 4, ..., bottom places 1, 3, 5, ...: top rows move right, bottom rows left.
    """
    n = x.shape[-2]
    if n == 2:
        return x
    half = n // 2
    paired = pairs(x)
    keep = [None] * (paired.ndim - 3)

    def rows(lo: int, hi: int, side: int) -> Any:
        return paired.shrink([*keep, (lo, hi), (side, side + 1), None])

    top = rows(0, 1, 0).cat(rows(0, 1, 1), rows(1, half - 1, 0), dim=-3)
    bottom = rows(1, half, 1).cat(rows(half - 1, half, 0), dim=-3)
    return top.cat(bottom, dim=-2).reshape(x.shape)
