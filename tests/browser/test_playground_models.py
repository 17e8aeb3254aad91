"""Models that learn in the playground: boundaries in the plane and their export, and next characters."""

from __future__ import annotations

import re
from typing import Any

import pytest
from javascript_hosts import built
from playground_driver import seen_by

pytestmark = [pytest.mark.e2e, built, pytest.mark.slow]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return seen_by("playground_models.mjs", tmp_path_factory.mktemp("models"))


def test_nothing_violates_the_policy(seen: Any) -> None:
    assert seen["complaints"] == []


def test_a_network_learns_a_boundary(seen: Any) -> None:
    boundary = seen["boundary"]
    assert boundary["note"].startswith("354 parameters")  # 2 * 16 + 16, 16 * 16 + 16, 16 * 2 + 2
    assert boundary["points"] < 0.5 and boundary["plane"] > 0.9


def test_the_exported_file_computes_what_the_network_does(seen: Any) -> None:
    boundary = seen["boundary"]
    difference = re.search(r"at most (\S+) from the network", boundary["exported"])
    assert difference is not None and float(difference[1]) < 1e-5, boundary["exported"]
    assert boundary["beside"] > 0.9
    assert boundary["button"] == "Train again"


def test_an_export_gives_way_to_a_new_training(seen: Any) -> None:
    boundary = seen["boundary"]
    assert boundary["abandoned"] is False
    assert [note for note in boundary["notes"] if "Error" in note] == [] and len(boundary["notes"]) > 1


def test_two_clicks_on_stop_stop(seen: Any) -> None:
    assert seen["next"]["stopped"] == "Train again"


def test_the_downloaded_file_separates_the_circles_in_node(seen: Any) -> None:
    assert seen["boundary"]["file"] == "boundary.pgrd"
    right = [(p > 0.5) is label for p, label in zip(seen["boundary"]["inNode"], [False] * 12 + [True] * 12)]
    assert sum(right) >= 20, right  # training ended when 90 % of the points were right


def test_the_probabilities_of_the_next_character_follow_the_temperature(seen: Any) -> None:
    after = seen["next"]
    assert "Train the model" in after["before"] and after["disabled"]
    assert "After “thou ar” comes" in after["note"]
    for numbers in (after["cold"], after["hot"]):
        assert len(numbers) == 8 and numbers == sorted(numbers, reverse=True)
    assert after["cold"][0] > after["hot"][0]
    assert after["written"].startswith("thou ar") and len(after["written"]) > 40
