"""The package `tokenizers` as a `Backend`, for CPython."""

from __future__ import annotations

import json

import tokenizers

from polygrad.errors import ModelError
from polygrad.hf.tokenizer_json import TokenizerJson


def open_backend(tokenizer: TokenizerJson, file: str) -> NativeBackend:
    """Raises ModelError for what the package refuses."""
    try:
        # This package decodes, and adds special tokens around a text.
        data = {**tokenizer.data, "decoder": None, "post_processor": None}
        library_tokenizer = tokenizers.Tokenizer.from_str(json.dumps(data, ensure_ascii=False))
    except UnicodeEncodeError as e:
        raise ModelError(
            f"{file}: a lone surrogate, {e.object[e.start : e.end]!r}, which is not text"
        ) from None
    except BaseException as e:
        raise _own_error(e, f"{file}: refused by the package tokenizers") from e
    for token in tokenizer.added:
        # The package numbers added tokens itself, and so closes gaps before them.
        if (number := library_tokenizer.token_to_id(token)) != tokenizer.ids[token]:
            raise ModelError(
                f"{file}: added token {token[:80]!r} has the id {tokenizer.ids[token]}, the package "
                f"tokenizers gives it {number}: expected ids without gaps"
            )
    return NativeBackend(library_tokenizer, file)


class NativeBackend:
    """A `tokenizers.Tokenizer`."""

    def __init__(self, tokenizer: tokenizers.Tokenizer, file: str) -> None:
        self._made, self._file = tokenizer, file

    def encode(self, text: str) -> list[int]:
        try:
            return list(self._made.encode(text, add_special_tokens=False).ids)
        except BaseException as e:
            raise _own_error(e, f"{self._file}: the package tokenizers failed on {text[:40]!r}") from e


def _own_error(error: BaseException, what: str) -> BaseException:
    """Convert the package's errors: Exception, and panics that derive from BaseException, as of a pattern
    that gives up."""
    if isinstance(error, (KeyboardInterrupt, SystemExit, MemoryError)):
        return error
    return ModelError(f"{what}: {error}")
