"""Opts: how a kernel is computed, as data. An Opt is a kind, the axes that it is about, and numbers.

    SIMD r1 16 4        axis r1 in vectors of 16 lanes, 4 of them unrolled
    UPCAST r0 6         an output axis in tiles of 6, held in registers
    UNROLL r2 4         a reduced axis, 4 elements a round
    SPLIT r0 8          a loop as two: over blocks (r0.0), and over the 8 elements of one (r0.1)
    REORDER r1 r0       these loops in this order, in the places that they have
    MERGE r0 r1         two neighbouring loops as one
    PARTITION r1 3 7    a loop as three: 0 to 3, 3 to 7, and the rest
    STAGE r2 LOAD 1     LOAD number 1 of the kernel copied to memory of the kernel's own, for all of r2;
                        STAGE r2 LOAD 1 3: to 3 buffers in turn, the next ones while one is read
    PARALLEL r0 4       a loop divided between 4 threads
    GLOBAL r0           a loop over output elements as a dimension of the grid of workgroups
    LOCAL r0 32         a loop as one over blocks (r0.0), and the 32 invocations of a workgroup (r0.1)
    MATMUL r0.1         a register tile of sums of DOTs, whose rows are r0.1, on matrix registers (matmul.py)
    TENSOR_CORE r0 r1 r2 0    rows, columns and terms of a product on core 0 (uop/tensor_cores.py)
    GROUP r2 64         a reduction shared by 64 invocations (r2.1), each of which has every 64th element

In a kernel with LOCAL axes a STAGE is in the workgroup's memory, filled by its invocations together.

`apply` is the only mechanism, a function of a kernel and an Opt; heuristics.py, a search or a user decide.
The words are those of TVM's and Halide's schedules. Opts as data that one function applies are tinygrad's
idea.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple

from polygrad.codegen.opts.loops import merge, reorder, split_loop, split_sum
from polygrad.codegen.opts.matmul import use_matrices
from polygrad.codegen.opts.parallel import parallelize
from polygrad.codegen.opts.partition import partition
from polygrad.codegen.opts.split import Tile, tile_range
from polygrad.codegen.opts.stage import stage
from polygrad.codegen.opts.tensor_core import use_tensor_core
from polygrad.codegen.opts.workgroups import bind_grid, group, split_local
from polygrad.errors import ArgumentError, OptError
from polygrad.uop.args import AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.parser import axis_id, is_digits
from polygrad.uop.printer import axis_name

AxisId = tuple[int, ...]


class OptKind(StrEnum):
    """What an Opt does: the module's docstring has an example of each."""

    SIMD = "SIMD"
    UPCAST = "UPCAST"
    UNROLL = "UNROLL"
    SPLIT = "SPLIT"
    REORDER = "REORDER"
    MERGE = "MERGE"
    PARTITION = "PARTITION"
    STAGE = "STAGE"
    MATMUL = "MATMUL"
    PARALLEL = "PARALLEL"
    GLOBAL = "GLOBAL"
    LOCAL = "LOCAL"
    GROUP = "GROUP"
    TENSOR_CORE = "TENSOR_CORE"


class Opt(NamedTuple):
    """One decision. `op`: of STAGE, the op of the value; the number says which of the kernel's, in toposort
    order."""

    kind: OptKind
    axes: tuple[AxisId, ...]
    numbers: tuple[int, ...] = ()
    op: Ops | None = None

    def __str__(self) -> str:
        op = [self.op.name] if self.op is not None else []
        return " ".join([self.kind.value, *map(axis_name, self.axes), *op, *map(str, self.numbers)])


# --- as text


def render_opts(opts: Iterable[Opt]) -> str:
    """Opts as `parse_opts` reads them: `SIMD r1 16 4, UPCAST r0 6`."""
    return ", ".join(map(str, opts))


def parse_opts(text: str) -> tuple[Opt, ...]:
    """The Opts of a text, separated by commas. Raises ArgumentError that names what is not understood."""
    return tuple(_parse(part.split()) for part in text.split(",") if part.strip())


def _parse(words: list[str]) -> Opt:
    if words[0] not in OptKind.__members__:
        kinds = ", ".join(OptKind.__members__)
        raise ArgumentError(f"opt {' '.join(words)!r}: expected one of {kinds}, got {words[0]!r}")
    axes: list[AxisId] = []
    numbers: list[int] = []
    op = None
    for word in words[1:]:
        if is_digits(word):
            numbers.append(int(word))
        elif word in Ops.__members__ and op is None and not numbers:
            op = Ops[word]
        elif word.startswith("r") and (axis := axis_id(word[1:])) and op is None and not numbers:
            axes.append(axis)
        else:
            raise ArgumentError(f"opt {' '.join(words)!r}: expected axes as r1.0, then numbers, got {word!r}")
    return Opt(OptKind[words[0]], tuple(axes), tuple(numbers), op)


# --- application


def apply(kernel: UOp, opt: Opt) -> UOp:
    """The kernel with one decision carried out. Raises OptError, which says why, where that cannot be."""
    axes, numbers = _ARITY[opt.kind]
    if not fits(len(opt.axes), axes) or not fits(len(opt.numbers), numbers):
        raise OptError(
            f"opt {str(opt)!r}: expected {axes} axes and {numbers} numbers, "
            f"got {len(opt.axes)} and {len(opt.numbers)}"
        )
    if (opt.op is not None) is not (opt.kind is OptKind.STAGE):
        raise OptError(f"opt {str(opt)!r}: expected the op of a value for STAGE, and for STAGE alone")
    try:
        return _APPLY[opt.kind](kernel, opt, *_ranges(kernel, opt))
    except OptError as error:
        raise OptError(f"opt {str(opt)!r}: {error}") from None


def apply_opts(kernel: UOp, opts: Iterable[Opt]) -> list[tuple[Opt, UOp]]:
    """Each decision and what it makes of the kernel, one after the other. Raises OptError, as `apply`
    does."""
    steps = []
    for opt in opts:
        kernel = apply(kernel, opt)
        steps.append((opt, kernel))
    return steps


def fits(count: int, expected: str) -> bool:
    """Whether there are as many as `2`, `2+` (2 or more) or `0 to 1` says."""
    if expected[-1] == "+":
        return count >= int(expected[:-1])
    smallest, _, greatest = expected.partition(" to ")
    return int(smallest) <= count <= int(greatest or smallest)


def _ranges(kernel: UOp, opt: Opt) -> list[UOp]:
    by_axis = {n.arg.id: n for n in kernel.toposort() if n.op is Ops.RANGE}
    axes = opt.axes
    for axis in axes:
        if axis not in by_axis:
            names = ", ".join(map(axis_name, sorted(by_axis)))
            raise OptError(f"expected an axis of the kernel ({names}), got {axis_name(axis)}")
        if not by_axis[axis].src[0].is_const and opt.kind not in _OF_ANY_SIZE:
            raise OptError(f"expected axes of constant size, got {axis_name(axis)}")
    return [by_axis[axis] for axis in axes]


def _tile(kernel: UOp, r: UOp, tile: Tile, kinds: tuple[AxisKind, ...]) -> UOp:
    if r.arg.kind not in kinds:
        expected = " or ".join(kind.name for kind in kinds if kind not in (AxisKind.GLOBAL, AxisKind.LOCAL))
        raise OptError(f"expected an axis of kind {expected}, got {r.arg.kind.name}")
    if r.arg.kind is AxisKind.LOCAL and any(n.op is Ops.REDUCE and r in n.src[1:] for n in kernel.toposort()):
        raise OptError(f"expected an axis of output elements, got {axis_name(r.arg.id)}")
    return tile_range(kernel, r, tile)


def _split(kernel: UOp, r: UOp, size: int) -> UOp:
    return split_sum(kernel, r, size) if r.arg.kind is AxisKind.REDUCE else split_loop(kernel, r, size)


_OUTPUT = (AxisKind.LOOP, AxisKind.GLOBAL, AxisKind.LOCAL)
_Mechanism = Callable[..., UOp]  # of a kernel, an Opt and the Opt's ranges

_APPLY: dict[OptKind, _Mechanism] = {
    OptKind.SIMD: lambda k, o, r: _tile(k, r, Tile(*o.numbers), (*_OUTPUT, AxisKind.REDUCE)),
    OptKind.UPCAST: lambda k, o, r: _tile(k, r, Tile(1, *o.numbers), _OUTPUT),
    OptKind.UNROLL: lambda k, o, r: _tile(k, r, Tile(1, *o.numbers), (AxisKind.REDUCE,)),
    OptKind.SPLIT: lambda k, o, r: _split(k, r, *o.numbers),
    OptKind.REORDER: lambda k, o, *ranges: reorder(k, list(ranges)),
    OptKind.MERGE: lambda k, o, outer, inner: merge(k, outer, inner),
    OptKind.PARTITION: lambda k, o, r: partition(k, r, o.numbers),
    OptKind.STAGE: lambda k, o, *ranges: stage(k, list(ranges), o.op, *o.numbers),
    OptKind.MATMUL: lambda k, o, r: use_matrices(k, r),
    OptKind.PARALLEL: lambda k, o, *ranges: parallelize(k, list(ranges), *o.numbers),
    OptKind.GLOBAL: lambda k, o, r: bind_grid(k, r),
    OptKind.LOCAL: lambda k, o, r: split_local(k, r, *o.numbers),
    OptKind.GROUP: lambda k, o, r: group(k, r, *o.numbers),
    OptKind.TENSOR_CORE: lambda k, o, m, n, r: use_tensor_core(k, m, n, r, *o.numbers),
}
_OF_ANY_SIZE = frozenset({OptKind.GLOBAL, OptKind.LOCAL, OptKind.GROUP, OptKind.SPLIT, OptKind.STAGE})
_ARITY = {  # how many axes and numbers
    OptKind.SIMD: ("1", "2"),
    OptKind.UPCAST: ("1", "1"),
    OptKind.UNROLL: ("1", "1"),
    OptKind.SPLIT: ("1", "1"),
    OptKind.REORDER: ("2+", "0"),
    OptKind.MERGE: ("2", "0"),
    OptKind.PARTITION: ("1", "1+"),
    OptKind.STAGE: ("0+", "1 to 2"),
    OptKind.MATMUL: ("1", "0"),
    OptKind.PARALLEL: ("1+", "1"),
    OptKind.GLOBAL: ("1", "0"),
    OptKind.LOCAL: ("1", "1"),
    OptKind.GROUP: ("1", "1"),
    OptKind.TENSOR_CORE: ("3", "1"),
}
