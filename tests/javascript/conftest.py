"""The npm package as users get it: packed, and unpacked into a folder's `node_modules`."""

from __future__ import annotations

import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from javascript_hosts import API_HOSTS, ROOT, made_once, run_cases

from polygrad import Device, Tensor, TinyJit

# What the package depends on, and what those do.
DEPENDENCIES = (
    "pyodide",
    "ws",
    "@types/emscripten",
    "@huggingface/jinja",
    "@huggingface/tokenizers",
    "papaparse",
)


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `polygrad` can be imported from the packed tarball."""
    return made_once(tmp_path_factory, "package", pack)


def pack(folder: Path) -> None:
    command = ["npm", "pack", "--silent", "--pack-destination", str(folder)]
    done = subprocess.run(command, cwd=ROOT / "node", capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    (tarball,) = folder.glob("*.tgz")
    modules = folder / "node_modules"
    with tarfile.open(tarball) as archive:
        archive.extractall(modules, filter="data")
    (modules / "package").rename(modules / "polygrad")
    for name in DEPENDENCIES:
        (modules / name).parent.mkdir(exist_ok=True)
        (modules / name).symlink_to(ROOT / "node_modules" / name)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The file `model.pgrd` of an exported function: `output` is twice `x`, 3 numbers."""
    before = Device.DEFAULT
    Device.DEFAULT = "WASM"
    try:
        double = TinyJit(lambda x: {"output": x * 2})
        for _ in range(2):
            double(Tensor([1.0, 2.0, 3.0]).realize())
        double.save(tmp_path / "model.pgrd")
    finally:
        Device.DEFAULT = before
    return tmp_path / "model.pgrd"


@pytest.fixture(params=API_HOSTS)
def results(
    request: pytest.FixtureRequest, package: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """The results of the cases of `cases.mjs` by name, on each host. Several modules look at them."""

    def make(folder: Path) -> None:
        (folder / "results.json").write_text(json.dumps(run_cases(request.param, package)))

    folder = made_once(tmp_path_factory, f"cases on {request.param}", make)
    found: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return found
