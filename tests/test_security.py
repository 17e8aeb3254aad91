"""Each promise of SECURITY.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROWS = [line for line in (ROOT / "SECURITY.md").read_text("utf-8").splitlines() if line.startswith("| ")][2:]


@pytest.mark.parametrize("row", ROWS, ids=[r.split(" | ")[0].removeprefix("| ")[:30] for r in ROWS])
def test_a_promise_has_tests(row: str) -> None:
    *_, tests, _ = row.split("|")
    named = re.findall(r"`([\w/.]+)(?:::(\w+))?`", tests)
    assert named
    for path, test in named:
        assert (ROOT / path).is_file(), path
        if test:
            assert f"def {test}(" in (ROOT / path).read_text("utf-8"), f"{path} has no {test}"
