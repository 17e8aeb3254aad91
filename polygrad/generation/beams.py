"""Beam search for the likeliest answers.

A sequence's score is the sum of its tokens' log-probabilities; answers of different lengths are compared by
their score divided by a power of their length. Candidates and the end of the search are as in transformers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from polygrad.errors import ArgumentError
from polygrad.generation.engine import Engine
from polygrad.generation.sampling import Needs, Sampling

_NEVER = -1e9  # the score of an unused beam


class Beam(NamedTuple):
    """An answer: its tokens without the one that ends it, and its score, the better the higher."""

    tokens: tuple[int, ...]
    score: float
    is_finished: bool


@dataclass(frozen=True)
class BeamOptions:
    """`length_penalty`: the power of the length that scores are divided by. `early_stopping`: the search ends
    with as many answers as there are beams, not when none can be better."""

    max_new_tokens: int = 128
    length_penalty: float = 1.0
    early_stopping: bool = False


def beam_search(
    engine: Engine, prompt: Sequence[int], stop_tokens: Collection[int], options: BeamOptions
) -> list[Beam]:
    """The best answers to a prompt, as many as the engine has slots, the best first. Raises ArgumentError."""
    width = engine.slots
    room = min(options.max_new_tokens, engine.capacity - len(prompt))
    if width < 2 or room < 1:
        raise ArgumentError(f"beam search: expected 2 slots and room behind {len(prompt)} tokens")
    candidate_count = max(2, 1 + len(stop_tokens)) * width
    needs = Needs(log_probabilities=min(candidate_count, engine.model.vocabulary))
    *_, draw = engine.prefill(0, prompt, 0, Sampling(), needs)
    assert draw is not None and draw.top is not None and draw.top_log_probabilities is not None
    tops, logs = draw.top.tolist(), draw.top_log_probabilities.tolist()
    running = [Beam((), 0.0, False)]
    finished: list[Beam] = []

    def normalized(score: float, length: int) -> float:
        return score / length**options.length_penalty

    for length in range(1, room + 1):
        candidates = sorted(
            (
                (beam.score + log, row, token)
                for row, beam in enumerate(running)
                for token, log in zip(tops[row], logs[row])
            ),
            key=lambda c: -c[0],
        )[:candidate_count]
        is_last = length == room
        for rank, (score, row, token) in enumerate(candidates):
            is_end = token in stop_tokens
            if rank < width and (is_end or is_last):
                tokens = running[row].tokens if is_end else (*running[row].tokens, token)
                finished.append(Beam(tokens, normalized(score, length), is_end))
        finished = sorted(finished, key=lambda b: -b.score)[:width]
        going = [c for c in candidates if c[2] not in stop_tokens][:width]
        if is_last or _is_over(finished, going, width, options, normalized(going[0][0], length)):
            break
        running, order = (
            [Beam((*running[row].tokens, t), score, False) for score, row, t in going],
            [row for _, row, _ in going],
        )
        engine.rearrange(order, [t for *_, t in going])
        draw = engine.decode(len(prompt) + length, needs)
        assert draw.top is not None and draw.top_log_probabilities is not None
        tops, logs = draw.top.tolist(), draw.top_log_probabilities.tolist()
    for slot in range(width):
        engine.release(slot)
    return finished


def _is_over(
    finished: list[Beam], going: list[tuple[float, int, int]], width: int, options: BeamOptions, best: float
) -> bool:
    if len(finished) < width:
        return False
    return options.early_stopping or best <= finished[-1].score
