"""The device suite, unchanged, inside Pyodide, in Node and in a page: pytest comes along as the plain Python
that it is."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path
from typing import Any

import pytest
from adapter import needs_adapter
from device_suite import CORE
from javascript_hosts import ROOT, built, run

pytestmark = [pytest.mark.e2e, built, pytest.mark.timeout(900)]
TESTS = Path(__file__).parent.parent
SCRIPT = Path(__file__).parent / "scripts" / "run_device_suite.py"
# pytest and what it imports, and what tests of the suite share.
PACKAGES = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "py")
SHARED = ("plain.py", "write_programs.py", "device_suite.py")
WHOLE = ("tests/device",)
QUICK = tuple(f"tests/device/{name}.py" for name in CORE)
# On WEBGPU in `make test`: kernels of all dtypes are those that device WEBGPU of CPython computes.
PART = tuple(f"tests/device/{name}.py" for name in ("test_errors", "test_program", "test_reduce"))
needs_package = pytest.mark.skipif(
    not (ROOT / "node_modules" / "webgpu").exists(), reason="there is no npm package webgpu"
)
NODE = pytest.param("node", marks=needs_package)


def archive(path: Path) -> Path:
    """A zip file with the suite and what it imports."""
    with zipfile.ZipFile(path, "w") as out:
        for name in PACKAGES:
            spec = importlib.util.find_spec(name)
            assert spec is not None and spec.origin is not None
            origin = Path(spec.origin)
            folder = origin.parent.parent if origin.name == "__init__.py" else origin.parent
            for file in sorted(origin.parent.rglob("*.py")) if folder != origin.parent else [origin]:
                out.write(file, Path("packages") / file.relative_to(folder))
        for file in [*(TESTS / "device").glob("*.py"), *(TESTS / name for name in SHARED)]:
            out.write(file, file.relative_to(TESTS.parent))
    return path


def run_suite(host: str, devices: str, tests: tuple[str, ...], folder: Path) -> Any:
    """What the script says of the tests, none of which may fail."""
    suite = archive(folder / "suite.zip")
    done = run(host, SCRIPT, suite.name, devices, *tests, files=(suite,), cwd=folder, timeout=890)
    result = done.json()
    assert result["failures"] == [] and result["status"] == 0, (
        "\n".join(result["failures"][:5]) + done.out[-2000:]
    )
    return result


@pytest.mark.parametrize(
    ("tests", "least"),
    [pytest.param(QUICK, 400, id="core"), pytest.param(WHOLE, 900, id="all", marks=pytest.mark.slow)],
)
def test_every_device_without_a_gpu_passes_in_node(
    tests: tuple[str, ...], least: int, tmp_path: Path
) -> None:
    assert run_suite("node", "WASM,INTERP", tests, tmp_path)["passed"] > least


@pytest.mark.slow
@needs_adapter
@pytest.mark.parametrize("host", [NODE, "chromium"])
def test_a_part_passes_on_webgpu(host: str, tmp_path: Path) -> None:
    assert run_suite(host, "WEBGPU", PART, tmp_path)["passed"] > 60


@needs_adapter
@pytest.mark.slow
@pytest.mark.parametrize("host", [NODE, "chromium-worker"])
def test_all_of_it_passes_on_webgpu(host: str, tmp_path: Path) -> None:
    assert run_suite(host, "WEBGPU", WHOLE, tmp_path)["passed"] > 250
