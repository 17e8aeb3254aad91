"""Guesses of the next tokens, which one run of the model checks at once (Leviathan et al., 2023).

A guess affects only the speed: the tokens of an answer are those that are drawn at their positions, and a
guessed token is accepted only if it equals the drawn one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from polygrad.generation.engine import Engine
from polygrad.generation.sampling import Needs, Sampling


class Guesser(Protocol):
    """What guesses the tokens that follow others."""

    def guess(self, tokens: Sequence[int], count: int) -> list[int]:
        """Up to `count` tokens that may follow `tokens`; none where there is no good guess."""
        ...


class PromptLookup:
    """Guesses that what followed the last `longest` to `shortest` tokens the last time follows them again
    (Saxena, 2023): for answers that repeat parts of their prompt."""

    def __init__(self, longest: int = 3, shortest: int = 2) -> None:
        self.longest, self.shortest = longest, shortest

    def guess(self, tokens: Sequence[int], count: int) -> list[int]:
        """See `Guesser`."""
        for n in range(self.longest, self.shortest - 1, -1):
            tail = list(tokens[-n:])
            for start in range(len(tokens) - n - 1, -1, -1):
                if list(tokens[start : start + n]) == tail:
                    return list(tokens[start + n : start + n + count])
        return []


class DraftModel:
    """Guesses what a smaller model of the same tokenizer would write."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._kept: list[int] = []  # the tokens that the cache holds

    def guess(self, tokens: Sequence[int], count: int) -> list[int]:
        """See `Guesser`."""
        if len(tokens) + count > self.engine.capacity:
            return []
        common_length = next((i for i, (a, b) in enumerate(zip(self._kept, tokens)) if a != b), None)
        start = min(len(self._kept) if common_length is None else common_length, len(tokens) - 1)
        draws = list(self._draws(tokens, start, count))
        self._kept = [*tokens, *draws[:-1]]
        return draws

    def _draws(self, tokens: Sequence[int], start: int, count: int) -> Iterator[int]:
        greedy = Sampling()
        *_, draw = self.engine.prefill(0, tokens, start, greedy, greedy.needs)
        assert draw is not None
        yield draw.tokens.item()
        for i in range(1, count):
            yield self.engine.decode(len(tokens) + i, Needs()).tokens.item()
