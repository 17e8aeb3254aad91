"""polygrad's service worker on a host of static files: threads without headers, pages without a network."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from javascript_hosts import FIREFOX, ROOT, built, host
from javascript_snippets import snippets

pytestmark = [pytest.mark.e2e, built]
HERE = Path(__file__).parent
BROWSERS = [
    host("chromium"),
    host("firefox", needs=FIREFOX, reason="needs Firefox: apt-get install firefox-esr"),
]
SUMS = [262144, "<"] * 2


@pytest.fixture
def site(package: Path, tmp_path: Path) -> Path:
    """A folder with the service worker beside the page."""
    script = package / "node_modules/polygrad/dist/browser/polygrad-service-worker.js"
    shutil.copy(script, tmp_path)
    return tmp_path


@pytest.fixture
def whole_site(package: Path, site: Path) -> Path:
    """The same, with all that `polygrad-assets` copies."""
    command = ["node", package / "node_modules/polygrad/bin/polygrad-assets.mjs", site / "polygrad"]
    subprocess.run(list(map(str, command)), check=True, timeout=60)
    return site


def drive(browser: str, site: Path, case: str, *argument: Path) -> Any:
    command = ["node", HERE / "service_worker.mjs", browser, site, case, *argument]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=280, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def check(seen: Any) -> None:
    """The page and a session in a worker have computed, on threads."""
    assert seen["isolated"] is True and seen["sums"] == SUMS
    assert all(threads > 1 for threads in seen["threads"]) and len(seen["threads"]) == 2


@pytest.mark.parametrize("browser", BROWSERS)
def test_a_page_without_headers_has_threads_after_one_reload(browser: str, whole_site: Path) -> None:
    found = drive(browser, whole_site, "isolate")
    check(found["seen"])
    check(found["later"])
    assert found["loads"] == [2, 3]
    assert found["failed"]  # without data-offline a page needs its server
    assert not any("polygrad-service-worker" in line for line in found["lines"])


@pytest.mark.slow
@pytest.mark.parametrize("browser", BROWSERS)
def test_a_page_works_when_its_server_has_ended(browser: str, whole_site: Path) -> None:
    found = drive(browser, whole_site, "offline")
    check(found["seen"])
    check(found["later"])


@pytest.mark.slow
def test_a_page_works_when_the_cdn_has_ended(package: Path, site: Path) -> None:
    found = drive("chromium", site, "cdn", package)
    check(found["seen"])
    check(found["later"])


def test_a_page_in_a_frame_is_reloaded_once(site: Path) -> None:
    found = drive("chromium", site, "frame")
    assert found["framed"] == 2
    assert [line for line in found["lines"] if "not cross-origin isolated after a reload" in line]


def test_a_sandboxed_frame_computes_without_a_service_worker(package: Path, site: Path) -> None:
    assert drive("chromium", site, "sandbox", package) == ["sum 3"]


def test_what_is_kept(site: Path) -> None:
    found = drive("chromium", site, "kept")
    assert found["before"] == ["polygrad-0123456789ab.zip"]
    assert sorted(found["after"]) == [
        "a.txt",
        "photos-0123456789ab.zip",
        "photos-ba9876543210.zip",
        "polygrad-ba9876543210.zip",
    ]
    assert (found["failed"], found["text"]) == ("TypeError", "a")


def test_settings_arrive_beside_a_query_and_forms_are_sent_once(site: Path) -> None:
    assert drive("chromium", site, "query") == {
        "query": "?v=2&isolate=require-corp",
        "isolated": True,
        "loads": 1,
    }


def test_a_tag_that_asks_for_nothing_is_told(site: Path) -> None:
    assert drive("chromium", site, "mistaken") == [
        "polygrad-service-worker: Error: expected the attribute data-isolate or data-offline, got neither",
        "polygrad-service-worker: Error: data-isolate: expected require-corp or credentialless, got always",
        "polygrad-service-worker: expected a script tag with src, got a module or an inline script",
    ]


@pytest.mark.slow
def test_the_pages_of_the_guide_write_what_they_say(whole_site: Path) -> None:
    found = snippets("static host")
    assert len(found) == 2
    for snippet in found:
        page = whole_site / "printed.html"
        page.write_text(snippet.source)
        assert f"{drive('chromium', whole_site, 'guide', page)}\n" == snippet.promised
