"""The backend test suite of the package `onnx`: parts of it on CPU and WASM by default, all of it on these
and on WEBGPU as slow tests.

`docs/onnx.md` has the counts, and the reason of each case that fails (`scripts/onnx_table.py`).
"""

from __future__ import annotations

import fnmatch

import onnx_suite as suite
import pytest
from adapter import WEBGPU

pytestmark = pytest.mark.usefixtures("default_device")
_EVERY = 8  # of the node tests that run by default


def chosen(kind: str) -> list[suite.Case]:
    """A part of a kind. Cases called `expanded` are left out: their nodes are others' too."""
    plain = [c for c in suite.cases(kind) if "_expanded" not in c.name]
    return plain[:: _EVERY if kind == "node" else 4]


def check(case: suite.Case, device: str, loaded_on: str | None = None) -> None:
    """A case passes, or fails and has a reason. `loaded_on`: the model's device, which is not the default."""
    if not suite.is_run(case.name, device):
        return
    try:
        suite.run(case, loaded_on)
    except (AssertionError, RuntimeError) as e:
        if suite.reason_of_failure(case.name, device, str(e)) is None:
            raise
    else:
        known = suite.reason(case.name, device)
        assert known is None or suite.is_random(case.name), f"it passes, and was to fail: {known}"


def failures(cases: list[suite.Case], device: str, loaded_on: str | None = None) -> dict[str, str]:
    """The cases that fail without a reason, and how. Cases are no parameters of tests: to make them takes
    seconds, which every process would spend when it collects tests."""
    failed = {}
    for case in cases:
        try:
            check(case, device, loaded_on)
        except Exception as e:
            failed[case.name] = str(e)[:200]
    return failed


@pytest.mark.parametrize("device", ["CPU"])
@pytest.mark.parametrize("kind", suite.KINDS)
def test_a_part_of_the_cases(kind, device):
    assert failures(chosen(kind), device) == {}


@pytest.mark.parametrize("device", ["WASM"])
@pytest.mark.parametrize("kind", suite.KINDS)
def test_a_part_of_the_cases_on_wasm(kind, device):
    assert failures(chosen(kind)[::4], device) == {}


@pytest.mark.parametrize("device", ["CPU"])
@pytest.mark.parametrize("kind", suite.KINDS)
def test_a_part_of_the_cases_of_models_that_are_not_on_the_default_device(kind, device):
    assert failures(chosen(kind)[1::2], device, "CPU:1") == {}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("device", ["CPU", "WASM", WEBGPU])
@pytest.mark.parametrize("kind", suite.KINDS)
def test_all_cases_pass_but_those_with_a_reason(kind, device):
    assert failures(suite.cases(kind), device) == {}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("device", ["CPU"])
@pytest.mark.parametrize("kind", suite.KINDS)
def test_all_cases_of_models_that_are_not_on_the_default_device(kind, device):
    assert failures(suite.cases(kind), device, "WASM") == {}


def test_reasons_are_of_fewer_than_3_of_100_node_tests():
    names = [c.name for c in suite.cases("node")]
    explained = [n for n in names if suite.reason(n) is not None]
    assert len(explained) < 0.03 * len(names)
    for pattern in (*suite.REASONS, *suite.RANDOM, *(p for r in suite.DEVICE_REASONS.values() for p in r)):
        assert fnmatch.filter(names, pattern), f"no case is called {pattern}"
