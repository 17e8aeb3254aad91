"""The JavaScript, TypeScript and HTML of the README and the guides run as printed; a `text` block after one
is what it prints.

`tests/export` runs the block of docs/guides/saving.md, which reads what Python exported, `test_cdn.py` pages
that load polygrad from a CDN, `test_service_worker.py` those with a service worker, `test_frameworks.py`
components.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from javascript_hosts import ROOT, built
from javascript_snippets import Snippet, snippets

pytestmark = [pytest.mark.e2e, built]
HERE = Path(__file__).parent
PROCESSES, PAGES = snippets("process"), snippets("page")
PYTHON = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
# What a snippet mentions, and the guide whose first block of Python writes it.
MODELS = {"classifier.onnx": "onnx.md", '"counting"': "javascript_models.md"}


def run(*command: object, cwd: Path) -> str:
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def named(found: list[Snippet]) -> list[str]:
    return [f"{snippet.page}-{i}" for i, snippet in enumerate(found)]


def test_there_are_snippets_of_all_kinds() -> None:
    kinds = {snippet.kind for snippet in PROCESSES}
    assert kinds == {"js", "ts"} and len(PROCESSES) > 12 and len(PAGES) > 3
    assert {"README.md", "node/README.md"} <= {snippet.page for snippet in PROCESSES}
    assert all(snippet.promised for snippet in PAGES)


@pytest.mark.parametrize("snippet", PROCESSES, ids=named(PROCESSES))
def test_a_program_runs_and_prints_what_it_says(snippet: Snippet, package: Path) -> None:
    source = snippet.source
    for name, page in MODELS.items():
        if name in source:
            writes_it = PYTHON.search((ROOT / "docs" / "guides" / page).read_text(encoding="utf-8"))
            assert writes_it is not None
            run(sys.executable, "-c", writes_it[1], cwd=package)
    if snippet.kind == "js":
        name = f"readme.{'cjs' if 'require(' in source else 'mjs'}"
        (package / name).write_text(source)
    else:
        name = "readme.mjs"
        (package / "readme.mts").write_text(source)
        modules = ROOT / "node_modules"
        types = ["--types", "node,emscripten", "--typeRoots", modules / "@types", "--ignoreConfig"]
        tsc = [modules / "typescript/bin/tsc", "--strict", "--module", "nodenext", "--target", "es2022"]
        run("node", *tsc, *types, "readme.mts", cwd=package)
    assert run("node", name, cwd=package) == snippet.promised


@pytest.mark.parametrize("snippet", PAGES, ids=named(PAGES))
def test_a_page_writes_what_it_says(snippet: Snippet, package: Path) -> None:
    (package / "site").mkdir(exist_ok=True)
    (package / "site" / "readme.html").write_text(f"<!doctype html>\n<body>\n{snippet.source}</body>\n")
    assert run("node", HERE / "readme_host.mjs", package, cwd=ROOT) == snippet.promised


def test_a_part_of_a_program_is_javascript(tmp_path: Path) -> None:
    """Parts without results, such as configurations, are not run."""
    for snippet in snippets("none"):
        (tmp_path / "part.mjs").write_text(snippet.source)
        run("node", "--check", "part.mjs", cwd=tmp_path)
