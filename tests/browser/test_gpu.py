"""Device WEBGPU in a page of Chromium's, on whatever adapter it has: hardware, or SwiftShader."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from javascript_hosts import ROOT, built

pytestmark = [pytest.mark.e2e, built]
DRIVER = Path(__file__).parent / "gpu.mjs"


def test_reads_wait_or_say_what_may_and_a_killed_gpu_process_is_replaced() -> None:
    done = subprocess.run(["node", str(DRIVER)], capture_output=True, text=True, timeout=200, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    software = "swiftshader" in seen["said"]
    assert seen["auto"] == ("WASM" if software else "WEBGPU")
    assert f"device auto is {seen['auto']} ({'software adapter' if software else 'GPU'} " in seen["said"]
    assert seen["waited"] == seen["awaited"] == "[2, 4, 6]" and seen["still"] == "12"
    (refused,) = seen["atOnce"]
    assert "DeviceError: device WEBGPU" in refused and "runPythonAsync" in refused
    assert (seen["product"], seen["device"], seen["finite"]) == ([[19, 22], [43, 50]], "WEBGPU", True)
    assert seen["results"] == ["[6, 7]"] * 3
    assert "DeviceError" in seen["stale"] and "which was lost with another" in seen["stale"]
