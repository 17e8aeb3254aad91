"""Every public method of Tensor says what it does, and its examples run as they are written."""

from __future__ import annotations

import ctypes
import doctest
import inspect
from pathlib import Path

import pytest

from polygrad import Tensor
from polygrad.uop.node import UOp

NAMES = sorted(n for n in dir(Tensor) if not n.startswith("_") and n not in ("training",))
# Slots, which hold data: the class describes them.
SLOTS = {n for n in NAMES if inspect.ismemberdescriptor(inspect.getattr_static(Tensor, n))}


def docstring(name: str) -> str:
    member = inspect.getattr_static(Tensor, name)
    return inspect.cleandoc(getattr(member, "__doc__", None) or "")


@pytest.mark.parametrize("name", sorted(set(NAMES) - SLOTS))
def test_its_example_runs_and_prints_what_it_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # some write a file
    text = docstring(name)
    assert len(text.splitlines()[0]) > 3
    names = {"Tensor": Tensor, "UOp": UOp, "ctypes": ctypes}
    test = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    assert test.examples, f"{name} has no example"
    printed: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    assert runner.run(test, out=printed.append).failed == 0, "".join(printed)


def test_slots_are_the_few_that_are_meant() -> None:
    assert SLOTS == {"grad", "uop"}
