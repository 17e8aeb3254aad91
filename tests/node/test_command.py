"""`polygrad-node` runs a script as `python` would, and keeps a snapshot between starts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from javascript_hosts import ROOT, WHEEL, built, run

pytestmark = [pytest.mark.e2e, built]
SCRIPT = Path(__file__).parent / "scripts" / "surroundings.py"


def test_a_script_sees_its_arguments_files_and_environment(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("from here")
    done = run(
        "node",
        SCRIPT,
        "3",
        "-x",
        "--wheel",
        cwd=tmp_path,
        env={"DEVICE": "WASM", "WRITE": "1", "PYTHONPATH": "/no"},
    )
    assert (done.status, done.err) == (3, "to standard error\n")
    seen = json.loads(done.out)
    assert seen["arguments"] == ["3", "-x", "--wheel"] and seen["main"] == "__main__"
    assert seen["beside"] and seen["data"] == "from here" and seen["device"] == "WASM"
    assert seen["platform"] == "emscripten" and seen["source"]
    assert (tmp_path / "written.txt").read_text() == "from Python\n"


def test_an_exception_is_a_traceback_and_status_1(tmp_path: Path) -> None:
    script = tmp_path / "fails.py"
    script.write_text("def f():\n    raise ValueError('no')\nf()\n")
    done = run("node", script, cwd=tmp_path)
    assert done.status == 1 and done.out == ""
    lines = done.err.splitlines()
    assert lines[0].startswith("Traceback") and "fails.py" in lines[1] and lines[-1] == "ValueError: no"


def test_a_snapshot_is_kept_and_used(tmp_path: Path) -> None:
    """Also where the script ends at once: the command waits until it is stored."""
    cache = tmp_path / "polygrad" / "node"
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    dates = []
    for _ in range(2):
        assert json.loads(run("node", SCRIPT, "0", env=environment).out)["platform"] == "emscripten"
        (entry,) = cache.iterdir()
        dates.append(entry.stat().st_mtime_ns)
    assert entry.name.startswith("snapshot-") and dates[0] == dates[1]


def test_usage_is_told() -> None:
    command = ["node", str(ROOT / "node" / "bin" / "polygrad-node.mjs")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stderr.startswith("usage: polygrad-node")
    done = subprocess.run([*command, "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.startswith("usage: polygrad-node")


def test_the_package_is_imported_from_node(tmp_path: Path) -> None:
    """The documented way in: `loadPolygrad`, then Python, sync and async."""
    program = tmp_path / "program.mjs"
    program.write_text(
        f"""
        import {{ loadPolygrad }} from {json.dumps(str(ROOT / "node" / "dist" / "index.js"))};
        const options = {{ wheel: {json.dumps(WHEEL)}, env: {{ A: "b" }}, cacheDir: false }};
        const polygrad = await loadPolygrad(options);
        polygrad.writeFile("/data/x/y.txt", new TextEncoder().encode("text"));
        polygrad.runPython("import os, polygrad");
        const seen = polygrad.runPython("os.environ['A'] + open('/data/x/y.txt').read()");
        const sum = await polygrad.runPythonAsync("import asyncio; await asyncio.sleep(0); 20 + 22");
        let error;
        try {{ polygrad.runPython("polygrad.dtype.to_dtype('int3')"); }} catch (e) {{ error = e.type; }}
        console.log(JSON.stringify([seen, sum, error, polygrad.pyodide.version]));
        """
    )
    done = subprocess.run(["node", str(program)], capture_output=True, text=True, timeout=120)
    assert json.loads(done.stdout) == ["btext", 42, "DTypeError", "314.0.7"], done.stderr


def test_a_pyodide_that_someone_else_started_computes(tmp_path: Path) -> None:
    """It has the package, which brings its own host."""
    shutil.unpack_archive(str(WHEEL), tmp_path / "site", format="zip")
    program = tmp_path / "plain.mjs"
    code = (
        "import sys; sys.path.insert(0, '/site'); import polygrad; polygrad.Tensor([1.0, 2.5]).sum().item()"
    )
    program.write_text(
        f"""
        import {{ loadPyodide }} from {json.dumps(str(ROOT / "node_modules" / "pyodide" / "pyodide.mjs"))};
        const pyodide = await loadPyodide();
        pyodide.mountNodeFS("/site", {json.dumps(str(tmp_path / "site"))});
        console.log(pyodide.runPython({json.dumps(code)}));
        """
    )
    done = subprocess.run(
        ["node", str(program)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    assert done.stdout.strip() == "3.5", done.stderr
