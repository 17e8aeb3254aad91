"""Where SourceText writes what: folded into its use, or on a line of its own; and in what order."""

from __future__ import annotations

import pytest

from polygrad.errors import InternalError
from polygrad.renderer.source_text import PRODUCT, SELECT, SUM, Expression, SourceText


def declare(type_: str, name: str, value: str | None, mutable: bool) -> str:
    return f"{'var' if mutable else 'let'} {name}{'' if value is None else f' = {value}'};"


def text() -> SourceText:
    return SourceText(declare)


def add(s: SourceText, a: Expression, b: Expression) -> Expression:
    return s.value("{} + {}", [a, b], "int", needs=(SUM, SUM + 1), precedence=SUM)


def times(s: SourceText, a: Expression, b: Expression) -> Expression:
    return s.value("{} * {}", [a, b], "int", needs=(PRODUCT, PRODUCT + 1), precedence=PRODUCT)


def load(s: SourceText, place: str) -> Expression:
    return s.value(f"data[{place}]", [], "int", reads="memory")


def store(s: SourceText, value: Expression) -> None:
    s.statement("data[0] = {};", [value])


def lines(s: SourceText) -> list[str]:
    return s.lines(depth=0)


def test_what_is_used_once_is_part_of_its_use_and_what_is_used_twice_has_a_name() -> None:
    s = text()
    a, b = (s.atom(name, "int") for name in "ab")
    twice = add(s, a, b)
    store(s, times(s, twice, add(s, twice, b)))
    assert lines(s) == ["let x0 = a + b;", "data[0] = x0 * (x0 + b);"]


def test_what_nothing_uses_is_not_written() -> None:
    s = text()
    add(s, load(s, "1"), load(s, "2"))
    assert lines(s) == []


def test_operands_get_the_parentheses_that_they_need_and_no_others() -> None:
    s = text()
    a, b, c = (s.atom(name, "int") for name in "abc")
    store(s, add(s, add(s, a, times(s, b, c)), add(s, b, c)))
    store(s, times(s, add(s, a, b), times(s, b, c)))
    assert lines(s) == ["data[0] = a + b * c + (b + c);", "data[0] = (a + b) * (b * c);"]


def test_a_load_is_not_moved_past_a_store() -> None:
    s = text()
    before, after = load(s, "1"), load(s, "2")
    store(s, before)
    store(s, add(s, after, load(s, "3")))
    assert lines(s) == ["let x0 = data[2];", "data[0] = data[1];", "data[0] = x0 + data[3];"]


def test_what_holds_a_load_is_not_moved_past_a_store_either() -> None:
    s = text()
    whole = times(s, load(s, "1"), s.atom("a", "int"))
    pure = times(s, s.atom("b", "int"), s.atom("c", "int"))
    store(s, pure)
    store(s, whole)
    assert lines(s) == ["let x0 = data[1];", "data[0] = b * c;", "data[0] = x0 * a;"]


def test_a_load_moves_into_a_side_of_a_choice_unless_the_language_forbids_it() -> None:
    assert choice(text()) == ["data[0] = data[3] ? data[1] + 4 : data[2];"]
    s = SourceText(declare, conditional_loads=False)
    assert choice(s) == ["let x0 = data[1];", "let x1 = data[2];", "data[0] = data[3] ? x0 + 4 : x1;"]


def choice(s: SourceText) -> list[str]:
    x, y, c = load(s, "1"), load(s, "2"), load(s, "3")
    total = add(s, x, s.atom("4", "int"))
    store(s, s.value("{} ? {} : {}", [c, total, y], "int", needs=SELECT + 1, precedence=SELECT))
    return lines(s)


def test_nothing_moves_into_a_loop() -> None:
    s = text()
    outside = add(s, s.atom("a", "int"), s.atom("b", "int"))
    s.open("loop {{", [])
    store(s, outside)
    s.close()
    assert lines(s) == ["let x0 = a + b;", "loop {", "  data[0] = x0;", "}"]


def test_a_variable_is_declared_by_its_first_assignment_in_the_block_that_has_all_its_uses() -> None:
    s = text()
    outer, inner, late = (s.variable("int", name) for name in ("outer", "inner", "late"))
    s.assign(outer, s.atom("0", "int"))
    s.open("loop {{", [])
    s.assign(inner, s.atom("1", "int"))
    s.assign(outer, add(s, s.read(outer), s.read(inner)))
    s.assign(late, s.read(inner))
    s.close()
    store(s, add(s, s.read(outer), s.read(late)))
    assert lines(s) == [
        "var outer0 = 0;",
        "var late0;",
        "loop {",
        "  var inner0 = 1;",
        "  outer0 += inner0;",
        "  late0 = inner0;",
        "}",
        "data[0] = outer0 + late0;",
    ]


def test_a_variable_that_changes_before_its_value_is_used_is_copied() -> None:
    s = text()
    v = s.variable("int", "v")
    s.assign(v, s.atom("1", "int"))
    old = s.read(v)
    s.assign(v, s.atom("2", "int"))
    store(s, add(s, old, s.read(v)))
    assert lines(s) == ["var v0 = 1;", "let v1 = v0;", "v0 = 2;", "data[0] = v1 + v0;"]


def test_long_expressions_are_divided_into_lines() -> None:
    s = text()
    value = s.atom("a", "int")
    for _ in range(200):
        value = add(s, s.atom("some_name", "int"), times(s, value, value))
    store(s, value)
    assert len(lines(s)) > 50 and max(map(len, lines(text_of_a_chain()))) < 200


def text_of_a_chain() -> SourceText:
    s = text()
    value = s.atom("a", "int")
    for i in range(5000):
        value = add(s, value, s.atom(f"b{i}", "int"))
    store(s, value)
    return s


def test_blocks_that_are_not_closed_and_variables_that_are_not_set_are_internal_errors() -> None:
    s = text()
    with pytest.raises(InternalError, match="read before it is set"):
        s.read(s.variable("int", "v"))
    with pytest.raises(InternalError, match="no block is open"):
        s.close()
    s.open("loop {{", [])
    with pytest.raises(InternalError, match="a block is still open"):
        s.lines()
