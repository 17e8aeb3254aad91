"""How the next token is drawn: what one asks for (`Sampling`), and its computation on the device (`Sampler`).

Settings and seeds of all sequences are elements of buffers, so that one captured Program serves them all. A
draw depends on a sequence's seed and on the token's position alone: a sequence gets the same tokens whatever
runs beside it, and a token that was guessed ahead is right if the draw at its position gives it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from polygrad import nn
from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError
from polygrad.tensor.core.generator import generator
from polygrad.tensor.tensor import Tensor

MOST_CANDIDATES = 1024  # up to this top_k, a draw looks at the greatest scores alone
_KEY_BITS = 32


def _is_seed(value: Any) -> bool:
    return value is None or (isinstance(value, int) and 0 <= value < 1 << 64)


@dataclass(frozen=True)
class Sampling:
    """How to draw tokens. Applied in this order, as transformers does:

    `logit_bias`: what is added to the scores of tokens. `repetition_penalty`: scores of tokens that stand in
    the prompt or were drawn are divided by it, or multiplied where negative (Keskar et al., 2019).
    `presence_penalty`, `frequency_penalty`: taken off the scores of tokens that were drawn, once, and once
    for each time. `temperature`: divides scores; 0 takes the greatest. `top_k`: as many tokens stay (0: all).
    `top_p`: the likeliest tokens stay that together have this probability (Holtzman et al., 2020). `min_p`:
    tokens stay that have this part of the likeliest token's probability. `seed`: of the draws;
    None: a fresh one for each answer, which `Tensor.manual_seed` before makes the same again.

    Raises ArgumentError.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    seed: int | None = None

    def __post_init__(self) -> None:
        for name, is_good, expected in (
            ("temperature", self.temperature >= 0, "at least 0"),
            ("top_k", self.top_k >= 0 and isinstance(self.top_k, int), "an integer from 0"),
            ("top_p", 0 < self.top_p <= 1, "more than 0, at most 1"),
            ("min_p", 0 <= self.min_p <= 1, "from 0 to 1"),
            ("repetition_penalty", self.repetition_penalty > 0, "more than 0"),
            ("presence_penalty", math.isfinite(self.presence_penalty), "a finite number"),
            ("frequency_penalty", math.isfinite(self.frequency_penalty), "a finite number"),
            ("seed", _is_seed(self.seed), "an integer of 64 bits"),
        ):
            value = getattr(self, name)
            if not is_good or (isinstance(value, float) and not math.isfinite(value)):
                raise ArgumentError(f"{name}: expected {expected}, got {value}")

    def with_seed(self) -> Sampling:
        """The same, with a seed that is drawn if there is none and tokens are drawn.

        >>> Sampling(temperature=1.0, seed=3).with_seed().seed, Sampling().with_seed().seed
        (3, None)
        >>> Sampling(temperature=1.0).with_seed() == Sampling(temperature=1.0).with_seed()
        False
        """
        is_fixed = self.seed is not None or self.temperature == 0
        return self if is_fixed else replace(self, seed=generator.draw_seed())

    def numbers(self, vocabulary: int) -> list[float]:
        """Its numbers in the order of the buffer `numbers` of a `Sampler`."""
        first = [self.temperature, float(self.top_k or vocabulary), self.top_p, self.min_p]
        return [*first, self.repetition_penalty, self.presence_penalty, self.frequency_penalty]

    @property
    def needs(self) -> Needs:
        """What has to be computed for it."""
        is_drawn = self.temperature > 0
        is_short = is_drawn and 0 < self.top_k <= MOST_CANDIDATES
        return Needs(
            draw=is_drawn,
            candidates=1 << max(self.top_k - 1, 15).bit_length() if is_short else 0,
            threshold=is_drawn and not is_short and (self.top_k > 0 or self.top_p < 1),
            bias=bool(self.logit_bias),
            repetition=self.repetition_penalty != 1,
            counts=self.presence_penalty != 0 or self.frequency_penalty != 0,
        )


@dataclass(frozen=True)
class Needs:
    """What a Program has to compute for the sequences that it serves.

    `draw`: some are drawn; else all take the greatest score. `candidates`: how many of the greatest scores
    are enough for those that are drawn; 0: all are needed. `threshold`: the least score that stays has to be
    searched for. `bias`, `repetition`, `counts`: what changes scores. `mask`: some tokens are not allowed.
    `log_probabilities`: how many of the likeliest tokens are told with theirs; -1: none are told.
    """

    draw: bool = False
    candidates: int = 0
    threshold: bool = False
    bias: bool = False
    repetition: bool = False
    counts: bool = False
    mask: bool = False
    log_probabilities: int = -1

    def __or__(self, other: Needs) -> Needs:
        """What serves the sequences of both."""
        maxima = {f.name: max(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)}
        both_short = all(not x.draw or x.candidates for x in (self, other))
        maxima["candidates"] = maxima["candidates"] if both_short else 0
        maxima["threshold"] = maxima["threshold"] or (
            not both_short and (self.candidates > 0 or other.candidates > 0)
        )
        return Needs(**maxima)


class Draw(NamedTuple):
    """`tokens`: int32 (rows,). `log_probabilities`: of these, (rows,), and of the likeliest tokens `top`,
    (rows, n), `top_log_probabilities`; None where none are asked for."""

    tokens: Tensor
    log_probabilities: Tensor | None = None
    top: Tensor | None = None
    top_log_probabilities: Tensor | None = None


class Sampler:
    """Draws tokens of `slots` sequences over `vocabulary` tokens, on `device`. Its buffers are
    what the captured Programs read; large ones are made when they are first needed."""

    def __init__(self, slots: int, vocabulary: int, device: str | None = None) -> None:
        self.slots, self.vocabulary, self.device = slots, vocabulary, device
        self._numbers = self._buffer(slots, 7, dtype="float32")
        self._seeds = self._buffer(slots, dtype="uint64")
        self._bias: Tensor | None = None
        self._is_seen: Tensor | None = None
        self._counts: Tensor | None = None
        self._mask: Tensor | None = None

    def start(self, slot: int, sampling: Sampling, prompt: Sequence[int]) -> None:
        """From now on the sequence in `slot` is drawn as `sampling` says, after a prompt."""
        s, numbers = sampling, sampling.numbers(self.vocabulary)
        self._numbers[slot].assign(Tensor(numbers, self.device, "float32")).realize()
        self._seeds[slot].assign(Tensor(s.seed or 0, self.device, "uint64")).realize()
        self.make(s.needs)
        if self._bias is not None:
            self._bias[slot].assign(self._row(s.logit_bias)).realize()
        if self._is_seen is not None:
            token_flags = bytearray(self.vocabulary)
            for token in prompt:
                token_flags[token] = 1
            self._is_seen[slot].assign(Tensor(bytes(token_flags), self.device, "uint8")).realize()
        if self._counts is not None:
            self._counts[slot].assign(
                Tensor.zeros(self.vocabulary, dtype="int32", device=self.device)
            ).realize()

    def allow(self, slot: int, bits: bytes | None) -> None:
        """The next token of the sequence in `slot` is one whose bit is set, low bits first; None: any is."""
        if bits is None:
            if self._mask is None:
                return
            bits = b"\xff" * self._mask.shape[1]
        self.make(Needs(mask=True))
        assert self._mask is not None
        self._mask[slot].assign(Tensor(bits, self.device, "uint8")).realize()

    def sample(
        self, logits: Tensor, first: Any, positions: Tensor, needs: Needs, is_one_slot: bool = False
    ) -> Draw:
        """Draw one token for each row of `logits`, (rows, vocabulary), the first of which is of slot `first`,
        an int or a Variable, and so are the others if `is_one_slot`. `positions` (rows,): where the tokens
        go. What is drawn is counted."""
        rows = logits.shape[0]
        slots = slice(first, first + (1 if is_one_slot else rows))
        tokens = self.choose(self.penalize(logits, slots, needs), slots, positions, needs)
        self.count(slots, tokens, needs)
        return _with_log_probabilities(logits, tokens, needs)

    def penalize(self, logits: Tensor, slots: slice, needs: Needs) -> Tensor:
        """The scores of tokens for the sequences in `slots`, float32 (rows, vocabulary): `logits` with bias,
        masks and penalties."""
        repetition, presence, frequency = (self._numbers[slots, i : i + 1] for i in range(4, 7))
        scores = logits.float()
        if needs.bias and self._bias is not None:
            scores = scores + self._bias[slots]
        if needs.mask and self._mask is not None:
            bits = (self._mask[slots].unsqueeze(-1) >> Tensor.arange(8, dtype="uint8")) & 1
            is_allowed = bits.reshape(scores.shape[0], -1)[:, : self.vocabulary].ne(0)
            scores = is_allowed.where(scores, -math.inf)
        if needs.repetition and self._is_seen is not None:
            penalized = (scores > 0).where(scores / repetition, scores * repetition)
            scores = self._is_seen[slots].ne(0).where(penalized, scores)
        if needs.counts and self._counts is not None:
            counts = self._counts[slots]
            scores = scores - presence * (counts > 0) - frequency * counts
        return scores

    def choose(self, scores: Tensor, slots: slice, positions: Tensor, needs: Needs) -> Tensor:
        """The tokens that are drawn by `scores`, int32 (rows,)."""
        temperature, top_k, top_p, min_p = (self._numbers[slots, i : i + 1] for i in range(4))
        tokens = scores.argmax(-1)
        if needs.draw:
            unit = _unit(self._seeds[slots].expand(scores.shape[0]), positions)
            warm = temperature.eq(0).where(1.0, temperature)
            drawn_tokens = _draw(scores / warm, top_k, top_p, min_p, unit, needs)
            tokens = temperature.squeeze(1).eq(0).where(tokens, drawn_tokens)
        return tokens.cast("int32")

    def count(self, slots: slice, tokens: Tensor, needs: Needs) -> None:
        """Note that `tokens` (rows,) were drawn for the sequences in `slots`, where penalties need it.
        Numbers that are no tokens, as -1, are not noted."""
        is_drawn = tokens.unsqueeze(1).eq(Tensor.arange(self.vocabulary, dtype="int32"))
        if needs.repetition and self._is_seen is not None:
            self._is_seen[slots].assign(self._is_seen[slots] | is_drawn.cast("uint8"))
        if needs.counts and self._counts is not None:
            self._counts[slots].assign(self._counts[slots] + is_drawn.cast("int32"))

    def buffers(self) -> dict[str, Tensor]:
        """What draws read, by name, each with a row for every slot; those that there are.

        `numbers`: temperature, top_k (the vocabulary's size for all), top_p, min_p, and the penalties for
        repetition, presence and frequency. `seeds`: uint64. `bias`: what is added to scores. `seen`: 1 for
        tokens of the prompt and drawn ones. `counts`: how often tokens were drawn. `mask`: see `allow`.
        """
        named = {
            "numbers": self._numbers, "seeds": self._seeds, "bias": self._bias, "seen": self._is_seen,
            "counts": self._counts, "mask": self._mask,
        }  # fmt: skip
        return {name: t for name, t in named.items() if t is not None}

    def make(self, needs: Needs) -> None:
        """Make the buffers that `needs` asks for, if there are none yet."""
        if needs.bias and self._bias is None:
            self._bias = self._buffer(self.slots, self.vocabulary, dtype="float32")
        if needs.repetition and self._is_seen is None:
            self._is_seen = self._buffer(self.slots, self.vocabulary, dtype="uint8")
        if needs.counts and self._counts is None:
            self._counts = self._buffer(self.slots, self.vocabulary, dtype="int32")
        if needs.mask and self._mask is None:
            self._mask = nn.Buffer(
                Tensor.full((self.slots, -(-self.vocabulary // 8)), 255, dtype="uint8", device=self.device),
                False,
            )

    def _buffer(self, *shape: int, dtype: str) -> Tensor:
        return nn.Buffer(Tensor.zeros(*shape, dtype=dtype, device=self.device), persistent=False)

    def _row(self, bias: Mapping[int, float]) -> Tensor:
        values = [0.0] * self.vocabulary
        for token, value in bias.items():
            if not 0 <= token < self.vocabulary:
                raise ArgumentError(f"logit_bias: token {token} is not one of {self.vocabulary}")
            values[token] = max(value, -1e30)
        return Tensor(values, self.device, "float32")


def _unit(seeds: Tensor, positions: Tensor) -> Tensor:
    """One number from [0, 1) for each row, (rows, 1): a hash of its seed and its position."""
    bits = positions.cast("uint64").threefry(seeds)
    return ((bits >> 40).cast("float32") * 2.0**-24).unsqueeze(1)


def _draw(scores: Tensor, top_k: Tensor, top_p: Tensor, min_p: Tensor, unit: Tensor, needs: Needs) -> Tensor:
    """The tokens that `unit` (rows, 1) chooses by the probabilities of those that stay, (rows,)."""
    if needs.candidates:
        count = min(needs.candidates, int(scores.shape[1]))
        values, tokens = scores.topk(count)
        weights = (values - values[:, :1]).exp()
        weights = (Tensor.arange(count) < top_k).where(weights, 0.0)
        before = weights.cumsum(-1) - weights
        stays = (before < top_p * weights.sum(-1, keepdim=True)) & (weights >= min_p)
        place = _place(stays.where(weights, 0.0), unit)
        return tokens.gather(1, place.unsqueeze(1)).squeeze(1)
    weights = (scores - scores.max(-1, keepdim=True)).exp().contiguous()
    if needs.threshold:
        weights = _likeliest(weights, top_k, top_p)
    return _place((weights >= min_p).where(weights, 0.0), unit)


def _place(weights: Tensor, unit: Tensor) -> Tensor:
    """The first place at which the running sum of `weights` exceeds that part of the whole, int32 (rows,)."""
    sums = weights.cumsum(-1).contiguous()
    # a sum may round to the whole early: the last place whose weight is not 0 is the last that can be meant
    target = unit * sums[:, -1:]
    place = (sums <= target).sum(-1)
    last = (sums < sums[:, -1:]).sum(-1)
    return place.minimum(last).cast("int32")


def _likeliest(weights: Tensor, top_k: Tensor, top_p: Tensor) -> Tensor:
    """`weights` without those that `top_k` or `top_p` leaves out, which become 0.

    The bits of floats from 0 on are in the floats' order, so the least weight that stays is found bit by bit.
    """
    keys = weights.bitcast(dtypes.int32)
    ones = Tensor.ones(weights.shape[0], 1, dtype="float32")
    by_count = _greatest_key(keys, ones, top_k)
    weights = (keys >= by_count).where(weights, 0.0).contiguous()
    by_mass = _greatest_key(keys, weights, top_p * weights.sum(-1, keepdim=True))
    return (keys >= by_mass).where(weights, 0.0)


def _greatest_key(keys: Tensor, amounts: Tensor, least: Tensor) -> Tensor:
    """The greatest key so that the `amounts` of keys not below it sum to `least` at least, (rows, 1)."""
    greatest = Tensor.zeros(keys.shape[0], 1, dtype="int32").contiguous()
    bit = Tensor.full((keys.shape[0], 1), 1 << (_KEY_BITS - 2), dtype="int32").contiguous()
    for _ in range(_KEY_BITS - 1):
        candidate = (greatest + bit).contiguous()
        is_enough = (keys >= candidate).where(amounts, 0.0).sum(-1, keepdim=True) >= least
        greatest, bit = is_enough.where(candidate, greatest).contiguous(), (bit >> 1).contiguous()
    return greatest


def _with_log_probabilities(logits: Tensor, tokens: Tensor, needs: Needs) -> Draw:
    if needs.log_probabilities < 0:
        return Draw(tokens)
    logs = logits.float().log_softmax(-1)
    token_logs = logs.gather(1, tokens.unsqueeze(1)).squeeze(1)
    if not needs.log_probabilities:
        return Draw(tokens, token_logs)
    values, top = logs.topk(needs.log_probabilities)
    return Draw(tokens, token_logs, top.cast("int32"), values)
