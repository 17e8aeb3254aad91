"""Prompts as Requests: texts and conversations become tokens, and options get a model's defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from polygrad.errors import ArgumentError, ModelError
from polygrad.generation.requests import Grammar, Request
from polygrad.generation.sampling import Sampling
from polygrad.hf.tokenizer import Tokenizer
from polygrad.models.fields import Fields


@dataclass(frozen=True)
class Prompts:
    """`tokenizer`: None if there is none. `stop_tokens`: those that end an answer. `max_new_tokens` and
    `sampling`: what holds where a request says nothing else."""

    tokenizer: Tokenizer | None
    stop_tokens: Sequence[int] = ()
    max_new_tokens: int = 128
    sampling: Mapping[str, Any] = field(default_factory=dict)

    def request(
        self,
        prompt: Any,
        max_new_tokens: int | None = None,
        stop: str | Iterable[str] = (),
        stop_tokens: Iterable[int] | None = None,
        log_probabilities: int | None = None,
        grammar: Grammar | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        **sampling: Any,
    ) -> Request:
        """As `LanguageModel.request`. Raises ArgumentError, ModelError."""
        tokens = self._tokens(prompt, tools)
        stops = (stop,) if isinstance(stop, str) else tuple(stop)
        if stops and self.tokenizer is None:
            raise ModelError("stop: text needs a tokenizer, and the model has none")
        try:
            drawn = Sampling(**{**self.sampling, **sampling})
        except TypeError as e:
            names = ", ".join(f.name for f in fields(Sampling))
            raise ArgumentError(f"generate: {e}: options of sampling are {names}") from e
        return Request(
            tokens,
            self.max_new_tokens if max_new_tokens is None else max_new_tokens,
            drawn,
            frozenset(self.stop_tokens if stop_tokens is None else stop_tokens),
            stops,
            log_probabilities,
            grammar,
        )

    def _tokens(self, prompt: Any, tools: Sequence[Mapping[str, Any]] | None = None) -> tuple[int, ...]:
        if isinstance(prompt, Mapping):
            raise ArgumentError("prompt: expected text, token ids, or a list of messages, got one message")
        if tools and (isinstance(prompt, str) or not all(isinstance(m, Mapping) for m in prompt)):
            raise ArgumentError("tools: expected a list of messages as prompt: a chat template writes them")
        if not isinstance(prompt, str) and all(type(t) is int for t in prompt):
            return tuple(prompt)
        if self.tokenizer is None:
            raise ModelError("prompt: text needs a tokenizer, and the model has none: pass token ids")
        if isinstance(prompt, str):
            return tuple(self.tokenizer.encode(prompt))
        if tools and not self.tokenizer.takes_tools:
            raise ModelError("tools: the model's chat template has no place for them")
        # templates contain the special tokens
        text = self.tokenizer.apply_chat_template(prompt, tools or None, add_generation_prompt=True)
        return tuple(self.tokenizer.encode(text, add_special_tokens=False))


def default_sampling(generation: Fields) -> dict[str, Any]:
    """The options of `Sampling` that generation_config.json gives."""
    if not generation.flag("do_sample", False):
        return {}
    return {
        "temperature": generation.number("temperature", 1.0),
        "top_k": generation.integer("top_k", 50, least=0),
        "top_p": generation.number("top_p", 1.0),
        "min_p": generation.number("min_p", 0.0),
        "repetition_penalty": generation.number("repetition_penalty", 1.0),
    }
