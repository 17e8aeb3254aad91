"""Polyphase form: a sum that skips terms in turn, divided into sums that skip none.

    for y < 2*n:            sum(w[k] * (y + k) % 2 == 0 ? x[(y + k) // 2] : 0 for k < 4)
    for y < n: for p < 2:   sum(w[2*k + p] * x[y + k + p] for k < 2)

Transposed convolutions with a stride, and gradients of convolutions and poolings with one, have zeros between
the elements that they read. Each phase p of the output has every other tap, and no zeros. The term comes from
filter banks.

Of 3 taps, one phase has 2 and the other 1. If one kernel computes all phases, each phase has 2 taps, one of
which may have a weight of 0. With a kernel for each phase, each has its own taps: the phases of a filter of
3 x 3 with stride 2 have 9 terms in all instead of 16.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from polygrad.codegen.kernels.division import canonical_info, canonical_sum, divide_loop
from polygrad.codegen.kernels.kernel_opt import KernelContext, KernelOpt, Kind, Proposal
from polygrad.codegen.lower.reductions import guarded_load
from polygrad.codegen.opts import cost
from polygrad.codegen.opts.split import substituted
from polygrad.errors import OptError
from polygrad.helpers import ceildiv
from polygrad.schedule.kernel_info import Sum, kernel_info, nest_info, rounds
from polygrad.schedule.kernels import KernelCall
from polygrad.uop.linear import linear_terms, sum_of
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.path_conditions import conjuncts
from polygrad.uop.rewrite import graph_rewrite
from polygrad.uop.symbolic import simplify, symbolic


def propose_phases(call: KernelCall, context: KernelContext) -> Iterator[Proposal]:
    """A large sum that skips terms, in polyphase form."""
    info = kernel_info(call.ast)
    if not info.has(Ops.MOD) or not info.is_sum_of(context.least(cost.MIN_COPIED_FOR)):
        return
    if _find_skipped(canonical_info(call.ast).ast) is None:
        return
    pays = info.is_sum_of(cost.MIN_COPIED_FOR)
    apart = context.target.workgroups is None and _saves_terms(call.ast)
    yield Proposal(KernelOpt(Kind.POLYPHASE, numbers=(1,) if apart else ()), pays)


def _saves_terms(ast: UOp) -> bool:
    """Whether a kernel for each phase computes far fewer terms than one kernel for all phases, and each has
    enough terms for a copy of an operand to pay."""
    one, each = (
        [rounds(kernel_info(kernel).ranges) for kernel in polyphase(ast, int(apart))]
        for apart in (False, True)
    )
    return min(each) >= cost.MIN_COPIED_FOR and sum(each) * cost.MIN_PHASE_GAIN <= sum(one)


def polyphase(ast: UOp, apart: int = 0) -> tuple[UOp, ...]:
    """The parts of a kernel in polyphase form. `apart`: whether phases of products with different numbers of
    taps have separate kernels.

    for y < 2*n: out[y] = sum((y + k) % 2 == 0 ? w[k] * x[(y + k) // 2] : 0 for k < 4)

    ->  for b < n, p < 2: out[2*b + p] = sum(w[2*q + p] * x[b + q + p] for q < 2)
    """
    info, _ = canonical_sum(ast)
    if _find_skipped(info.ast) is None:
        raise OptError("expected a sum of terms that are 0 unless a position is a multiple of a number")
    return tuple(_split_fully(info.ast, bool(apart)))


def _split_fully(kernel: UOp, apart: bool) -> list[UOp]:
    """A kernel in polyphase form along every axis on which terms are skipped. Where the period does not
    divide the axis, the last rounds are peeled off: a separate kernel stores that part of the output."""
    done, todo = [], [kernel]
    while todo:
        kernel = todo.pop()
        skipped = _find_skipped(kernel)
        if skipped is None:
            done.append(kernel)
            continue
        size = skipped.output.src[0].arg
        if size > skipped.period and size % skipped.period:
            todo += divide_loop(kernel, skipped.output, (size - size % skipped.period,))[::-1]
            continue
        phases: list[UOp | None] = [None]
        taps = skipped.taps.src[0].arg
        if apart and skipped.weights is not None and taps % skipped.period and taps > skipped.period:
            phases = [UOp.index(p) for p in range(min(size, skipped.period))]
        todo += [graph_rewrite(_divide(kernel, skipped, phase), symbolic) for phase in phases]
    return done


def _divide(kernel: UOp, skipped: _Skipped, only_phase: UOp | None) -> UOp:
    """The kernel with `output = period * block + phase` and `taps = period * k + q`, for all phases or for
    one. Each phase has terms for the one q with which `start + sign * taps` is a multiple of the period for
    any block and k."""
    output, taps, sign, period = skipped.output, skipped.taps, skipped.sign, skipped.period
    count = output.src[0].arg
    block = UOp.range(max(count // period, 1), output.arg.child(0))
    phase = UOp.range(min(count, period), output.arg.child(1)) if only_phase is None else only_phase
    start = simplify(skipped.start.substitute({output: phase}))
    first = (start // period) * period if sign < 0 else ((start + (period - 1)) // period) * period
    at = {output: block * period + phase}
    first_tap = simplify((start * -sign) % period)
    k = UOp.range(ceildiv(taps.src[0].arg - first_tap.vmin, period), taps.arg.child(0))
    tap = k * period + first_tap
    value = substituted(skipped.data, at | {taps: k * period + (first - start) * sign})
    weights = skipped.weights
    if first_tap.vmin < first_tap.vmax and taps.src[0].arg % period:
        if weights is None:
            value = _guard(value, tap < taps.src[0].arg)
        else:
            weights = _guard(weights, tap < taps.src[0].arg)
    nest, total = kernel.src[0], skipped.total
    if weights is not None:
        weights = substituted(weights, at | {taps: tap})
        value = value * weights if total.src[0].src[0] is skipped.data else weights * value
    loops = tuple(k if r is taps else r for r in total.src[1:])
    summed = UOp(Ops.REDUCE, total.dtype, (value, *loops), total.arg)
    store = substituted(nest.src[0], at | {total: summed})
    output_parts = (block, phase) if only_phase is None else (block,)
    outputs = tuple(x for r in nest.src[1:] for x in (output_parts if r is output else (r,)))
    return UOp.sink(UOp(Ops.END, nest.dtype, (store, *outputs)))


class _Skipped(NamedTuple):
    """A sum whose terms are 0 unless `(start + sign * taps) % period == 0`. `data`: the factor of each term
    with that condition; `weights`: the other factor, if there is one."""

    total: UOp
    output: UOp
    taps: UOp
    start: UOp
    sign: int
    period: int
    data: UOp
    weights: UOp | None


def _find_skipped(kernel: UOp) -> _Skipped | None:
    nest = nest_info(kernel.src[0])
    only = nest.only_sum
    if only is None or only.op is not Ops.ADD:
        return None
    total, outputs = only.node, nest.loops
    for data, weights in _factors(only):
        for condition in _conditions(data):
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
            over = [r for r in terms if r in outputs]
            if len(taps) == 1 and len(over) == 1 and len(terms) == 2:
                start = UOp.index(sum_of({over[0]: terms[over[0]]}, constant))
                return _Skipped(total, over[0], taps[0], start, terms[taps[0]], period.arg, data, weights)
    return None


def _factors(total: Sum) -> list[tuple[UOp, UOp | None]]:
    if total.factors is None:
        return [(total.value, None)]
    a, b = total.factors
    return [(a, b), (b, a)]


def _conditions(value: UOp) -> list[UOp]:
    """The conditions of `value`: if one of them fails, it is 0."""
    if value.op is Ops.WHERE and value.src[2].is_const and value.src[2].arg == 0:
        return conjuncts(value.src[0])
    if value.op is Ops.LOAD and len(value.src) > 1 and value.src[1].is_const and value.src[1].arg == 0:
        return conjuncts(value.src[0].src[2])
    return []


def _guard(value: UOp, condition: UOp) -> UOp:
    """condition ? value : 0, with the condition on its loads, too."""
    guarded = value.substitute({n: guarded_load(n, condition) for n in value.toposort() if n.op is Ops.LOAD})
    return guarded if value.op is Ops.LOAD else condition.where(guarded, UOp.const(value.dtype, 0))
