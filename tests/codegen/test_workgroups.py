"""GLOBAL, LOCAL and GROUP: what they refuse, and what becomes of them. That kernels compute the same with
them is tested in tests/gpu_emulation."""

from __future__ import annotations

import functools
import itertools
import re
from dataclasses import replace

import pytest
from uop.evaluation import value_of

from polygrad.codegen.lower.passes import lower
from polygrad.codegen.lower.workgroup_dimensions import Grid, grid_of, workgroup_of
from polygrad.codegen.opts.opt import apply_opts, parse_opts
from polygrad.codegen.target import Target, Workgroups
from polygrad.engine.launch_grid import launch_grid
from polygrad.errors import OptError
from polygrad.renderer.cstyle.cuda import CUDABuilder
from polygrad.renderer.emit import emit
from polygrad.runtime.grid import grid_size
from polygrad.tensor.variable import Variable
from polygrad.uop.args import AddrSpace, Axis, AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.parser import parse
from polygrad.uop.printer import render
from tests.codegen import grid_kernels
from tests.codegen.grid_kernels import asts_of, data

LIMITS = Workgroups()
GPU = Target("GPU", simd_bytes=16, index_bits=32, workgroups=LIMITS)
TILES = "GLOBAL r0, GLOBAL r1, LOCAL r0 16, LOCAL r1 16, SPLIT r2 8, STAGE r2.1 LOAD 0, STAGE r2.1 LOAD 2"


def kernel_of(tensor):
    return grid_kernels.kernel_of(tensor, GPU)


def linear_of(tensor, opts=None, target=GPU):
    return grid_kernels.linear_of(tensor, target, opts)


def product():
    return data(40, 20) @ data(20, 48)


def in_place():
    x = data(10)
    return x.assign(x + 1)


def prefix():
    return data(100).shrink(((0, Variable("n", 1, 100).bind(7)),))


# --- what is refused


@pytest.mark.parametrize(
    ("tensor", "opts", "why"),
    [
        (lambda: data(8, 4).sum(1), "GLOBAL r1", "expected a loop over output elements, got r1, a REDUCE"),
        (lambda: data(8), "GLOBAL r0, GLOBAL r0", "expected a loop, got an axis of kind GLOBAL"),
        (lambda: data(8), "LOCAL r0 9", "expected 2 to 8 invocations, got 9"),
        (lambda: data(8), "LOCAL r0 1", "expected 2 to 8 invocations, got 1"),
        (
            lambda: data(8),
            "LOCAL r0 4, LOCAL r0.1 2",
            "expected a loop or an axis of the grid, got one of kind",
        ),
        (in_place, "LOCAL r0 4", "expected a number that divides 10, as the kernel works in place, got 4"),
        (in_place, "GLOBAL r0, UPCAST r0 4", "expected a tile that divides 10, as the kernel works in place"),
        (
            lambda: data(10),
            "UPCAST r0 4, GLOBAL r0.0",
            "expected a loop that writes each element once: bind it",
        ),
        (
            lambda: data(10),
            "UPCAST r0 4, LOCAL r0.0 2",
            "expected a loop that writes each element once: bind it",
        ),
        (
            lambda: data(10),
            "PARTITION r0 4, LOCAL r0.3 4",
            "expected a kernel of one output nest: bind a loop",
        ),
        (
            product,
            "LOCAL r1 8, STAGE r2 LOAD 0, LOCAL r0 8",
            "expected an axis that no memory is filled inside",
        ),
        (
            product,
            "LOCAL r1 8, STAGE r2 LOAD 0, UPCAST r2.4 3",
            "expected a tile that divides 20, as a workgroup",
        ),
        (
            lambda: data(8, 10),
            "UPCAST r1 4, LOCAL r0 8, PARTITION r1.0 1",
            "expected a loop that writes each element once, as axes are bound",
        ),
        (lambda: data(10), "GLOBAL r0, SIMD r0 4 1", "expected lanes that are all stored or none"),
        (lambda: data(10), "LOCAL r0 8, SIMD r0.1 4 1", "expected lanes that are all stored or none"),
        (lambda: data(8, 4).sum(1), "GROUP r0 4", "expected a reduced loop, got an axis of kind LOOP"),
        (lambda: data(8, 4).sum(1), "GROUP r1 3", "expected a power of 2 from 2 to 4, got 3"),
        (lambda: data(8, 4).sum(1), "GROUP r1 8", "expected a power of 2 from 2 to 4, got 8"),
        (
            lambda: data(8, 8).sum(1),
            "GROUP r1 4, UPCAST r1.1 2",
            "expected an axis of output elements, got r1.1",
        ),
        (
            lambda: data(8, 8).sum(1),
            "SPLIT r1 8",
            "expected less than the loop's size, 8, and at least 2, got 8",
        ),
        (product, "LOCAL r0 8, STAGE r0.1 LOAD 0", "expected axes that are bound to no grid, got r0.1"),
    ],
)
def test_opts_that_do_not_apply(tensor, opts, why):
    with pytest.raises(OptError) as raised:
        apply_opts(kernel_of(tensor() if tensor is in_place else tensor() + 0), parse_opts(opts))
    assert why in str(raised.value)


def test_a_target_without_workgroups_has_no_grid():
    with pytest.raises(OptError, match="opt GLOBAL: expected a target with workgroups, got PLAIN"):
        linear_of(data(8) + 1, "GLOBAL r0", Target("PLAIN"))


def test_more_invocations_than_a_workgroup_has():
    with pytest.raises(OptError, match=r"at most 256 invocations in 3 dimensions, .* got \[32, 16\]"):
        linear_of(data(64, 64) + data(64).reshape(64, 1), "LOCAL r0 16, LOCAL r1 32")


def test_more_shared_memory_than_a_workgroup_has():
    small = Target("GPU", simd_bytes=16, workgroups=Workgroups(shared_bytes=1000))
    with pytest.raises(OptError, match="expected at most 1000 bytes of memory in a workgroup, got 1024"):
        linear_of(product(), TILES, small)
    linear_of(product(), TILES, Target("GPU", simd_bytes=16, workgroups=Workgroups(shared_bytes=1024)))


def test_no_memory_in_a_loop_that_invocations_go_round_differently_often():
    # of 10 terms the invocations 0 and 1 of a group of 4 have three, the others two
    with pytest.raises(OptError, match=r"expected loops that all of the memory goes round, got r1\.0"):
        linear_of(data(16, 10, 8).sum((1, 2)), "LOCAL r0 4, GROUP r1 4, STAGE r2 LOAD 0")
    linear_of(data(16, 12, 8).sum((1, 2)), "LOCAL r0 4, GROUP r1 4, STAGE r2 LOAD 0")


def test_no_group_in_a_loop_that_invocations_go_round_differently_often():
    nested = (data(16, 10, 8).sum(2) * 2).exp().sum(1)
    with pytest.raises(OptError, match="expected barriers in loops that all invocations go round equally"):
        linear_of(nested, "GLOBAL r0, GROUP r1 4, GROUP r2 4")


def test_no_memory_whose_elements_take_a_workgroup_each():
    with pytest.raises(OptError, match="expected memory whose elements invocations compute each for itself"):
        linear_of(data(12, 8).sum(1), "UPCAST r0 2, GROUP r1 4, STAGE r0.1 REDUCE 0")


def test_memory_of_a_workgroup_comes_after_its_axes():
    with pytest.raises(OptError, match="expected memory of a workgroup: STAGE comes after LOCAL"):
        linear_of(product(), "STAGE r2 LOAD 0, LOCAL r1 4")


# --- grids


def grid_and_workgroup(linear):
    return tuple(n.arg for n in grid_of(linear)), workgroup_of(linear)


def test_the_axis_along_memory_is_x():
    linear = linear_of(data(100, 60) + data(60), "GLOBAL r0, GLOBAL r1, LOCAL r0 4, LOCAL r1 32")
    assert grid_and_workgroup(linear) == ((2, 25, 1), (32, 4, 1))


def test_four_axes_are_folded_into_one():
    linear = linear_of(data(2, 3, 4, 5).permute(3, 1, 0, 2) + 1, "GLOBAL r0, GLOBAL r1, GLOBAL r2, GLOBAL r3")
    assert grid_and_workgroup(linear) == ((120, 1, 1), (1, 1, 1))


def test_more_workgroups_than_a_dimension_has():
    few = Target("GPU", workgroups=Workgroups(count=1 << 11))
    linear = linear_of(data(1 << 20) + 1, "GLOBAL r0", few)
    assert grid_and_workgroup(linear) == ((1 << 11, 1 << 9, 1), (1, 1, 1))
    prime = linear_of(
        data(2_097_143) + 1, "GLOBAL r0", few
    )  # a row of the grid has less to do: stores are gated
    assert grid_and_workgroup(prime)[0] == (1 << 11, 1 << 10, 1)
    assert any(n.op is Ops.STORE and len(n.src[0].src) == 3 for n in prime)
    with pytest.raises(OptError, match="expected a grid of at most 4194304 workgroups, got 16777216"):
        linear_of(data(1 << 24) + 1, "GLOBAL r0", few)


@pytest.mark.parametrize("sizes", [(20,), (16, 2), (3, 2, 5, 2)])
def test_a_folded_grid_has_every_position_once(sizes):
    axes = [UOp.range(n, Axis((i,), AxisKind.GLOBAL)) for i, n in enumerate(sizes)]
    grid = Grid(list(functools.reduce(UOp.__add__, axes).toposort()), Workgroups(count=8))
    x, y = (n for n in UOp.sink(*grid.numbers).toposort() if n.op is Ops.SPECIAL)
    positions = []
    for at in itertools.product(range(x.src[0].arg), range(y.src[0].arg)):
        values = dict(zip((x, y), at, strict=True))
        if grid.gate is None or value_of(grid.gate, values):
            positions.append(tuple([value_of(n, values) for n in grid.numbers]))
    folded = [members[0].src[0].arg for members in grid.axes]
    assert sorted(positions) == list(itertools.product(*map(range, folded)))


@pytest.mark.parametrize("n", [1, 7, 8, 9, 64, 100])
def test_a_grid_of_a_variable(n):
    x, y, z = launch_grid(linear_of(prefix() + 1, "GLOBAL r0, LOCAL r0 8"))
    assert grid_size(x, {"n": n}) == -(-n // 8) and (y, z) == (1, 1)


# --- barriers and memory


def barriers_of(linear):
    return [n for n in linear if n.op is Ops.BARRIER]


def test_stages_of_one_loop_share_its_barriers():
    linear = linear_of(product(), TILES)
    assert len(barriers_of(linear)) == 2
    spaces = [n.arg.space for n in linear if n.op is Ops.PARAM]
    assert spaces.count(AddrSpace.SHARED) == 2


def test_a_group_of_64_has_a_barrier_for_each_round_of_its_tree_and_one_before():
    linear = linear_of(data(4, 128).sum(1), "GLOBAL r0, GROUP r1 64")
    assert len(barriers_of(linear)) == 7


@pytest.mark.parametrize(
    ("first", "second"), [((64, 1, 16, 1), (1, 3, 16, 64)), ((64, 3, 16, 1), (1, 1, 16, 64))]
)
@pytest.mark.parametrize("operands", ["STAGE r3.1 LOAD 0 2", "STAGE r3.1 LOAD 0 2, STAGE r3.1 LOAD 2 2"])
def test_buffers_are_filled_anew_in_each_round_of_the_loops_outside(first, second, operands):
    """Also those of an operand that does not depend on r2."""
    opts = f"GLOBAL r0, GLOBAL r1, LOCAL r0 16, LOCAL r1 16, SPLIT r3 4, {operands}"
    target = replace(GPU, workgroups=replace(LIMITS, copies=True))
    around, filled = [], []
    for n in linear_of((data(*first) * data(*second)).sum((1, 2)), opts, target):
        if n.op is Ops.RANGE:
            around.append(n.arg.id)
        elif n.op is Ops.END:
            around.pop()
        elif n.op is Ops.COMMIT:
            filled.append(list(around))
    assert filled == [[(2,)], [(2,), (3, 0)]]  # one buffer ahead, and the next one in each round of r3.0


@pytest.mark.parametrize(
    ("tensor", "sizes"),
    [
        (lambda: data(64, 64).T @ data(64, 64), (16, 16)),
        (lambda: data(64, 64) @ data(64, 64), (4, 16)),
        (lambda: data(64, 64) @ data(64, 64).T, (4, 4)),
    ],
)
def test_copies_of_several_elements_go_to_neighbours_in_memory(tensor, sizes):
    """Where neighbours of an operand lie apart in the workgroup's memory, invocations copy one each."""
    operands = "STAGE r2.1 LOAD 0 2, STAGE r2.1 LOAD 2 2"
    opts = f"GLOBAL r0, GLOBAL r1, LOCAL r0 16, LOCAL r1 16, SPLIT r2 8, {operands}"
    target = replace(GPU, workgroups=replace(LIMITS, copies=True))
    text = str(emit("k", linear_of(tensor(), opts, target), CUDABuilder(target, aligned=True)))
    found = re.findall(r"copy_async<(\d+)>\(shared(\d)", text)
    # for each operand, of the first round and of later ones
    assert found == [(str(size), str(i)) for i, size in enumerate(sizes)] * 2


# --- reductions in registers

EXCHANGE = Target(
    "GPU", simd_bytes=16, index_bits=32, workgroups=Workgroups(subgroup=32, shuffle_bytes=4), float64=False
)


def memories_of(linear):
    return [n for n in linear if n.op is Ops.PARAM and n.arg.space is AddrSpace.SHARED]


@pytest.mark.parametrize(
    ("tensor", "opts", "masks", "barriers"),
    [
        (lambda: data(4, 128).sum(1), "GLOBAL r0, GROUP r1 32", [16, 8, 4, 2, 1], 0),
        (lambda: data(4, 128).sum(1), "GLOBAL r0, LOCAL r0 4, GROUP r1 8", [4, 2, 1], 0),
        (lambda: data(4, 256).sum(1), "GLOBAL r0, GROUP r1 128", [16, 8, 4, 2, 1], 1),
        # 32 columns lie along x: the rows' parts are in other subgroups
        (lambda: data(64, 32).sum(0), "GLOBAL r0, LOCAL r0 32, GROUP r1 8", [], 1),
        # 4 columns do: 8 rows are in one subgroup
        (lambda: data(64, 4).sum(0), "GLOBAL r0, LOCAL r0 4, GROUP r1 32", [16, 8, 4], 1),
        # of a number of columns that is no power of 2, none
        (lambda: data(64, 12).sum(0), "GLOBAL r0, LOCAL r0 12, GROUP r1 8", [], 1),
        # half a subgroup: not all of the lanes that would exchange are there
        (lambda: data(4, 128).sum(1), "GLOBAL r0, GROUP r1 16", [], 5),
        # what is no word of 32 bits
        (lambda: data(4, 128, dtype="int8").max(1), "GLOBAL r0, GROUP r1 32", [], 6),
        (lambda: data(4, 128, dtype="float64").sum(1), "GLOBAL r0, GROUP r1 32", [], 6),
        (lambda: data(8, 64).softmax(1), None, [16, 8, 4, 2, 1] * 2, 0),
    ],
)
def test_what_subgroups_exchange(tensor, opts, masks, barriers):
    linear = linear_of(tensor(), opts, EXCHANGE)
    assert [n.arg for n in linear if n.op is Ops.SHUFFLE_XOR] == masks
    assert len(barriers_of(linear)) == barriers and bool(memories_of(linear)) == bool(barriers)
    assert render(parse(render(linear))) == render(linear)


def test_no_exchange_in_a_loop_that_invocations_go_round_differently_often():
    nested = (data(16, 10, 32).sum(2) * 2).exp().sum(1)
    with pytest.raises(OptError, match="expected barriers in loops that all invocations go round equally"):
        linear_of(nested, "GLOBAL r0, GROUP r1 4, GROUP r2 32", EXCHANGE)


def test_a_target_that_exchanges_nothing_has_the_tree():
    linear = linear_of(data(4, 128).sum(1), "GLOBAL r0, GROUP r1 32")
    assert not any(n.op is Ops.SHUFFLE_XOR for n in linear) and len(barriers_of(linear)) == 6


# --- the heuristics' kernels


def test_passes_over_a_row_are_the_same_invocations():
    linear = linear_of(data(8, 64).softmax(1))
    assert workgroup_of(linear) == (32, 1, 1)


def test_barriers_are_outside_of_what_invocations_do_differently():
    """Of what the heuristics choose: between a loop and its END no size depends on an invocation."""
    for tensor in (product(), data(100, 70).softmax(1), data(33, 100).sum(1), data(300, 9).max(0)):
        around = []
        for n in linear_of(tensor):
            if n.op is Ops.RANGE and n.arg.kind in (AxisKind.LOOP, AxisKind.REDUCE):
                around.append(n)
            elif n.op is Ops.END:
                around.remove(n.src[1])
            elif n.op is Ops.BARRIER:
                specials = [s for r in around for s in r.src[0].toposort() if s.op is Ops.SPECIAL]
                assert not any(s.arg.kind is AxisKind.LOCAL for s in specials)


def test_unoptimised_kernels_are_one_invocation():
    (ast,) = asts_of(product())
    assert grid_and_workgroup(lower(ast, GPU, optimized=False)) == ((1, 1, 1), (1, 1, 1))
