"""The suite that compares operations called from JavaScript with the same in Python."""

from __future__ import annotations

import math
import subprocess

import bench_package  # noqa: F401
import pytest
from javascript_hosts import built

from bench.suites import overhead


@pytest.mark.e2e
@built
def test_every_operation_has_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overhead, "build_javascript", lambda: None)
    rows = list(overhead.run(quick=True))
    assert [row.case for row in rows] == ["add", "neg", "sum", "element", "reshape"]
    for row in rows:
        assert row.value is not None and 0 < row.value < math.inf
        assert row.met == (row.value - row.peers["python"] <= overhead.LIMIT)


def test_a_run_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess("node", 1, "", "Error: Cannot find module\n")
    monkeypatch.setattr(overhead, "build_javascript", lambda: None)
    monkeypatch.setattr(overhead.subprocess, "run", lambda *_, **__: failed)
    (row,) = overhead.run(quick=True)
    assert not row.met and row.value is None
    assert row.skipped == {"polygrad": "Error: Cannot find module"}
