"""Running libpolygrad's bindings: the languages that are here, and where the libraries are."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from c_library import FOLDER, build, wasmtime_library

BINDINGS = FOLDER / "bindings"
JULIA = BINDINGS / "julia"


def language(name: str, tool: str) -> object:
    missing = pytest.mark.skipif(
        shutil.which(tool) is None, reason=f"there is no {tool}: scripts/languages.sh"
    )
    return pytest.param(name, marks=[missing, pytest.mark.slow])


LANGUAGES = [language("rust", "cargo"), language("go", "go"), language("r", "R")]


def libraries() -> dict[str, str]:
    """The environment that says where libpolygrad and wasmtime are."""
    return {"POLYGRAD_LIBRARY": str(build() / "libpolygrad.so"), "PG_WASMTIME": wasmtime_library()}


def start(name: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """A binding's task, when it has ended."""
    return subprocess.run(
        [BINDINGS / "run.sh", name, *map(str, arguments)],
        env=os.environ | libraries() | environment,
        capture_output=True,
        text=True,
    )


def run(name: str, *arguments: object, **environment: str) -> str:
    """What a binding's task prints."""
    done = start(name, *arguments, **environment)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def julia_faults(source: Path) -> list[str]:
    """What fatou, a linter of Julia, finds in a file or a folder, but for calls of unsafe functions."""
    fatou = shutil.which("fatou", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if fatou is None:
        pytest.skip("fatou is not installed")
    done = subprocess.run([fatou, "lint", "--output", "json", source], capture_output=True, text=True)
    rules = [found["rule"] for found in json.loads(done.stdout)]
    return [rule for rule in rules if rule != "discouraged-function"]
