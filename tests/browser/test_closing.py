"""Closed pages and killed browsers: the next visit is as good as any, whatever was going on."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from javascript_hosts import ROOT, built

pytestmark = [pytest.mark.e2e, built]
DRIVER = Path(__file__).parent / "closing.mjs"
FROM_BYTECODE, FROM_SNAPSHOT = ["files", "start", "import", "ready"], ["files", "start", "ready"]


def drive(case: str, folder: Path) -> Any:
    command = ["node", str(DRIVER), case, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check_stored(visit: Any) -> None:
    (entry,) = visit["stored"]
    assert entry["key"].startswith("snapshot-") and entry["whole"]


@pytest.mark.slow
def test_a_page_closed_while_it_trains_trains_again(tmp_path: Path) -> None:
    seen = drive("training", tmp_path)
    accuracy = re.match(r"trained: ([\d.]+)%", seen["note"])
    assert accuracy is not None and float(accuracy[1]) >= 95, seen["note"]
    assert seen["after"]["value"] == 12 and seen["after"]["stages"] == FROM_SNAPSHOT
    check_stored(seen["after"])


@pytest.mark.slow
def test_a_snapshot_that_was_not_written_to_its_end_is_never_used(tmp_path: Path) -> None:
    seen = drive("writing", tmp_path)
    assert [case["leave"] for case in seen] == ["close", "kill", "kill"]
    for case in seen:
        first, second = case["visits"]
        assert first["value"] == second["value"] == 12, case
        assert first["stages"] in (FROM_BYTECODE, FROM_SNAPSHOT), case
        assert second["stages"] == FROM_SNAPSHOT, case
        check_stored(first)
        check_stored(second)
