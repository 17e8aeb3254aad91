"""The fixture of all tests of captured functions."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _default(default_device: None) -> None:
    """`device` is the default device of a test that takes it."""
