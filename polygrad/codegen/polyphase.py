"""Polyphase form: a sum that skips terms in turn, divided into sums that skip none.

    for y < 2*n:            sum(w[k] * (y + k) % 2 == 0 ? x[(y + k) // 2] : 0 for k < 4)
    for y < n: for p < 2:   sum(w[2*k + p] * x[y + k + p] for k < 2)

Transposed convolutions with a stride, and gradients of convolutions with one, have zeros between the elements
that they read. Each phase p of the output reads every other weight, and no zero. The word is that of filter
banks.
"""

from __future__ import annotations

from typing import NamedTuple

from polygrad.codegen.reductions import guarded_load
from polygrad.codegen.split import substituted
from polygrad.helpers import ceildiv
from polygrad.uop.linear import linear_terms, sum_of
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.path_conditions import conjuncts
from polygrad.uop.rewrite import graph_rewrite
from polygrad.uop.symbolic import simplify, symbolic


def polyphase(kernel: UOp) -> UOp:
    """A kernel of one output nest and one sum, that in polyphase form along each axis that has one."""
    while (found := _find(kernel)) is not None:
        kernel = graph_rewrite(_divided(kernel, found), symbolic)
    return kernel


def _divided(kernel: UOp, found: _Skipped) -> UOp:
    """The kernel with `output = period * block + phase` and `taps = period * k + q`, with the only q for
    which a phase has terms: `rest + sign * taps` is then a multiple of the period for any block and k."""
    output, taps, sign, period = found.output, found.taps, found.sign, found.period
    block = UOp.range(output.src[0].arg // period, output.arg.child(0))
    phase = UOp.range(period, output.arg.child(1))
    k = UOp.range(ceildiv(taps.src[0].arg, period), taps.arg.child(0))
    rest = simplify(found.rest.substitute({output: phase}))
    first = (rest // period) * period if sign < 0 else ((rest + (period - 1)) // period) * period
    at = {output: block * period + phase}
    data = substituted(found.data, at | {taps: k * period + (first - rest) * sign})
    tap = k * period + simplify((rest * -sign) % period)
    weights = found.weights
    if taps.src[0].arg % period:
        weights = _guarded(weights, tap < taps.src[0].arg)
    weights = substituted(weights, at | {taps: tap})
    nest, total = kernel.src[0], found.total
    product = data * weights if total.src[0].src[0] is found.data else weights * data
    loops = tuple(k if r is taps else r for r in total.src[1:])
    summed = UOp(Ops.REDUCE, total.dtype, (product, *loops), total.arg)
    store = substituted(nest.src[0], at | {total: summed})
    outputs = tuple(x for r in nest.src[1:] for x in ((block, phase) if r is output else (r,)))
    return UOp.sink(UOp(Ops.END, nest.dtype, (store, *outputs)))


class _Skipped(NamedTuple):
    """Terms are 0 but where `(rest + sign * taps) % period == 0`; `weights`: loads of the other factor."""

    total: UOp
    output: UOp
    taps: UOp
    rest: UOp
    sign: int
    period: int
    data: UOp
    weights: UOp


def _find(kernel: UOp) -> _Skipped | None:
    sums = [n for n in kernel.toposort() if n.op is Ops.REDUCE]
    if (
        len(sums) != 1
        or len(kernel.src) != 1
        or sums[0].arg is not Ops.ADD
        or sums[0].src[0].op is not Ops.MUL
    ):
        return None
    (total,) = sums
    outputs = kernel.src[0].src[1:]
    for a, b in (total.src[0].src, total.src[0].src[::-1]):
        if a.op is not Ops.LOAD or len(a.src) < 2 or not a.src[1].is_const or a.src[1].arg != 0:
            continue
        for condition in conjuncts(a.src[0].src[2]):
            if (
                condition.op is not Ops.CMPLT
                or condition.src[0].op is not Ops.MOD
                or not condition.src[1].is_const
            ):
                continue
            position, period = condition.src[0].src
            if condition.src[1].arg != 1 or not period.is_const:
                continue
            terms, constant = linear_terms(position)
            taps = [r for r, f in terms.items() if abs(f) == 1 and r in total.src[1:] and r.src[0].arg > 1]
            over = [r for r in terms if r in outputs and r.src[0].arg % period.arg == 0]
            if len(taps) == 1 and len(over) == 1 and len(terms) == 2:
                rest = UOp.index(sum_of({over[0]: terms[over[0]]}, constant))
                return _Skipped(total, over[0], taps[0], rest, terms[taps[0]], period.arg, a, b)
    return None


def _guarded(value: UOp, inside: UOp) -> UOp:
    """The weights, 0 where there are no more."""
    guarded = value.substitute({n: guarded_load(n, inside) for n in value.toposort() if n.op is Ops.LOAD})
    return guarded if value.op is Ops.LOAD else inside.where(guarded, UOp.const(value.dtype, 0))
