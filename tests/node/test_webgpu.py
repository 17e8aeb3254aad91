"""Device WEBGPU over JavaScript: the GPU in a worker of Node's, in a page, and in a page's worker."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from adapter import needs_adapter
from javascript_hosts import ROOT, built, hosts, run
from webgpu_features import GROUPED, NOT_EXCHANGED

pytestmark = [pytest.mark.e2e, built, needs_adapter, pytest.mark.timeout(400)]
SCRIPT = Path(__file__).parent / "scripts" / "webgpu_device.py"
SUBGROUPS = Path(__file__).parent / "scripts" / "subgroups.py"
needs_package = pytest.mark.skipif(
    not (ROOT / "node_modules" / "webgpu").exists(), reason="there is no npm package webgpu"
)


@needs_package
@pytest.mark.parametrize("host", hosts("chromium-worker"))
def test_results_are_those_of_interp_within_1e_5_and_errors_are_typed(host: str, tmp_path: Path) -> None:
    seen = run(host, SCRIPT, cwd=tmp_path, timeout=390).json()
    assert seen["adapter"]["storage_buffers"] >= 8
    assert seen["exact"] == [True] * 8
    assert seen["furthest"] < 1e-5
    assert seen["losses"] == sorted(seen["losses"], reverse=True) and seen["losses"][-1] > 0
    made = seen["step"]
    assert (made["submits"], made["reads"]) == (1, 1)
    assert (made["buffers"], made["pipelines"], made["bind_groups"]) == (0, 0, 0)
    assert seen["parts"]
    for case, error, text in (
        ("float64", "DeviceError", "the device has no such dtype: use float32"),
        ("wrong", "CompileError", "kernel wrong, line 4: data0[0] = true;: expected WGSL"),
        ("out_of_memory", "OutOfMemoryError", "use smaller tensors"),
        ("lost", "DeviceError", "expected a device that is there, got one that was lost"),
    ):
        assert seen[case] is not None and seen[case][0] == error and text in seen[case][1], seen[case]
    assert (seen["bytes"], seen["afterwards"]) == ("xyz", [7.0])
    assert (seen["again"], seen["anew"]) == ([2.0], True)


@needs_package
@pytest.mark.parametrize("host", hosts("node"))
def test_subgroups_give_the_same_bits(host: str, tmp_path: Path) -> None:
    shared = Path(shutil.copy(Path(__file__).parents[1] / "webgpu_features.py", tmp_path))
    seen = run(host, SUBGROUPS, files=(shared,), cwd=tmp_path, timeout=390).json()
    if not seen["subgroup"]:
        pytest.skip(f"subgroups of no one size: {seen}")
    assert seen["found"] == seen["subgroup"]
    assert set(seen["exchanged"]) == GROUPED.keys() - set(NOT_EXCHANGED)
    assert seen["same"] == [True] * len(GROUPED)
