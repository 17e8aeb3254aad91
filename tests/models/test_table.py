"""docs/families.md is what was recorded, has every architecture, and measurements repeat."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from polygrad.models.registry import architectures

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
table: Any = __import__("model_table")
families: Any = __import__("model_families")
RECORD: dict[str, Any] = json.loads(table.RECORD.read_text())["architectures"]


def test_the_page_is_current() -> None:
    assert table.PAGE.read_text() == table.page(), "run python scripts/model_table.py"


def test_the_page_has_every_architecture_once() -> None:
    lines = table.PAGE.read_text().splitlines()
    assert sorted(line.split("`")[1] for line in lines if line.startswith("| `")) == architectures()


def test_every_configuration_was_measured() -> None:
    counts = {name: len(names) for name, names in families.cases().items()}
    assert counts == {name: found["configurations"] for name, found in RECORD.items()}


def test_nothing_that_was_recorded_is_far_away() -> None:
    for name, found in RECORD.items():
        assert 0 < max(found["cpu"], found["wasm"]) < 1e-5, name
        assert found["same_cached"] == found["same_whole"] == found["tokens"], name


@pytest.mark.parametrize("name", ["GPT2LMHeadModel", "DistilBertForMaskedLM"])
def test_a_measurement_repeats(name: str) -> None:
    """Within a factor of four: sums are added up in another order on another processor."""
    found, recorded = families.measure(families.cases()[name]), RECORD[name]
    for key in ("cpu", "wasm", "bfloat16"):
        assert recorded[key] / 4 < getattr(found, key) < recorded[key] * 4, key
    assert (found.tokens, found.same_cached, found.same_whole) == tuple(
        recorded[key] for key in ("tokens", "same_cached", "same_whole")
    )
