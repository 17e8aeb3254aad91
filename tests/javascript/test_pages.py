"""Pages that use the JavaScript API, under a strict Content-Security-Policy; and whether memory grows."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from javascript_hosts import ROOT, built

pytestmark = [pytest.mark.e2e, built]
HERE = Path(__file__).parent


def output_of(*command: object) -> Any:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=280, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def drive(case: str, package: Path, *options: str) -> Any:
    return output_of("node", HERE / "pages.mjs", case, package, *options)


def test_the_script_and_the_module_start_with_progress_or_say_why_not(package: Path) -> None:
    seen = drive("start", package)
    assert seen["complaints"] == []
    for mode in ("direct", "worker"):
        said = seen[mode]
        assert said["sum"] == 3 and said["rising"] and said["done"] == 1
        assert [stage for stage in said["stages"] if stage != "import"] == ["files", "start", "ready"]
    assert seen["failed"]["name"] == "FetchError" and seen["failed"]["status"] == 404
    assert seen["failed"]["url"].endswith("/nowhere.whl")
    assert seen["stopped"] == ["AbortError", "AbortError", "AbortError"]
    assert seen["exported"]


def test_without_isolation_it_runs_on_one_thread_and_says_so_once(package: Path) -> None:
    seen = drive("alone", package, "not-isolated")
    assert seen == {"threads": [1, 1], "said": 1, "complaints": []}


def test_python_in_script_tags_runs_in_order_and_reports_errors(package: Path) -> None:
    seen = drive("tags", package)
    assert seen["text"] == "2.0\n3.0\n"
    assert "total 3.0" in seen["lines"]
    (complaint,) = seen["complaints"]
    assert "ValueError: the last line" in complaint


def test_a_page_stays_responsive_while_its_worker_trains(package: Path) -> None:
    seen = drive("responsive", package)
    assert seen["complaints"] == [] and seen["loss"] < 0.5
    assert seen["ticks"] > 20  # for how long it is held up: tests/browser/test_responsive.py


def test_a_closed_session_rejects_what_is_pending(package: Path) -> None:
    assert drive("ended", package) == {"seen": ["polygrad: the session was closed"] * 4, "complaints": []}


def test_a_worker_of_the_programs_own_creates_a_session(package: Path) -> None:
    seen = drive("ownWorker", package)
    assert "failed" not in seen and seen["complaints"] == []
    pixels = [[[10, 20, 30], [0, 0, 0]]]
    assert seen["direct"] == seen["worker"] == {"sum": 3, "canvas": pixels, "bitmap": pixels}


def test_images_are_tensors_of_their_pixels(package: Path) -> None:
    seen = drive("images", package)
    assert seen["complaints"] == []
    assert seen["canvas"] == [[[10, 20, 30, 255], [0, 0, 0, 0]]]
    assert seen["bitmap"] == seen["data"] == [[[10, 20, 30], [0, 0, 0]]]
    assert "expected an image with pixels, got one of 0 x 0" in seen["video"]


@pytest.mark.slow
@pytest.mark.parametrize("host", ["node direct", "node worker", "chromium"])
def test_10_000_operations_and_1_000_steps_leave_nothing(host: str, package: Path) -> None:
    if host == "chromium":
        seen = drive("growth", package)
        assert seen.pop("complaints") == []
    else:
        script = HERE / "growth_in_node.mjs"
        seen = output_of("node", "--expose-gc", script, package, host.removeprefix("node "))
    tensors = {name: found[0] for name, found in seen.items()}
    nbytes = {name: found[1] for name, found in seen.items()}
    assert tensors["operations"] <= tensors["start"] + 5
    assert nbytes["operations"] <= nbytes["start"] + 100_000  # constants of kernels, schedules
    assert tensors["trained"] <= tensors["before"] + 5 and tensors["captured"] <= tensors["before"] + 5
    assert nbytes["trained"] <= nbytes["before"] + 100_000
    assert nbytes["captured"] <= nbytes["before"] + 100_000
