"""The examples in the docstrings of polygrad.hf."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "name", ["arriving", "files", "tokenizer", "chat", "image_preparation", "tool_calls"]
)
def test_the_examples_run(name: str) -> None:
    module = importlib.import_module(f"polygrad.hf.{name}")
    done = doctest.testmod(module)
    assert done.attempted > 0 and done.failed == 0
