"""Reductions of a kernel: the algebra that removes them, and the registers that carry them out."""

from __future__ import annotations

from polygrad.codegen.tile import is_tile
from polygrad.dtype import DType, dtypes
from polygrad.uop import alu
from polygrad.uop.node import Reg, UOp
from polygrad.uop.ops import Ops
from polygrad.uop.path_conditions import conjuncts
from polygrad.uop.scopes import Scopes, scopes
from polygrad.uop.symbolic import simplify


def identity_element(op: Ops, dtype: DType) -> UOp:
    """What leaves any x unchanged: x op identity = x."""
    return UOp.const(dtype, alu.identity_element(op, dtype))


# --- algebra


def simplify_reductions(sink: UOp) -> UOp:
    """Remove reductions, or ranges of them, that need no loop."""
    order = sink.toposort()
    if not any(n.op is Ops.REDUCE for n in order):
        return sink
    scope = scopes(order)
    new: dict[UOp, UOp] = {}
    for node in order:
        src = tuple([new[s] for s in node.src])
        out = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
        if node.op is Ops.REDUCE and (simpler := _without_loop(node, scope)) is not None:
            out = simpler.substitute({s: new[s] for s in simpler.toposort() if s in new and new[s] is not s})
        new[node] = out
    return new[sink]


def _without_loop(node: UOp, scope: Scopes) -> UOp | None:
    value, ranges = node.src[0], node.src[1:]
    inside = scope.mask[value]
    # sum(v for r) = v * size, max(v for r) = v, where v does not depend on r
    idle = [r for r in ranges if not inside & scope.bit[r]]
    if idle and node.arg in (Ops.ADD, Ops.MAX):
        left = tuple(r for r in ranges if r not in idle)
        out = UOp(Ops.REDUCE, node.dtype, (value, *left), node.arg) if left else value
        if node.arg is Ops.ADD:
            for r in idle:
                size = r.src[0]
                out = out * (UOp.const(node.dtype, size.arg) if size.is_const else size.cast(node.dtype))
        return out
    if node.arg is Ops.ADD and len(ranges) == 1:
        return _gather(node, scope)
    return None


def _gather(node: UOp, scope: Scopes) -> UOp | None:
    """sum(i == r ? v(r) : 0 for r < n) = 0 <= i < n ? v(i) : 0, where i does not depend on r."""
    value, r = node.src
    terms, picks = _factors(value)
    for pick in picks:
        found = _equality_with(pick, r, scope)
        if found is None:
            continue
        i, size = found, r.src[0]
        if not size.is_const:
            continue
        position = i.cast(dtypes.index)
        inside = valid = simplify((position < 0).logical_not() & (position < size))
        for p in picks:
            if p is not pick:
                valid = valid & _moved(p, r, position, inside)
        body: UOp | None = None
        for t in terms:
            moved = _moved(t, r, position, inside)
            body = moved if body is None else body * moved
        if body is None:
            body = UOp.const(node.dtype, 1)
        return valid.where(body, UOp.const(node.dtype, 0))
    return None


def _factors(value: UOp) -> tuple[list[UOp], list[UOp]]:
    """`value` as a product of terms and of conditions (1 where they hold, 0 elsewhere)."""
    terms, picks, stack = [], [], [value]
    while stack:
        v = stack.pop()
        if v.op is Ops.MUL:
            stack.extend(reversed(v.src))
        elif v.op is Ops.CAST and v.src[0].dtype.is_bool:
            picks.append(v.src[0])
        elif v.op is Ops.WHERE and v.src[2].is_const and v.src[2].arg == 0:
            picks.append(v.src[0])
            stack.append(v.src[1])
        elif v.op is Ops.AND:
            stack.extend(reversed(v.src))
        else:
            terms.append(v)
    return [t for t in terms if not (t.is_const and t.arg == 1)], picks


def _equality_with(condition: UOp, r: UOp, scope: Scopes) -> UOp | None:
    """The i of a condition `i == r`, with i independent of r."""
    if condition.op is Ops.CMPNE and condition.src[1].is_const and condition.src[1].arg is True:
        inner = condition.src[0]  # not (i != r)
        if inner.op is not Ops.CMPNE:
            return None
    elif condition.op is Ops.CMPEQ:
        inner = condition
    else:
        return None
    for a, b in (inner.src, inner.src[::-1]):
        plain = b.src[0] if b.op is Ops.CAST and b.dtype.is_int else b
        if plain is r and a.dtype.is_int and not scope.mask.get(a, -1) & scope.bit[r]:
            return a
    return None


def _moved(value: UOp, r: UOp, position: UOp, inside: UOp) -> UOp:
    """`value` at r = position. Its loads that move with r are made where `inside` holds: none leaves its
    buffer."""
    new: dict[UOp, UOp] = {r: position}
    for node in value.toposort():
        if node in new:
            continue
        src = tuple([new[s] for s in node.src])
        if src == node.src:
            new[node] = node
        elif node.op is Ops.LOAD:
            index = src[0]
            gate = simplify(index.src[2] & inside) if len(index.src) == 3 else inside
            at = UOp(Ops.INDEX, index.dtype, (*index.src[:2], gate))
            other = src[1] if len(src) > 1 else UOp.const(node.dtype, 0)
            new[node] = UOp(Ops.LOAD, node.dtype, (at, other))
        else:
            new[node] = UOp(node.op, node.dtype, src, node.arg)
    return new[value]


def flatten_reductions(sink: UOp) -> UOp:
    """A sum over sums that a condition guards as one sum, which can be tiled:

        sum(ok(a) ? sum(x(a, b) for b) : 0 for a)  ->  sum(ok(a) ? x(a, b) : 0 for a, b)

    as the gradient of a convolution has it. Where x is a product with a load that is 0 unless ok(a), that
    is the condition, and the other factors go without (an infinity of theirs is NaN here, then, not 0).
    """
    new: dict[UOp, UOp] = {}
    for node in sink.toposort():
        src = tuple([new[s] for s in node.src])
        out = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
        new[node] = _flattened(out) if node.op is Ops.REDUCE and node.arg is Ops.ADD else out
    return new[sink]


def _flattened(node: UOp) -> UOp:
    inner, conditions = node.src[0], []
    while inner.op is Ops.WHERE and inner.src[2].is_const and inner.src[2].arg == 0:
        conditions.append(inner.src[0])
        inner = inner.src[1]
    if inner.op is not Ops.REDUCE or inner.arg is not Ops.ADD:
        return node
    wanted = {c for condition in conditions for c in conjuncts(condition)}
    value = _guarded_product(inner.src[0], wanted)
    if value is None:
        value = inner.src[0]
        for condition in conditions:
            value = condition.where(value, UOp.const(node.dtype, 0))
    return UOp(Ops.REDUCE, node.dtype, (value, *node.src[1:], *inner.src[1:]), Ops.ADD)


def _guarded_product(value: UOp, wanted: set[UOp]) -> UOp | None:
    """`value` if it is a product of two loads, one of them 0 unless all `wanted` holds; the other loses a
    condition that this one has too, if it reads within its buffer anyway."""
    if value.op is not Ops.MUL or any(s.op is not Ops.LOAD for s in value.src):
        return None
    for guard, other in (value.src, value.src[::-1]):
        if len(guard.src) < 2 or guard.src[1].arg != 0:
            continue
        known = set(conjuncts(guard.src[0].src[2]))
        if not wanted <= known:
            continue
        if (
            len(other.src) == 2
            and known.issuperset(conjuncts(other.src[0].src[2]))
            and _is_within(other.src[0])
        ):
            free = UOp(Ops.LOAD, other.dtype, (UOp(Ops.INDEX, other.dtype, other.src[0].src[:2]),))
            return guard * free if guard is value.src[0] else free * guard
        return value
    return None


def _is_within(index: UOp) -> bool:
    """It points into its buffer, whether its condition holds or not."""
    return index.src[1].vmin >= 0 and index.src[1].vmax < index.src[0].arg.size


# --- registers


def lower_reductions(sink: UOp) -> UOp:
    """Each REDUCE becomes a DEFINE_REG that its loops accumulate in.

    Tile ranges open no loop: the register holds one value for each, and a REDUCE over them remains to combine
    those.
    """
    new: dict[UOp, UOp] = {}
    count = 0
    for node in sink.toposort():
        src = tuple([new[s] for s in node.src])
        if node.op is Ops.REDUCE and (loops := tuple(r for r in src[1:] if not is_tile(r))):
            total = _accumulate(node, src[0], loops, count)
            left = tuple(r for r in src[1:] if is_tile(r))
            new[node] = UOp(Ops.REDUCE, node.dtype, (total, *left), node.arg) if left else total
            count += 1
        else:
            new[node] = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
    return new[sink]


def _accumulate(node: UOp, value: UOp, loops: tuple[UOp, ...], number: int) -> UOp:
    order = value.toposort()
    scope = scopes(order)
    outer = tuple(r for r in scope.of(value) if r not in loops and not is_tile(r))
    zero = UOp.index(0)
    reg = UOp(Ops.DEFINE_REG, node.dtype, (), Reg(number))

    def at(*after: UOp) -> UOp:
        return UOp(Ops.INDEX, node.dtype, (UOp(Ops.AFTER, node.dtype, (reg, *after)) if after else reg, zero))

    start = UOp(Ops.STORE, dtypes.void, (at(*outer), identity_element(node.arg, node.dtype)))
    before = UOp(Ops.LOAD, node.dtype, (at(start, *loops),))
    step = UOp(Ops.STORE, dtypes.void, (at(), UOp(node.arg, node.dtype, (before, value))))
    end = UOp(Ops.END, dtypes.void, (step, *loops))
    return UOp(Ops.LOAD, node.dtype, (at(end),))
