"""The algebra of reductions: those that need no loop, or one loop instead of two."""

from __future__ import annotations

import functools
import itertools

from polygrad.dtype import DType, dtypes
from polygrad.schedule.selection import equality_with, factors, is_within
from polygrad.uop import alu
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.path_conditions import conjuncts
from polygrad.uop.pattern import PatternMatcher, UPat
from polygrad.uop.rewrite import graph_rewrite
from polygrad.uop.symbolic import simplify, symbolic


def identity_element(op: Ops, dtype: DType) -> UOp:
    """The identity element: x op identity = x for any x."""
    return UOp.const(dtype, alu.identity_element(op, dtype))


# --- reductions that need no loop


def _drop_idle_loops(u: UOp) -> UOp | None:
    """REDUCE(x, r < n, k) for an x without r  ->  REDUCE(x, k) * n of a sum, REDUCE(x, k) of a maximum."""
    x = u.src[0]
    ranges = x.ranges
    idle = [r for r in u.src[1:] if r not in ranges]
    if not idle:
        return None
    needed = tuple(r for r in u.src[1:] if r in ranges)
    out = UOp(Ops.REDUCE, u.dtype, (x, *needed), u.arg) if needed else x
    if u.arg is Ops.ADD:
        for r in idle:
            size = r.src[0]
            out = out * (UOp.const(u.dtype, size.arg) if size.is_const else size.cast(u.dtype))
    return out


def _replace_one_hot(u: UOp) -> UOp | None:
    """A sum over a one-hot is the term at its position.

    REDUCE((r == i) * x[r, k], r < n, k)  ->  REDUCE(0 <= i < n ? x[i, k] : 0, k)
    """
    terms, picks = factors(u.src[0])
    for r, pick in itertools.product(u.src[1:], picks):
        i, size = equality_with(pick, r), r.src[0]
        if i is None or not size.is_const:
            continue
        position = i.cast(dtypes.index)
        is_inside = valid = simplify(is_within(i, size))
        for p in picks:
            if p is not pick:
                valid = valid & _substitute_position(p, r, position, is_inside)
        body: UOp | None = None
        for t in terms:
            term = _substitute_position(t, r, position, is_inside)
            body = term if body is None else body * term
        if body is None:
            body = UOp.const(u.dtype, 1)
        picked = valid.where(body, UOp.const(u.dtype, 0))
        remaining = tuple(k for k in u.src[1:] if k is not r)
        return UOp(Ops.REDUCE, u.dtype, (picked, *remaining), Ops.ADD) if remaining else picked
    return None


def _substitute_position(value: UOp, r: UOp, position: UOp, is_inside: UOp) -> UOp:
    """`value` at r = position. Loads that move with r are made where `is_inside` holds, so that none leaves
    its buffer. Other values computed from r may rely on its bounds, so elsewhere they are computed at 0."""
    computed = value.toposort(lambda n: n.op is not Ops.LOAD)
    new: dict[UOp, UOp] = {r: is_inside.where(position, 0) if r in computed else position}
    for node in value.toposort():
        if node in new:
            continue
        src = tuple([new[s] for s in node.src])
        if src == node.src:
            new[node] = node
        elif node.op is Ops.LOAD:
            new[node] = guarded_load(node.replace(src=src), is_inside)
        else:
            new[node] = UOp(node.op, node.dtype, src, node.arg)
    return new[value]


def guarded_load(load: UOp, condition: UOp) -> UOp:
    """A load that is executed only where a condition holds, and 0 (or its old alternative) elsewhere.

    LOAD(INDEX(p, i, gate), other)  ->  LOAD(INDEX(p, i, gate & condition), other)
    """
    index = load.src[0]
    gate = simplify(index.src[2] & condition) if len(index.src) == 3 else condition
    other = load.src[1] if len(load.src) > 1 else UOp.const(load.dtype, 0)
    return load.replace(src=(index.replace(src=(*index.src[:2], gate)), other))


# --- sums of sums


def _flatten(u: UOp) -> UOp | None:
    """A sum over guarded sums is one sum.

    REDUCE(c ? REDUCE(x, k) : 0, r)  ->  REDUCE(c ? x : 0, r, k)
    """
    inner, conditions = u.src[0], []
    while inner.op is Ops.WHERE and inner.src[2].is_const and inner.src[2].arg == 0:
        conditions.append(inner.src[0])
        inner = inner.src[1]
    if inner.op is not Ops.REDUCE or inner.arg is not Ops.ADD:
        return None
    reduced = set(inner.src[1:])
    if any(not reduced.isdisjoint(n.src[1:]) for c in conditions for n in c.toposort() if n.op is Ops.REDUCE):
        return None  # a condition on the sum itself, as in relu(sum), is known only after the sum
    required = {c for condition in conditions for c in conjuncts(condition)}
    value = _guarded_product(inner.src[0], required)
    if value is None:
        value = inner.src[0]
        for condition in conditions:
            value = condition.where(value, UOp.const(u.dtype, 0))
    return UOp(Ops.REDUCE, u.dtype, (value, *u.src[1:], *inner.src[1:]), Ops.ADD)


def _guarded_product(value: UOp, required: set[UOp]) -> UOp | None:
    """`value` if it is a product of two loads, one of which is 0 unless all of `required` holds. The other
    load loses conditions that the first one has too, if it reads within its buffer anyway.

    LOAD(INDEX(p, i, c), 0) * LOAD(INDEX(q, j, c), 0)  ->  LOAD(INDEX(p, i, c), 0) * LOAD(INDEX(q, j))
    """
    if value.op is not Ops.MUL or any(s.op is not Ops.LOAD for s in value.src):
        return None
    for guard, other in (value.src, value.src[::-1]):
        if len(guard.src) < 2 or guard.src[1].arg != 0:
            continue
        guards = set(conjuncts(guard.src[0].src[2]))
        if not required <= guards:
            continue
        guarded = len(other.src) == 2 and guards.issuperset(conjuncts(other.src[0].src[2]))
        if guarded and _is_within(other.src[0]):
            free = UOp(Ops.LOAD, other.dtype, (UOp(Ops.INDEX, other.dtype, other.src[0].src[:2]),))
            return guard * free if guard is value.src[0] else free * guard
        return value
    return None


def _is_within(index: UOp) -> bool:
    """Whether an index is in its buffer even where its condition does not hold."""
    return index.src[1].vmin >= 0 and index.src[1].vmax < index.src[0].arg.size


# --- the rules


def _reduce(op: Ops, *src: UPat) -> UPat:
    """REDUCE with `op`, over any value and RANGEs unless `src` are given."""
    return UPat(Ops.REDUCE, None, src or None, op, "u")


simplify_reductions = PatternMatcher([
    # sum(x for r < n) = x * n, max(x for r) = x, where x does not depend on r
    (_reduce(Ops.ADD), _drop_idle_loops),
    (_reduce(Ops.MAX), _drop_idle_loops),
    # sum(i == r ? x(r) : 0 for r < n) = 0 <= i < n ? x(i) : 0, where i does not depend on r
    (_reduce(Ops.ADD), _replace_one_hot),
])  # fmt: skip

# sum(ok(a) ? sum(x(a, b) for b) : 0 for a) = sum(ok(a) ? x(a, b) : 0 for a, b), which can be tiled. The
# gradient of a convolution has this form. Where x is a product with a load that is 0 unless ok(a), that load
# has the condition, and the other factors have none (so an infinity among them gives NaN here, not 0).
flatten_reductions = PatternMatcher([(_reduce(Ops.ADD), _flatten)])


@functools.lru_cache(maxsize=64)  # kernel passes ask one after the other
def canonicalize(kernel: UOp) -> UOp:
    """A kernel whose reductions have the form that lowering gives them: simplified, without loops that are
    not needed, and a sum of sums as one sum. Kernel passes analyse this form.

    REDUCE(REDUCE(x[i, j], j), i) + REDUCE(y, k < 4)  ->  REDUCE(x[i, j], i, j) + y * 4
    """
    for rules in (symbolic, simplify_reductions, flatten_reductions):
        kernel = graph_rewrite(kernel, rules)
    return kernel
