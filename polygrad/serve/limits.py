"""How much a server takes on."""

from __future__ import annotations

import math
from dataclasses import dataclass

from polygrad.errors import ArgumentError


@dataclass(frozen=True)
class Limits:
    """`body_bytes`: of a request. `prompt_tokens`: of one prompt; None: as many as the model takes.
    `answer_tokens`: of one answer; None: as many as there is room for. `queue`: how many answers may wait for
    a place. `answers`: how many one request may ask for, over all its prompts. `texts`: how many texts one
    request may have embedded. `seconds`: from a request's arrival to the end of its answer. `body_seconds`:
    for a request to arrive. `stop_seconds`: how long answers may go on when the server is to stop.

    Raises ArgumentError.
    """

    body_bytes: int = 4 << 20
    prompt_tokens: int | None = None
    answer_tokens: int | None = None
    queue: int = 256
    answers: int = 16
    texts: int = 2048
    seconds: float = 600.0
    body_seconds: float = 30.0
    stop_seconds: float = 30.0

    def __post_init__(self) -> None:
        for name, least in (("body_bytes", 1), ("queue", 0), ("answers", 1), ("texts", 1)):
            if getattr(self, name) < least:
                raise ArgumentError(f"{name}: expected at least {least}, got {getattr(self, name)}")
        for name in ("prompt_tokens", "answer_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ArgumentError(f"{name}: expected at least 1, got {value}")
        for name in ("seconds", "body_seconds", "stop_seconds"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ArgumentError(f"{name}: expected a finite number from 0 on, got {value}")
