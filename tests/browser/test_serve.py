"""The server of the pages: compressed forms, revalidation, and what a first visit transfers."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from javascript_hosts import ROOT, built

pytestmark = [pytest.mark.e2e, built]
DIST = ROOT / "web" / "dist"
SCRIPT = """
import { startServer } from "./web/serve.mjs";
const server = await startServer();
console.log(server.url);
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    command = ["node", "--input-type=module", "--eval", SCRIPT]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    yield server.stdout.readline().strip()
    server.terminate()
    server.wait()


def fetch(url: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urlopen(Request(url, headers=names), timeout=30) as response:
            return response.status, dict(response.headers), response.read()
    except HTTPError as error:
        return error.code, dict(error.headers), error.read()


def test_each_client_gets_the_best_form_it_accepts(url: str) -> None:
    address, path = f"{url}/dist/polygrad.js", DIST / "polygrad.js"
    for accepted, encoding, suffix in (
        ("gzip, deflate, br", "br", ".br"),
        ("gzip", "gzip", ".gz"),
        ("gzip, br;q=0", "gzip", ".gz"),
        ("gzip;q=0", None, ""),
        ("identity", None, ""),
    ):
        status, headers, body = fetch(address, Accept_Encoding=accepted)
        assert (status, headers.get("Content-Encoding")) == (200, encoding), accepted
        assert body == path.with_name(path.name + suffix).read_bytes()
        assert headers["Vary"] == "Accept-Encoding" and headers["Content-Type"] == "text/javascript"
    assert gzip.decompress(path.with_name("polygrad.js.gz").read_bytes()) == path.read_bytes()


def test_a_browser_that_has_a_file_is_told_so(url: str) -> None:
    address = f"{url}/dist/polygrad.js"
    _, headers, _ = fetch(address, Accept_Encoding="br")
    status, again, body = fetch(address, Accept_Encoding="br", If_None_Match=headers["ETag"])
    assert (status, body, again["ETag"]) == (304, b"", headers["ETag"])
    assert headers["Cache-Control"] == "no-cache"
    # another form is another entity
    assert fetch(address, If_None_Match=headers["ETag"])[0] == 200
    assert fetch(address, If_None_Match='"older"')[0] == 200


def test_files_whose_names_change_with_their_content_need_not_be_asked_for_again(url: str) -> None:
    archives = [path.name for path in (DIST / "python").glob("*.zip")]
    assert len(archives) == 3
    for name in archives:
        _, headers, _ = fetch(f"{url}/dist/python/{name}")
        assert headers["Cache-Control"] == "public, max-age=31536000, immutable"


def test_a_form_older_than_its_file_is_not_sent(tmp_path: Path) -> None:
    (tmp_path / "a.js.br").write_bytes(b"old")
    (tmp_path / "a.js").write_text("new")
    program = f"""
        import {{ utimesSync }} from "node:fs";
        import {{ startServer }} from "./web/serve.mjs";
        utimesSync({json.dumps(str(tmp_path / "a.js.br"))}, 1, 1);
        const server = await startServer({{ mounts: {{ "/x/": {json.dumps(str(tmp_path))} }} }});
        const response = await fetch(`${{server.url}}/x/a.js`, {{ headers: {{ "Accept-Encoding": "br" }} }});
        console.log(JSON.stringify([response.headers.get("Content-Encoding"), await response.text()]));
        process.exit();
    """
    command = ["node", "--input-type=module", "--eval", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout) == [None, "new"], done.stderr


@pytest.mark.parametrize("suffix", [".br", ".gz"])
def test_a_first_visit_transfers_at_most_7_mb(suffix: str) -> None:
    archives = [p.name for p in (DIST / "python").glob("*.zip") if not p.name.startswith("applications-")]
    names = ["polygrad.js", *(f"python/{name}" for name in archives)]  # the rest comes when it is imported
    names += [
        f"pyodide/{n}" for n in ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json")
    ]
    assert sum((DIST / (name + suffix)).stat().st_size for name in names) <= 7e6
