"""The examples in docstrings of `training`, of `tuning` and of the models for tables run as they are
written."""

from __future__ import annotations

import doctest
import importlib.util
import pkgutil
from typing import Any

import pytest

from polygrad import training, tuning
from polygrad.models import tables

MODULES = [
    f"{package.__name__}.{module.name}"
    for package in (training, tuning, tables)
    for module in pkgutil.iter_modules(package.__path__)
    if module.name != "ray" or importlib.util.find_spec("ray") is not None
]


@pytest.mark.parametrize("name", MODULES)
def test_its_examples_run(name: str) -> None:
    module: Any = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


def test_there_are_examples() -> None:
    modules: list[Any] = [importlib.import_module(name) for name in MODULES]
    assert sum(bool(t.examples) for m in modules for t in doctest.DocTestFinder().find(m)) >= 3
