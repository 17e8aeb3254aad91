"""How much a configuration says is dropped in training."""

from __future__ import annotations

from polygrad.models.fields import Fields


def dropout(config: Fields, name: str = "attention_dropout", default: float = 0.0) -> float:
    """Entry `name`, a part from 0 on and below 1. Raises ModelError."""
    found = config.number(name, default)
    if not 0 <= found < 1:
        raise config.refuse(name, "a number from 0 on and below 1")
    return found
