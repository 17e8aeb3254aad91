"""The packed package from a CDN (`cdn_server.mjs`): a page of one origin, all files of another."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from javascript_hosts import FIREFOX, ROOT, built, host
from javascript_snippets import Snippet, snippets

pytestmark = [pytest.mark.e2e, built]
HERE = Path(__file__).parent
PAGES = snippets("cdn")
BROWSERS = [
    host("chromium"),
    host("firefox", needs=FIREFOX, reason="needs Firefox: apt-get install firefox-esr"),
]


def drive(browser: str, package: Path, case: str, *files: Path) -> Any:
    """What a case saw. Every request of a script of the CDN's was answered."""
    command = ["node", str(HERE / "cdn.mjs"), browser, str(package), case, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert [request for request in found["requests"] if request[1] not in (200, 302)] == []
    return found


@pytest.mark.parametrize("browser", BROWSERS)
def test_a_module_starts_in_the_page_and_in_a_worker(browser: str, package: Path) -> None:
    found = drive(browser, package, "module")
    assert len(found["seen"]) == 2
    for seen in found["seen"].values():
        assert seen["seen"] == [[8192, "<", 1]] * 2
        assert seen["complaints"] == []
    own, pyodide = f"/npm/polygrad@{found['version']}/", "/npm/pyodide@"
    others = {path for path, _ in found["requests"] if not path.startswith((own, pyodide))}
    assert others == {"/npm/polygrad/+esm"}  # the rest is of one version, also where a page names none
    archives = {Path(path).name for path, _ in found["requests"] if "/python/" in path}
    assert {name.split("-")[0] for name in archives} == {"applications", "polygrad", "stdlib"}
    assert len(archives) == 3 and all(name.endswith(".zip.gz") for name in archives)


@pytest.mark.slow
@pytest.mark.parametrize("browser", BROWSERS)
def test_a_script_tag_starts_by_every_address_of_the_script(browser: str, package: Path) -> None:
    found = drive(browser, package, "tag")
    assert len(found["seen"]) == 4
    for seen in found["seen"].values():
        assert seen["seen"] == [[3, 6]] * 2 and seen["complaints"] == []


@pytest.mark.parametrize("browser", BROWSERS)
def test_python_in_a_page_needs_two_tags(browser: str, package: Path) -> None:
    seen = drive(browser, package, "python")["seen"]
    assert (seen["seen"], seen["complaints"]) == ("3.0\n", [])


@pytest.mark.parametrize("browser", BROWSERS)
def test_an_isolated_page_has_threads(browser: str, package: Path) -> None:
    seen = drive(browser, package, "isolated")["seen"]
    assert [value[:2] for value in seen["seen"]] == [[8192, "<"]] * 2
    assert all(threads > 1 for *_, threads in seen["seen"])
    assert seen["complaints"] == [] and not any("fewer threads" in line for line in seen["lines"])


@pytest.mark.slow
@pytest.mark.parametrize("browser", BROWSERS)
def test_a_policy_that_forbids_the_worker_is_named(browser: str, package: Path) -> None:
    seen = drive(browser, package, "policy")["seen"]
    assert seen["allowed"]["seen"] == [[8192, "<", 1]] * 2 and seen["allowed"]["complaints"] == []
    for case, text in (
        ("forbidden", "(worker-src) forbids http"),
        ("partly", "could not be loaded; a Content"),
    ):
        said = seen[case]["seen"]
        assert said["sum"] == 3 and text in said["worker"]
        assert "allow worker-src blob: http" in said["worker"] and "polygrad-assets" in said["worker"]
    assert seen["threads"]["seen"][0][0] == 8192
    (told,) = [line for line in seen["threads"]["lines"] if "fewer threads" in line]
    assert "allow worker-src blob:" in told


@pytest.mark.parametrize("browser", BROWSERS)
def test_an_exported_model_runs_without_python(browser: str, package: Path, model: Path) -> None:
    found = drive(browser, package, "runtime", model)
    assert (found["seen"]["seen"], found["seen"]["complaints"]) == ([2, 4, 6], [])
    assert not any("pyodide" in path for path, _ in found["requests"])


def test_the_guides_have_pages() -> None:
    assert [snippet.page for snippet in PAGES[:2]] == ["README.md", "node/README.md"] and len(PAGES) > 3


@pytest.mark.parametrize("snippet", PAGES, ids=lambda snippet: snippet.page)
def test_a_page_of_the_guides_writes_what_it_says(snippet: Snippet, package: Path, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(snippet.source)
    seen = drive("chromium", package, "guide", tmp_path / "page.html")["seen"]
    assert (f"{seen['seen'].strip()}\n", seen["complaints"]) == (snippet.promised, [])
