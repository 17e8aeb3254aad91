"""Peeled loops: rounds of a fill that check lanes are code of their own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from polygrad import Context, Tensor
from polygrad.codegen.lower.peeling import peel_fills
from polygrad.dtype import dtypes
from polygrad.uop.args import AddrSpace, Axis, AxisKind, Param, Var
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.spec import verify

LANES = 4


def range_of(size: int | UOp, *axis: int, kind: AxisKind = AxisKind.LOOP) -> UOp:
    return UOp.range(size, Axis(axis, kind))


def filled(blocks: int | UOp, check: Callable[[UOp, UOp], UOp]) -> UOp:
    """A kernel that fills a row of blocks of lanes, whose elements `check(block, position)` guards."""
    row, block, lane = range_of(16, 0), range_of(blocks, 1, 0), range_of(LANES, 1, 1, kind=AxisKind.LANE)
    position = block * LANES + lane
    x = UOp(Ops.PARAM, dtypes.float32, (), Param(1, 1 << 12))
    memory = UOp(Ops.PARAM, dtypes.float32, (), Param(0, 64, AddrSpace.LOCAL))
    place = UOp(Ops.INDEX, dtypes.float32, (x, row * 64 + position, check(block, position)))
    value = UOp(Ops.LOAD, dtypes.float32, (place, UOp.const(dtypes.float32, 0.0)))
    store = UOp(Ops.STORE, dtypes.void, (UOp(Ops.INDEX, dtypes.float32, (memory, position)), value))
    after = UOp(Ops.AFTER, dtypes.float32, (memory, store.end(block)))
    out = UOp(Ops.PARAM, dtypes.float32, (), Param(0, 16))
    first = UOp(Ops.LOAD, dtypes.float32, (UOp(Ops.INDEX, dtypes.float32, (after, UOp.index(0))),))
    return UOp.sink(UOp(Ops.STORE, dtypes.void, (UOp(Ops.INDEX, dtypes.float32, (out, row)), first)).end(row))


def parts(kernel: UOp) -> list[tuple[int, bool]]:
    """The rounds of each part of the fill, and whether it checks its loads."""
    peeled = peel_fills(kernel)
    verify(peeled.toposort(), "kernel")
    (after,) = [n for n in peeled.toposort() if n.op is Ops.AFTER]
    found = []
    for part in after.src[1:]:
        loads = [n for n in part.toposort() if n.op is Ops.LOAD]
        rounds = part.src[1].src[0].arg if part.op is Ops.END else 1
        found.append((rounds, any(len(n.src[0].src) > 2 for n in loads)))
    return found


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        (lambda block, position: UOp.index(0) < position, [(1, True), (7, False)]),
        (lambda block, position: position < 8 * LANES - 1, [(7, False), (1, True)]),
        (
            lambda block, position: (UOp.index(1) < position) & (position < 8 * LANES - 2),
            [(1, True), (6, False), (1, True)],
        ),
        (lambda block, position: UOp.index(5) < position, [(8, True)]),  # of the second block
        (lambda block, position: position % 3 < 2, [(8, True)]),
        (lambda block, position: UOp.index(0) < block, [(8, True)]),  # the same for all lanes
    ],
)
def test_first_and_last_rounds_are_peeled_where_they_alone_check_lanes(
    check: Callable[[UOp, UOp], UOp], expected: list[tuple[int, bool]]
) -> None:
    assert parts(filled(8, check)) == expected


def test_two_rounds_are_two_parts_without_a_loop() -> None:
    assert parts(filled(2, lambda block, position: UOp.index(0) < position)) == [(1, True), (1, False)]


def test_a_loop_of_an_unknown_size_is_left_whole() -> None:
    n = UOp(Ops.DEFINE_VAR, dtypes.index, (), Var("n", 2, 8))
    kernel = filled(n, lambda block, position: UOp.index(0) < position)
    assert peel_fills(kernel) is kernel


@pytest.mark.parametrize("size", [9, 14, 16, 31, 56, 100])
@pytest.mark.parametrize(("window", "padding"), [(3, 1), (5, 2)])
def test_padded_windows_of_any_width_are_exact(device: str, size: int, window: int, padding: int) -> None:
    x = np.random.default_rng(size).integers(-9, 9, (4, 64, 24, size)).astype(np.float32)
    ends = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
    padded = np.pad(x, ends, constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (window, window), (2, 3))
    with Context(SPEC=1):
        got = Tensor(x, device=device).max_pool2d((window, window), 1, 1, padding)
    np.testing.assert_array_equal(got.numpy(), windows.max((-2, -1)))
