"""Fixtures of the renderers' tests."""

from __future__ import annotations

import pytest


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM checks every module that it is given."""
    monkeypatch.setenv("POLYGRAD_VERIFY", "1")
