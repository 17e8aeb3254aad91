"""Programs of several ranks, under mpirun and torchrun."""

from __future__ import annotations

import re

import pytest
from ranks import LAUNCHERS, Ended, needs_mpi, run_ranks


def bits(ended: Ended) -> set[str]:
    """The lines with hashes of parameters, of all ranks."""
    return set(re.findall(r"bits \w+ .*", ended.text))


def assert_all_passed(ended: Ended, ranks: int) -> None:
    assert ended.code == 0, ended.text
    passed = re.findall(rf"rank (\d) of {ranks}: (\d+) checks", ended.text)
    assert sorted(int(r) for r, _ in passed) == list(range(ranks)), ended.text
    assert {n for _, n in passed} != {"0"}


@pytest.mark.e2e
@needs_mpi
def test_two_ranks_under_mpirun() -> None:
    ended = run_ranks("mpi", 2, "checks.py")
    assert_all_passed(ended, 2)
    assert len(bits(ended)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_the_bits_of_one_two_and_four_ranks_are_equal(launcher: str) -> None:
    found = set()
    for ranks in (1, 2, 4):
        ended = run_ranks(launcher, ranks, "checks.py")
        assert_all_passed(ended, ranks)
        found |= bits(ended)
    assert len(found) == 1
