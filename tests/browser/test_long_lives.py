"""A page that is loaded many times, and one that has many sessions in workers: nothing of them stays."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from javascript_hosts import ROOT, built

pytestmark = [pytest.mark.e2e, pytest.mark.slow, built]
SUM = 256.0**3
FIRST = 5  # lives after which caches are filled: the first one stores a snapshot and kernels
SLOPE = 2_000  # bytes of the page's heap that a life may leave, which is noise


def lives(what: str, count: int) -> list[Any]:
    command = ["node", str(Path(__file__).parent / "long_lives.mjs"), what, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[Any] = json.loads(done.stdout)
    assert len(found) == count and {life["sum"] for life in found} == {SUM}
    return found


def slope(values: list[float]) -> float:
    """The median of the slopes between all pairs (Theil and Sen)."""
    pairs = [(i, j) for j in range(len(values)) for i in range(j)]
    return median((values[j] - values[i]) / (j - i) for i, j in pairs)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("what", "count"), [("reloads", 100), ("sessions", 300)])
def test_nothing_of_a_life_stays(what: str, count: int) -> None:
    later = lives(what, count)[FIRST:]
    assert {life["workers"] for life in later} == {0}
    assert slope([life["heap"] for life in later]) < SLOPE
    assert max(life["processes"] for life in later) <= later[0]["processes"] + 1
    # A database compacts itself at times: what is stored may shrink.
    assert max(life["stored"] for life in later) <= 1.05 * later[0]["stored"]
