"""`leftovers.since` finds what work has left, and nothing once that is gone."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import leftovers
import pytest

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="this system has no /proc")


@pytest.fixture(autouse=True)
def _alone_and_impatient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "_PATIENCE", 0.2)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_an_open_file_is_found(tmp_path: Path) -> None:
    before = leftovers.snapshot()
    with open(tmp_path / "x", "w"):
        assert [x.endswith("/x") for x in leftovers.since(before)] == [True]
    assert leftovers.since(before) == []


def test_a_pipe_is_found() -> None:
    before = leftovers.snapshot()
    ends = os.pipe()
    assert len(leftovers.since(before)) == 2
    for end in ends:
        os.close(end)
    assert leftovers.since(before) == []


def test_a_thread_is_found() -> None:
    before, ends = leftovers.snapshot(), threading.Event()
    thread = threading.Thread(target=ends.wait, name="forgotten")
    thread.start()
    assert [x.startswith("thread forgotten") for x in leftovers.since(before)] == [True]
    ends.set()
    assert leftovers.since(before) == []


def test_a_process_is_found_running_or_not_awaited() -> None:
    before = leftovers.snapshot()
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    assert any("time.sleep(60)" in x for x in leftovers.since(before))
    child.kill()
    assert any(x.startswith(f"process {child.pid}") for x in leftovers.since(before))
    child.wait()
    assert leftovers.since(before) == []


def test_a_temporary_file_of_polygrad_is_found() -> None:
    before = leftovers.snapshot()
    number, path = tempfile.mkstemp(prefix="polygrad-")
    os.close(number)
    assert leftovers.since(before) == [f"temporary file {os.path.basename(path)}"]
    os.remove(path)
    assert leftovers.since(before) == []
