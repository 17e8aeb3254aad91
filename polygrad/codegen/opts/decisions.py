"""What the places that decide about Opts share: heuristics.py and gpu_heuristics.py."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator

from polygrad.codegen.opts.loops import mergeable
from polygrad.codegen.opts.opt import Opt, OptKind
from polygrad.codegen.opts.stage import values_of
from polygrad.codegen.opts.tile import loops_of
from polygrad.codegen.target import Target
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

Decisions = Generator[Opt, UOp, None]  # yields an Opt, is sent the kernel that it made
Decide = Callable[[UOp, Target], Decisions]


def opt_of(kind: OptKind, *ranges: UOp, numbers: tuple[int, ...] = ()) -> Opt:
    """An Opt about ranges of a kernel."""
    return Opt(kind, tuple(r.arg.id for r in ranges), numbers)


def stage_of(kernel: UOp, value: UOp, axes: list[UOp], depth: int = 1) -> Opt:
    """The STAGE of a value of a kernel, in `depth` buffers, but no more than the innermost loop around the
    memory has rounds."""
    number = values_of(kernel, value.op).index(value)
    loop = max(loops_of(value).difference(axes), key=lambda r: r.arg, default=None)
    depth = min(depth, loop.src[0].arg) if loop is not None and loop.src[0].is_const else 1
    numbers = (number,) if depth == 1 else (number, depth)
    return Opt(OptKind.STAGE, tuple(r.arg.id for r in axes), numbers, value.op)


def merges(kernel: UOp, target: Target) -> Decisions:
    """Neighbouring loops of a kernel of one output nest, as long as they merge."""
    while len(kernel.src) == 1 and kernel.src[0].op is Ops.END:
        for outer, inner in itertools.pairwise(kernel.src[0].src[1:]):
            if outer.src[0].is_const and inner.src[0].is_const and mergeable(kernel.src[0], outer, inner):
                kernel = yield opt_of(OptKind.MERGE, outer, inner)
                break
        else:
            return
