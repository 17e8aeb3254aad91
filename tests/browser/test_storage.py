"""Storage that refuses, is full, is shared by tabs, or is upgraded: a page loses time, and nothing else."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from javascript_hosts import ROOT, built

pytestmark = [pytest.mark.e2e, built]
COUNT = 2**20  # floats in the file, all of them 1
WHOLE = [[8 + 128 + 4 * COUNT, True]]


def drive(case: str) -> Any:
    command = ["node", str(Path(__file__).parent / "storage.mjs"), case]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def check(seen: Any, way: str, fetched: int, kept: list[Any] = WHOLE) -> None:
    """A page's session computed right, and began and read the file in this way."""
    assert (seen["sums"], seen["complaints"]) == ([COUNT] * 2, [])
    assert (seen["way"], seen["fetched"], seen["kept"]) == (way, fetched, kept)


@pytest.mark.slow
def test_a_page_whose_storage_refuses_computes() -> None:
    seen = drive("refused")
    assert set(seen) == {"everything", "opening", "writing"}
    for page in seen.values():
        check(page, "bytecode", fetched=2, kept=[])


def test_a_full_storage_costs_time_until_there_is_room() -> None:
    seen = drive("full")
    check(seen["full"], "bytecode", fetched=2, kept=[])
    assert seen["stored"] == 0
    check(seen["roomy"], "bytecode", fetched=1)
    assert seen["later"] == 1
    check(seen["last"], "snapshot", fetched=0)


def test_two_tabs_that_start_at_once_store_one_snapshot_and_one_file() -> None:
    seen = drive("tabs")
    for page in seen["together"]:
        assert page["sums"] == [COUNT] * 2 and page["complaints"] == [] and page["kept"] == WHOLE
    assert sum(page["fetched"] for page in seen["together"]) in (1, 2)
    assert seen["stored"] == 1
    check(seen["third"], "snapshot", fetched=0)


@pytest.mark.slow
def test_an_upgrade_of_the_database_disturbs_no_tab_that_is_open() -> None:
    seen = drive("upgrade")
    assert seen["blocked"] == [False, False]
    assert seen["goesOn"] == pytest.approx(6, abs=1e-5)
    check(seen["older"], "bytecode", fetched=0)  # files have a store of their own
    check(seen["anew"], "bytecode", fetched=0)
    assert seen["stored"] == 1
    check(seen["next"], "snapshot", fetched=0)


@pytest.mark.slow
def test_a_database_that_another_tab_holds_up_delays_a_start_and_does_not_stop_it() -> None:
    seen = drive("held")
    check(seen["seen"], "bytecode", fetched=1)
    assert seen["seen"]["seconds"] >= 10
    check(seen["next"], "bytecode", fetched=0)
