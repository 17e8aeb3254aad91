"""The INTERP renderer: the JSON it writes."""

from __future__ import annotations

import json

from polygrad.dtype import dtypes
from polygrad.renderer.interp_json import render_interp
from polygrad.uop.args import AxisKind, Param, Reg
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def test_instructions_are_lists_of_op_dtype_sources_and_argument() -> None:
    pointer = UOp(Ops.PARAM, dtypes.float32, (), Param(1, 8))
    size = UOp.index(4)
    r = UOp.range(4, 2)
    index = UOp(Ops.INDEX, dtypes.float32, (pointer, r))
    assert json.loads(render_interp("k", [pointer, size, r, index])) == {
        "name": "k",
        "instructions": [
            ["PARAM", "float32", [], [1, 8, 0]],
            ["CONST", "index", [], 4],
            ["RANGE", "index", [1], [[2], int(AxisKind.LOOP)]],
            ["INDEX", "float32", [0, 2], None],
        ],
    }


def test_constants_are_exact() -> None:
    constants = [
        UOp.const(dtypes.float32, 0.1),
        UOp.const(dtypes.float64, float("nan")),
        UOp.const(dtypes.float32, float("-inf")),
        UOp.const(dtypes.float32, -0.0),
        UOp.const(dtypes.uint64, 2**64 - 1),
        UOp.const(dtypes.bool, True),
    ]
    arguments = [i[3] for i in json.loads(render_interp("k", constants))["instructions"]]
    assert arguments == [(0.1).hex(), "nan", "-inf", "-0x0.0p+0", 2**64 - 1, True]


def test_registers_and_variables_keep_their_arguments() -> None:
    nodes = [UOp(Ops.DEFINE_REG, dtypes.int8, (), Reg(3)), UOp.variable("n", 1, 9)]
    arguments = [i[3] for i in json.loads(render_interp("k", nodes))["instructions"]]
    assert arguments == [[3], ["n", 1, 9, ""]]
