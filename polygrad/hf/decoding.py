"""Incremental decoding of tokens to text: the decoders of tokenizer.json as a pipeline of stages.

Each stage emits the text that later tokens cannot change, and buffers the remainder. So the concatenated
output equals the library `tokenizers`' decoding of all tokens at once. A whole list is decoded in the same
way.
"""

from __future__ import annotations

import codecs
import re
from typing import Any

_REPLACEMENT = "\ufffd"


def byte_characters() -> dict[int, str]:
    """GPT-2's character for each byte: itself if it is printable, else one from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    out = {byte: chr(byte) for byte in printable}
    for byte in range(256):
        out.setdefault(byte, chr(0x100 + len(out) - len(printable)))
    return out


_BYTES = {character: byte for byte, character in byte_characters().items()}


class Stage:
    """A stage. `feed` takes tokens or, after a stage that joins them, parts of the one joined token."""

    joins = False  # whether the output is parts of one joined token

    def feed(self, token: str) -> list[str]:
        raise NotImplementedError

    def finish(self) -> list[str]:
        return []


class JoinBytes(Stage):
    """ByteLevel: characters that stand for bytes, and the text that these are in UTF-8."""

    joins = True

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, token: str) -> list[str]:
        token_bytes = [_BYTES.get(c, -1) for c in token]
        raw = token.encode() if -1 in token_bytes else bytes(token_bytes)
        return [self._decoder.decode(raw)]

    def finish(self) -> list[str]:
        return [self._decoder.decode(b"", True)]


class JoinByteTokens(Stage):
    """ByteFallback: a run of tokens `<0xE2>` is text if its bytes are, else a U+FFFD for each."""

    _TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")

    def __init__(self) -> None:
        self._run = bytearray()

    def feed(self, token: str) -> list[str]:
        byte = self._TOKEN.fullmatch(token)
        if byte:
            self._run.append(int(byte[1], 16))
            return []
        return [*self.finish(), token]

    def finish(self) -> list[str]:
        run, self._run = bytes(self._run), bytearray()
        try:
            return [run.decode("utf-8")] if run else []
        except UnicodeDecodeError:
            return [_REPLACEMENT] * len(run)


class JoinWords(Stage):
    """WordPiece: a space before each token but the first and those that go on with a word."""

    def __init__(self, prefix: str, cleanup: bool) -> None:
        self._prefix, self._cleanup, self._first = prefix, cleanup, True

    def feed(self, token: str) -> list[str]:
        if not self._first:
            token = token[len(self._prefix) :] if token.startswith(self._prefix) else " " + token
        self._first = False
        return [clean_up(token).replace(" do not", " don't") if self._cleanup else token]


class SpaceWords(Stage):
    """Metaspace: the mark of a space is a space, and in the first token nothing."""

    def __init__(self, mark: str, prepends: bool) -> None:
        self._mark, self._space = mark, "" if prepends else " "

    def feed(self, token: str) -> list[str]:
        out = token.replace(self._mark, self._space)
        self._space = " "
        return [out]


class EndWords(Stage):
    """BPEDecoder: the suffix of a word's last token is a space, and in the last token of all nothing."""

    def __init__(self, suffix: str) -> None:
        self._suffix = suffix
        self._last: str | None = None

    def feed(self, token: str) -> list[str]:
        last, self._last = self._last, token
        return [] if last is None else [self._replace(last, " ")]

    def finish(self) -> list[str]:
        return [] if self._last is None else [self._replace(self._last, "")]

    def _replace(self, token: str, by: str) -> str:
        return token.replace(self._suffix, by) if self._suffix else token


class Replace(Stage):
    """Replace, in each token."""

    def __init__(self, old: str, new: str) -> None:
        self._old, self._new = old, new

    def feed(self, token: str) -> list[str]:
        return [token.replace(self._old, self._new)]


class Join(Stage):
    """Fuse: all tokens are one."""

    joins = True

    def feed(self, token: str) -> list[str]:
        return [token]


class Strip(Stage):
    """Strip: up to `start` characters from the beginning of each token, and up to `stop` from its end."""

    def __init__(self, content: str, start: int, stop: int) -> None:
        self._content, self._start, self._stop = content, start, stop

    def feed(self, token: str) -> list[str]:
        begin = _count(token, self._content, self._start)
        end = _count(token[begin:][::-1], self._content, self._stop)
        return [token[begin : len(token) - end]]


class StripJoined(Stage):
    """Strip, for the parts of one joined token."""

    joins = True

    def __init__(self, content: str, start: int, stop: int) -> None:
        self._content, self._start, self._stop = content, start, stop
        self._tail = ""  # characters that may be stripped from the end

    def feed(self, token: str) -> list[str]:
        begin = _count(token, self._content, self._start)
        self._start = self._start - begin if begin == len(token) else 0
        text = self._tail + token[begin:]
        end = len(text) - _count(text[::-1], self._content, self._stop)
        self._tail = text[end:]
        return [text[:end]]


def _count(text: str, character: str, limit: int) -> int:
    """The number of times that `character` stands at the beginning of `text`, up to `limit`."""
    count = 0
    while count < min(limit, len(text)) and text[count] == character:
        count += 1
    return count


class WaitForAll(Stage):
    """A stage that can emit nothing before the end, when it gets the joined text."""

    joins = True

    def __init__(self, stage: Stage) -> None:
        self._stage, self._parts = stage, [""]

    def feed(self, token: str) -> list[str]:
        self._parts.append(token)
        return []

    def finish(self) -> list[str]:
        return [*self._stage.feed("".join(self._parts)), *self._stage.finish()]


class ReplaceJoined(Stage):
    """Replace of a single character, for the parts of one joined token."""

    joins = True

    def __init__(self, old: str, new: str) -> None:
        self._old, self._new = old, new

    def feed(self, token: str) -> list[str]:
        return [token.replace(self._old, self._new)]


class SpaceTokens(Stage):
    """No decoder: tokens are joined with spaces."""

    def __init__(self) -> None:
        self._space = ""

    def feed(self, token: str) -> list[str]:
        out, self._space = self._space + token, " "
        return [out]


# --- cleaning up

_CLEANED = (
    *((" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"), (" 'm", "'m")),
    *((" 's", "'s"), (" 've", "'ve"), (" 're", "'re")),
)


def clean_up(text: str) -> str:
    """Remove the spaces before punctuation and contractions, as `clean_up_tokenization_spaces` does."""
    for old, new in _CLEANED:
        text = text.replace(old, new)
    return text


class CleanUp(Stage):
    """`clean_up`, for the parts of one joined token: text that may still change is buffered."""

    joins = True
    # A space that no replacement can begin after or end in.
    _SAFE = re.compile(r"(?<! ')(?<! )(?= [^ .?!,'n])")

    def __init__(self) -> None:
        self._text = ""

    def feed(self, token: str) -> list[str]:
        self._text += token
        cut = 0
        for place in self._SAFE.finditer(self._text):
            cut = place.start()
        out, self._text = self._text[:cut], self._text[cut:]
        return [clean_up(out)]

    def finish(self) -> list[str]:
        out, self._text = self._text, ""
        return [clean_up(out)]


# --- decoders


class TextStream:
    """Decodes tokens that arrive one by one. `feed` and `finish` return the text that is final."""

    def __init__(self, stages: list[Stage]) -> None:
        self._stages = stages

    def feed(self, token: str) -> str:
        return "".join(self._through([token], 0))

    def finish(self) -> str:
        out: list[str] = []
        for i, stage in enumerate(self._stages):
            out += self._through(stage.finish(), i + 1)
        return "".join(out)

    def _through(self, tokens: list[str], first: int) -> list[str]:
        for stage in self._stages[first:]:
            tokens = [x for token in tokens for x in stage.feed(token)]
        return tokens


def open_stream(decoder: dict[str, Any] | None, cleans_up: bool = False) -> TextStream:
    """By the checked entry `decoder` of a tokenizer.json. `cleans_up`: whether the text is cleaned up at
    last.
    """
    stages: list[Stage] = [SpaceTokens()] if decoder is None else []
    is_joined = False
    for entry in _flat(decoder):
        stage = _join_stage(entry) if is_joined else _stage(entry)
        stages.append(stage)
        is_joined = is_joined or stage.joins
    return TextStream([*stages, CleanUp()] if cleans_up else stages)


def _flat(data: dict[str, Any] | None) -> list[dict[str, Any]]:
    if data is None:
        return []
    return [x for child in data["decoders"] for x in _flat(child)] if data["type"] == "Sequence" else [data]


def _stage(entry: dict[str, Any]) -> Stage:
    match entry["type"]:
        case "ByteLevel":
            return JoinBytes()
        case "ByteFallback":
            return JoinByteTokens()
        case "Fuse":
            return Join()
        case "WordPiece":
            return JoinWords(entry["prefix"], entry["cleanup"])
        case "Metaspace":
            return SpaceWords(entry["replacement"], entry.get("prepend_scheme", "always") != "never")
        case "BPEDecoder":
            return EndWords(entry["suffix"])
        case "Strip":
            return Strip(entry["content"], entry["start"], entry["stop"])
        case _:
            return Replace(entry["pattern"]["String"], entry["content"])


def _join_stage(entry: dict[str, Any]) -> Stage:
    """The stage for the one token that others were joined to."""
    if entry["type"] == "Strip":
        return StripJoined(entry["content"], entry["start"], entry["stop"])
    if entry["type"] == "Replace" and len(entry["pattern"]["String"]) == 1:
        return ReplaceJoined(entry["pattern"]["String"], entry["content"])
    if entry["type"] == "Fuse":
        return Join()
    return WaitForAll(_stage(entry))
