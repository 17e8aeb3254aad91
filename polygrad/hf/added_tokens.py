"""Finds added tokens in text as the package `tokenizers` does, for hosts whose library behaves differently.

Tokens that are not normalized are found first, in the original text: the leftmost match, and of those the
longest. The others are then found in the remaining text, after normalization.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

_SPACE = "[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
_SPACES_AT_END = re.compile(f"{_SPACE}*\\Z")
_SPACES_AT_START = re.compile(f"{_SPACE}*")


@dataclass(frozen=True, slots=True)
class _Token:
    id: int
    single_word: bool
    lstrip: bool
    rstrip: bool


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a text: an added token's `id`, or normalized `text`. `first`: whether it begins the whole
    text."""

    text: str
    id: int | None = None
    first: bool = False


class AddedTokens:
    """`entries`: the checked `added_tokens` of a tokenizer.json. `normalize`: its normalizer."""

    def __init__(self, entries: list[dict[str, Any]], normalize: Callable[[str], str]) -> None:
        self._normalize = normalize
        self._plain = _Finder({e["content"]: e for e in entries if not _is_normalized(e)})
        self._normalized = _Finder({normalize(e["content"]): e for e in entries if _is_normalized(e)})

    def sections(self, text: str) -> Iterator[Section]:
        """The non-empty parts of `text` in order."""
        for start, end, id in self._plain.find(text):
            if id is not None:
                yield Section(text[start:end], id)
                continue
            normal = self._normalize(text[start:end])
            for inner_start, inner_end, inner in self._normalized.find(normal):
                part = normal[inner_start:inner_end]
                if part:
                    yield Section(part, inner, inner is None and start == inner_start == 0)


def _is_normalized(entry: dict[str, Any]) -> bool:
    return bool(entry.get("normalized", not entry.get("special", False)))


class _Finder:
    def __init__(self, entries: dict[str, dict[str, Any]]) -> None:
        self._tokens = {
            content: _Token(e["id"], *(bool(e.get(flag)) for flag in ("single_word", "lstrip", "rstrip")))
            for content, e in entries.items()
            if content
        }
        longest_first = sorted(self._tokens, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def find(self, text: str) -> Iterator[tuple[int, int, int | None]]:
        """The parts of `text`: start, end, and the id of each that is a token."""
        position = 0
        for match in self._pattern.finditer(text) if self._pattern else ():
            start, end, token = match.start(), match.end(), self._tokens[match[0]]
            if token.single_word and (_is_word(text[start - 1 : start]) or _is_word(text[end : end + 1])):
                continue
            if token.lstrip:
                space = _SPACES_AT_END.search(text, 0, start)
                start = max(space.start() if space else start, position)
            if token.rstrip:
                space = _SPACES_AT_START.match(text, end)
                end = space.end() if space else end
            if position < start:
                yield position, start, None
            yield max(start, position), end, token.id
            position = end
        if position < len(text):
            yield position, len(text), None


def _is_word(character: str) -> bool:
    """Whether a character, or the end of the text, continues a word."""
    if not character:
        return False
    category = unicodedata.category(character)
    circled = "\u24b6" <= character <= "\u24e9" or "\U0001f130" <= character <= "\U0001f189"
    return category[0] in "LM" or category in ("Nd", "Nl", "Pc") or character in "\u200c\u200d" or circled


class LibraryTokenizer(Protocol):
    """A library's tokenizer without support for added tokens."""

    def normalize(self, text: str) -> str:
        """The normalized text."""

    def encode(self, text: str, first: bool) -> list[int]:
        """The ids of normalized text. `first`: whether it begins the whole text."""


class SectionedBackend:
    """A `TokenizerBackend` for a library that does not find added tokens, or finds others."""

    def __init__(self, entries: list[dict[str, Any]], library: LibraryTokenizer) -> None:
        self._library = library
        self._added = AddedTokens(entries, library.normalize)

    def encode(self, text: str) -> list[int]:
        out: list[int] = []
        for section in self._added.sections(text):
            out += self._library.encode(section.text, section.first) if section.id is None else [section.id]
        return out
