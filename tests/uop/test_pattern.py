"""UPat, tables of them interpreted, and the functions that these are compiled to."""

from __future__ import annotations

import pytest

from polygrad import Tensor
from polygrad.codegen.lower.decompose import decompose
from polygrad.codegen.lower.passes import lower
from polygrad.codegen.target import Target
from polygrad.dtype import dtypes
from polygrad.engine.normalize import normalize
from polygrad.errors import InternalError
from polygrad.uop.args import Param
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.pattern import INTERPRETED, PatternMatcher, Rewriter, UPat
from polygrad.uop.pattern_names import c, const, not_, op, x, y
from polygrad.uop.symbolic import symbolic
from tests.schedules import schedule

TARGET = Target("test", simd_bytes=16, registers=15)

r0, r1 = UOp.range(4, 0), UOp.range(5, 1)
one = UOp.index(1)


def matched(pattern: UPat, node: UOp) -> dict[str, UOp] | None:
    """The nodes that `pattern` names in `node`, or None."""
    seen: list[dict[str, UOp]] = []
    names = sorted(_names(pattern))
    function = eval(
        f"lambda {', '.join(names)}: record(dict({', '.join(f'{n}={n}' for n in names)}))",
        {"record": seen.append},
    )
    table = PatternMatcher([(pattern, function)])
    table.rewrite(node)
    if compiled := table.compile(node.op):
        compiled(node)
    assert len(seen) in (0, 2) and seen[:1] == seen[1:]  # interpreted and compiled, they are the same
    return seen[0] if seen else None


def _names(pattern: UPat) -> set[str]:
    below = {n for s in pattern.src or () for n in _names(s)}
    return below | ({pattern.name} if pattern.name else set())


MATCHES = [
    (UPat(Ops.ADD, name="u"), r0 + r1, {"u": r0 + r1}),
    (UPat((Ops.MUL, Ops.ADD), name="u"), r0 + r1, {"u": r0 + r1}),
    (UPat(None, name="u"), r0, {"u": r0}),
    (op(Ops.ADD, x, c), r0 + 1, {"x": r0, "c": one}),
    (op(Ops.MUL, y, op(Ops.ADD, x, c)), r1 * (r0 + 1), {"x": r0, "c": one, "y": r1}),
    (op(Ops.ADD, x, x), r0 + r0, {"x": r0}),
    (op(Ops.ADD, x, const(1)), r0 + 1, {"x": r0}),
    (op(Ops.ADD, x, UPat.const(dtypes.index, 1)), r0 + 1, {"x": r0}),
    (op(Ops.CMPLT, UPat.var("x", dtypes.index), y), r0 < r1, {"x": r0, "y": r1}),
    (op(Ops.CMPLT, UPat.var("x", (dtypes.index, dtypes.bool)), y), r0 < r1, {"x": r0, "y": r1}),
    (op(Ops.WHERE, op(Ops.CMPLT, x, y), x, y), (r0 < r1).where(r0, r1), {"x": r0, "y": r1}),
    (not_(op(Ops.CMPLT, x, y)), (r0 < r1).logical_not(), {"x": r0, "y": r1}),
    (op(Ops.CAST, x, dtype=dtypes.float32), r0.cast(dtypes.float32), {"x": r0}),
    (op(Ops.CAST, x), r0.cast(dtypes.float32), {"x": r0}),
    (UPat(Ops.PARAM, arg=Param(0, 4), name="p"), UOp(Ops.PARAM, dtypes.int8, (), Param(0, 4)), None),
    (UPat(Ops.SINK, src=(x, y)), UOp.sink(r0, r1), {"x": r0, "y": r1}),
    (UPat(GroupOp.ALU, src=(x, y)), r0 + r1, {"x": r0, "y": r1}),
    (op(Ops.ADD, x, y).named("u"), r0 + r1, {"u": r0 + r1, "x": r0, "y": r1}),
]  # fmt: skip

MISSES = [
    (UPat(Ops.MUL, name="u"), r0 + r1),
    (op(Ops.ADD, x, c), 1 + r0),
    (op(Ops.MOD, x, c), (r0 * 0 + 1) % r0),
    (op(Ops.ADD, x, x), r0 + r1),
    (op(Ops.ADD, x, const(2)), r0 + 1),
    (op(Ops.ADD, x, UPat.const(dtypes.int32, 1)), r0 + 1),
    (op(Ops.ADD, UPat.var("x", dtypes.int32), y), r0 + r1),
    (UPat(Ops.PARAM, arg=Param(1, 4), name="p"), UOp(Ops.PARAM, dtypes.int8, (), Param(0, 4))),
    (UPat(Ops.SINK, src=(x,)), UOp.sink(r0, r1)),
    (UPat(Ops.SINK, src=(x, y)), UOp.sink(r0)),
    (UPat(GroupOp.ALU, src=(x, y)), UOp(Ops.NEG, dtypes.index, (r0,))),
    (UPat(GroupOp.ALU, src=(x,)), r0 + r1),
    (op(Ops.MUL, op(Ops.ADD, x, y), c), (r0 % r1) * 1),
    (op(Ops.ADD, x, const(0)), UOp.const(dtypes.float32, 2.0) + UOp.const(dtypes.float32, -0.0)),
]


@pytest.mark.parametrize(("pattern", "node", "expected"), MATCHES)
def test_matches(pattern: UPat, node: UOp, expected: dict[str, UOp] | None) -> None:
    found = matched(pattern, node)
    assert found == expected if expected is not None else found is not None


@pytest.mark.parametrize(("pattern", "node"), MISSES)
def test_misses(pattern: UPat, node: UOp) -> None:
    assert matched(pattern, node) is None


def test_rows_are_tried_in_order_until_one_applies() -> None:
    asked = []

    def no(x: UOp) -> None:
        asked.append(x)

    table = PatternMatcher(
        [
            (UPat(Ops.MUL, name="x"), lambda x: one),
            (UPat(Ops.ADD, name="x"), no),
            (op(Ops.ADD, x, y), lambda y: y),
        ]
    )
    assert table.rewrite(r0 + r1) is r1
    assert asked == [r0 + r1]


def test_a_row_that_returns_its_node_does_not_apply() -> None:
    assert PatternMatcher([(UPat(Ops.ADD, name="x"), lambda x: x)]).rewrite(r0 + r1) is None


def test_the_next_row_is_tried_when_the_function_declines() -> None:
    table = PatternMatcher([
        (op(Ops.ADD, x, y), lambda x, y: x if y is r0 else None),
        (op(Ops.ADD, y, x), lambda x, y: x if y is r0 else None),
    ])  # fmt: skip
    assert table.rewrite(r0 + r1) is r1
    assert table.rewrite(r1 + r0) is r1
    assert table.rewrite(r1 + r1) is None


def test_tables_add_up_in_order() -> None:
    first, second = (
        PatternMatcher([(op(Ops.ADD, x, y), lambda x: x)]),
        PatternMatcher([(op(Ops.ADD, x, y), lambda y: y), (op(Ops.MUL, x, y), lambda y: y)]),
    )
    assert (first + second).rewrite(r0 + r1) is r0
    assert (second + first).rewrite(r0 + r1) is r1
    assert (first + second).rewrite(r0 * r1) is r1


def test_an_op_without_rows_is_refused_at_once() -> None:
    table = PatternMatcher([(op(Ops.ADD, x, y), lambda x: x)])
    assert table.rewrite(r0 * r1) is None
    assert table.matchers[Ops.MUL] is None and table.compile(Ops.MUL) is None


def test_a_function_that_asks_for_an_unknown_name_is_an_internal_error() -> None:
    with pytest.raises(
        InternalError, match=r"internal: pattern for ADD: .* takes 'z', expected one of \['x', 'y'\]"
    ):
        PatternMatcher([(op(Ops.ADD, x, y), lambda z: z)]).rewrite(r0 + r1)
    with pytest.raises(InternalError, match="takes 'z'"):
        PatternMatcher([(op(Ops.ADD, x, y), lambda z: z)]).compile(Ops.ADD)


def test_rows_are_compiled_when_they_have_been_used_some_times() -> None:
    table = PatternMatcher([(op(Ops.ADD, x, c), lambda x: x)])
    interpreted = table.prepare(Ops.ADD)
    for _ in range(INTERPRETED - 1):
        assert table.rewrite(r0 + 1) is r0 and table.matchers[Ops.ADD] is interpreted
    assert table.rewrite(r1 + 1) is r1 and table.matchers[Ops.ADD] is not interpreted
    assert table.rewrite(r0 + 1) is r0 and table.rewrite(r0 + r1) is None


def test_both_ways_make_the_same_of_the_nodes_of_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of the algebra and of a target's forms, on all nodes that lowering asks them about."""
    asked: list[tuple[PatternMatcher, UOp]] = []
    prepare = PatternMatcher.prepare

    def noted(table: PatternMatcher, of: Ops) -> Rewriter:
        match = prepare(table, of)

        def note(node: UOp) -> UOp | None:
            asked.append((table, node))
            return match and match(node)

        table.matchers[of] = note
        return note

    t = Tensor.empty(30, 50)
    for table in (symbolic, decompose(TARGET, True)):
        monkeypatch.setattr(table, "matchers", {})
    with monkeypatch.context() as patch:
        patch.setattr(PatternMatcher, "prepare", noted)
        for out in (t.softmax(-1), t.pad((1, 2)).sin() // 3, t.int() % 7 << 2, t.log().argmax(1)):
            for call in schedule(normalize(UOp.sink(out.uop.base)).sink, optimized=True).calls:
                lower(call.ast, TARGET)
    assert len({node.op for _, node in asked}) > 20
    for table, node in dict.fromkeys(asked):
        interpreted, compiled = prepare(table, node.op), table.compile(node.op)
        if interpreted is None or compiled is None:
            assert interpreted is compiled
        else:
            assert interpreted(node) is compiled(node)


def test_the_ops_of_sources_are_asked_before_anything_else() -> None:
    assert PatternMatcher([(op(Ops.ADD, op(Ops.MUL, x, c), const(0)), lambda x: x)]).source(Ops.ADD) == (
        "def match(u):\n"
        " s0, s1, = u.src\n"
        " o0 = s0.op\n"
        " o1 = s1.op\n"
        " if o1 is op_0 and o0 is op_1:\n"
        "  s0_0, s0_1, = s0.src\n"
        "  if s0_1.op is op_0:\n"
        "   if s1.arg == a2:\n"
        "    r = f3(s0_0)\n"
        "    if r is not None and r is not u: return r\n"
        " return None\n"
    )
