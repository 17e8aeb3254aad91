"""Keyed scan: a sum over the earlier elements that have the same key becomes a running value for each key, a
sum over all earlier elements one running value.

    for i: out[i] = sum(j < i and key[j] == key[i] ? x[j] : 0 for j)

    ->  for v: running[v] = 0;   for i, in order: out[i] = running[key[i]], running[key[i]] += x[i]

With x = 1 it is the rank of an element among its equals, which a counting sort needs (Knuth, The Art of
Computer Programming, volume 3, 5.2). The running values are memory of the kernel's own, that without a key is
a register. The bounds of a key have to show that it has few values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from polygrad.codegen.kernels.division import make_nest
from polygrad.codegen.kernels.kernel_opt import KernelContext, KernelOpt, Kind, Proposal
from polygrad.codegen.opts import cost
from polygrad.errors import OptError
from polygrad.schedule.kernel_info import Sum, kernel_info
from polygrad.schedule.kernels import KernelCall
from polygrad.schedule.selection import factors
from polygrad.uop.args import AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.rewrite import graph_rewrite
from polygrad.uop.symbolic import symbolic


def propose_keyed_scan(call: KernelCall, context: KernelContext) -> Iterator[Proposal]:
    """A kernel with a sum over the earlier elements that have the same key."""
    if (found := _find(call.ast)) is not None:
        keys, terms = 1 if found.key is None else found.key.vmax + 1, found.total.terms
        pays = keys <= cost.MAX_KEYS and max(keys, cost.MIN_SCATTERED * terms) <= terms * terms
        yield Proposal(KernelOpt(Kind.KEYED_SCAN), pays)


class _KeyedSum(NamedTuple):
    """`total`: the sum over j < i of `value` where `key` is that of i, or of all; both are of element i.
    `nest`: the kernel's, in canonical form."""

    nest: UOp
    total: Sum
    loop: UOp
    key: UOp | None
    value: UOp


def _find(ast: UOp) -> _KeyedSum | None:
    info = kernel_info(ast)
    if info.only_nest is None or info.only_nest.is_ordered or not info.is_static:
        return None
    if not (info.has(Ops.CMPLT) and info.has(Ops.REDUCE)):
        return None
    nest = kernel_info(graph_rewrite(ast, symbolic)).nests[0]
    for total in nest.sums:
        if total.op is Ops.ADD and total.node.dtype.is_int and len(total.loops) == 1:
            for i in nest.parallel:
                if (found := _match(nest.node, total, i)) is not None:
                    return found
    return None


def _match(nest: UOp, total: Sum, i: UOp) -> _KeyedSum | None:
    """sum(j < i and key(j) == key(i) ? value(j) : 0 for j), or without a key"""
    (j,) = total.loops
    terms, conditions = factors(total.value)
    before = next((c for c in conditions if _is_before(c, j, i)), None)
    if before is None or i.src[0] is not j.src[0] or any(i in t.ranges for t in terms):
        return None
    one, zero = UOp.const(total.node.dtype, 1), UOp.const(total.node.dtype, 0)
    value = terms[0] if terms else one
    for t in terms[1:]:
        value = value * t
    key: UOp | None = None
    for condition in conditions:
        if condition is before:
            continue
        if i not in condition.ranges:
            value = condition.where(value, zero)
        elif key is not None or (key := _key(condition, i, j)) is None:
            return None
    return _KeyedSum(nest, total, i, key, value.substitute({j: i}))


def _is_before(condition: UOp, j: UOp, i: UOp) -> bool:
    """Whether a condition is j < i."""
    return condition.op is Ops.CMPLT and list(map(_position, condition.src)) == [j, i]


def _key(condition: UOp, i: UOp, j: UOp) -> UOp | None:
    """key(i) of key(j) == key(i), if its bounds show that it is a number of few."""
    if condition.op is not Ops.CMPEQ:
        return None
    for own, other in (condition.src, condition.src[::-1]):
        is_key = j not in own.ranges and i not in other.ranges and other.substitute({j: i}) is own
        if is_key and own.dtype.is_int and own.vmin >= 0:
            return own
    return None


def _position(x: UOp) -> UOp:
    """A RANGE as an index or another integer."""
    return x.src[0] if x.op is Ops.CAST and x.src[0].op is Ops.RANGE else x


# --- the mechanism


def keyed_scan(ast: UOp) -> tuple[UOp, ...]:
    """The kernel with running values instead of the sum, and with the loop over the elements innermost.

    sum(j < i and key(j) == key(i) ? x(j) : 0 for j)  ->  SCAN(i, x(i), 0, key(i)) - x(i)
    """
    if (found := _find(ast)) is None:
        raise OptError("expected a kernel with a sum over the earlier elements that have the same key")
    i, zero = found.loop, UOp.const(found.value.dtype, 0)
    key = () if found.key is None else (found.key,)
    running = UOp(Ops.SCAN, zero.dtype, (i, found.value, zero, *key), Ops.ADD)
    place, value = found.nest.src[0].src
    value = value.substitute({found.total.node: running + found.value * -1})
    loops = [*(r for r in found.nest.src[1:] if r is not i), i]
    in_order = i.replace(arg=i.arg._replace(kind=AxisKind.SCAN))
    return (make_nest(place, value, loops).substitute({i: in_order}),)
