"""The rows on CUDA, each run once on small sizes: on a driver that runs kernels on the processor."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import bench_package  # noqa: F401
import pytest

pytest.importorskip("cuda.bindings", reason="cuda-bindings is not installed")
if shutil.which("g++") is None:
    pytest.skip("there is no g++", allow_module_level=True)

from adapter import needs_adapter

from bench import contest as contests
from bench.contest import Case, Contest
from bench.suites import cuda

DISTRIBUTION = Path(__file__).parents[1] / "gpu_emulation" / "distribution"
DEVICE = "EMULATED_DRIVER"
SLOW = ("GPT-2",)  # its kernels are compiled one by one
ROWS = cuda.cases(cuda.SMALL, DEVICE, ("torch",))


@pytest.fixture(scope="module")
def contest() -> Iterator[Contest]:
    """Ours on the emulated driver, torch of this environment on the processor."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contests, "peer_python", lambda: Path(sys.executable))
        patch.setenv("PYTHONPATH", os.pathsep.join([str(DISTRIBUTION), os.environ.get("PYTHONPATH", "")]))
        with Contest("gpu", True, contests.Sampling(1, 0.001, min)) as found:
            yield found


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=[pytest.mark.slow] if case.name.startswith(SLOW) else [])
        for case in ROWS
    ],
)
def test_a_row_computes_what_torch_does_and_is_timed(case: Case, contest: Contest) -> None:
    found = contest.measure(case)
    assert found.skipped == {} and found.value is not None and found.value > 0
    assert found.device == DEVICE and list(found.peers) == ["torch"] and found.peers["torch"] > 0


@needs_adapter
def test_webgpu_is_beside_cuda_on_the_same_product(contest: Contest) -> None:
    found = contest.measure(cuda.webgpu_product(cuda.SMALL, DEVICE))
    assert found.skipped == {} and found.device == "WEBGPU" and found.value is not None
    assert f"≥ 50 % of the same on {DEVICE}; same on {DEVICE} " in found.target


def test_where_cuda_is_missing_each_row_says_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "missing", lambda: "device CUDA: expected an NVIDIA GPU")
    rows = list(cuda.run(True))
    assert len(rows) == len(ROWS) + 1 and len({(r.case, r.device) for r in rows}) == len(rows)
    assert {(r.value, r.met, r.skipped["polygrad"]) for r in rows} == {
        (None, False, "device CUDA: expected an NVIDIA GPU")
    }
