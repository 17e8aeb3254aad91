"""What the compatibility page says of names that are here: those that are the same mean the same, those that
differ do so in the kinds that it says, and in no other.

The quick tests evaluate two calls of each of torch's names and one of every sixth of tinygrad's; the slow
ones all.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from proofs import peers
from proofs.calls import Call
from proofs.registry import calls_of

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "scripts"))
compatibility: Any = __import__("compatibility")
differs: Any = __import__("compatibility_differs")
PLACES = [s.place for s in compatibility.SECTIONS]
# Of a quick test: the calls of each name, and of how many names it takes one. tinygrad's device is slow.
MOST, STEP = {"torch": 2, "tinygrad": 1}, {"torch": 1, "tinygrad": 6}
pytestmark = [
    pytest.mark.usefixtures("default_device"),
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.leaves,  # tinygrad's
]


@pytest.fixture
def device() -> str:
    return "CPU"


def names_of(section: Any) -> list[tuple[str, list[Call]]]:
    """The names of a section that are here, and their calls."""
    found = [(n, calls_of(section.place, n)) for n in compatibility.recorded(section)]
    return [
        (n, c)
        for n, c in found
        if c and (compatibility.lookup(section, n) or ("",))[0] in ("same", "differs")
    ]


def check(section: Any, most: int | None, step: int = 1) -> None:
    """Evaluates up to so many calls of every `step`-th name. What differs has to be said; what is said has to
    differ, when all calls are evaluated."""
    peer = peers.PEERS[section.package]
    work = [(n, c) for n, calls in names_of(section)[::step] for c in calls[:most]]
    ours = peers.outcomes([(c, section.place) for _, c in work])
    kinds: dict[str, set[str]] = {}
    wrong = []
    for (name, call), outcome in zip(work, ours, strict=True):
        told = {k for d in differs.differences_of(section.place, name) for k in re.split(", ", d.kinds)}
        for line in peers.differences(call, outcome, peer.outcome(call, section.place)):
            kind = line.partition(":")[0]
            kinds.setdefault(name, set()).add(kind)
            if kind not in told:
                wrong.append(f"{call}\n    {line}")
    assert not wrong, f"{len(wrong)} calls of {section.place} differ, and nothing says so:\n" + "\n".join(
        wrong[:20]
    )
    if most is None:
        said = {n for n, _ in names_of(section) if differs.differences_of(section.place, n)}
        assert said <= set(kinds), f"said to differ, and do not: {sorted(said - set(kinds))}"


@pytest.mark.parametrize("place", PLACES)
def test_a_part_of_the_calls_agrees_with_the_installed_package(place: str) -> None:
    section = compatibility.SECTIONS[PLACES.index(place)]
    pytest.importorskip(section.package, reason=f"{section.package} is not installed")
    check(section, MOST[section.package], STEP[section.package])


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("place", PLACES)
def test_all_calls_agree_with_the_installed_package(place: str) -> None:
    section = compatibility.SECTIONS[PLACES.index(place)]
    pytest.importorskip(section.package, reason=f"{section.package} is not installed")
    check(section, None)


def test_a_difference_that_nothing_says_is_found() -> None:
    """The judge tells values, dtypes, shapes and refusals of two outcomes that differ in them."""
    call = next(c for c in calls_of("torch", "exp") if c.gradient)
    torch = pytest.importorskip("torch", reason="torch is not installed")
    theirs = peers.PEERS["torch"].outcome(call, "torch")
    same = peers.OURS.outcome(call, "torch")
    assert peers.differences(call, same, theirs) == []
    for name, kind in (
        ("expm1", "value"),
        ("signbit", "dtype"),
        ("argmax", "shape"),
        ("no_such_name", "refused"),
    ):
        other = Call(name, call.expression, call.operands)
        found = peers.differences(call, peers.OURS.outcome(other, "torch"), theirs)
        assert kind in {line.partition(":")[0] for line in found}, name
    assert torch.exp is not None
