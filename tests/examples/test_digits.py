"""The main job: `digits.py` on every host, judged by `demo.py` as in `make demo`, for fewer epochs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from javascript_hosts import built

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLES / program), *arguments]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=280)


@pytest.mark.e2e
@built
def test_seven_hosts_reach_95_percent_and_losses_within_1e_3() -> None:
    done = run("demo.py", "--epochs=5")  # of 20, which `make test-all` runs
    assert done.returncode == 0, done.stdout + done.stderr
    agreement = re.search(r"(\d+) hosts agree\.$", done.stdout.rstrip())
    assert agreement is not None and int(agreement[1]) >= 7, done.stdout  # more where other languages are


@pytest.mark.e2e
@pytest.mark.parametrize("device", ["CPU", "WASM"])
def test_two_runs_on_a_device_end_with_the_same_bits(device: str) -> None:
    first, second = (
        json.loads(run("digits.py", "--json", "--epochs=2", DEVICE=device).stdout) for _ in range(2)
    )
    assert first["device"] == device
    assert first["final_loss"] == second["final_loss"]


@pytest.mark.e2e
def test_progress_goes_to_standard_error_and_the_answer_to_standard_output() -> None:
    done = run("digits.py", "--epochs=1")
    assert "22/22" in done.stderr
    assert done.stdout.startswith("held-out accuracy")
    assert "\r" not in done.stderr  # not a terminal: plain lines
