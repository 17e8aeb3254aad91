"""Division, remainder and comparison of linear sums: what turns movement ops into plain addresses.

A sum is its terms, (base, coefficient) in the order written, and a constant. All here holds for floor
division. Over `dtypes.index`, which never overflows, that is enough; over a user's integers, which wrap, a
rule also needs the sum's exact bounds to fit the dtype, so that no wrap took place. Knows nodes and their
bounds.

The equations are those of Euclidean division; tinygrad's `divandmod` has most of them.
"""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

from polygrad.dtype import DType, dtypes
from polygrad.uop.linear import linear_terms
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

Term = tuple[UOp, int]


class Linear(NamedTuple):
    """sum(base * coefficient) + constant."""

    terms: list[Term]
    constant: int


def linear(x: UOp) -> Linear:
    """`x` as a sum; anything but + and * by a constant is a base."""
    terms, constant = linear_terms(x)
    return Linear(list(terms.items()), constant)


def build(terms: list[Term], constant: int, dtype: DType) -> UOp:
    """The node of a sum: terms from left to right, the constant last."""
    out: UOp | None = None
    for base, c in terms:
        if c != 0:
            term = base if c == 1 else base * UOp.const(dtype, c)
            out = term if out is None else out + term
    if out is None:
        return UOp.const(dtype, constant)
    return out if constant == 0 else out + UOp.const(dtype, constant)


def bounds(terms: list[Term], constant: int) -> tuple[int, int]:
    """The least and greatest value of a sum, without wrapping."""
    lo = hi = constant
    for base, c in terms:
        least, most = base.bounds  # type: ignore[misc]
        if c > 0:
            lo, hi = lo + least * c, hi + most * c
        else:
            lo, hi = lo + most * c, hi + least * c
    return lo, hi


def fits(lo: int, hi: int, dtype: DType) -> bool:
    """Whether lo..hi cannot wrap in `dtype`."""
    return dtype is dtypes.index or (lo >= dtype.min and hi <= dtype.max)


def positive(terms: list[Term], constant: int) -> bool:
    """Whether a sum is above 0: as it stands, or with RANGEs it subtracts at the last of symbolic sizes."""
    if bounds(terms, constant)[0] > 0:
        return True
    last: dict[UOp, int] = {}
    for base, m in terms:
        if base.op is Ops.RANGE and m < 0:
            size = linear(base.src[0])
            constant += m * (size.constant - 1)
            for b, n in size.terms:
                last[b] = last.get(b, 0) + m * n
        else:
            last[base] = last.get(base, 0) + m
    return bounds(list(last.items()), constant)[0] > 0


def exact(x: UOp) -> bool:
    """Whether the operation `x` itself cannot have wrapped: its bounds say more than its dtype does."""
    return x.dtype is dtypes.index or x.bounds != (x.dtype.min, x.dtype.max)


def fold_divmod(u: UOp, x: UOp, c: UOp) -> UOp | None:
    """x // c or x % c (`u`) for a constant c > 1, or None when it stays."""
    divide, dtype, m = u.op is Ops.IDIV, x.dtype, c.arg
    lo, hi = x.bounds  # type: ignore[misc]
    q = lo // m
    if q == hi // m:
        # x // c = q,  x % c = x - q*c  when x stays within one period
        return UOp.const(dtype, q) if divide else build([(x, 1)], -q * m, dtype)
    inner = x.op
    if inner is Ops.IDIV and divide:
        d = x.src[1]
        # (x // d) // c = x // (d*c)
        if d.op is Ops.CONST and d.arg > 0 and fits(0, d.arg * m, dtype):
            return x.src[0] // UOp.const(dtype, d.arg * m)
    elif inner is Ops.MOD:
        d = x.src[1]
        if d.op is Ops.CONST and d.arg > 0 and d.arg % m == 0:
            # (x % (n*c)) // c = (x // c) % n,  (x % (n*c)) % c = x % c
            return (x.src[0] // c) % UOp.const(dtype, d.arg // m) if divide else x.src[0] % c
    elif inner is Ops.ADD or inner is Ops.MUL:
        return _fold_sum(x, m, divide)
    return None


def _fold_sum(x: UOp, c: int, divide: bool) -> UOp | None:
    dtype = x.dtype
    terms, k = linear(x)
    lo, hi = bounds(terms, k)
    if not terms or not fits(lo, hi, dtype):
        return None

    def div(ts: list[Term], constant: int, by: int) -> UOp:
        return build(ts, constant, dtype) // UOp.const(dtype, by)

    def mod(ts: list[Term], constant: int, by: int) -> UOp:
        return build(ts, constant, dtype) % UOp.const(dtype, by)

    # (a*c + b) // c = a + b // c,  (a*c + b) % c = b % c,
    # where multiples of c move between a's constant and b's until b's least value is in [0, c)
    rest = [t for t in terms if t[1] % c]
    least, most = bounds(rest, k)
    shift = least // c if k else 0
    if (shift or len(rest) != len(terms)) and fits(least - shift * c, most - shift * c, dtype):
        if not divide:
            return mod(rest, k - shift * c, c)
        whole = [(b, m // c) for b, m in terms if m % c == 0]
        inner = div(rest, k - shift * c, c)
        return build([*whole, (inner, 1)], shift, dtype)

    g = gcd(c, *(m for _, m in terms))
    if g > 1:
        # (a*g + k) // (n*g) = (a + k//g) // n,  (a*g + k) % (n*g) = ((a + k//g) % n)*g + k%g
        ts, n = [(b, m // g) for b, m in terms], c // g
        return div(ts, k // g, n) if divide else build([(mod(ts, k // g, n), g)], k % g, dtype)

    # (a*d + b) // (n*d) = a // n,  (a*d + b) % (n*d) = (a % n)*d + b  when 0 <= b < d
    for d in sorted({gcd(c, m) for _, m in terms} - {1}, reverse=True):
        part = [t for t in terms if t[1] % d]
        least, most = bounds(part, k)
        q = least // d
        if q == most // d:
            ts, n = [(b, m // d) for b, m in terms if m % d == 0], c // d
            return div(ts, q, n) if divide else build([(mod(ts, q, n), d), *part], k - q * d, dtype)

    # (a*c + b) // c = a + q,  (a*c + b) % c = b - q*c  when b stays within period q,
    # where coefficients are split into a multiple of c and the rest, nearest to 0 or positive
    for centred in (True, False):
        rems = [(b, m % c - (c if centred and m % c > c // 2 else 0)) for b, m in terms]
        least, most = bounds(rems, k)
        q = least // c
        if q == most // c:
            if not divide:
                return build(rems, k - q * c, dtype)
            return build([(b, (m - r) // c) for (b, m), (_, r) in zip(terms, rems, strict=True)], q, dtype)

    if divide:
        # (x // d + k) // c = (x + k*d) // (d*c)
        base = terms[0][0]
        if len(terms) == 1 and terms[0][1] == 1 and base.op is Ops.IDIV and base.src[1].op is Ops.CONST:
            d = base.src[1].arg
            least, most = base.src[0].bounds  # type: ignore[misc]
            if d > 0 and fits(least + k * d, most + k * d, dtype) and fits(0, d * c, dtype):
                return div([(base.src[0], 1)], k * d, d * c)
        return None

    # (m*a + b) % c = ((m%c)*a + b) % c,  ((x % d)*m + b) % c = (x*m + b) % c  when c divides d*m
    changed, out = False, []
    for base, m in terms:
        if m > c:
            m, changed = m % c, True
        if dtype is dtypes.index and base.op is Ops.MOD and base.src[1].op is Ops.CONST:
            d = base.src[1].arg
            if d > 0 and d * m % c == 0:
                base, changed = base.src[0], True
        out.append((base, m))
    return mod(out, k, c) if changed else None


def fold_less(x: UOp, c: UOp) -> UOp | None:
    """x < c for a constant c, its constants moved right and common factors taken out; or None."""
    dtype, limit, inner = x.dtype, c.arg, x.op
    if inner is Ops.IDIV:
        d = x.src[1]
        # x // d < c = x < c*d  for d > 0
        if d.op is Ops.CONST and d.arg > 0 and fits(limit * d.arg, limit * d.arg, dtype):
            return x.src[0] < UOp.const(dtype, limit * d.arg)
        return None
    found = _reduce_sum(x, limit)
    return None if found is None else found[0] < UOp.const(dtype, found[1])


def fold_greater(c: UOp, x: UOp) -> UOp | None:
    """c < x for a constant c, the same way; or None."""
    dtype, limit, inner = x.dtype, c.arg, x.op
    if inner is Ops.IDIV:
        d = x.src[1]
        # c < x // d = (c+1)*d - 1 < x  for d > 0
        if d.op is Ops.CONST and d.arg > 0:
            new = (limit + 1) * d.arg - 1
            return UOp.const(dtype, new) < x.src[0] if fits(new, new, dtype) else None
        return None
    found = _reduce_sum(x, limit + 1)  # c < x = !(x < c+1)
    return None if found is None else UOp.const(dtype, found[1] - 1) < found[0]


def _reduce_sum(x: UOp, limit: int) -> tuple[UOp, int] | None:
    """(y, limit') such that x < limit = y < limit' with fewer operations; or None."""
    if x.op is not Ops.ADD and x.op is not Ops.MUL:
        return None
    dtype = x.dtype
    terms, k = linear(x)
    lo, hi = bounds(terms, k)
    if not terms or not fits(lo, hi, dtype) or not fits(lo - k, hi - k, dtype):
        return None
    # a + k < c = a < c - k
    limit -= k
    start = abs(limit)
    g = gcd(*(m for _, m in terms))
    if g > 1:
        # a*g < c = a < ceil(c / g)
        terms, limit = [(b, m // g) for b, m in terms], -(-limit // g)
    else:
        # a*d + b < n*d = a < n  when 0 <= b < d
        for d in sorted({abs(m) for _, m in terms if abs(m) > 1 and start % abs(m) == 0}, reverse=True):
            least, most = bounds([t for t in terms if t[1] % d], 0)
            if least >= 0 and most < d:
                terms, limit = [(b, m // d) for b, m in terms if m % d == 0], limit // d
                break
        else:
            if k == 0:
                return None
    return (build(terms, 0, dtype), limit) if fits(limit - 1, limit, dtype) else None
