"""The device suite, unchanged, inside Pyodide in Node: pytest comes along as the plain Python that it is."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest
from javascript_hosts import built, run

pytestmark = [pytest.mark.e2e, built, pytest.mark.timeout(900)]
TESTS = Path(__file__).parent.parent
PACKAGES = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments")  # pytest and what it imports
MODULES = ("py",)


def test_every_device_of_this_host_passes(tmp_path: Path) -> None:
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.origin is not None
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(spec.origin).parent, tmp_path / "packages" / name, ignore=ignored)
    for name in MODULES:
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.origin is not None
        shutil.copy(spec.origin, tmp_path / "packages")
    shutil.copytree(
        TESTS / "device", tmp_path / "tests" / "device", ignore=shutil.ignore_patterns("__pycache__")
    )
    for shared in ("plain.py", "write_programs.py"):
        shutil.copy(TESTS / shared, tmp_path / "tests" / shared)
    script = Path(__file__).parent / "scripts" / "run_device_suite.py"
    done = run("node", script, "tests/device", cwd=tmp_path, timeout=800)
    result = done.json()
    assert result["failures"] == [] and result["status"] == 0, (
        "\n".join(result["failures"][:5]) + done.out[-2000:]
    )
    assert result["devices"] == ["WASM", "INTERP"]
    assert result["passed"] > 500
