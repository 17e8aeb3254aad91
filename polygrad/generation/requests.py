"""What one asks of generation, and what one gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from polygrad.errors import ArgumentError
from polygrad.generation.sampling import Sampling


class Constraint(Protocol):
    """Which tokens may come next in one answer. `is_complete`: none may, the answer is whole."""

    @property
    def is_complete(self) -> bool: ...

    def allowed(self) -> bytes:
        """One bit for each token, low bits first."""
        ...

    def accept(self, token: int) -> None:
        """A token was drawn."""
        ...


class Grammar(Protocol):
    """What an answer has to be."""

    def begin(self) -> Constraint:
        """The constraint of an answer without tokens."""
        ...


@dataclass(frozen=True)
class Request:
    """A prompt, and how to go on.

    `tokens`: of the prompt, at least one. `max_new_tokens`: how many are drawn at most. `stop_tokens` end the
    answer and are not part of it; so do `stop` strings. `log_probabilities`: how many of the likeliest tokens
    are told with theirs at each place, beside the one drawn; None: none at all. `grammar`: what the answer
    has to be.

    Raises ArgumentError.
    """

    tokens: tuple[int, ...]
    max_new_tokens: int = 128
    sampling: Sampling = field(default_factory=Sampling)
    stop_tokens: frozenset[int] = frozenset()
    stop: tuple[str, ...] = ()
    log_probabilities: int | None = None
    grammar: Grammar | None = None

    def __post_init__(self) -> None:
        if not self.tokens:
            raise ArgumentError("prompt: expected at least one token, got none")
        if self.max_new_tokens < 1:
            raise ArgumentError(f"max_new_tokens: expected at least 1, got {self.max_new_tokens}")
        if any(not isinstance(s, str) or not s for s in self.stop):
            raise ArgumentError(f"stop: expected strings with characters, got {self.stop!r}")
        count = self.log_probabilities
        if count is not None and not 0 <= count <= 20:
            raise ArgumentError(f"log_probabilities: expected 0 to 20, got {count}")

    def answers(self, count: int) -> list[Request]:
        """As many requests for different answers to the prompt: their seeds count up from the one there is,
        if there is one."""
        seed = self.sampling.seed
        if seed is None:
            return [self] * count
        seeds = [(seed + k) % (1 << 64) for k in range(count)]
        return [replace(self, sampling=replace(self.sampling, seed=s)) for s in seeds]


class TokenLog(NamedTuple):
    """`log_probability`: of the token that was drawn. `top`: of the likeliest tokens, by their ids."""

    log_probability: float
    top: dict[int, float]


class Piece(NamedTuple):
    """A part of an answer, as it comes: `text` of whole characters, and the tokens that were drawn since the
    last part. `finish_reason`: None, or of the last part 'stop', 'length' or 'cancelled'."""

    text: str
    tokens: tuple[int, ...]
    logs: tuple[TokenLog, ...] = ()
    finish_reason: str | None = None


class Completion(NamedTuple):
    """A whole answer: its text and tokens, and why it ended."""

    text: str
    tokens: tuple[int, ...]
    finish_reason: str
    prompt_tokens: int
    logs: tuple[TokenLog, ...] = ()


def join_pieces(pieces: Sequence[Piece], prompt_tokens: int) -> Completion:
    """The pieces of an answer as one."""
    return Completion(
        "".join(piece.text for piece in pieces),
        tuple(token for piece in pieces for token in piece.tokens),
        pieces[-1].finish_reason or "cancelled",
        prompt_tokens,
        tuple(log for piece in pieces for log in piece.logs),
    )


class TokenText(Protocol):
    """Turns tokens into text as they come."""

    def feed(self, id: int) -> str:
        """The characters that a further token completes."""
        ...

    def finish(self) -> str:
        """What is left at the end."""
        ...


class NoText:
    """The text of a model without a tokenizer: none."""

    def feed(self, id: int) -> str:
        """See `TokenText`."""
        return ""

    def finish(self) -> str:
        """See `TokenText`."""
        return ""


class StopStrings:
    """Text that comes in parts, up to the first of some strings: what may be the beginning of one is held
    back until more is known."""

    def __init__(self, stop: Sequence[str]) -> None:
        self._stop, self._held = tuple(stop), ""
        self.is_found = False

    def feed(self, text: str) -> str:
        """The text that is certain to stand before any of the strings."""
        text, self._held = self._held + text, ""
        places = [at for s in self._stop if (at := text.find(s)) >= 0]
        if places:
            self.is_found = True
            return text[: min(places)]
        overlap = max((_overlap(text, s) for s in self._stop), default=0)
        self._held = text[len(text) - overlap :]
        return text[: len(text) - overlap]

    def finish(self) -> str:
        """What was held back."""
        text, self._held = self._held, ""
        return text


def _overlap(text: str, stop: str) -> int:
    """How many characters at the end of `text` are the beginning of `stop`."""
    for n in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:n]):
            return n
    return 0
