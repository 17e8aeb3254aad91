"""`Tokenizer`: converts text to ids and back, at once or incrementally, and conversations to text.

`polygrad/hf/backend.py` selects the library that finds the tokens; everything else is here, the same on every
host.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from polygrad.errors import ArgumentError, ModelError
from polygrad.hf.backend import TokenizerBackend, open_backend
from polygrad.hf.chat import render_chat
from polygrad.hf.decoding import TextStream, open_stream
from polygrad.hf.gguf_tokenizer import read_gguf_tokenizer
from polygrad.hf.post_processing import PostProcessor, post_processor
from polygrad.hf.tokenizer_files import TokenizerFiles, read_files, read_folder


@dataclass(frozen=True, slots=True)
class Batch:
    """Texts as rows of one length. `attention_mask` is 1 where a row has a token of its text and 0 where it
    is padded; `type_ids` are 1 for what belongs to the second text of a pair."""

    ids: list[list[int]]
    attention_mask: list[list[int]]
    type_ids: list[list[int]]


class Tokenizer:
    """The tokenizer of a model.

    `source`: a folder, or the bytes of its files by their names (`tokenizer.json`, `tokenizer_config.json`,
    `special_tokens_map.json`, `chat_template.jinja`; of older folders `vocab.json` with `merges.txt`,
    `vocab.txt`, `tokenizer.model`, `spiece.model`). `from_gguf` reads a GGUF file's metadata.
    `embedding_rows`: how many ids the model knows, if it is to be checked that there are no others.
    `opens_library`: False leaves the library that finds tokens, which `decode` does not need, to the first
    `encode`, which then raises what the library refuses. Raises ModelError that names file and entry when a
    file is damaged, contradicts itself or says what is not supported.

    >>> import json
    >>> vocabulary = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "hello": 3, "world": 4, "##s": 5}
    >>> model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
    ...          "max_input_chars_per_word": 100, "vocab": vocabulary}
    >>> data = {"model": model, "pre_tokenizer": {"type": "Whitespace"},
    ...         "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True}}
    >>> tokenizer = Tokenizer({"tokenizer.json": json.dumps(data).encode()})
    >>> tokenizer.encode("hello worlds")
    [3, 4, 5]
    >>> tokenizer.decode([3, 4, 5])
    'hello worlds'
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | Mapping[str, bytes],
        embedding_rows: int | None = None,
        opens_library: bool = True,
    ) -> None:
        files = source if isinstance(source, Mapping) else read_folder(source)
        self._start(read_files(files), embedding_rows, opens_library)

    @classmethod
    def from_gguf(
        cls, metadata: Mapping[str, Any], embedding_rows: int | None = None, opens_library: bool = True
    ) -> Tokenizer:
        """The tokenizer in the metadata of a GGUF file, as `gguf_load` gives it. Raises ModelError."""
        self = cls.__new__(cls)
        self._start(read_gguf_tokenizer(metadata), embedding_rows, opens_library)
        return self

    @classmethod
    def from_files(cls, files: TokenizerFiles, opens_library: bool = False) -> Tokenizer:
        """The tokenizer of files that were read and checked. Raises ModelError."""
        self = cls.__new__(cls)
        self._start(files, None, opens_library)
        return self

    def _start(self, files: TokenizerFiles, embedding_rows: int | None, opens_library: bool) -> None:
        content = files.tokenizer
        if embedding_rows is not None and content.tokens and max(content.tokens) >= embedding_rows:
            number = max(content.tokens)
            raise ModelError(
                f"{files.file}: token {content.tokens[number][:80]!r} has the id {number}, the model's "
                f"embedding has {embedding_rows} rows"
            )
        self._files, self._ids, self._tokens = files, content.ids, content.tokens
        self._special = frozenset(
            content.ids[token.content] for token in content.added.values() if token.special
        )
        self._post = post_processor(content.data["post_processor"], content.ids)
        if opens_library:
            _ = self._backend

    @functools.cached_property
    def _backend(self) -> TokenizerBackend:
        return open_backend(self._files.tokenizer, self._files.file)

    @property
    def files(self) -> TokenizerFiles:
        """What its files say."""
        return self._files

    @property
    def post(self) -> PostProcessor:
        """What puts special tokens around a text."""
        return self._post

    # --- the vocabulary

    @property
    def size(self) -> int:
        """How many tokens there are, added ones with them. Ids may have gaps: the largest may be above."""
        return len(self._ids)

    @property
    def json(self) -> str:
        """The tokenizer as the text of a tokenizer.json."""
        return json.dumps(self._files.tokenizer.data)

    def token(self, id: int) -> str:
        """The token with an id, as the vocabulary spells it. Raises ArgumentError when there is none."""
        token = self._tokens.get(id)
        if token is None:
            raise ArgumentError(f"id: expected one of the {self.size} ids of the tokenizer, got {id!r:.80}")
        return token

    def id(self, token: str) -> int:
        """The id of a token, as the vocabulary spells it. Raises ArgumentError when there is none."""
        number = self._ids.get(token)
        if number is None:
            raise ArgumentError(
                f"token: expected one of the {self.size} tokens of the tokenizer, got {token!r:.80}"
            )
        return number

    def special_token(self, name: str) -> str | None:
        """The special token of a name: `bos_token`, `eos_token`, `unk_token`, `sep_token`, `pad_token`,
        `cls_token`, `mask_token`. None if there is none."""
        return self._files.special.get(name)

    def _special_id(self, name: str) -> int | None:
        token = self.special_token(name)
        return None if token is None else self._ids.get(token)

    @property
    def bos_id(self) -> int | None:
        """The id that begins a text, if there is one."""
        return self._special_id("bos_token")

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """The ids that end a text: the end token, and what `generation_config.json` or the GGUF file adds."""
        eos_id = self._special_id("eos_token")
        return tuple(dict.fromkeys([*([] if eos_id is None else [eos_id]), *self._files.end_ids]))

    @property
    def pad_id(self) -> int | None:
        """The id of padding, if there is one."""
        return self._special_id("pad_token")

    # --- text to ids

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """The ids of `text`, with the special tokens that the model wants around it unless told otherwise.

        Special tokens in the text itself become their ids. Raises ArgumentError for a lone surrogate.
        """
        return self._post.join([self._text_ids(text)], add_special_tokens)[0]

    def encode_pair(self, text: str, other: str, add_special_tokens: bool = True) -> list[int]:
        """The ids of two texts as one sequence, as models that compare texts want them. Errors as of
        `encode`.
        """
        return self._post.join([self._text_ids(text), self._text_ids(other)], add_special_tokens)[0]

    def encode_batch(
        self,
        texts: Iterable[str | tuple[str, str]],
        add_special_tokens: bool = True,
        padding_side: str | None = None,
        max_length: int | None = None,
    ) -> Batch:
        """Texts, or pairs of them, as rows of one length, padded at `padding_side`: "left", "right", or as
        the tokenizer's files say. `max_length`: longer texts lose their ends, special tokens stay.

        Raises ArgumentError: texts of different lengths need a `pad_id`, and pairs are not cut.
        """
        side = self._files.padding_side if padding_side is None else padding_side
        if side not in ("left", "right"):
            raise ArgumentError(f"padding_side: expected left or right, got {padding_side!r:.80}")
        rows = [self._row(text, add_special_tokens, max_length) for text in texts]
        length = max((len(ids) for ids, _ in rows), default=0)
        pad = self.pad_id
        if pad is None:
            if any(len(ids) < length for ids, _ in rows):
                raise ArgumentError(
                    "texts: expected texts of one length, as the tokenizer has no padding token"
                )
            pad = 0
        out = Batch([], [], [])
        for ids, types in rows:
            filler = length - len(ids)
            before, after = (filler, 0) if side == "left" else (0, filler)
            out.ids.append([pad] * before + ids + [pad] * after)
            out.attention_mask.append([0] * before + [1] * len(ids) + [0] * after)
            out.type_ids.append([0] * before + types + [0] * after)
        return out

    def _row(self, text: Any, special: bool, max_length: int | None) -> tuple[list[int], list[int]]:
        if isinstance(text, tuple) and len(text) == 2:
            ids, types = self._post.join([self._text_ids(text[0]), self._text_ids(text[1])], special)
            if max_length is not None and len(ids) > max_length:
                raise ArgumentError(
                    f"texts: expected pairs of at most {max_length} ids, got one of {len(ids)}"
                )
            return ids, types
        text_ids = self._text_ids(text)
        if max_length is not None:
            room = max_length - (self._post.overhead(False) if special else 0)
            if room < 0:
                raise ArgumentError(f"max_length: expected room for the special tokens, got {max_length}")
            text_ids = text_ids[:room]
        return self._post.join([text_ids], special)

    def _text_ids(self, text: str) -> list[int]:
        if not isinstance(text, str):
            raise ArgumentError(f"text: expected a str, got {type(text).__name__}")
        try:
            text.encode()
        except UnicodeEncodeError as e:
            raise ArgumentError(
                f"text: expected Unicode text, got a lone surrogate, {text[e.start]!r}, at "
                f"character {e.start}"
            ) from None
        return self._backend.encode(text)

    # --- ids to text

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        """The text of `ids`. Ids that the tokenizer does not know, which padded embeddings have, are no text.

        Bytes that are no UTF-8 become U+FFFD.
        """
        stream = self.stream(skip_special_tokens)
        return "".join([stream.feed(id) for id in ids]) + stream.finish()

    def stream(self, skip_special_tokens: bool = True) -> TokenStream:
        """A decoder that takes ids one by one.

        >>> stream = Tokenizer({"tokenizer.json": _EXAMPLE}).stream()
        >>> [stream.feed(0), stream.feed(1), stream.feed(2), stream.finish()]
        ['', 'é', '!', '']
        """
        text = open_stream(self._files.tokenizer.data["decoder"], self._files.cleans_up)
        return TokenStream(self._tokens, self._special if skip_special_tokens else frozenset(), text)

    # --- conversations

    @property
    def takes_tools(self) -> bool:
        """Whether a chat template has a place for tools."""
        return any("tools" in template for template in self._files.templates.values())

    def apply_chat_template(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        template: str | None = None,
        **variables: Any,
    ) -> str:
        """A conversation as the text that the model was trained on; `encode` it with
        `add_special_tokens=False`.

        `messages`, `tools`, `variables` and errors are those of `polygrad.hf.chat.render_chat`. `template`:
        the name of one of several templates, or a template's text; with `tools` the one that is named
        `tool_use`, if there is one, unless given.
        """
        templates = self._files.templates
        name = template or ("tool_use" if tools is not None and "tool_use" in templates else "default")
        source = templates.get(name, template if template and "{" in template else None)
        if source is None:
            names = ", ".join(sorted(templates)) or "none"
            raise ModelError(f"{self._files.file}: expected a chat template {name!r:.80}, got {names}")
        return render_chat(
            source,
            messages,
            tools,
            add_generation_prompt,
            self._files.special,
            f"chat template {name!r}" if source is not template else "template",
            **variables,
        )


class TokenStream:
    """Text of ids that come one by one: what is certain is given at once, in whole characters, and joined it
    is the text that `decode` gives of all ids."""

    def __init__(self, tokens: Mapping[int, str], skipped: frozenset[int], text: TextStream) -> None:
        self._tokens, self._skipped, self._text = tokens, skipped, text

    def feed(self, id: int) -> str:
        """The text that is certain now that `id` came: often a word, and nothing within a character."""
        token = self._tokens.get(id)
        return "" if token is None or id in self._skipped else self._text.feed(token)

    def finish(self) -> str:
        """The text that was waiting for another id."""
        return self._text.finish()


# A vocabulary of bytes for the example above: é is two of them.
_EXAMPLE = (
    '{"model": {"type": "BPE", "vocab": {"Ã": 0, "©": 1, "!": 2}, "merges": []}, '
    '"decoder": {"type": "ByteLevel"}}'
).encode()
