"""The values that an index has in each lane and place of a tile."""

from __future__ import annotations

from polygrad.dtype import dtypes
from polygrad.renderer.tile_values import tile_constants
from polygrad.uop.args import Axis, AxisKind, Param
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

LANE = UOp.range(2, Axis((0, 2), AxisKind.LANE))
TILE = UOp.range(3, Axis((1, 1), AxisKind.UPCAST))
REDUCED = UOp.range(2, Axis((2, 1), AxisKind.UNROLL))


def test_an_index_of_tile_ranges_has_a_value_for_each_place_and_lane():
    assert tile_constants(TILE * 10 + LANE * 3, (TILE,), 2) == [[0, 3], [10, 13], [20, 23]]


def test_an_index_of_what_is_loaded_has_none():
    memory = UOp(Ops.PARAM, dtypes.int32, (), Param(0, 8))
    loaded = UOp(Ops.LOAD, dtypes.int32, (UOp(Ops.INDEX, dtypes.int32, (memory, LANE)),))
    assert tile_constants(loaded.cast(dtypes.index) + LANE, (), 2) is None


def test_an_index_that_is_a_sum_over_an_unrolled_range_has_none():
    total = UOp(Ops.REDUCE, dtypes.index, (REDUCED * LANE, REDUCED), Ops.ADD)
    assert tile_constants(total + TILE, (TILE,), 2) is None
