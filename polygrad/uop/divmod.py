"""Division, remainder and comparison of linear sums: the rules that turn movement ops into plain addresses.

All rules hold for floor division. That is enough for `dtypes.index`, which never overflows. A user's integers
wrap, so for them a rule also needs that the sum's exact bounds fit the dtype: then nothing has wrapped. Knows
nodes and their bounds.

The equations are those of Euclidean division; tinygrad's `divandmod` has most of them.
"""

from __future__ import annotations

from math import gcd

from polygrad.dtype import DType, dtypes
from polygrad.helpers import ceildiv
from polygrad.uop.linear import Terms, linear_terms, sum_bounds, sum_of
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.sizes import add_terms


def build(terms: Terms, constant: int, dtype: DType) -> UOp:
    """The node of a sum: terms from left to right, the constant last."""
    out = sum_of(terms, constant)
    return out if isinstance(out, UOp) else UOp.const(dtype, out)


def fits(lo: int, hi: int, dtype: DType) -> bool:
    """Whether lo..hi cannot wrap in `dtype`."""
    return dtype is dtypes.index or (lo >= dtype.min and hi <= dtype.max)


def is_positive(terms: Terms, constant: int) -> bool:
    """Whether a sum is above 0: as it stands, or with RANGEs it subtracts at the last of symbolic sizes."""
    if sum_bounds(terms, constant)[0] > 0:
        return True
    least: Terms = {}
    for atom, m in terms.items():
        if atom.op is Ops.RANGE and m < 0:
            size = linear_terms(atom.src[0])
            constant += m * (size.constant - 1)
            least = add_terms(least, size.terms, m)
        else:
            least = add_terms(least, {atom: m})
    return sum_bounds(least, constant)[0] > 0


def is_exact(x: UOp) -> bool:
    """Whether the operation `x` itself cannot have wrapped: its bounds are narrower than those of its
    dtype."""
    return x.dtype is dtypes.index or x.bounds != (x.dtype.min, x.dtype.max)


def fold_divmod(u: UOp, x: UOp, c: UOp) -> UOp | None:
    """x // c or x % c (`u`) for a constant c > 1, or None when it stays."""
    divide, dtype, m = u.op is Ops.IDIV, x.dtype, c.arg
    lo, hi = x.bounds  # type: ignore[misc]
    q = lo // m
    if q == hi // m:
        # x // c = q,  x % c = x - q*c  when x stays within one period
        return UOp.const(dtype, q) if divide else build({x: 1}, -q * m, dtype)
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
    terms, k = linear_terms(x)
    lo, hi = sum_bounds(terms, k)
    if not terms or not fits(lo, hi, dtype):
        return None

    def div(ts: Terms, constant: int, by: int) -> UOp:
        return build(ts, constant, dtype) // UOp.const(dtype, by)

    def mod(ts: Terms, constant: int, by: int) -> UOp:
        return build(ts, constant, dtype) % UOp.const(dtype, by)

    # (a*c + b) // c = a + b // c,  (a*c + b) % c = b % c,
    # where multiples of c move between a's constant and b's until b's least value is in [0, c), but not
    # beyond 2^31: an index may have 32 bits, and wider bounds are of what a condition excludes
    remaining = {a: m for a, m in terms.items() if m % c}
    lower, upper = sum_bounds(remaining, k)
    shift = lower // c if k else 0
    if shift < 0 and dtype is dtypes.index and upper - shift * c > dtypes.int32.max:
        shift = 0
    if (shift or len(remaining) != len(terms)) and fits(lower - shift * c, upper - shift * c, dtype):
        if not divide:
            return mod(remaining, k - shift * c, c)
        whole = {a: m // c for a, m in terms.items() if m % c == 0}
        return build(add_terms(whole, {div(remaining, k - shift * c, c): 1}), shift, dtype)

    g = gcd(c, *terms.values())
    if g > 1:
        # (a*g + k) // (n*g) = (a + k//g) // n,  (a*g + k) % (n*g) = ((a + k//g) % n)*g + k%g
        ts, n = {a: m // g for a, m in terms.items()}, c // g
        return div(ts, k // g, n) if divide else build({mod(ts, k // g, n): g}, k % g, dtype)

    # (a*d + b) // (n*d) = a // n,  (a*d + b) % (n*d) = (a % n)*d + b  when 0 <= b < d
    for d in sorted({gcd(c, m) for m in terms.values()} - {1}, reverse=True):
        part = {a: m for a, m in terms.items() if m % d}
        lower, upper = sum_bounds(part, k)
        q = lower // d
        if q == upper // d:
            ts, n = {a: m // d for a, m in terms.items() if m % d == 0}, c // d
            return div(ts, q, n) if divide else build(add_terms({mod(ts, q, n): d}, part), k - q * d, dtype)

    # (a*c + b) // c = a + q,  (a*c + b) % c = b - q*c  when b stays within period q,
    # where coefficients are split into a multiple of c and the rest, nearest to 0 or positive
    for centred in (True, False):
        rems = {a: m % c - (c if centred and m % c > c // 2 else 0) for a, m in terms.items()}
        lower, upper = sum_bounds(rems, k)
        q = lower // c
        if q == upper // c:
            if not divide:
                return build(rems, k - q * c, dtype)
            return build({a: (m - rems[a]) // c for a, m in terms.items()}, q, dtype)

    if divide:
        # (x // d + k) // c = (x + k*d) // (d*c)
        atom, m = next(iter(terms.items()))
        if len(terms) == 1 and m == 1 and atom.op is Ops.IDIV and atom.src[1].op is Ops.CONST:
            d = atom.src[1].arg
            lower, upper = atom.src[0].bounds  # type: ignore[misc]
            if d > 0 and fits(lower + k * d, upper + k * d, dtype) and fits(0, d * c, dtype):
                return div({atom.src[0]: 1}, k * d, d * c)
        return None

    # (m*a + b) % c = ((m%c)*a + b) % c,  ((x % d)*m + b) % c = (x*m + b) % c  when c divides d*m
    changed = False
    reduced: Terms = {}
    for atom, m in terms.items():
        if m > c:
            m, changed = m % c, True
        if dtype is dtypes.index and atom.op is Ops.MOD and atom.src[1].op is Ops.CONST:
            d = atom.src[1].arg
            if d > 0 and d * m % c == 0:
                atom, changed = atom.src[0], True
        reduced[atom] = reduced.get(atom, 0) + m
    return mod(reduced, k, c) if changed else None


def fold_less(x: UOp, c: UOp) -> UOp | None:
    """x < c for a constant c, its constants moved right and common factors taken out; or None."""
    dtype, limit, inner = x.dtype, c.arg, x.op
    if inner is Ops.IDIV:
        d = x.src[1]
        # x // d < c = x < c*d  for d > 0
        if d.op is Ops.CONST and d.arg > 0 and fits(limit * d.arg, limit * d.arg, dtype):
            return x.src[0] < UOp.const(dtype, limit * d.arg)
        return None
    reduced = _reduce_sum(x, limit)
    return None if reduced is None else reduced[0] < UOp.const(dtype, reduced[1])


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
    reduced = _reduce_sum(x, limit + 1)  # c < x = !(x < c+1)
    return None if reduced is None else UOp.const(dtype, reduced[1] - 1) < reduced[0]


def _reduce_sum(x: UOp, limit: int) -> tuple[UOp, int] | None:
    """(y, limit') such that x < limit = y < limit' with fewer operations; or None."""
    if x.op is not Ops.ADD and x.op is not Ops.MUL:
        return None
    dtype = x.dtype
    terms, k = linear_terms(x)
    lo, hi = sum_bounds(terms, k)
    if not terms or not fits(lo, hi, dtype) or not fits(lo - k, hi - k, dtype):
        return None
    # a + k < c = a < c - k
    limit -= k
    start = abs(limit)
    g = gcd(*terms.values())
    if g > 1:
        # a*g < c = a < ceil(c / g)
        terms, limit = {a: m // g for a, m in terms.items()}, ceildiv(limit, g)
    else:
        # a*d + b < n*d = a < n  when 0 <= b < d
        for d in sorted({abs(m) for m in terms.values() if abs(m) > 1 and start % abs(m) == 0}, reverse=True):
            lower, upper = sum_bounds({a: m for a, m in terms.items() if m % d})
            if lower >= 0 and upper < d:
                terms, limit = {a: m // d for a, m in terms.items() if m % d == 0}, limit // d
                break
        else:
            if k == 0:
                return None
    return (build(terms, 0, dtype), limit) if fits(limit - 1, limit, dtype) else None
