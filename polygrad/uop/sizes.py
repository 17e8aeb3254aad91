"""Symbolic sizes in one canonical form.

A size is an int or a node of dtype index over Variables. Equal sizes have to be the same node, because nodes
are compared by identity. So `canonical` writes every size as a sum of products of atoms, in one order. Shapes
hold canonical sizes only: `uop/node.py` sees to that.

A polynomial is a dict from products of atoms to their coefficients; the constant is the coefficient of the
empty product. This module stands below `UOp`: it uses the operators of nodes without importing their type.
Index arithmetic of kernels has another form (`uop/symbolic.py`), which is cheaper to make and keeps the order
of terms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar

from polygrad.uop.ops import Ops

Sint = Any  # an int, or a UOp of dtype index: a symbolic size
Monomial = tuple[Any, ...]  # the atoms of a product, in order; () is 1
Polynomial = dict[Monomial, int]
Atom = TypeVar("Atom")


def add_terms(a: Mapping[Atom, int], b: Mapping[Atom, int], factor: int = 1) -> dict[Atom, int]:
    """a + b * factor; the atoms of `a` first."""
    out = dict(a)
    for atom, c in b.items():
        total = out.get(atom, 0) + c * factor
        if total:
            out[atom] = total
        else:
            out.pop(atom, None)
    return out


def canonical(size: Sint) -> Sint:
    """`size` in the one form that all sizes equal to it as polynomials have; an int when it is constant.

    Atoms are Variables, bound or not, and quotients, remainders and maxima. Terms and factors are in the
    order of their texts, which do not depend on Variables' values. So a size stays canonical when its
    Variables are unbound or bound to other values.
    """
    if isinstance(size, int):
        return size
    op = getattr(size, "op", None)
    if op is None:  # numpy's integers
        return size.__index__()
    return size if op in _ATOMS and not _has_one_value(size) else _write(_polynomial(size))


def canonical_shape(shape: tuple[Sint, ...]) -> tuple[Sint, ...]:
    """A shape of canonical sizes."""
    for size in shape:
        if size.__class__ is not int:
            return tuple([canonical(s) for s in shape])
    return shape


_ATOMS = frozenset({Ops.DEFINE_VAR, Ops.BIND})
SIZES = _ATOMS | {Ops.ADD, Ops.MUL, Ops.IDIV, Ops.MOD, Ops.MAX}  # the ops of sizes other than constants


def _has_one_value(size: Any) -> bool:
    """Whether the bounds leave one value: a size of Variables from 3 to 3 is 3."""
    return size.vmin == size.vmax


def _polynomial(size: Sint) -> Polynomial:
    if isinstance(size, int):
        return {(): int(size)} if size else {}
    op = size.op
    if op is Ops.CONST or _has_one_value(size):
        value = size.vmin
        return {(): value} if value else {}
    if op is Ops.ADD:
        return add_terms(_polynomial(size.src[0]), _polynomial(size.src[1]))
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
    """Products of more atoms first, then in the order of their texts: an order that multiplication keeps."""
    return -len(monomial), [size_text(atom) for atom in monomial]


def size_text(node: Any) -> str:
    """A size as text. Bound Variables are written by name only."""
    op, src = node.op, node.src
    if op is Ops.BIND:
        return size_text(src[0])
    if op is Ops.DEFINE_VAR:
        return str(node.arg.name)
    if op is Ops.CONST:
        return str(node.arg)
    if op is Ops.MAX:
        return f"max({size_text(src[0])}, {size_text(src[1])})"
    sign = _SIGNS.get(op)
    if sign is None:
        return f"{op.name.lower()}({', '.join(size_text(s) for s in src)})"
    if op is Ops.MUL and src[1].is_const and src[1].arg == -1:
        return "-" + (f"({size_text(src[0])})" if src[0].op in _SIGNS else size_text(src[0]))
    left, right = [f"({size_text(s)})" if s.op in _SIGNS else size_text(s) for s in src]
    if op is Ops.ADD or (op is Ops.MUL and src[0].op is Ops.MUL):
        left = size_text(src[0])
    if op is Ops.ADD and src[1].op is not Ops.ADD:
        right = size_text(src[1])
    return f"{left}{sign}{right}".replace(" + -", " - ")


_SIGNS = {Ops.ADD: " + ", Ops.MUL: "*", Ops.IDIV: "//", Ops.MOD: "%"}


def _scale(a: Polynomial, factor: int) -> Polynomial:
    return {monomial: c * factor for monomial, c in a.items()}


def _multiply(a: Polynomial, b: Polynomial) -> Polynomial:
    out: Polynomial = {}
    for x, m in a.items():
        for y, n in b.items():
            out = add_terms(out, {tuple(sorted((*x, *y), key=size_text)): m * n})
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
    r = add_terms(a, p, -c)
    lo, hi = _bounds(r)
    if lo // c == hi // c:
        return add_terms(p, {(): lo // c})
    # (-r) // c = -((r + c - 1) // c)
    if r[min(r, key=_order)] < 0:
        return add_terms(p, _quotient(add_terms(_scale(r, -1), {(): c - 1}), b), -1)
    # (g*r + k) // (g*m) = r // m  for 0 <= k < g
    g = math.gcd(c, *[m for x, m in r.items() if x])
    atom = _write({x: m // g for x, m in r.items() if m // g})
    if atom.op is Ops.IDIV and atom.src[1].is_const:
        return add_terms(p, _quotient(_polynomial(atom.src[0]), {(): atom.src[1].arg * (c // g)}))
    return add_terms(p, _polynomial(atom) if c == g else {(atom // (c // g),): 1})


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
    for terms in (a, {x: m % c for x, m in a.items() if m % c}):
        lo, hi = _bounds(terms)
        if lo // c == hi // c:
            return add_terms(terms, {(): -(lo // c) * c})
    return {(_write(terms) % c,): 1}


def _divide(a: Polynomial, b: Polynomial) -> tuple[Polynomial, Polynomial]:
    """Polynomials q and r with a = b * q + r: long division, by the first term of `b`."""
    lead = min(b, key=_order)
    remainder, quotient = dict(a), {}
    for monomial in sorted(a, key=_order):
        m = remainder.get(monomial, 0)
        factor = _without(monomial, lead)
        if m == 0 or factor is None or m % b[lead]:
            continue
        quotient[factor] = m // b[lead]
        remainder = add_terms(remainder, _multiply(b, {factor: 1}), -quotient[factor])
    return quotient, remainder


def _without(monomial: Monomial, factors: Monomial) -> Monomial | None:
    """monomial / factors, or None."""
    atoms = list(monomial)
    for factor in factors:
        if factor not in atoms:
            return None
        atoms.remove(factor)
    return tuple(atoms)


def _is_remainder(r: Polynomial, b: Polynomial) -> bool:
    """Whether 0 <= r < b for all values of the atoms."""
    return not r or (_bounds(r)[0] >= 0 and _bounds(add_terms(b, r, -1))[0] > 0)


def _constant(terms: Polynomial) -> int | None:
    return terms.get((), 0) if not terms.keys() - {()} else None


def _greater(a: Polynomial, b: Polynomial) -> Polynomial:
    lo, hi = _bounds(add_terms(a, b, -1))
    if lo >= 0:
        return a
    if hi <= 0:
        return b
    first, second = sorted((_node(a, b), _node(b, a)), key=size_text)
    return {(first.maximum(second),): 1}


def _node(terms: Polynomial, like: Polynomial) -> Any:
    """The node of a polynomial, which may be constant, unlike `like`."""
    out = _write(terms)
    return out if not isinstance(out, int) else _write(like).const_like(out)
