"""What tests of code generation share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from polygrad.codegen.opts import cost
from polygrad.engine.programs import clear_caches


@pytest.fixture
def eager_copies(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Operands are copied for products of any size."""
    monkeypatch.setattr(cost, "MIN_COPIED_FOR", 1)
    monkeypatch.setattr(cost, "MIN_COPIED_READS", 0)
    clear_caches()
    yield
    clear_caches()
