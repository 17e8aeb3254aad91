"""UPat and the functions that tables of them are compiled to."""

from __future__ import annotations

import pytest

from polygrad.dtype import dtypes
from polygrad.errors import InternalError
from polygrad.uop.args import Param
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.pattern import PatternMatcher, UPat
from polygrad.uop.pattern_names import c, const, not_, op, x, y

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
    PatternMatcher([(pattern, function)]).rewrite(node)
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
    assert table.compiled[Ops.MUL] is None


def test_a_function_that_asks_for_an_unknown_name_is_an_internal_error() -> None:
    with pytest.raises(
        InternalError, match=r"internal: pattern for ADD: .* takes 'z', expected one of \['x', 'y'\]"
    ):
        PatternMatcher([(op(Ops.ADD, x, y), lambda z: z)]).rewrite(r0 + r1)


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
