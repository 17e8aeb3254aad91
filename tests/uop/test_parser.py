"""Listings of kernels, read back: parse, then render, gives the same text."""

from __future__ import annotations

import pytest
from graphs import graphs
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from polygrad.codegen.lower.passes import PASSES, LoweringContext, run_passes
from polygrad.codegen.target import Target
from polygrad.dtype import dtypes
from polygrad.engine.normalize import normalize
from polygrad.errors import ArgumentError
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.parser import parse
from polygrad.uop.printer import render
from tests.schedules import schedule

TARGETS = (Target("PLAIN"), Target("NARROW", simd_bytes=16, registers=15, fma=True, index_bits=32))

SUM = """\
   0 PARAM          float32                  0 4
   1 CONST          index                    4
   2 RANGE          index    1               0 LOOP        r0
   3 INDEX          float32  0 2             ((r4:UPCAST:2 4) (r5:LANE:4 -1)) 3
   4 PARAM          float32                  1 12
   5 CONST          index                    3
   6 MUL            index    2 5                           r0*3
   7 RANGE          index    5               1 REDUCE      r1
   8 ADD            index    6 7                           r0*3+r1
   9 INDEX          float32  4 8
  10 LOAD           float32  9
  11 REDUCE         float32  10 7            ADD
  12 STORE          void     3 11
  13 END            void     12 2
  14 SINK           void     13"""


@settings(suppress_health_check=list(HealthCheck), report_multiple_bugs=False)
@given(graph=graphs(), stop=st.sampled_from([p.name for p in PASSES]), optimized=st.booleans())
def test_random_kernels_are_read_back_after_any_pass(graph, stop, optimized):  # type: ignore[no-untyped-def]
    sink = normalize(UOp.sink(*(n.uop for n in graph.outputs))).sink
    for call in schedule(sink, optimized).calls:
        for target in TARGETS:
            code = run_passes(call.ast, LoweringContext(target, optimized), through=stop)
            nodes = parse(render(code))
            if isinstance(code, UOp):
                assert nodes[-1] is code
            else:
                assert nodes == code


def test_what_is_written_is_read() -> None:
    nodes = parse(SUM)
    assert nodes[-1].op is Ops.SINK and render(nodes[-1]) == SUM
    offset = nodes[3].arg
    assert [(r.arg.id, r.src[0].arg, step) for r, step in offset.steps] == [((4,), 2, 4), ((5,), 4, -1)]
    assert offset.offset == 3


def test_indentation_and_formulas_mean_nothing() -> None:
    lines = ["  " + " ".join(line.split()) for line in SUM.splitlines()]
    bare = "\n\n".join(line.replace("r0*3+r1", "").replace("r0*3", "") for line in lines)
    assert parse(bare) == parse(SUM)


CONSTANTS = [
    UOp.const(dtypes.float32, x) for x in (0.0, -0.0, float("nan"), float("-inf"), 0.1, 1e30, 5e-324)
] + [
    UOp.const(dtypes.bool, True),
    UOp.const(dtypes.int8, -128),
    UOp.const(dtypes.uint64, (1 << 64) - 1),
    UOp.const(dtypes.bfloat16, 1.5),
    UOp.const(dtypes.float64, 0.1),
    UOp.variable("n", 1, 10),
]


@pytest.mark.parametrize("node", CONSTANTS, ids=repr)
def test_constants_are_the_same_node(node: UOp) -> None:
    assert parse(render(node)) == [node]


BROKEN = [
    ("x PARAM float32 0 4", "line 1, token 1: expected the number of the line's node, got 'x'"),
    ("1 PARAM float32 0 4", "line 1, token 1: expected the next number, 0, got '1'"),
    ("0 PARAMS float32 0 4", "line 1, token 2: expected an op of a kernel, got 'PARAMS'"),
    ("0 RESHAPE float32 0", "line 1, token 2: expected an op of a kernel, got 'RESHAPE'"),
    ("0 PARAM float33 0 4", "line 1, token 3: expected a dtype, got 'float33'"),
    ("0 PARAM float32 0", "line 1, token 5: expected a size, got the end of the line"),
    ("0 PARAM float32 0 4 2", "line 1, token 6: expected an address space, got '2'"),
    ("0 PARAM float32 0 4 LOCAL 1", "line 1, token 7: expected the end of the line, got '1'"),
    ("0 CONST bool 1", "line 1, token 4: expected True or False, got '1'"),
    ("0 CONST int32 1.5", "line 1, token 4: expected an integer, got '1.5'"),
    ("0 CONST uint8 256", "line 1, token 4: expected a value of uint8, got '256'"),
    ("0 CONST float32 one", "line 1, token 4: expected a float, got 'one'"),
    ("0 CONST index 4\n\n1 RANGE index 0 0 LOOPS", "line 3, token 6: expected an axis kind, got 'LOOPS'"),
    ("0 CONST index 4\n1 RANGE index 0 LOOP", "line 2, token 5: expected an axis id, got 'LOOP'"),
    (
        "0 CONST index 4\n1 ADD index 0 1",
        "line 2, token 5: expected a source of a line before, 0 to 0, got '1'",
    ),
    ("0 CONST index 4\n1 ADD index 0", "line 2, token 5: expected the number of a source, got the end"),
    ("0 CONST index 4\n1 AFTER index 0 ?", "line 2, token 5: expected the number of a source, got '?'"),
    ("0 CONST index 4\n1 CONST index 4", "line 2: it is node 0 again"),
    (
        SUM.replace("12 STORE          void     3 11", "12 STORE void 3"),
        "line 13, token 5: expected the number",
    ),
    (SUM.replace("            ADD", " XOR"), "line 12, token 6: expected ADD, MUL or MAX, got 'XOR'"),
    (SUM.replace("((r4:UPCAST:2", "((r4"), "line 4, token 6: expected a range and its step, as ((r4:LANE:4"),
    (SUM.replace("-1)) 3", "-1) 3"), "line 4, token 10: expected a range and its step, as (r4:LANE:4 1)"),
    (SUM.replace("-1)) 3", "-1))"), "line 4, token 10: expected the constant part, got the end of the line"),
    (SUM.replace("-1)) 3", "-1 3"), "line 4, token 9: expected a step and the closing parenthesis, got '-1'"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN, ids=[m for _, m in BROKEN])
def test_an_error_names_line_and_token(text: str, message: str) -> None:
    with pytest.raises(ArgumentError) as error:
        parse(text)
    assert message in str(error.value)


TOKENS = sorted({*SUM.split(), "?", "()", "NaN", "-1", "99", "bool", "MULACC", "AFTER", "CAST", "void"})


@example(line=7, token=3, new="0")  # a RANGE over a float
@given(line=st.integers(0, 14), token=st.integers(0, 7), new=st.sampled_from(TOKENS))
def test_a_token_exchanged_is_read_or_refused_by_its_place(line: int, token: int, new: str) -> None:
    lines = [row.split() for row in SUM.splitlines()]
    lines[line][token : token + 1] = [new]
    try:
        parse("\n".join(" ".join(row) for row in lines))
    except ArgumentError as error:
        assert str(error).startswith("line ")
