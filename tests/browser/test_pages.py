"""The browser package in Chromium, under a strict Content-Security-Policy."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from javascript_hosts import ROOT, WHEEL, built, run

pytestmark = [pytest.mark.e2e, built]
DRIVER = Path(__file__).parent / "pages.mjs"


def drive(case: str, *options: str) -> Any:
    command = ["node", str(DRIVER), case, str(WHEEL), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_script_tag_and_the_module_load_without_a_complaint_of_the_policy() -> None:
    seen = drive("load")
    assert seen["complaints"] == []
    assert seen["isolated"] is True
    assert seen["environment"] == "b"
    assert seen["version"] == "0.1.0"
    assert seen["host"] % 64 == 0
    assert "expected a file at" in seen["failed"] and "got status 404" in seen["failed"]
    assert {"load", "loadProgram", "loadWorker"} <= set(seen["exported"])


def test_a_page_starts_from_a_snapshot_of_an_earlier_visit_and_never_from_a_damaged_one() -> None:
    seen = drive("starts")
    assert seen["complaints"] == []
    quick, slow = ["files", "start", "ready"], ["files", "start", "import", "ready"]
    for start, origin, stages in (
        ("first", "bytecode", slow),
        ("second", "snapshot", quick),
        ("damaged", "bytecode", slow),
        ("mended", "snapshot", quick),
    ):
        assert seen[start] == {"origin": origin, "value": 6, "rest": "<", "stages": stages}, start
    assert seen["worker"] == {"value": 3, "rest": "<", "stages": quick}
    (key,) = seen["kept"]["keys"]
    assert key.startswith("snapshot-") and seen["kept"]["size"] > 5_000_000


def test_a_later_visit_compiles_no_kernel_unless_what_was_kept_is_damaged_or_there_was_no_room() -> None:
    seen = drive("kernels")
    assert seen["complaints"] == []
    (value, compiled, found), other = seen["together"]
    assert value == 3 * 5 * 4 + 3 * 10 and compiled > 1 and found == 0
    assert other[0] == value and other[1] + other[2] == compiled
    assert seen["kept"]["kernels"] == compiled and seen["kept"]["programs"] > 0
    assert seen["found"] == seen["worker"] == seen["mended"] == [value, 0, compiled]
    assert seen["damaged"] == [value, compiled, 0]
    assert seen["full"] == [[value, compiled, 0]] * 2


def test_a_worker_has_the_same_calls_and_the_page_goes_on() -> None:
    seen = drive("worker")
    assert seen["complaints"] == []
    assert (seen["sum"], seen["list"], seen["status"]) == (42, [1, "a", None], 3)
    assert seen["host"] % 64 == 0
    assert seen["text"] == "one\rtwo\n"
    assert seen["error"] is True
    assert seen["ticks"] >= 10
    assert seen["terminated"] == "polygrad: the worker was terminated"


@pytest.mark.parametrize("host", ["chromium", "chromium-worker"])
def test_a_script_runs_with_its_files_its_output_and_its_status(host: str, tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("from here")
    beside = ROOT / "tests" / "node" / "scripts"
    files = (tmp_path / "data.txt", beside / "wasm_device.py")
    done = run(host, beside / "surroundings.py", "3", "-x", files=files, cwd=tmp_path, env={"DEVICE": "WASM"})
    assert (done.status, done.err) == (3, "to standard error\n")
    seen = json.loads(done.out)
    assert seen["arguments"] == ["3", "-x"] and seen["main"] == "__main__"
    assert seen["beside"] and seen["data"] == "from here" and seen["device"] == "WASM"


def test_without_isolation_or_with_the_option_there_is_one_thread() -> None:
    for options in ((), ("not-isolated",)):
        seen = drive("alone", *options)
        assert seen["complaints"] == []
        assert seen["isolated"] is (options == ())
        assert seen["single"] == [256.0**3, 1, 1, False]
        x, threads, bound, shared = seen["plain"]
        assert x == 256.0**3
        assert (
            (bound >= 2 and shared and threads <= bound) if seen["isolated"] else (threads, bound) == (1, 1)
        )
        assert ("expected threads from 1 to 64, got 0" in (seen.get("refused") or "")) is seen["isolated"]


def test_the_demo_page_trains_and_shows_what_it_learns() -> None:
    seen = drive("demo")
    assert seen["status"] == "done", seen["errors"]
    assert seen["complaints"] == []
    assert seen["accuracy"] >= 95 and seen["speed"] > 0
    assert seen["progress"] == 1 and seen["inked"]
