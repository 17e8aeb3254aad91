"""An operation from JavaScript costs at most 15 µs beside what it costs in Python, disposal included."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from javascript_hosts import built

pytestmark = [pytest.mark.e2e, built]
SCRIPT = Path(__file__).parent / "overhead.mjs"


def test_the_overhead_of_an_operation_is_within_15_us(package: Path) -> None:
    """The best of three runs of each: the machine may be busy."""
    best: dict[str, float] = {}
    for _ in range(3):
        done = subprocess.run(
            ["node", str(SCRIPT), str(package)], capture_output=True, text=True, timeout=120, check=True
        )
        for name, micros in json.loads(done.stdout).items():
            over = micros["javascript"] - micros["python"]
            best[name] = min(best.get(name, over), over)
        if max(best.values()) <= 15:
            break
    assert max(best.values()) <= 15, best
