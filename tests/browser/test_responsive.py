"""With `create({ worker: true })` a page answers while polygrad loads, compiles and trains."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from javascript_hosts import ROOT, built

pytestmark = [pytest.mark.e2e, built, pytest.mark.slow]
DRIVER = Path(__file__).parent / "responsive.mjs"
LONGEST = 75.0  # milliseconds: 50, and half as much for what shares a processor's core on a busy machine


@pytest.fixture(scope="module")
def seen() -> Any:
    done = subprocess.run(
        ["node", str(DRIVER), str(LONGEST)], capture_output=True, text=True, timeout=280, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_page_that_freezes_is_seen(seen: Any) -> None:
    assert max(task["processor"] for task in seen["frozen"]["long"]) > LONGEST


@pytest.mark.parametrize(
    ("page", "told"), [("digits", "trained: 9"), ("characters", "step "), ("kernels", "a Tensor of shape")]
)
def test_no_task_holds_the_main_thread_up(seen: Any, page: str, told: str) -> None:
    watched = seen[page]
    assert watched["told"].startswith(told)
    assert watched["tasks"] > 100
    assert [task for task in watched["long"] if task["processor"] is None] == []  # the trace has them all
    assert [task for task in watched["long"] if task["processor"] > LONGEST] == []
