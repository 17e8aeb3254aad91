"""Sums of integer nodes: linear combinations, and sizes in one canonical form.

A sum is a dict from atoms to their coefficients. Of a linear combination the atoms are nodes and the constant
is apart; of a polynomial they are products of nodes, and the constant is the coefficient of the empty one.

A size is an int or a node of dtype index over Variables. Equal sizes have to be the same node, as nodes are
compared by identity: `canonical` writes any of them as a sum of products of atoms, in one order. Shapes hold
canonical sizes only; `uop/node.py` sees to that, and imports this module, which so knows nodes by what they
offer. Kernels' index arithmetic is brought to another form by `uop/symbolic.py`: cheaper to make, with the
order of terms left as it came.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from polygrad.uop.ops import Ops

if TYPE_CHECKING:
    from polygrad.uop.node import UOp
    from polygrad.uop.shapes import Sint

Terms = dict["UOp", int]
Monomial = tuple[Any, ...]  # the atoms of a product, in order; () is 1
Polynomial = dict[Monomial, int]
Atom = TypeVar("Atom")


class Linear(NamedTuple):
    """sum(coefficient * atom) + constant. `terms` has no zeros; atoms stand in the order written."""

    terms: Terms
    constant: int


def linear_terms(index: UOp) -> Linear:
    """`index` as a sum; anything but + and * by a constant is an atom."""
    terms: dict[UOp, int] = {}
    constant = 0
    stack = [(index, 1)]
    while stack:
        node, factor = stack.pop()
        if node.op is Ops.ADD:
            stack.append((node.src[1], factor))
            stack.append((node.src[0], factor))
        elif node.op is Ops.CONST:
            constant += factor * node.arg
        elif node.op is Ops.MUL and node.src[1].is_const:
            stack.append((node.src[0], factor * node.src[1].arg))
        else:
            terms[node] = terms.get(node, 0) + factor
    return Linear({n: f for n, f in terms.items() if f}, constant)


def sum_of(terms: Terms, constant: int = 0) -> Sint:
    """sum(coefficient * atom) + constant, in this order: a node, or an int when there are no atoms."""
    out: UOp | None = None
    for atom, factor in terms.items():
        if factor:
            term = atom if factor == 1 else atom * factor
            out = term if out is None else out + term
    if out is None:
        return constant
    return out + constant if constant else out


def added(a: Mapping[Atom, int], b: Mapping[Atom, int], factor: int = 1) -> dict[Atom, int]:
    """a + b * factor; the atoms of `a` first."""
    out = dict(a)
    for atom, c in b.items():
        total = out.get(atom, 0) + c * factor
        if total:
            out[atom] = total
        else:
            out.pop(atom, None)
    return out


def scaled_bounds(bounds: tuple[int, int], factor: int) -> tuple[int, int]:
    """The bounds of a value within `bounds` times `factor`."""
    lo, hi = bounds
    return (lo * factor, hi * factor) if factor > 0 else (hi * factor, lo * factor)


def sum_bounds(terms: Terms, constant: int = 0) -> tuple[int, int]:
    """The least and greatest value of a sum, without wrapping."""
    lo = hi = constant
    for atom, factor in terms.items():
        least, most = scaled_bounds(atom.bounds, factor)  # type: ignore[arg-type]
        lo, hi = lo + least, hi + most
    return lo, hi


# --- sizes ----------------------------------------------------------------------------------------------


def canonical(size: Sint) -> Sint:
    """`size` in the one form that all sizes equal to it as polynomials have; an int when it is constant.

    Atoms are Variables, bound or not, and what is not a sum or a product: quotients, remainders, maxima.
    Terms and factors are ordered by how they are written, not by Variables' values, so a size stays
    canonical when its Variables are unbound or bound to other values.
    """
    if isinstance(size, int):
        return size
    op = getattr(size, "op", None)
    if op is None:  # numpy's integers
        return size.__index__()
    return size if op in _ATOMS and not _is_settled(size) else _write(_polynomial(size))


def canonical_shape(shape: tuple[Sint, ...]) -> tuple[Sint, ...]:
    """A shape of canonical sizes."""
    for size in shape:
        if size.__class__ is not int:
            return tuple([canonical(s) for s in shape])
    return shape


_ATOMS = frozenset({Ops.DEFINE_VAR, Ops.BIND})
SIZES = _ATOMS | {Ops.ADD, Ops.MUL, Ops.IDIV, Ops.MOD, Ops.MAX}  # the ops of sizes that are no constants


def _is_settled(size: UOp) -> bool:
    """Whether the bounds leave one value: a size of Variables from 3 to 3 is 3."""
    return size.vmin == size.vmax


def _polynomial(size: Sint) -> Polynomial:
    if isinstance(size, int):
        return {(): int(size)} if size else {}
    op = size.op
    if op is Ops.CONST or _is_settled(size):
        value = size.vmin
        return {(): value} if value else {}
    if op is Ops.ADD:
        return added(_polynomial(size.src[0]), _polynomial(size.src[1]))
    if op is Ops.MUL:
        return _multiply(_polynomial(size.src[0]), _polynomial(size.src[1]))
    if op is Ops.IDIV:
        return _quotient(_polynomial(size.src[0]), _polynomial(size.src[1]))
    if op is Ops.MOD:
        return _remainder(_polynomial(size.src[0]), _polynomial(size.src[1]))
    if op is Ops.MAX:
        return _greater(_polynomial(size.src[0]), _polynomial(size.src[1]))
    return {(size,): 1}


def _write(terms: Polynomial) -> Sint:
    out: Any = None
    for monomial in sorted(terms, key=_order):
        if monomial:
            term = monomial[0]
            for atom in monomial[1:]:
                term = term * atom
            term = term if terms[monomial] == 1 else term * terms[monomial]
            out = term if out is None else out + term
    constant = terms.get((), 0)
    if out is None:
        return constant
    return out + constant if constant else out


def _order(monomial: Monomial) -> tuple[int, list[str]]:
    """Products of more atoms first, then by how they are written: an order that multiplication keeps."""
    return -len(monomial), [written(atom) for atom in monomial]


def written(node: UOp) -> str:
    """A size as text. Bound Variables by name only."""
    op, src = node.op, node.src
    if op is Ops.BIND:
        return written(src[0])
    if op is Ops.DEFINE_VAR:
        return str(node.arg.name)
    if op is Ops.CONST:
        return str(node.arg)
    if op is Ops.MAX:
        return f"max({written(src[0])}, {written(src[1])})"
    sign = _SIGNS.get(op)
    if sign is None:
        return f"{op.name.lower()}({', '.join(written(s) for s in src)})"
    if op is Ops.MUL and src[1].is_const and src[1].arg == -1:
        return "-" + (f"({written(src[0])})" if src[0].op in _SIGNS else written(src[0]))
    left, right = [f"({written(s)})" if s.op in _SIGNS else written(s) for s in src]
    if op is Ops.ADD or (op is Ops.MUL and src[0].op is Ops.MUL):
        left = written(src[0])
    if op is Ops.ADD and src[1].op is not Ops.ADD:
        right = written(src[1])
    return f"{left}{sign}{right}".replace(" + -", " - ")


_SIGNS = {Ops.ADD: " + ", Ops.MUL: "*", Ops.IDIV: "//", Ops.MOD: "%"}


def _scale(a: Polynomial, factor: int) -> Polynomial:
    return {monomial: c * factor for monomial, c in a.items()}


def _multiply(a: Polynomial, b: Polynomial) -> Polynomial:
    out: Polynomial = {}
    for x, m in a.items():
        for y, n in b.items():
            out = added(out, {tuple(sorted((*x, *y), key=written)): m * n})
    return out


def _bounds(terms: Polynomial) -> tuple[int, int]:
    size = _write(terms)
    return (size, size) if isinstance(size, int) else size.bounds  # type: ignore[return-value]


def _quotient(a: Polynomial, b: Polynomial) -> Polynomial:
    """a // b, rounded down."""
    c = _constant(b)
    if not a or c == 0:
        return {}
    if c is None:
        q, r = _divide(a, b)
        return q if _bounds(b)[0] > 0 and _is_remainder(r, b) else {(_write(a) // _write(b),): 1}
    if c < 0:
        return _quotient(_scale(a, -1), {(): -c})
    lo, hi = _bounds(a)
    if lo // c == hi // c:
        return {(): lo // c} if lo // c else {}
    # (p*c + r) // c = p + r // c
    p = {x: n for x, m in a.items() if (n := m // c if not x or m > 0 else -(-m // c))}
    r = added(a, p, -c)
    lo, hi = _bounds(r)
    if lo // c == hi // c:
        return added(p, {(): lo // c})
    # (-r) // c = -((r + c - 1) // c)
    if r[min(r, key=_order)] < 0:
        return added(p, _quotient(added(_scale(r, -1), {(): c - 1}), b), -1)
    # (g*r + k) // (g*m) = r // m  for 0 <= k < g
    g = math.gcd(c, *[m for x, m in r.items() if x])
    atom = _write({x: m // g for x, m in r.items() if m // g})
    if atom.op is Ops.IDIV and atom.src[1].is_const:
        return added(p, _quotient(_polynomial(atom.src[0]), {(): atom.src[1].arg * (c // g)}))
    return added(p, _polynomial(atom) if c == g else {(atom // (c // g),): 1})


def _remainder(a: Polynomial, b: Polynomial) -> Polynomial:
    """a % b, with the sign of b."""
    c = _constant(b)
    if not a or c == 0:
        return {}
    if c is None:
        _, r = _divide(a, b)
        return r if _bounds(b)[0] > 0 and _is_remainder(r, b) else {(_write(a) % _write(b),): 1}
    if c < 0:
        return _scale(_remainder(_scale(a, -1), {(): -c}), -1)
    for rest in (a, {x: m % c for x, m in a.items() if m % c}):
        lo, hi = _bounds(rest)
        if lo // c == hi // c:
            return added(rest, {(): -(lo // c) * c})
    return {(_write(rest) % c,): 1}


def _divide(a: Polynomial, b: Polynomial) -> tuple[Polynomial, Polynomial]:
    """Polynomials q and r with a = b * q + r: long division, by the first term of `b`."""
    lead = min(b, key=_order)
    rest, out = dict(a), {}
    for monomial in sorted(a, key=_order):
        m = rest.get(monomial, 0)
        factor = _without(monomial, lead)
        if m == 0 or factor is None or m % b[lead]:
            continue
        out[factor] = m // b[lead]
        rest = added(rest, _multiply(b, {factor: 1}), -out[factor])
    return out, rest


def _without(monomial: Monomial, factors: Monomial) -> Monomial | None:
    """monomial / factors, or None."""
    rest = list(monomial)
    for atom in factors:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def _is_remainder(r: Polynomial, b: Polynomial) -> bool:
    """Whether 0 <= r < b for all values of the atoms."""
    return not r or (_bounds(r)[0] >= 0 and _bounds(added(b, r, -1))[0] > 0)


def _constant(terms: Polynomial) -> int | None:
    return terms.get((), 0) if not terms.keys() - {()} else None


def _greater(a: Polynomial, b: Polynomial) -> Polynomial:
    lo, hi = _bounds(added(a, b, -1))
    if lo >= 0:
        return a
    if hi <= 0:
        return b
    first, second = sorted((_node(a, b), _node(b, a)), key=written)
    return {(first.maximum(second),): 1}


def _node(terms: Polynomial, like: Polynomial) -> Any:
    """The node of a polynomial, which may be constant; `like` is not."""
    out = _write(terms)
    return out if not isinstance(out, int) else _write(like).const_like(out)
