"""The steps of a search for Opts: a sequence with one Opt more, one Opt less, or one with other numbers.

engine/search.py times them on a device. A kind's place in a sequence is fixed: loops, then tiles and
invocations, then memory of the kernel's own, then threads.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from polygrad.codegen.opts import cost
from polygrad.codegen.opts.matmul import row_axis_of
from polygrad.codegen.opts.opt import Opt, OptKind, apply
from polygrad.codegen.opts.partition import changes
from polygrad.codegen.opts.split import Tile
from polygrad.codegen.opts.stage import values_of
from polygrad.codegen.opts.tensor_core import efficiency, product_of
from polygrad.codegen.opts.tile import is_tile
from polygrad.codegen.target import Target
from polygrad.errors import OptError
from polygrad.uop.args import AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.tensor_cores import TENSOR_CORES

Opts = tuple[Opt, ...]

_PLACE = {
    OptKind.MERGE: 0,
    OptKind.PARTITION: 1,
    OptKind.GLOBAL: 1,
    OptKind.TENSOR_CORE: 2,
    OptKind.SIMD: 3,
    OptKind.UPCAST: 3,
    OptKind.UNROLL: 3,
    OptKind.LOCAL: 3,
    OptKind.GROUP: 3,
    OptKind.SPLIT: 4,
    OptKind.STAGE: 5,
    OptKind.REORDER: 6,
    OptKind.MATMUL: 6,
    OptKind.PARALLEL: 7,
}
_UNROLLS = (2, 3, 4, 6, 8, 12)
_VECTORS = (1, 2, 3, 4)
_BLOCKS = (2, 4, 8, 16, 32)
_DEPTHS = (1, 2, 3, 4)
_INVOCATIONS = (2, 4, 8, 16, 32, 64, 128, 256)


def neighbours(kernel: UOp, opts: Opts, target: Target) -> Iterator[tuple[Opts, UOp]]:
    """Sequences of Opts one step from `opts`, and the kernel that each makes."""
    prefixes = [kernel]
    for opt in opts:
        prefixes.append(apply(prefixes[-1], opt))
    for i, before in enumerate(prefixes):
        if i < len(opts):
            yield from _apply_tail(before, opts[:i], opts[i + 1 :])
            for other in _other_numbers(before, opts[i], target):
                yield from _apply_tail(before, (*opts[:i], other), opts[i + 1 :], start=i)
        low = _PLACE[opts[i - 1].kind] if i else 0
        high = _PLACE[opts[i].kind] if i < len(opts) else max(_PLACE.values())
        for action in actions(before, target):
            place = _PLACE[action.kind]
            # after all Opts of the same place, so that every sequence is made once
            if low <= place < high or (place == high and i == len(opts)):
                yield from _apply_tail(before, (*opts[:i], action), opts[i:], start=i)


def _apply_tail(kernel: UOp, head: Opts, tail: Opts, start: int | None = None) -> Iterator[tuple[Opts, UOp]]:
    """The sequence `head` and `tail` if `tail` applies. `kernel` has `head` carried out, up to `start`."""
    done = (*head, *tail)
    try:
        for opt in done[len(head) if start is None else start :]:
            kernel = apply(kernel, opt)
    except OptError:
        return
    yield done, kernel


def _other_numbers(kernel: UOp, opt: Opt, target: Target) -> list[Opt]:
    """The Opts that differ from one in numbers only."""
    if opt.kind is OptKind.STAGE:
        limits = target.workgroups
        depths = _DEPTHS if limits is not None and limits.copies else (1,)
        stages = [opt._replace(numbers=(opt.numbers[0], *((d,) if d > 1 else ()))) for d in depths]
        return [stage for stage in stages if stage != opt]
    return [a for a in actions(kernel, target) if a[:2] == opt[:2] and a != opt]


def actions(kernel: UOp, target: Target) -> list[Opt]:
    """The Opts that may apply to a kernel in its present form."""
    out: list[Opt] = []
    for nest in kernel.src:
        if nest.op is Ops.END:
            out += _loops(nest)
            out += _tiles(nest, target)
        if target.workgroups is not None:
            out += _workgroups(nest, target.workgroups.invocations)
            out += _tensor_cores(nest, target)
    out += _stages(kernel)
    if target.matrices:
        rows = dict.fromkeys(row_axis_of(total) for total in values_of(kernel, Ops.REDUCE))
        out += [Opt(OptKind.MATMUL, (r.arg.id,)) for r in rows if r is not None]
    if target.threads > 1 and all(n.op is Ops.END for n in kernel.src):
        choices = [[r for r in n.src[1:] if r.src[0].is_const][:2] for n in kernel.src]
        for ranges in itertools.islice(itertools.product(*choices), 4):
            out.append(Opt(OptKind.PARALLEL, tuple(r.arg.id for r in ranges), (target.threads,)))
    return out


def _loops(nest: UOp) -> Iterator[Opt]:
    loops = [r for r in nest.src[1:] if r.src[0].is_const]
    for total in nest.toposort():
        for a, b in itertools.pairwise(total.src[1:]) if total.op is Ops.REDUCE else ():
            yield Opt(OptKind.MERGE, (a.arg.id, b.arg.id))
    for a, b in itertools.pairwise(loops):
        yield Opt(OptKind.MERGE, (a.arg.id, b.arg.id))
        yield Opt(OptKind.REORDER, (b.arg.id, a.arg.id))
    for r in loops:
        if bounds := changes(nest, r):
            yield Opt(OptKind.PARTITION, (r.arg.id,), bounds)
        for size in _BLOCKS:
            if r.src[0].arg % size == 0 and size < r.src[0].arg:
                yield Opt(OptKind.SPLIT, (r.arg.id,), (size,))


def _tiles(nest: UOp, target: Target) -> Iterator[Opt]:
    lanes = cost.native_lanes(target)
    for r in nest.toposort():
        if r.op is not Ops.RANGE or is_tile(r) or not r.src[0].is_const:
            continue
        size = r.src[0].arg
        for vectors in _VECTORS:
            if 1 < lanes and Tile(lanes, vectors).fits(size):
                yield Opt(OptKind.SIMD, (r.arg.id,), (lanes, vectors))
        kind = OptKind.UNROLL if r.arg.kind is AxisKind.REDUCE else OptKind.UPCAST
        for count in _UNROLLS:
            if count <= size:
                yield Opt(kind, (r.arg.id,), (count,))


def _workgroups(nest: UOp, max_invocations: int) -> Iterator[Opt]:
    for r in nest.src[1:] if nest.op is Ops.END else ():
        if r.arg.kind is AxisKind.LOOP:
            yield Opt(OptKind.GLOBAL, (r.arg.id,))
        if r.arg.kind in (AxisKind.LOOP, AxisKind.GLOBAL):
            for count in _INVOCATIONS:
                if count <= min(max_invocations, r.src[0].vmax):
                    yield Opt(OptKind.LOCAL, (r.arg.id,), (count,))
    for r in nest.toposort():
        if r.op is Ops.RANGE and r.arg.kind is AxisKind.REDUCE:
            for count in _INVOCATIONS:
                if count <= min(max_invocations, r.src[0].vmax):
                    yield Opt(OptKind.GROUP, (r.arg.id,), (count,))


def _tensor_cores(nest: UOp, target: Target) -> Iterator[Opt]:
    loops = nest.src[1:] if nest.op is Ops.END else ()
    totals = [n for n in nest.toposort() if n.op is Ops.REDUCE] if target.tensor_cores else []
    for total in totals:
        for core in target.tensor_cores:
            if core.in_memory:  # two STAGEs have to come with it, as those that heuristics give do
                continue
            for rows, columns in itertools.permutations(loops, 2):
                for k in total.src[1:]:
                    if product_of(total, rows, columns, k, core) and efficiency(rows, columns, k, core):
                        axes = (rows.arg.id, columns.arg.id, k.arg.id)
                        yield Opt(OptKind.TENSOR_CORE, axes, (TENSOR_CORES.index(core),))


def _stages(kernel: UOp) -> Iterator[Opt]:
    for total in values_of(kernel, Ops.REDUCE):
        unrolled = [r for r in total.ranges if r.arg.kind is AxisKind.UPCAST]
        for r in sorted(unrolled, key=lambda r: r.arg):
            yield _stage(kernel, total, (r,))
        loops = tuple(r for r in total.src[1:] if not is_tile(r) and r.src[0].is_const)
        for value in total.src[0].toposort():
            if loops and (value.op is Ops.LOAD or value.op in GroupOp.Transcendental):
                if value.ranges.issuperset(loops):
                    yield _stage(kernel, value, loops)


def _stage(kernel: UOp, value: UOp, axes: tuple[UOp, ...]) -> Opt:
    number = values_of(kernel, value.op).index(value)
    return Opt(OptKind.STAGE, tuple(r.arg.id for r in axes), (number,), value.op)
