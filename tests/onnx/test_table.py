"""docs/onnx.md is what the recorded failures and the table of ops say, and each of ours has a reason."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import onnx_suite as suite

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
table: Any = __import__("onnx_table")


def test_the_page_is_current():
    assert table.PAGE.read_text() == table.page(), "run python scripts/onnx_table.py"


def test_a_failure_without_a_reason_is_told():
    failed = {"node": {"dft_inverse": "AssertionError: ...", "relu": "AssertionError: ..."}}
    assert table.unexplained_failures(failed) == ["relu"]


def test_recorded_failures_are_of_cases_that_exist_and_ours_are_those_with_a_reason():
    records = json.loads(table.RECORD.read_text())
    assert list(records) == ["polygrad", "onnxruntime", "tinygrad"]
    for kind in suite.KINDS:
        names = {c.name for c in suite.cases(kind)}
        for record in records.values():
            assert names.issuperset(record["failed"][kind])
        wanted = {n for n in names if suite.reason(n) is not None and not suite.is_random(n)}
        assert set(records["polygrad"]["failed"][kind]) == wanted


def test_what_fails_on_other_devices_has_a_reason_there():
    records = json.loads(table.DEVICE_RECORD.read_text())
    assert list(records) == list(suite.DEVICE_REASONS)
    on_cpu = json.loads(table.RECORD.read_text())["polygrad"]["failed"]
    for device, failed in records.items():
        for kind in suite.KINDS:
            assert {c.name for c in suite.cases(kind)}.issuperset(failed[kind])
            assert set(on_cpu[kind]).issubset(failed[kind])
            assert all(suite.reason_of_failure(n, device, e) for n, e in failed[kind].items())
    assert records["WASM"] == on_cpu
    assert suite.reason_of_failure("relu", "WASM", "float64: the device has no such dtype") is None


def test_every_node_test_is_in_one_family():
    names = {table.family_of(c) for c in suite.cases("node")}
    assert names == set(table.FAMILIES.values())
