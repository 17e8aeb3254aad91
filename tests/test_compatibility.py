"""docs/compatibility.md is what the packages and we have: current, complete, and what it names exists."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import polygrad
from polygrad import Tensor, nn

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
compatibility: Any = __import__("compatibility")
differs: Any = __import__("compatibility_differs")
reasons: Any = __import__("compatibility_reasons")
SECTIONS = compatibility.SECTIONS
PLACES = [s.place for s in SECTIONS]


def test_every_name_is_here_or_explained() -> None:
    assert compatibility.missing_names(SECTIONS, compatibility.recorded) == []


def test_a_name_that_nothing_explains_is_told() -> None:
    found = compatibility.missing_names(SECTIONS[:1], lambda section: ["exp", "no_such_name"])
    assert found == ["tinygrad.Tensor.no_such_name"]


def test_what_is_here_is_proved_to_mean_the_same_or_to_differ() -> None:
    assert compatibility.unproved_names(SECTIONS, compatibility.recorded) == []


def test_a_name_without_a_proof_is_told() -> None:
    found = compatibility.unproved_names(SECTIONS[:1], lambda section: ["exp", "dtype", "__add__"])
    assert found == ["tinygrad.Tensor.__add__"]


def test_the_count_in_the_pages_head_is_that_of_the_proofs() -> None:
    text = compatibility.page()
    here = [(s, n) for s in SECTIONS for n in compatibility.recorded(s)
            if (compatibility.lookup(s, n) or ("",))[0] in ("same", "differs")]  # fmt: skip
    proved = [compatibility.is_proved(s, n) for s, n in here]
    assert f"{sum(proved)} of the {len(here)} names" in text
    assert sum(proved) > 900


def test_what_differs_is_a_name_that_is_here() -> None:
    places = {s.place: s for s in SECTIONS}
    names = {place: set(compatibility.recorded(s)) for place, s in places.items()}
    stale = [
        f"{d.places}: {n}"
        for d in differs.DIFFERENCES
        for n in d.names.split()
        if not any(re.fullmatch(d.places, p) and n in names[p] for p in places)
    ]
    assert stale == []


def test_what_other_tests_prove_is_there_and_named_in_them() -> None:
    for name, path in differs.PROVED_ELSEWHERE.items():
        assert name.rpartition(".")[2] in (ROOT / path).read_text(encoding="utf-8"), name


def test_the_page_is_current() -> None:
    assert compatibility.PAGE.read_text(encoding="utf-8") == compatibility.page(), "run `make compatibility`"


@functools.cache
def names_of(package: str) -> dict[str, list[str]]:
    """The names of each section, seen by a fresh process: transformers adds methods to torch's classes."""
    program = f"import json, compatibility as c; print(json.dumps(c.names_of_package({package!r})))"
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "scripts"), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=env, check=True
    )
    names: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return names


@pytest.mark.parametrize("i", range(len(SECTIONS)), ids=PLACES)
def test_recorded_names_are_those_of_the_installed_package(i: int) -> None:
    section = SECTIONS[i]
    pytest.importorskip(section.package, reason=f"{section.package} is not installed")
    if importlib.metadata.version(section.package).split("+")[0] != compatibility.version_of(section.package):
        pytest.skip(f"another version of {section.package} is recorded")
    assert names_of(section.package)[section.place] == compatibility.recorded(section)


def test_names_that_the_page_points_to_exist() -> None:
    owners = {"Tensor": Tensor, "nn": nn, "nn.optim": nn.optim, "nn.init": nn.init, "nn.state": nn.state,
              "nn.data": nn.data, "dtypes": polygrad.dtypes}  # fmt: skip
    texts = [*reasons.EQUIVALENTS.values(), *reasons.REASONS.values(), *(r[3] for r in reasons.RULES)]
    named = {m for text in texts for m in re.findall(r"\b(Tensor|nn(?:\.[a-z]+)?|dtypes)\.(\w+)", text)}
    assert len(named) > 50
    missing = [f"{owner}.{name}" for owner, name in named if not hasattr(owners[owner], name)]
    assert missing == []


@pytest.mark.parametrize("table", ["EQUIVALENTS", "REASONS"])
def test_nothing_is_explained_that_is_here(table: str) -> None:
    """An entry is stale once its name exists in all the places where it is looked up."""
    names = {s.place: set(compatibility.recorded(s)) for s in SECTIONS}
    stale = []
    for key in getattr(reasons, table):
        of = [s for s in SECTIONS if key.rpartition(".")[2] in names[s.place]]
        of = [s for s in of if key in (f"{s.place}.{key.rpartition('.')[2]}", key)]
        found = [(compatibility.lookup(s, key.rpartition(".")[2]) or ("",))[0] for s in of]
        if all(status in ("same", "differs") for status in found):
            stale.append(key)
    assert stale == []
