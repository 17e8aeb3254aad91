"""Runs Python files in Pyodide, in Node and in headless Chromium, through the commands that users have."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
NODE = ["node", str(ROOT / "node" / "bin" / "polygrad-node.mjs")]
CHROMIUM = ["node", str(ROOT / "web" / "run-in-chromium.mjs")]
HOSTS = {"node": NODE, "chromium": CHROMIUM, "chromium-worker": [*CHROMIUM, "--worker"]}

# The wheel under test: the one `make wheel` made, or another that is named.
WHEEL = os.environ.get("POLYGRAD_WHEEL") or max(
    (str(p) for p in ROOT.glob("dist/polygrad-*.whl")), default=None, key=os.path.getmtime
)

built = pytest.mark.skipif(
    shutil.which("node") is None or WHEEL is None or not (ROOT / "node" / "dist" / "cli.js").exists(),
    reason="needs Node, the wheel and the JavaScript packages: `make test` builds them",
)


@dataclass(frozen=True)
class Finished:
    """What a command did."""

    status: int
    out: str
    err: str

    def json(self) -> Any:
        """The last line of standard output, which is JSON."""
        assert self.status == 0, f"status {self.status}\n{self.out}\n{self.err}"
        return json.loads(self.out.strip().splitlines()[-1])


def run(
    host: str,
    script: Path,
    *arguments: str,
    files: tuple[Path, ...] = (),
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    timeout: float = 240,
) -> Finished:
    """Run `script` on a host of `HOSTS`. `files` are what it reads, which Chromium has to be told."""
    own = ["--wheel", str(WHEEL)]
    if files and host != "node":
        own += ["--files", ",".join(map(str, files))]
    done = subprocess.run(
        [*HOSTS[host], *own, str(script), *arguments],
        cwd=cwd or ROOT,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


@functools.cache
def under_cpython(script: Path) -> Any:
    """The JSON that `script` prints under this Python, on the device WASM."""
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "DEVICE": "WASM"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
