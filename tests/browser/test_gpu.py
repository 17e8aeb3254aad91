"""Device WEBGPU in a page of Chromium or Firefox, on whatever adapter it has: hardware, or SwiftShader."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from javascript_hosts import ROOT, built

pytestmark = [pytest.mark.e2e, built]
HERE = Path(__file__).parent
FIREFOX = os.environ.get("FIREFOX_PATH") or shutil.which("firefox-esr")


def drive(script: str) -> Any:
    command = ["node", str(HERE / script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not FIREFOX, reason="needs Firefox: apt-get install firefox-esr")
def test_firefox_computes_and_reads_within_1e_5() -> None:
    seen = drive("firefox_gpu.mjs")
    if seen is None:
        pytest.skip("this Firefox has no adapter")
    assert seen["device"] == "WEBGPU" and seen["finite"]
    assert seen["product"] == [[19, 22], [43, 50]]
    assert seen["sum"] == pytest.approx(134, rel=1e-5) and seen["softmax"] == pytest.approx(2, rel=1e-5)
    assert (seen["sorted"], seen["small"]) == ([1, 2, 3], [4, 5])


def test_reads_wait_or_say_what_may_and_a_killed_gpu_process_is_replaced() -> None:
    seen = drive("gpu.mjs")
    software = "swiftshader" in seen["said"]
    assert seen["auto"] == ("WASM" if software else "WEBGPU")
    assert f"device auto is {seen['auto']} ({'software adapter' if software else 'GPU'} " in seen["said"]
    assert seen["waited"] == seen["awaited"] == "[2, 4, 6]" and seen["still"] == "12"
    small, large = seen["seconds"]
    assert 0 < small < large < 60  # of the GPU, not of handing it over
    assert "a measurement has to wait for the GPU" in seen["measuredAtOnce"][0]
    (refused,) = seen["atOnce"]
    assert "DeviceError: device WEBGPU" in refused and "runPythonAsync" in refused
    assert (seen["product"], seen["device"], seen["finite"]) == ([[19, 22], [43, 50]], "WEBGPU", True)
    assert seen["results"] == ["[6, 7]"] * 3
    assert "DeviceError" in seen["stale"] and "which was lost with another" in seen["stale"]
