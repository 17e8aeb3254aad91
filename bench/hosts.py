"""Where a measurement can run: each host starts `child.py` in a fresh process with an empty compile cache.

A host that this machine cannot start raises `Unavailable` with the reason, which the report then names.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

CPYTHON, NODE, CHROMIUM = "cpython", "pyodide-node", "chromium"  # the kinds of hosts
DEVICES = {CPYTHON: "CPU", NODE: "WASM", CHROMIUM: "WASM"}
ROOT = Path(__file__).resolve().parent.parent
CHILD = ROOT / "bench" / "child.py"
PEERS = ROOT / "bench" / ".venv"
REQUIREMENTS = ROOT / "bench" / "requirements.txt"
LLAMA = ROOT / "bench" / ".venv-llama"
LLAMA_REQUIREMENTS = ROOT / "bench" / "requirements-llama.txt"
NODE_RUNNER = ROOT / "node" / "bin" / "polygrad-node.mjs"
TIMEOUT = 600  # seconds for one measurement


class Unavailable(Exception):
    """A host or a peer that cannot run here; the message is the reason."""


Host = Callable[[str, str], dict[str, float]]  # (library, case) -> what the child measured


def cpython(library: str, case: str) -> dict[str, float]:
    """polygrad of this source tree, or an installed library, under the running Python."""
    return _measure([sys.executable, str(CHILD), library, case], {"DEVICE": "CPU", "PYTHONPATH": str(ROOT)})


def pyodide_node(library: str, case: str) -> dict[str, float]:
    """polygrad in Pyodide in Node, on the WASM device."""
    build_javascript()
    return _measure(["node", str(NODE_RUNNER), str(CHILD), library, case], {"DEVICE": "WASM"})


def pyodide_node_webgpu(library: str, case: str) -> dict[str, float]:
    """The same on the WEBGPU device, with the npm package `webgpu`."""
    build_javascript()
    return _measure(["node", str(NODE_RUNNER), str(CHILD), library, case], {"DEVICE": "WEBGPU"})


@functools.cache
def build_javascript() -> None:
    """Node and pages run the built wheel: make sure it is this source tree's."""
    if shutil.which("node") is None:
        raise Unavailable("node is not on PATH")
    if subprocess.run(["make", "--silent", "javascript"], cwd=ROOT, stdout=sys.stderr).returncode:
        raise Unavailable("the JavaScript packages could not be built (`make javascript` failed, see above)")


def peer(library: str, case: str) -> dict[str, float]:
    """A peer under CPython, from the benchmarks' own environment."""
    if library == "tinygrad" and shutil.which("clang") is None:
        raise Unavailable("tinygrad's CPU device needs clang on PATH")
    return _measure([str(peer_python()), str(CHILD), library, case], {"DEV": "CPU", "TRAINING": "1"})


def peer_python() -> Path:
    """The Python of the peers' own environment, made unless it is there with the same requirements; or the
    one that BENCH_PYTHON names, where they cannot be installed."""
    if named := os.environ.get("BENCH_PYTHON"):
        return Path(named)
    return _environment(PEERS, REQUIREMENTS, "the peers could not be installed (pip failed, see above)")


def llama_python() -> Path:
    """As `peer_python`, but for llama.cpp, which is built from source and takes minutes: an environment of
    its own, so that only the suite that asks for it builds it. BENCH_LLAMA_PYTHON names one that has it."""
    if named := os.environ.get("BENCH_LLAMA_PYTHON"):
        return Path(named)
    return _environment(
        LLAMA,
        LLAMA_REQUIREMENTS,
        "llama-cpp-python could not be built (it needs cmake and a C++ compiler; pip's reason is above): "
        "BENCH_LLAMA_PYTHON may name a Python that has it",
    )


def _environment(folder: Path, requirements: Path, failure: str) -> Path:
    python, stamp = folder / "bin" / "python", folder / "requirements"
    wanted = requirements.read_text()
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"installing {requirements.name} into bench/{folder.name}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True, stdout=sys.stderr)
        pip = [str(python), "-m", "pip", "install", "--quiet", "-r", str(requirements)]
        if subprocess.run(pip, stdout=sys.stderr).returncode:
            raise Unavailable(failure)
        stamp.write_text(wanted)
    return python


@functools.cache
def peer_packages() -> Path:
    """The peers' JavaScript packages, installed when they are not there or their manifest has changed."""
    folder = ROOT / "bench"
    modules, wanted = folder / "node_modules", (folder / "package-lock.json").read_text()
    stamp = modules / ".installed"
    if not stamp.exists() or stamp.read_text() != wanted:
        print("installing the peers into bench/node_modules", file=sys.stderr)
        npm = ["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error", "--ignore-scripts"]
        if subprocess.run(npm, cwd=folder, stdout=sys.stderr).returncode:
            raise Unavailable("the peers could not be installed (npm failed, see above)")
        stamp.write_text(wanted)
    return modules


def _measure(command: list[str], extra: dict[str, str]) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="polygrad-bench-") as empty:
        caches = {"POLYGRAD_CACHE": f"{empty}/polygrad", "CACHEDB": f"{empty}/tinygrad/cache.db"}
        done = subprocess.run(
            command,
            env=os.environ | caches | extra,
            cwd=empty,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        errors = (done.stderr or done.stdout).strip().splitlines()
        raise Unavailable(f"exit status {done.returncode}: {errors[-1] if errors else 'no output'}")
    measured: dict[str, float] = json.loads(lines[-1])
    return measured
