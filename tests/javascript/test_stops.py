"""An AbortSignal stops what a session computes; afterwards nothing is half done, and the session works."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from javascript_hosts import ROOT, built, run_cases

pytestmark = [pytest.mark.e2e, built]

NAMES = ("stepStops", "callsInTurn", "fitStops")
NODE_WORKER = pytest.param("node worker", marks=pytest.mark.slow)
WORKERS = pytest.mark.parametrize("host", [NODE_WORKER, "chromium worker"])
HOSTS = pytest.mark.parametrize("host", [NODE_WORKER, "node direct", "chromium worker"])


def found_on(host: str, package: Path, case: str) -> Any:
    found = run_cases(host, package, NAMES)[case]
    assert "failed" not in found, found
    return found


@WORKERS
def test_a_step_stops_in_its_middle_and_is_whole_or_has_done_nothing(host: str, package: Path) -> None:
    """The bound is loose, for machines that do much else: it takes 20 to 40 ms, alone."""
    found = found_on(host, package, "stepStops")
    for stop in found["stops"]:
        assert stop["same"], stop
        if stop["outcome"] == "AbortError":
            assert stop["seconds"] < max(1.0, 0.5 * found["whole"])
    assert [stop["outcome"] for stop in found["stops"][:2]] == ["AbortError"] * 2
    assert found["early"] == ["RangeError", "mine"] and found["same"]


@pytest.mark.slow
def test_on_the_same_thread_a_step_is_refused_or_whole(package: Path) -> None:
    found = found_on("node direct", package, "stepStops")
    assert found["early"] == ["RangeError", "mine"] and found["same"]
    assert all(stop["outcome"] == "resolved" and stop["same"] for stop in found["stops"])


@HOSTS
def test_a_signal_ends_its_own_call_alone(host: str, package: Path) -> None:
    found = found_on(host, package, "callsInTurn")
    if host == "node direct":  # both were whole before the signal came
        assert found["settled"] == ["fulfilled", "fulfilled"] and found["counter"] == [5, 5]
    else:
        assert found["settled"] == ["fulfilled", "AbortError"] and found["counter"] == [4, 4]
    assert found["values"] == found["counter"]
    assert found["options"] == "run: expected options among signal, got signals"


@HOSTS
def test_fit_stops_with_a_checkpoint_and_goes_on_to_the_same_end(host: str, package: Path) -> None:
    found = found_on(host, package, "fitStops")
    assert found["outcome"] == "AbortError" and found["equal"]
    if host != "node direct":  # in the middle of the second step
        assert found["left"] == 2 and found["seconds"] < max(1.0, 0.6 * found["whole"])


@pytest.mark.parametrize("kind", [pytest.param("closedSession", marks=pytest.mark.slow), "closedPage"])
def test_what_is_closed_during_a_step_leaves_nothing(kind: str, package: Path) -> None:
    command = ["node", str(ROOT / "tests" / "javascript" / "closed.mjs"), kind, str(package)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    if kind == "closedSession":
        assert found == {"rejected": "PolygradError", "threads": True}
    else:
        assert found["during"] >= 1 and found["after"] == 0 and found["again"] == 6
        assert found["files"] == found["filesBefore"]
