"""Threads on the WASM device: the same bits with one and with two, eager and captured, on every host."""

from __future__ import annotations

from pathlib import Path

import pytest
from javascript_hosts import built, hosts, run, under_cpython

pytestmark = [pytest.mark.e2e, built]
SCRIPT = Path(__file__).parent / "scripts" / "threads.py"


@pytest.mark.parametrize("host", hosts("node", "chromium-worker"))
def test_two_threads_compute_what_one_does_and_what_wasmtime_does(host: str) -> None:
    expected = under_cpython(SCRIPT)
    got = run(host, SCRIPT).json()
    assert "threads" not in expected["features"] and expected["threads"] == 1
    assert "threads" in got["features"] and got["threads"] >= 2
    bits = expected["bits"]["1"][0]
    for count in ("1", "2"):
        for seen in got["bits"][count]:
            assert seen == bits, f"{count} threads"
    assert got["grown"] and got["same"]
    assert got["left"][0] == 0 and got["left"][1] < 20 and got["left"][2] == 0
