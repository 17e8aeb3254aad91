"""The engine of generation: a model, its cache, and the Programs that extend it.

Sequences live in slots. `prefill` puts a prompt into a slot and draws its first token, `decode` draws the
next token of all sequences, `verify` checks guessed tokens. Each has one captured Program for each number of
tokens that it processes; growing sizes are Variables, so no length is compiled for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from polygrad import nn
from polygrad.capture.jit import TinyJit
from polygrad.errors import ArgumentError
from polygrad.generation.sampling import Draw, Needs, Sampler, Sampling
from polygrad.models.cache import NextTokens, TokenSpan
from polygrad.models.causal_lm import CausalLM
from polygrad.tensor.core.base import DTypeLike
from polygrad.tensor.tensor import Tensor
from polygrad.tensor.variable import Variable

# The number of tokens that one Program checks: the last one drawn, and the guessed ones after it.
CHECKED = 8
# The numbers of tokens that Programs of a prompt process. A prompt is divided into chunks of these lengths;
# the last chunk begins early enough to be full, so some tokens are computed twice.
CHUNK_LENGTHS = (8, 32, 128, 512)


class TokenEngine(Protocol):
    """What a scheduler needs of an engine."""

    slots: int
    capacity: int

    @property
    def vocabulary(self) -> int:
        """How many tokens there are."""
        ...

    def allow(self, slot: int, bits: bytes | None) -> None:
        """See `Sampler.allow`."""
        ...

    def prefill(
        self, slot: int, tokens: Sequence[int], start: int, sampling: Sampling, needs: Needs
    ) -> Iterator[Draw | None]:
        """See `Engine.prefill`."""
        ...

    def decode(self, length: int, needs: Needs) -> Draw:
        """See `Engine.decode`."""
        ...

    def verify(self, slot: int, tokens: Sequence[int], guess: Sequence[int], needs: Needs) -> list[int]:
        """See `Engine.verify`."""
        ...

    def can_verify(self, length: int) -> bool:
        """See `Engine.can_verify`."""
        ...

    def release(self, slot: int) -> None:
        """See `Engine.release`."""
        ...


class Engine:
    """A model with a cache for `slots` sequences of up to `capacity` tokens, prompt and answer together.

    `cache_dtype`: of keys and values. Raises ArgumentError.
    """

    def __init__(
        self,
        model: CausalLM,
        slots: int = 1,
        capacity: int | None = None,
        cache_dtype: DTypeLike = "float32",
    ) -> None:
        capacity = model.max_length if capacity is None else capacity
        if slots < 1:
            raise ArgumentError(f"slots: expected at least 1, got {slots}")
        if not 1 <= capacity <= model.max_length:
            raise ArgumentError(f"capacity: expected 1 to {model.max_length}, got {capacity}")
        self.model, self.slots, self.capacity = model, slots, capacity
        self.cache = model.new_cache(slots, capacity, cache_dtype)
        self.sampler = Sampler(slots, model.vocabulary, self.cache.device)
        self._tokens = nn.Buffer(self._integers([0] * slots), persistent=False)
        self._positions = nn.Buffer(self._integers([capacity] * slots), persistent=False)
        self._programs: dict[Any, TinyJit] = {}
        self._slot = Variable("slot", 0, slots - 1)
        self._length = Variable("length", 1, capacity)

    @property
    def vocabulary(self) -> int:
        """How many tokens there are."""
        return self.model.vocabulary

    def allow(self, slot: int, bits: bytes | None) -> None:
        """See `Sampler.allow`."""
        self.sampler.allow(slot, bits)

    def prefill(
        self, slot: int, tokens: Sequence[int], start: int, sampling: Sampling, needs: Needs
    ) -> Iterator[Draw | None]:
        """Put the tokens of a sequence from position `start` on into `slot`, run by run; None after each but
        the last, after which the first token is drawn. Those before `start` are there already."""
        chunks = chunks_of(len(tokens), start, chunk_lengths(self.capacity))
        for first, length in chunks[:-1]:
            self._run(slot, tokens, first, length, None)
            yield None
        self.sampler.start(slot, sampling, tokens)
        yield self._run(slot, tokens, *chunks[-1], needs)

    def verify(self, slot: int, tokens: Sequence[int], guess: Sequence[int], needs: Needs) -> list[int]:
        """Draw the tokens that follow those of the sequence in `slot`, the last of which is not in the cache
        yet, as long as `guess` is what is drawn; these, and the one after. One run of the model."""
        key = ("verify", needs)
        if key not in self._programs:
            self._programs[key] = TinyJit(self._check(needs))
        guess = list(guess[: CHECKED - 1])
        padding = CHECKED - 1 - len(guess)
        start = Variable(f"start{CHECKED}", 0, self.capacity - CHECKED)
        with Tensor.no_grad():
            draws, count = self._programs[key](
                self._integers([[tokens[-1], *guess, *[0] * padding]]),
                self._integers([*guess, *[-1] * (padding + 1)]),
                self._slot.bind(slot),
                start.bind(len(tokens) - 1),
            )
        return draws.tolist()[: int(count.item())]

    def can_verify(self, length: int) -> bool:
        """Whether the cache has room for a check after `length` tokens."""
        return length - 1 + CHECKED <= self.capacity

    def rearrange(self, order: Sequence[int], tokens: Sequence[int]) -> None:
        """Move the sequence in slot `order[i]` to slot i, with `tokens[i]` as its last token."""
        if "rearrange" not in self._programs:
            self._programs["rearrange"] = TinyJit(self._move)
        with Tensor.no_grad():
            self._programs["rearrange"](self._integers(order), self._integers(tokens))

    def release(self, slot: int) -> None:
        """Nothing more is written for the sequence in `slot`, though the tokens of others are drawn."""
        if self.slots > 1:
            self._positions[slot].assign(self.capacity).realize()

    def decode(self, length: int, needs: Needs) -> Draw:
        """Draw the next token of the sequence in each slot, of which none has more than `length` tokens, the
        last drawn included."""
        key = ("decode", needs)
        if key not in self._programs:
            self._programs[key] = TinyJit(
                self._decode_one(needs) if self.slots == 1 else self._decode_all(needs)
            )
        with Tensor.no_grad():
            return self._programs[key](self._length.bind(length))

    def _run(
        self, slot: int, tokens: Sequence[int], first: int, length: int, needs: Needs | None
    ) -> Draw | None:
        """Tokens `first` to `first + length` of a sequence, of which the last may be beyond its end. Unless
        `needs` is None the token that follows is drawn."""
        key = ("run", length, needs)
        if key not in self._programs:
            self._programs[key] = TinyJit(
                self._fill(length) if needs is None else self._extend(length, needs)
            )
        chunk = tokens[first : first + length]
        padded_chunk = [*chunk, *[0] * (length - len(chunk))]
        start = Variable(f"start{length}", 0, max(self.capacity - length, 0))
        last = Variable(f"last{length}", 0, length - 1)
        with Tensor.no_grad():
            return self._programs[key](
                self._integers([padded_chunk]),
                self._slot.bind(slot),
                start.bind(first),
                last.bind(len(chunk) - 1),
            )

    def _integers(self, values: Any) -> Tensor:
        return Tensor(values, self.cache.device, "int32")

    def _fill(self, length: int) -> Any:
        def fill(tokens: Tensor, slot: Any, start: Any, last: Any) -> None:
            slot = slot if self.slots > 1 else 0
            self.model.fill(tokens, TokenSpan(self.cache, slot, start, length))

        return fill

    def _extend(self, length: int, needs: Needs) -> Any:
        def extend(tokens: Tensor, slot: Any, start: Any, last: Any) -> Draw:
            slot = slot if self.slots > 1 else 0
            logits = self.model.next_logits(tokens, TokenSpan(self.cache, slot, start, length), last)
            position = Tensor(start + last + 1).cast("int32").reshape(1)
            draw = self.sampler.sample(logits, slot, position, needs)
            self._tokens[slot : slot + 1].assign(draw.tokens)
            self._positions[slot : slot + 1].assign(position)
            return draw

        return extend

    def _move(self, order: Tensor, tokens: Tensor) -> None:
        for buffer in (*self.cache.keys, *self.cache.values, self._positions):
            buffer.assign(buffer[order].contiguous())
        self._tokens.assign(tokens)

    def _check(self, needs: Needs) -> Any:
        def check(tokens: Tensor, guess: Tensor, slot: Any, start: Any) -> tuple[Tensor, Tensor]:
            slot = slot if self.slots > 1 else 0
            logits = self.model.run_logits(tokens, TokenSpan(self.cache, slot, start, CHECKED))[0]
            positions = Tensor.arange(CHECKED, dtype="int32") + (start + 1)
            draws = self.sampler.sample(logits, slot, positions, needs, is_one_slot=True).tokens
            count = draws.eq(guess).cast("int32").cumprod(0).sum() + 1
            last = count.reshape(1) - 1
            self._tokens[slot : slot + 1].assign(draws.gather(0, last))
            self._positions[slot : slot + 1].assign(positions.gather(0, last))
            return draws, count

        return check

    def _decode_one(self, needs: Needs) -> Any:
        def decode(length: Any) -> Draw:
            view = TokenSpan(self.cache, 0, length - 1, 1)
            logits = self.model.next_logits(self._tokens.reshape(1, 1), view)
            return self._advance(logits, needs)

        return decode

    def _decode_all(self, needs: Needs) -> Any:
        def decode(length: Any) -> Draw:
            view = NextTokens(self.cache, self._positions, length)
            logits = self.model.next_logits(self._tokens.unsqueeze(1), view)
            return self._advance(logits, needs)

        return decode

    def _advance(self, logits: Tensor, needs: Needs) -> Draw:
        # an empty slot has a position beyond the cache, so nothing is written for it
        positions = (self._positions + 1).minimum(self.capacity)
        draw = self.sampler.sample(logits, 0, positions, needs)
        self._tokens.assign(draw.tokens)
        self._positions.assign(positions)
        return draw


def chunk_lengths(capacity: int) -> list[int]:
    """The numbers of tokens that Programs of a prompt process, for a cache of `capacity` tokens: those of
    CHUNK_LENGTHS that fit, or 1."""
    return [n for n in CHUNK_LENGTHS if n <= capacity] or [1]


def chunks_of(count: int, start: int, lengths: Sequence[int]) -> list[tuple[int, int]]:
    """(first, length) of the chunks for tokens `start` to `count` of a sequence."""
    out = []
    while start < count:
        remaining = count - start
        length = next((n for n in lengths if n >= remaining), lengths[-1])
        first = start
        if length > remaining:  # ends with the sequence, or begins with it
            first = max(count - length, 0)
        out.append((first, length))
        start = first + length
    return out
