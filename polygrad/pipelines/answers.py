"""Answers that are written token by token, in slices of time, so that others may have a turn in between."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from polygrad.engine.stopping import stoppable
from polygrad.generation.scheduler import Scheduler
from polygrad.generation.scheduler import Sequence as Running


class Answers:
    """Some sequences of a scheduler, which may run others, too."""

    def __init__(self, scheduler: Scheduler, sequences: Sequence[Running]) -> None:
        self._scheduler, self._sequences = scheduler, list(sequences)

    def advance(self, seconds: float) -> dict[str, Any]:
        """Write for a time, for one token at least: `pieces`, lists of [number of the answer, text, tokens,
        finish reason or None]; whether all answers are `done`, and then the `prompt_tokens` of each. An error
        ends them. Raises RunStopped."""
        end = time.perf_counter() + seconds
        try:
            while not self._is_done() and (not self._has_pieces() or time.perf_counter() < end):
                # What a Program has written for these sequences is not read again, and others draw it again.
                with stoppable(each_program=True):
                    self._scheduler.step()
        except BaseException:
            self.cancel()
            raise
        pieces = []
        for number, sequence in enumerate(self._sequences):
            if sequence.pieces:
                taken = list(sequence.pieces)
                sequence.pieces.clear()
                text = "".join(piece.text for piece in taken)
                tokens = [token for piece in taken for token in piece.tokens]
                pieces.append([number, text, tokens, taken[-1].finish_reason])
        if not self._is_done():
            return {"pieces": pieces, "done": False}
        return {
            "pieces": pieces,
            "done": True,
            "prompt_tokens": [len(s.request.tokens) for s in self._sequences],
        }

    def cancel(self) -> None:
        """Write nothing more."""
        for sequence in self._sequences:
            sequence.cancel()

    def _is_done(self) -> bool:
        return all(sequence.is_done for sequence in self._sequences)

    def _has_pieces(self) -> bool:
        return any(sequence.pieces for sequence in self._sequences)
