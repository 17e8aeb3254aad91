"""Records of text as tokens and labels.

A record is {"text"}, all of which counts in the loss; {"prompt", "completion"}, of which the completion
counts; or {"messages"}, a conversation, of which the assistant's parts count. Parts are tokenized one by one,
so a prompt has the same tokens as when the model is asked.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from polygrad.errors import ArgumentError
from polygrad.models.causal_lm import IGNORED_LABEL

_KEYS = '{"text"}, {"prompt", "completion"} or {"messages"}'


class TextTokenizer(Protocol):
    """The methods of a tokenizer that are used here: see `polygrad.hf.Tokenizer`."""

    @property
    def eos_ids(self) -> tuple[int, ...]: ...

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]: ...

    def apply_chat_template(
        self, messages: Sequence[Mapping[str, Any]], *, add_generation_prompt: bool = True
    ) -> str: ...


@dataclass(frozen=True)
class Example:
    """Tokens of a text, and as many labels: the tokens that count in the loss, -100 for others. The first
    label is -100: nothing predicts the first token."""

    ids: tuple[int, ...]
    labels: tuple[int, ...]

    @property
    def counted(self) -> int:
        """The number of labels that count."""
        return sum(label != IGNORED_LABEL for label in self.labels)


def read_records(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The lines of a JSONL file, each an object; empty lines are skipped. Raises ArgumentError, which names
    file and line."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as e:
        raise ArgumentError(f"{path}: expected a text file in UTF-8, got {e}") from e
    out = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as e:
            raise ArgumentError(f"{path}: line {number}: expected a JSON object, got {e}") from e
        if not isinstance(record, dict):
            raise ArgumentError(f"{path}: line {number}: expected a JSON object, got {type(record).__name__}")
        out.append(record)
    if not out:
        raise ArgumentError(f"{path}: expected at least one record, got none")
    return out


def examples_of(
    records: Iterable[Mapping[str, Any]], tokenizer: TextTokenizer, max_length: int, where: str = "data"
) -> list[Example]:
    """The records as tokens and labels, of up to `max_length` tokens.

    A longer {"text"} becomes several examples; other records are cut at the end. An example without a label
    that counts is left out. Raises ArgumentError for a record that is none of the three, with its 1-based
    number.
    """
    if max_length < 2:
        raise ArgumentError(f"max_length: expected at least 2, got {max_length}")
    out: list[Example] = []
    for number, record in enumerate(records, 1):
        place = f"{where}: record {number}"
        if not isinstance(record, Mapping):
            raise ArgumentError(f"{place}: expected a dict, got {type(record).__name__}")
        if "messages" in record:
            examples = _conversation(record["messages"], tokenizer, place)
        elif "prompt" in record and "completion" in record:
            prompt, completion = (_text(record, key, place) for key in ("prompt", "completion"))
            answer = _append_end(tokenizer.encode(completion, add_special_tokens=False), tokenizer)
            examples = [_join_parts([(_encode_beginning(tokenizer, prompt), False), (answer, True)])]
        elif "text" in record:
            ids = _append_end(tokenizer.encode(_text(record, "text", place)), tokenizer)
            examples = [
                _join_parts([(ids[at : at + max_length], True)])
                for at in range(0, max(len(ids) - 1, 1), max_length)
            ]
        else:
            raise ArgumentError(f"{place}: expected {_KEYS}, got {sorted(map(str, record))}")
        out += [Example(x.ids[:max_length], x.labels[:max_length]) for x in examples]
    return [x for x in out if x.counted]


def _text(record: Mapping[str, Any], key: str, place: str) -> str:
    value = record[key]
    if not isinstance(value, str):
        raise ArgumentError(f"{place}: {key}: expected text, got {type(value).__name__}")
    return value


def _encode_beginning(tokenizer: TextTokenizer, text: str) -> list[int]:
    """The tokens of the beginning of a text: with the special tokens before it, without those behind it."""
    plain, with_special = tokenizer.encode(text, False), tokenizer.encode(text)
    for at in range(len(with_special) - len(plain) + 1):
        if with_special[at : at + len(plain)] == plain:
            return with_special[: at + len(plain)]
    return with_special


def _append_end(ids: list[int], tokenizer: TextTokenizer) -> list[int]:
    """The tokens, followed by a token that ends a text, if there is one."""
    ends = tokenizer.eos_ids
    return ids if not ends or (ids and ids[-1] in ends) else [*ids, ends[0]]


def _join_parts(parts: Iterable[tuple[Sequence[int], bool]]) -> Example:
    """One example of all parts, each given with whether it counts."""
    ids: list[int] = []
    labels: list[int] = []
    for part, counts in parts:
        ids += part
        labels += part if counts else [IGNORED_LABEL] * len(part)
    return Example(tuple(ids), (IGNORED_LABEL, *labels[1:]))


def _conversation(messages: Any, tokenizer: TextTokenizer, place: str) -> list[Example]:
    """One example, with all of the assistant's parts. Some templates write earlier parts in another way than
    the last part, for example without the model's thoughts; then there is an example for each part."""
    if not isinstance(messages, list) or not all(isinstance(m, Mapping) for m in messages):
        raise ArgumentError(f"{place}: messages: expected a list of objects, got {messages!r:.80}")
    turns = [i for i, m in enumerate(messages) if m.get("role") == "assistant"]
    if not turns:
        raise ArgumentError(f"{place}: messages: expected at least one of the assistant, got none")
    if turns[0] == 0:
        raise ArgumentError(f"{place}: messages: expected a message before the assistant's first, got none")
    starts = [tokenizer.apply_chat_template(messages[:i], add_generation_prompt=True) for i in turns]
    ends = [tokenizer.apply_chat_template(messages[: i + 1], add_generation_prompt=False) for i in turns]
    for i, (start, end) in enumerate(zip(starts, ends)):
        if not end.startswith(start):
            raise ArgumentError(
                f"{place}: messages[{turns[i]}]: the chat template does not write an answer behind what asks "
                'for it: give {"prompt", "completion"} instead'
            )
    if all(ends[-1].startswith(text) for text in [*starts, *ends]):
        parts, at = [], 0
        for start, end in zip(starts, ends):
            parts += [(ends[-1][at : len(start)], False), (ends[-1][len(start) : len(end)], True)]
            at = len(end)
        return [_join_parts([(tokenizer.encode(text, False), counts) for text, counts in parts])]
    return [
        _join_parts(
            [(tokenizer.encode(start, False), False), (tokenizer.encode(end[len(start) :], False), True)]
        )
        for start, end in zip(starts, ends)
    ]
