"""The wheel in a Pyodide that polygrad's loader did not start:
in Node, by micropip, in PyScript, in JupyterLite."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from javascript_hosts import ECOSYSTEM, ROOT, WHEEL, built

pytestmark = [pytest.mark.e2e, built]
HERE = Path(__file__).parent
WHEELS = ECOSYSTEM / "wheels"
JUPYTER = ECOSYSTEM / "jupyterlite" / "bin" / "jupyter"
in_a_page = pytest.mark.skipif(not WHEELS.exists(), reason="needs scripts/ecosystem.sh")


def output_of(*command: object) -> Any:
    done = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def drive(case: str, *more: object) -> Any:
    return output_of("node", HERE / "plain_pyodide.mjs", WHEEL, WHEELS, case, *more)


def test_the_wheel_computes_on_the_engine_of_a_plain_pyodide(tmp_path: Path) -> None:
    code = """
from polygrad import Device, Tensor
x = Tensor([[1.0, 2.0], [3.0, 4.0]])
try:
    Tensor([1.0], device="WEBGPU").item()
    said = ""
except Exception as e:
    said = f"{type(e).__name__}: {e}"
import json
json.dumps([Device.DEFAULT, Device["WASM"].host.threads, (x @ x).tolist(), said])
"""
    program = f"""
        import {{ readFileSync }} from "node:fs";
        import {{ loadPyodide }} from "pyodide";
        const pyodide = await loadPyodide();
        pyodide.unpackArchive(new Uint8Array(readFileSync({json.dumps(str(WHEEL))})), "wheel");
        console.log(pyodide.runPython({json.dumps(code)}));
    """
    device, threads, product, said = output_of("node", "--input-type=module", "--eval", program)
    assert (device, threads, product) == ("WASM", 1, [[7, 10], [15, 22]])
    assert said.startswith("DeviceError: device WEBGPU: ")


@in_a_page
@pytest.mark.slow
def test_micropip_installs_it_from_an_index_with_wasm_and_webgpu() -> None:
    assert drive("micropip") == "['WASM', [[7.0, 10.0], [15.0, 22.0]], [4.0, 6.0], 10.107, 1]"


@in_a_page
@pytest.mark.slow
def test_a_policy_without_eval_is_named() -> None:
    said = drive("refused")
    assert said.startswith("polygrad.errors.DeviceError: ") and "'unsafe-eval'" in said


@in_a_page
@pytest.mark.slow
def test_pyscript_runs_it() -> None:
    assert drive("pyscript") == "WASM 11.0"


def jupyterlite_site(folder: Path, *cells: str) -> Path:
    """A site of JupyterLite, built in `folder`, with the server's Pyodide and a notebook `guide.ipynb`."""
    kernel = {"pyodideUrl": "/pyodide/pyodide.mjs", "loadPyodideOptions": {"indexURL": "/pyodide/"}}
    settings = {"litePluginSettings": {"@jupyterlite/pyodide-kernel-extension:kernel": kernel}}
    notebook = {
        "cells": [
            {"cell_type": "code", "id": f"cell{i}", "source": cell, "metadata": {}, "outputs": [],
             "execution_count": None} for i, cell in enumerate(cells)
        ],
        "metadata": {"kernelspec": {"name": "python", "display_name": "Python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }  # fmt: skip
    contents = folder / "contents"
    contents.mkdir()
    (contents / "guide.ipynb").write_text(json.dumps(notebook))
    (folder / "jupyter-lite.json").write_text(
        json.dumps({"jupyter-lite-schema-version": 0, "jupyter-config-data": settings})
    )
    (comm,) = WHEELS.glob("comm-*.whl")
    command = [JUPYTER, "lite", "build", "--lite-dir", folder, "--apps", "notebooks", "--contents", contents,
               "--piplite-wheels", comm, "--output-dir", folder / "site"]  # fmt: skip
    done = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return folder / "site"


@pytest.mark.skipif(not JUPYTER.exists(), reason="needs scripts/ecosystem.sh")
@pytest.mark.slow
def test_jupyterlite_runs_what_the_guide_says(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "guides" / "javascript_setup.md").read_text()
    (snippet,) = re.findall(r"```py\n(import micropip\n.*?)```", guide, re.DOTALL)
    index = "import js, micropip\nmicropip.set_index_urls(f'{js.location.origin}/simple')"
    trains = (
        "from polygrad import Device\n"
        "g = Tensor([2.0, 3.0], requires_grad=True)\n"
        "(g * g).sum().backward()\n"
        "print(Device.DEFAULT, g.grad.tolist(), Tensor([0.0], device='WEBGPU').exp().item())"
    )
    site = jupyterlite_site(tmp_path, index, snippet, trains, "Tensor([[1.0, 2.0]])")
    installed, printed, trained, shown = drive("jupyterlite", site)
    assert (installed, printed, trained) == ("", "3.0", "WASM [4.0, 6.0] 1.0")
    assert shown == "Tensor([[1., 2.]], float32 on WASM)"
