"""Answers that follow a grammar: JSON of a schema, or a regular expression, by the package llguidance.

Before each draw, the sampler gets a bit mask of the allowed tokens.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from typing import Any

from polygrad.errors import ArgumentError, DeviceError
from polygrad.generation.requests import Grammar
from polygrad.hf.tokenizer import Tokenizer


class _Constraint:
    def __init__(self, matcher: Any, vocabulary: int) -> None:
        self._matcher, self._size = matcher, -(-vocabulary // 8)

    @property
    def is_complete(self) -> bool:
        return bool(self._matcher.is_stopped())

    def allowed(self) -> bytes:
        return bytes(self._matcher.compute_bitmask())[: self._size].ljust(self._size, b"\0")

    def accept(self, token: int) -> None:
        self._matcher.consume_token(token)


class _Grammar:
    def __init__(self, library: Any, tokenizer: Any, text: str, vocabulary: int) -> None:
        self._library, self._tokenizer, self._text, self._vocabulary = library, tokenizer, text, vocabulary

    def begin(self) -> _Constraint:
        return _Constraint(self._library.LLMatcher(self._tokenizer, self._text), self._vocabulary)


def token_grammar(
    tokenizer: Tokenizer,
    vocabulary: int,
    schema: str | Mapping[str, Any] | None = None,
    pattern: str | None = None,
) -> Grammar:
    """The grammar of a JSON schema or of a regular expression, over a tokenizer's tokens. `vocabulary`: the
    number of the model's tokens. Raises ArgumentError for an invalid grammar, DeviceError if llguidance is
    missing."""
    try:
        library: Any = importlib.import_module("llguidance")
    except ImportError as e:
        raise DeviceError(
            'grammar: the package llguidance is not installed: pip install "polygrad[grammars]"'
        ) from e
    eos = tokenizer.eos_ids[0] if tokenizer.eos_ids else None
    tokens = library.LLTokenizer(tokenizer.json, n_vocab=vocabulary, eos_token=eos)
    try:
        if schema is not None:
            schema = schema if isinstance(schema, str) else json.dumps(schema)
            text = library.LLMatcher.grammar_from_json_schema(schema)
        else:
            text = library.LLMatcher.grammar_from_regex(pattern)
        wrong = library.LLMatcher.validate_grammar(text, tokens)
    except ValueError as e:
        wrong = str(e)
    if wrong:
        raise ArgumentError(f"grammar: {wrong}")
    return _Grammar(library, tokens, text, vocabulary)
