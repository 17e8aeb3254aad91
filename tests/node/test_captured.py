"""Captured steps inside Pyodide, and without Python."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from javascript_hosts import ROOT, built, hosts, run, under_cpython

pytestmark = [pytest.mark.e2e, built]
SCRIPT = Path(__file__).parent / "scripts" / "captured.py"


@pytest.mark.parametrize("host", hosts("node", "chromium-worker"))
def test_captured_steps_have_the_bits_of_wasmtime_and_allocate_nothing(host: str) -> None:
    expected, got = under_cpython(SCRIPT), run(host, SCRIPT).json()
    for name in ("losses", "weights", "draws", "runs"):
        assert got[name] == expected[name], name
    assert got["grown"][0] == 0 and got["grown"][1] < 10
    assert got["runs"] == [500, 500]


def test_a_captured_step_runs_without_python(tmp_path: Path) -> None:
    """Its parameters and state written to it, it makes of them what the step does."""
    (tmp_path / "step.json").write_text(json.dumps(under_cpython(SCRIPT)["program"]))
    script = tmp_path / "run.mjs"
    script.write_text(
        f"""
        import {{ readFileSync }} from "node:fs";
        import {{ loadProgram }} from {json.dumps(str(ROOT / "node" / "dist" / "index.js"))};
        const step = JSON.parse(readFileSync({json.dumps(str(tmp_path / "step.json"))}, "utf8"));
        const bytes = (text) => new Uint8Array(Buffer.from(text, "base64"));
        const loaded = await loadProgram(bytes(step.bytes));
        step.before.forEach((text, i) => text === null || loaded.write(i, bytes(text)));
        loaded.run(step.before.filter((_, i) => loaded.program.buffers[i].role === "input").map(bytes));
        const text = (i) => Buffer.from(loaded.read(i).buffer).toString("base64");
        console.log(JSON.stringify(step.after.map((after, i) => after === null || after === text(i))));
        """
    )
    done = subprocess.run(["node", str(script)], capture_output=True, text=True, timeout=60)
    same = json.loads(done.stdout or "[]")
    assert same and all(same), (same, done.stderr)
