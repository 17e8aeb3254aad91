"""What the benchmarks measure in fresh processes is the program it says: its answers, its kernels."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CHILD = Path(__file__).resolve().parents[2] / "bench" / "child.py"

pytestmark = pytest.mark.e2e


def measure(case: str) -> dict[str, float]:
    command = [sys.executable, str(CHILD), "polygrad", case]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return json.loads(done.stdout.splitlines()[-1])


# What tinygrad 0.14 computes for the same program.
@pytest.mark.parametrize(("case", "expected"), [("gpt-forward", 0.12817255), ("gpt-train", 5.55004358)])
def test_the_gpt_computes_what_the_peer_computes_within_1e_5(case: str, expected: float) -> None:
    measured = measure(case)
    assert measured["check"] == pytest.approx(expected, rel=1e-5)
    assert measured["value"] > 0


# What torch 2.13 computes: three updates of four elements, three losses.
@pytest.mark.parametrize(("case", "expected"), [("eager-update", 0.07247889), ("eager-mlp", 6.88167429)])
def test_an_eager_program_computes_what_torch_computes_within_1e_5(case: str, expected: float) -> None:
    measured = measure(case)
    assert measured["check"] == pytest.approx(expected, rel=1e-5)
    assert measured["value"] > 0


@pytest.mark.parametrize(("case", "most"), [("softmax", 3), ("layernorm", 3), ("attention", 4)])
def test_a_block_becomes_few_kernels(case: str, most: int) -> None:
    assert 1 <= measure(case)["value"] <= most
