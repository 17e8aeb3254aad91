"""Tokenizers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Tokenizer:
    """A tokenizer."""

    @classmethod
    def from_files(cls, files: Mapping[str, bytes]) -> Tokenizer:
        """Of a folder's files."""
        import tokenizers

        out = cls()
        out._inner = tokenizers.Tokenizer.from_str(files["tokenizer.json"].decode())
        return out

    _inner: Any

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Ids."""
        return self._inner.encode(text, add_special_tokens=add_special_tokens).ids

    def stream(self) -> Any:
        """Text of tokens as they come."""
        inner = self._inner

        class Stream:
            def push(self, token: int) -> str:
                return inner.decode([token])

            def flush(self) -> str:
                return ""

        return Stream()
