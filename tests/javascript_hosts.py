"""Runs Python files in Pyodide, in Node and in headless Chromium, through the commands that users have."""

from __future__ import annotations

import fcntl
import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
NODE = ["node", str(ROOT / "node" / "bin" / "polygrad-node.mjs")]
CHROMIUM = ["node", str(ROOT / "web" / "run-in-chromium.mjs")]
HOSTS = {"node": NODE, "chromium": CHROMIUM, "chromium-worker": [*CHROMIUM, "--worker"]}


def hosts(*quick: str) -> list[Any]:
    """All of `HOSTS` as a test's parameters, those slow that are not named."""
    return [pytest.param(name, marks=[] if name in quick else pytest.mark.slow) for name in HOSTS]


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
    options = ["--wheel", str(WHEEL)]
    if files and host != "node":
        options += ["--files", ",".join(map(str, files))]
    process = subprocess.run(
        [*HOSTS[host], *options, str(script), *arguments],
        cwd=cwd or ROOT,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    return Finished(process.returncode, process.stdout, process.stderr)


@functools.cache
def under_cpython(script: Path) -> Any:
    """The JSON that `script` prints under this Python, on the device WASM."""
    process = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "DEVICE": "WASM"},
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


# --- the JavaScript API

_CASES = ROOT / "tests" / "javascript"
NODE24 = ROOT / "node_modules" / ".node24" / "node_modules" / "node" / "bin" / "node"
# Runtimes and frameworks of others: scripts/ecosystem.sh.
ECOSYSTEM = ROOT / "build" / "ecosystem"
DENO, BUN = (ECOSYSTEM / "node_modules" / ".bin" / name for name in ("deno", "bun"))
FIREFOX = os.environ.get("FIREFOX_PATH") or shutil.which("firefox-esr")


def host(name: str, *, slow: bool = False, needs: object = True, reason: str = "") -> Any:
    """A host of a test's parameters. One that needs something, and says what, is slow."""
    marks = [pytest.mark.skipif(not needs, reason=reason)] if reason else []
    return pytest.param(name, marks=[*marks, pytest.mark.slow] if slow or reason else marks)


# How each runtime that has Node's modules runs a file.
_NODES = {
    "node": ["node"],
    "node24": [str(NODE24)],
    "deno": [str(DENO), "run", "--allow-all"],
    "bun": [str(BUN), "run"],
}

# Where the JavaScript API is tested. A page finds no kernels of earlier runs, and takes three times as long.
API_HOSTS = [
    host("node direct"),
    host("node worker", slow=True),
    host("chromium direct", slow=True),
    host("chromium worker"),
    host("node24 direct", needs=NODE24.exists(), reason="needs Node 24: scripts/node24.sh"),
    host("node24 worker", needs=NODE24.exists(), reason="needs Node 24: scripts/node24.sh"),
    host("deno direct", needs=DENO.exists(), reason="needs Deno: scripts/ecosystem.sh"),
    host("deno worker", needs=DENO.exists(), reason="needs Deno: scripts/ecosystem.sh"),
    host("bun direct", needs=BUN.exists(), reason="needs Bun: scripts/ecosystem.sh"),
    host("bun worker", needs=BUN.exists(), reason="needs Bun: scripts/ecosystem.sh"),
    host("firefox direct", needs=FIREFOX, reason="needs Firefox: apt-get install firefox-esr"),
    host("firefox worker", needs=FIREFOX, reason="needs Firefox: apt-get install firefox-esr"),
]
# For modules with many cases of their own: `cases.mjs` shows what differs in a page and in a worker.
FEWER_API_HOSTS = [
    host("chromium worker", slow=True) if param.values[0] == "chromium worker" else param
    for param in API_HOSTS
]


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The temporary folder `name`, which `make` fills: once for all processes of xdist."""
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder = base / name
    with open(base / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            unfinished = base / f"{name}.unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            make(unfinished)
            unfinished.rename(folder)
    return folder


@functools.cache
def run_cases(
    host: str,
    package: Path,
    names: tuple[str, ...] = (),
    models: Path | None = None,
    pipelines: Path | None = None,
) -> dict[str, Any]:
    """The results of cases by name: of `javascript/cases.mjs`, or those of `names` in `onnx_cases.mjs` and
    `pipeline_cases.mjs`.

    package: a folder with the npm package. models: a JSON file of ONNX models. pipelines: the folder that
    `pipeline_models` makes.
    """
    runtime, mode = host.split()
    if runtime in _NODES:
        data = str(ROOT / "examples" / "data")
        command = [*_NODES[runtime], str(_CASES / "node_host.mjs"), str(package), data, mode, *names]
    else:
        command = ["node", str(_CASES / "browser_host.mjs"), runtime, str(package), mode, *names]
    given = {"ONNX_MODELS": models, "PIPELINE_MODELS": pipelines}
    env = {**os.environ, **{name: str(path) for name, path in given.items() if path is not None}}
    process = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=ROOT, env=env)
    assert process.returncode == 0, process.stderr[-2000:]
    return json.loads(process.stdout.splitlines()[-1])  # type: ignore[no-any-return]
