"""What the benchmarks print: the record's fields, the ratio's direction, the table."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

PATH = Path(__file__).resolve().parents[2] / "bench" / "report.py"


@pytest.fixture(scope="module")
def report() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_report", PATH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_report"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def result(report: ModuleType):
    return report.Result(
        suite="compile",
        case="gpt-train",
        host="cpython",
        device="CPU",
        value=2.0,
        unit="s",
        better="lower",
        target="≤ 2.5 s",
        met=True,
        peers={"tinygrad": 15.0, "other": 5.0},
    )


def test_a_json_line_has_every_field_that_readers_expect(result) -> None:
    record = json.loads(result.json())
    assert "\n" not in result.json()
    assert set(record) == {
        "suite",
        "case",
        "host",
        "device",
        "threads",
        "value",
        "unit",
        "better",
        "peers",
        "skipped",
        "ratio",
        "target",
        "met",
    }
    assert record["met"] is True and record["ratio"] == 2.5


def test_a_json_line_is_read_back(report, result) -> None:
    assert report.from_json(result.json()) == result


def test_ratio_above_one_is_ours_ahead(result) -> None:
    assert result.ratio == 2.5  # against the best peer, not the worst
    faster = dataclasses.replace(result, better="higher", value=10.0)
    assert faster.ratio == pytest.approx(10 / 15)


def test_no_ratio_without_a_peer_or_a_value(result) -> None:
    assert dataclasses.replace(result, peers={}).ratio is None
    assert dataclasses.replace(result, value=None).ratio is None


def test_the_table_names_each_reason_once(report, result) -> None:
    skipped = dataclasses.replace(result, peers={}, skipped={"tinygrad": "needs clang"})
    text = report.table([result, skipped, skipped])
    assert "tinygrad 15 s, other 5 s" in text
    assert text.count("tinygrad (cpython): needs clang") == 1
