"""Programs of several ranks, under mpirun and torchrun."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import ranks

PROGRAM = Path(__file__).parent / "checked.py"


def bits_of_passed(done: Any, count: int) -> set[str]:
    """The lines with hashes of parameters, of all ranks, of which each has made all checks."""
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.findall(rf"rank (\d) of {count}: (\d+) checks", done.stdout)
    assert sorted(int(r) for r, _ in passed) == list(range(count)), done.stdout
    assert all(int(n) > 10 for _, n in passed)
    return set(re.findall(r"bits [0-9a-f]{64}", done.stdout))


@pytest.mark.slow
@pytest.mark.e2e
@ranks.needs_mpirun
def test_two_ranks_under_mpirun() -> None:
    assert len(bits_of_passed(ranks.run("mpirun", 2, PROGRAM), 2)) == 1


@pytest.mark.slow
@ranks.launcher
def test_the_bits_of_one_two_and_four_ranks_are_equal(launcher: str) -> None:
    found = [bits_of_passed(ranks.run(launcher, n, PROGRAM), n) for n in (1, 2, 4)]
    assert len(set().union(*found)) == 1
