"""The guides' JavaScript, TypeScript and HTML run as printed; a `text` block after one is what it prints.

The README has none; `tests/export` runs the block of docs/guides/saving.md, which reads what Python exported.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from javascript_hosts import ROOT, built

pytestmark = [pytest.mark.e2e, built]
HERE = Path(__file__).parent
BLOCK = re.compile(r"^```(js|ts|html)\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
GUIDES = ROOT / "docs" / "guides"
PAGES = [(GUIDES / name).read_text(encoding="utf-8") for name in ("javascript.md", "onnx.md")]
BLOCKS = [(m[1], m[2], m[3]) for page in PAGES for m in BLOCK.finditer(page)]
WRITES_A_MODEL = re.search(r"^```python\n(.*?)^```\n", PAGES[1], re.MULTILINE | re.DOTALL)


def run(*command: object, cwd: Path) -> str:
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def test_the_guide_has_all_kinds() -> None:
    assert [kind for kind, _, _ in BLOCKS] == [*["js"] * 5, "ts", "html", "html", "js", "js"]
    assert all(promised for _, _, promised in BLOCKS)


@pytest.mark.parametrize("i", range(len(BLOCKS)))
def test_a_snippet_runs_and_prints_what_it_says(i: int, package: Path) -> None:
    kind, source, promised = BLOCKS[i]
    if "classifier.onnx" in source:
        assert WRITES_A_MODEL is not None
        run(sys.executable, "-c", WRITES_A_MODEL[1], cwd=package)
    if kind == "js":
        name = f"readme{i}.{'cjs' if 'require(' in source else 'mjs'}"
        (package / name).write_text(source)
        assert run("node", name, cwd=package) == promised
    elif kind == "ts":
        (package / f"readme{i}.mts").write_text(source)
        modules = ROOT / "node_modules"
        types = ["--types", "node,emscripten", "--typeRoots", modules / "@types", "--ignoreConfig"]
        tsc = [modules / "typescript/bin/tsc", "--strict", "--module", "nodenext", "--target", "es2022"]
        run("node", *tsc, *types, f"readme{i}.mts", cwd=package)
        assert run("node", f"readme{i}.mjs", cwd=package) == promised
    else:
        (package / "site").mkdir(exist_ok=True)
        (package / "site" / "readme.html").write_text(f"<!doctype html>\n<body>\n{source}</body>\n")
        assert run("node", HERE / "readme_host.mjs", package, cwd=ROOT) == promised
