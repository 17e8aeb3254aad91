"""The steps of generation as a file contains them: one sequence, and settings of sampling that are state.

    prefill8, prefill32, ...   a chunk of a prompt, `tokens` int32 (1, n) at position `start`, of which the
                               token `last` is the last one: what follows it has the scores `logits`
    decode                     the scores after the last token drawn, `token`; `length`: all tokens, with it
    penalize                   changes the scores as settings say; `drawn`: 1 if `token` was drawn, so counts
    greedy, draw, threshold,   draws the token for `position` by the scores, which is `token` from then on
    candidates16, ...

The engine (`engine.py`) draws in the model's Programs. Here the variants of drawing are Programs of their
own, so that there is one Program of the model for each number of tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from polygrad import nn
from polygrad.capture.capture import capture
from polygrad.capture.save import SavedStep, Steps
from polygrad.generation.engine import chunk_lengths
from polygrad.generation.sampling import MOST_CANDIDATES, Needs, Sampler
from polygrad.models.cache import TokenSpan
from polygrad.models.causal_lm import CausalLM
from polygrad.tensor.core.base import DTypeLike
from polygrad.tensor.tensor import Tensor
from polygrad.tensor.variable import Variable

_PENALTIES = Needs(bias=True, repetition=True, counts=True)
_LEAST_CANDIDATES = 16


@dataclass(frozen=True)
class _State:
    """What the steps share: `token`, the last one drawn, int32 (1,); `logits`, float32 (1, vocabulary)."""

    model: CausalLM
    capacity: int
    cache: Any
    sampler: Sampler
    token: Tensor
    logits: Tensor


def draw_name(needs: Needs) -> str:
    """The step that draws where `needs` is needed.

    >>> draw_name(Needs()), draw_name(Needs(draw=True, threshold=True)), draw_name(Needs(True, candidates=64))
    ('greedy', 'threshold', 'candidates64')
    """
    if needs.candidates:
        return f"candidates{needs.candidates}"
    return "threshold" if needs.threshold else "draw" if needs.draw else "greedy"


def _draws() -> dict[str, Needs]:
    """The variants of drawing, by the names of their steps."""
    counts = [n for n in (1 << i for i in range(11)) if _LEAST_CANDIDATES <= n <= MOST_CANDIDATES]
    variants = [Needs(), Needs(draw=True), Needs(draw=True, threshold=True)]
    variants += [Needs(draw=True, candidates=count) for count in counts]
    return {draw_name(needs): needs for needs in variants}


def capture_steps(model: CausalLM, capacity: int, cache_dtype: DTypeLike, values: dict[str, Tensor]) -> Steps:
    """The steps of a model that generates, with a cache of `capacity` tokens. `values`: its weights by name.

    Nothing is run. Raises CaptureError.
    """
    cache = model.new_cache(1, capacity, cache_dtype)
    sampler = Sampler(1, model.vocabulary, cache.device)
    sampler.make(_PENALTIES)
    token = Tensor.zeros(1, dtype="int32", device=cache.device)
    logits = Tensor.zeros(1, model.vocabulary, dtype="float32", device=cache.device)
    state = _State(model, capacity, cache, sampler, nn.Buffer(token, False), nn.Buffer(logits, False))
    layers = {"keys": cache.keys, "values": cache.values}
    caches = {f"cache.{kind}.{i}": t for kind, ts in layers.items() for i, t in enumerate(ts)}
    settings = {f"sampling.{name}": t for name, t in sampler.buffers().items()}
    own = {"token": state.token, "logits": state.logits, **caches, **settings}
    first, *others = (*values.values(), *own.values())
    first.realize(*others)
    with Tensor.no_grad():
        steps = {f"prefill{n}": _prefill(state, n) for n in chunk_lengths(capacity)}
        steps["decode"] = _decode(state)
        steps["penalize"] = _penalize(state)
        steps |= {name: _draw(state, needs) for name, needs in _draws().items()}
    return Steps(steps, values | own, zeros=frozenset(own))


def _prefill(state: _State, length: int) -> SavedStep:
    tokens = Tensor([[0] * length], state.cache.device, "int32")
    start = Variable("start", 0, max(state.capacity - length, 0)).bind(0)
    last = Variable("last", 0, length - 1).bind(length - 1)

    def prefill() -> None:
        span = TokenSpan(state.cache, 0, start, length)
        state.logits.assign(state.model.next_logits(tokens, span, last).float())

    return _saved(prefill, tokens=tokens)


def _decode(state: _State) -> SavedStep:
    length = Variable("length", 1, state.capacity).bind(1)

    def decode() -> None:
        span = TokenSpan(state.cache, 0, length - 1, 1)
        state.logits.assign(state.model.next_logits(state.token.reshape(1, 1), span).float())

    return _saved(decode)


def _penalize(state: _State) -> SavedStep:
    drawn = Variable("drawn", 0, 1).bind(0)

    def penalize() -> None:
        counted = (state.token + 1) * Tensor(drawn).cast("int32") - 1
        state.sampler.count(slice(0, 1), counted, _PENALTIES)
        state.logits.assign(state.sampler.penalize(state.logits, slice(0, 1), _PENALTIES))

    return _saved(penalize)


def _draw(state: _State, needs: Needs) -> SavedStep:
    position = Variable("position", 0, state.capacity).bind(0)

    def draw() -> None:
        positions = Tensor(position).cast("int32").reshape(1)
        state.token.assign(state.sampler.choose(state.logits, slice(0, 1), positions, needs))

    return _saved(draw)


def _saved(call: Callable[[], None], **inputs: Tensor) -> SavedStep:
    return SavedStep(capture(call, list(inputs.values()), list(inputs)), list(inputs))
