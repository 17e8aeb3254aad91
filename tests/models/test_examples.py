"""The examples in the docstrings of the models run, and print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import polygrad.models

MODULES = [info.name for info in pkgutil.iter_modules(polygrad.models.__path__)]
# Modules of families; each has an example of its own.
FAMILIES = {
    "bert",
    "clip",
    "convnext",
    "distilbert",
    "modernbert",
    "resnet",
    "roberta",
    "t5",
    "vit",
    "whisper",
}


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_say(name: str) -> None:
    module = importlib.import_module(f"polygrad.models.{name}")
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0
    assert result.attempted > 0 or name not in FAMILIES
