"""The npm package as users get it: packed, and unpacked into a folder's `node_modules`."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest
from javascript_hosts import ROOT

# What the package depends on, and what those do.
DEPENDENCIES = ("pyodide", "ws", "@types/emscripten")


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `polygrad` can be imported from the packed tarball."""
    folder = tmp_path_factory.mktemp("package")
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
    return folder
