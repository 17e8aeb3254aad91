"""Workers of Ray: training and prediction, also when one is killed."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ranks
from small_fit import fit_some

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1000),
    pytest.mark.e2e,
    pytest.mark.usefixtures("default_device"),
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None, reason="ray is not installed: scripts/ray.sh does so"
    ),
]
TIMEOUT = 1000  # restarts of Ray's workers take long on few cores
PROGRAM = Path(__file__).parent / "ray_program.py"


def run(kind: str, folder: Path, *arguments: object) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), kind, str(folder), *map(str, arguments)],
        env=ranks.environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "answer.json").read_text())


def test_training_goes_on_from_the_checkpoint_that_ray_keeps(tmp_path: Path) -> None:
    """To 1e-5 of one process."""
    found = run("train", tmp_path, 7)
    assert (tmp_path / "killed").exists() and found["resumed"] and found["size"] == 2
    np.testing.assert_allclose(found["history"]["loss"], fit_some()["loss"], rtol=1e-5)
    assert found["files"] == [f"step-000000012-{i:05d}-of-00002.safetensors" for i in (1, 2)]
    assert found["metrics"]["step"] == 12


def test_each_row_is_predicted_once_although_a_worker_is_killed(tmp_path: Path) -> None:
    found = run("predict", tmp_path)
    assert (tmp_path / "killed").exists()
    assert sorted(found["rows"]) == [[i, float(i * i)] for i in range(200)]
