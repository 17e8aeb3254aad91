"""The backend test suite of the package `onnx`, on CPU: a part of it by default, all of it as slow tests.

`docs/onnx.md` has the counts, and the reason of each case that fails (`scripts/onnx_table.py`).
"""

from __future__ import annotations

import fnmatch

import onnx_suite as suite
import pytest

_EVERY = 8  # of the node tests that run by default


def chosen() -> list[suite.Case]:
    """A part of each kind. Cases called `expanded` are left out: their nodes are others' too."""
    out: list[suite.Case] = []
    for kind in suite.KINDS:
        plain = [c for c in suite.cases(kind) if "_expanded" not in c.name]
        out += plain[:: _EVERY if kind == "node" else 4]
    return out


def check(case: suite.Case) -> None:
    """A case passes, or fails and has a reason."""
    if suite.reason(case.name) is None or suite.is_random(case.name):
        suite.run(case)
        return
    with pytest.raises((AssertionError, RuntimeError)):
        suite.run(case)


@pytest.mark.parametrize("case", chosen(), ids=lambda c: c.name)
def test_case(case):
    check(case)


@pytest.mark.slow
@pytest.mark.parametrize("kind", suite.KINDS)
def test_all_cases_pass_but_those_with_a_reason(kind):
    failed = {}
    for case in suite.cases(kind):
        try:
            check(case)
        except BaseException as e:
            failed[case.name] = str(e)[:200]
    assert failed == {}


def test_reasons_are_of_fewer_than_3_of_100_node_tests():
    names = [c.name for c in suite.cases("node")]
    explained = [n for n in names if suite.reason(n) is not None]
    assert len(explained) < 0.03 * len(names)
    for pattern in (*suite.REASONS, *suite.RANDOM):
        assert fnmatch.filter(names, pattern), f"no case is called {pattern}"
