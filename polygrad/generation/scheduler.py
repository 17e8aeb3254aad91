"""Many sequences at once: requests join and leave the batch between two tokens (Yu et al., Orca, 2022)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace

from polygrad.errors import ArgumentError
from polygrad.generation.engine import CHECKED, TokenEngine
from polygrad.generation.guesses import Guesser
from polygrad.generation.requests import NoText, Piece, Request, StopStrings, TokenLog, TokenText
from polygrad.generation.sampling import Draw, Needs

_LOG_COUNTS = (0, 5, 20)


class Sequence:
    """A request on its way: `pieces` that came and were not taken yet, and whether it `is_done`."""

    def __init__(self, request: Request, limit: int, text: TokenText, slot: int | None) -> None:
        self.request, self.slot = request, slot
        self.pieces: deque[Piece] = deque()
        self.is_done = False
        self.tokens = list(request.tokens)  # the prompt, and what was drawn
        self._limit, self._text, self._stop = limit, text, StopStrings(request.stop)
        self.constraint = None if request.grammar is None else request.grammar.begin()
        self.needs = replace(
            request.sampling.needs,
            mask=request.grammar is not None,
            log_probabilities=_log_count(request.log_probabilities),
        )

    def add(self, token: int, log: TokenLog | None) -> None:
        """A token was drawn."""
        logs = () if log is None else (log,)
        if token in self.request.stop_tokens:
            return self._finish("stop", (), ())
        self.tokens.append(token)
        if self.constraint is not None:
            self.constraint.accept(token)
        text = self._stop.feed(self._text.feed(token))
        if self._stop.is_found:
            return self._end(Piece(text, (token,), logs, "stop"))
        if self.constraint is not None and self.constraint.is_complete:
            return self._finish("stop", (token,), logs, text)
        if len(self.tokens) - len(self.request.tokens) >= self._limit:
            return self._finish("length", (token,), logs, text)
        self.pieces.append(Piece(text, (token,), logs))
        return None

    def cancel(self) -> None:
        """Nothing more is drawn."""
        if not self.is_done:
            self._finish("cancelled", (), ())

    def _finish(
        self, reason: str, tokens: tuple[int, ...], logs: tuple[TokenLog, ...], text: str = ""
    ) -> None:
        text += self._stop.feed(self._text.finish())
        if not self._stop.is_found:
            text += self._stop.finish()
        self._end(Piece(text, tokens, logs, reason))

    def _end(self, piece: Piece) -> None:
        self.pieces.append(piece)
        self.is_done = True


class Scheduler:
    """Runs requests on an engine. `text`: makes what turns the tokens of one answer into text. `guesser`:
    guesses tokens of a sequence that runs alone, so that one run of the model may give several."""

    def __init__(
        self, engine: TokenEngine, text: Callable[[], TokenText] = NoText, guesser: Guesser | None = None
    ) -> None:
        self.engine, self._new_text, self.guesser = engine, text, guesser
        self._waiting: deque[Sequence] = deque()
        self._running: dict[int, Sequence] = {}
        self._kept: dict[int, list[int]] = {slot: [] for slot in range(engine.slots)}
        self._prefill: tuple[int, Sequence, Iterator[Draw | None]] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do."""
        return not self._waiting and not self._running and self._prefill is None

    @property
    def waiting(self) -> int:
        """How many requests have no slot yet."""
        return len(self._waiting)

    def submit(self, request: Request, slot: int | None = None) -> Sequence:
        """Take a request; its answer comes with calls of `step`. `slot`: the one that it gets, whose keys and
        values are not those of the same tokens before; None: any. Raises ArgumentError as `check` does."""
        room = self.check(request)
        request = replace(request, sampling=request.sampling.with_seed())
        sequence = Sequence(request, min(request.max_new_tokens, room), self._new_text(), slot)
        self._waiting.append(sequence)
        return sequence

    def check(self, request: Request) -> int:
        """How many tokens there is room for behind a prompt. Raises ArgumentError for a prompt that does not
        fit, and tokens that do not exist."""
        room = self.engine.capacity - len(request.tokens)
        if room < 1:
            raise ArgumentError(
                f"prompt: {len(request.tokens)} tokens, with room for {self.engine.capacity - 1}: raise "
                "max_seq_len, or shorten it"
            )
        vocabulary = self.engine.vocabulary
        for name, tokens in (("prompt", request.tokens), ("logit_bias", request.sampling.logit_bias)):
            wrong = next((t for t in tokens if not 0 <= t < vocabulary), None)
            if wrong is not None:
                raise ArgumentError(f"{name}: token {wrong} is not one of the model's {vocabulary}")
        return room

    def step(self) -> None:
        """One run of a prompt, if one waits and there is room, and one token of each running sequence."""
        self._drop_cancelled()
        self._admit()
        if self._prefill is not None:
            slot, sequence, chunks = self._prefill
            draw = next(chunks)
            if draw is not None:
                self._prefill = None
                self._running[slot] = sequence
                self._take(draw, {0: slot})
        elif self._running:
            self._decode()
            return
        if self._running and self._prefill is not None:
            self._decode()

    def _decode(self) -> None:
        if len(self._running) == 1 and self._verify(*next(iter(self._running.items()))):
            return
        needs = Needs()
        for slot, sequence in self._running.items():
            needs = needs | sequence.needs
            if sequence.constraint is not None:
                self.engine.allow(slot, sequence.constraint.allowed())
        length = max(len(sequence.tokens) for sequence in self._running.values())
        self._take(self.engine.decode(length, needs), {slot: slot for slot in self._running})

    def _verify(self, slot: int, sequence: Sequence) -> bool:
        """Whether a guess could be checked. What one draw changes for the next cannot be guessed over."""
        needs = sequence.needs
        is_free = not (needs.repetition or needs.counts or needs.mask or needs.log_probabilities >= 0)
        if self.guesser is None or not is_free or not self.engine.can_verify(len(sequence.tokens)):
            return False
        guess = self.guesser.guess(sequence.tokens, CHECKED - 1)
        if not guess:
            return False
        for token in self.engine.verify(slot, sequence.tokens, guess, needs):
            if not sequence.is_done:
                sequence.add(token, None)
        if sequence.is_done:
            self._leave(slot)
        return True

    def _admit(self) -> None:
        free = [slot for slot in self._kept if slot not in self._running]
        if self._prefill is not None or not self._waiting or not free:
            return
        if self._waiting[0].slot is not None and self._waiting[0].slot not in free:
            return
        sequence = self._waiting.popleft()
        tokens = sequence.request.tokens
        if sequence.slot is None:
            slot = max(free, key=lambda slot: _common(self._kept[slot], tokens))
            start = min(_common(self._kept[slot], tokens), len(tokens) - 1)
        else:
            slot, start = sequence.slot, 0
        self._kept[slot] = []
        mask = None if sequence.constraint is None else sequence.constraint.allowed()
        self.engine.allow(slot, mask)
        chunks = self.engine.prefill(slot, tokens, start, sequence.request.sampling, sequence.needs)
        self._prefill = (slot, sequence, chunks)

    def _take(self, draw: Draw, rows: dict[int, int]) -> None:
        """Give the tokens of a draw to the sequences; `rows`: the slot of each row that counts."""
        tokens = draw.tokens.tolist()
        logs = _logs(draw)
        for row, slot in rows.items():
            sequence = self._running[slot]
            count = sequence.request.log_probabilities
            log = logs[row] if count is not None else None
            if log is not None:
                log = TokenLog(log.log_probability, dict(list(log.top.items())[:count]))
            sequence.add(tokens[row], log)
            if sequence.is_done:
                self._leave(slot)

    def _leave(self, slot: int) -> None:
        # the last token drawn is not in the cache
        self._kept[slot] = self._running.pop(slot).tokens[:-1]
        self.engine.release(slot)

    def _drop_cancelled(self) -> None:
        self._waiting = deque(s for s in self._waiting if not s.is_done)
        if self._prefill is not None and self._prefill[1].is_done:
            self._prefill = None
        for slot in [slot for slot, sequence in self._running.items() if sequence.is_done]:
            self._leave(slot)


def _common(a: list[int], b: tuple[int, ...]) -> int:
    """How many tokens at the beginning are the same."""
    n = 0
    for x, y in zip(a, b):
        if x != y:
            break
        n += 1
    return n


def _log_count(count: int | None) -> int:
    """How many of the likeliest tokens a Program tells where `count` are asked for, -1 for none at all. Few
    numbers, so that there are few Programs."""
    return -1 if count is None else next(n for n in _LOG_COUNTS if n >= count)


def _logs(draw: Draw) -> list[TokenLog | None]:
    if draw.log_probabilities is None:
        return [None] * draw.tokens.shape[0]
    log_probabilities = draw.log_probabilities.tolist()
    if draw.top is None or draw.top_log_probabilities is None:
        return [TokenLog(x, {}) for x in log_probabilities]
    tops = zip(draw.top.tolist(), draw.top_log_probabilities.tolist())
    return [TokenLog(x, dict(zip(*top))) for x, top in zip(log_probabilities, tops)]
