"""Tool calls in the answers of a model.

Models are shown tools by their chat template, and write calls in a form that they were trained on. Two are
known here: objects between <tool_call> and </tool_call> (Hermes, Qwen), and an answer that is nothing but
one object or a list of them (Llama from 3.1 on, Mistral). An object has a `name`, and `arguments` or
`parameters`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, NamedTuple

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_BLOCK = re.compile(rf"{_OPEN}\s*(\{{.*?\}})\s*{_CLOSE}", re.DOTALL)
_MARKS = ("[TOOL_CALLS]", "<|python_tag|>")  # before an answer that is a call; special tokens of most models
_STARTS = ("{", "[", *_MARKS)


class ToolCall(NamedTuple):
    """A tool that the model wants to call, and the arguments."""

    name: str
    arguments: dict[str, Any]


def read_tool_calls(text: str, names: Collection[str]) -> tuple[str, list[ToolCall]]:
    """The text around the calls of an answer, and the calls of tools with these `names`.

    Damaged calls and calls of other tools stay text.

    >>> read_tool_calls('Wait. <tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>', ["add"])
    ('Wait.', [ToolCall(name='add', arguments={'a': 1})])
    >>> read_tool_calls('{"name": "add", "parameters": {"a": 1}}', ["add"])
    ('', [ToolCall(name='add', arguments={'a': 1})])
    >>> read_tool_calls('{"name": "Ada"}', ["add"])
    ('{"name": "Ada"}', [])
    """
    stripped = text.strip()
    for mark in _MARKS:
        stripped = stripped.removeprefix(mark).lstrip()
    calls = _calls(stripped, names)
    if calls:
        return "", calls
    text_parts, at = [], 0
    for block in _BLOCK.finditer(text):
        calls_in_block = _calls(block[1], names)
        if calls_in_block:
            calls += calls_in_block
            text_parts.append(text[at : block.start()])
            at = block.end()
    return ("".join([*text_parts, text[at:]]).strip(), calls) if calls else (text, [])


def _calls(text: str, names: Collection[str]) -> list[ToolCall]:
    """The calls in JSON that consists of calls alone; none if any part is something else."""
    if not text.startswith(("{", "[")):
        return []
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    out = []
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, dict) or not isinstance(item.get("name"), str) or item["name"] not in names:
            return []
        arguments = item.get("arguments", item.get("parameters", {}))
        if not isinstance(arguments, dict):
            return []
        out.append(ToolCall(item["name"], arguments))
    return out


class ToolCallStream:
    """An answer that comes in pieces: its text as soon as it is certain that it is no call.

    >>> stream = ToolCallStream(["add"])
    >>> stream.feed("One moment"), stream.feed(". <tool"), stream.feed('_call>{"name": "add"}</tool_call>')
    ('One moment', '. ', '')
    >>> stream.finish()
    ('', [ToolCall(name='add', arguments={})])
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._held = ""  # text that may be a call, or the beginning of one
        self._is_held = False  # whether all further text is held
        self._has_begun = False  # whether some text was emitted, so that the answer is not only a call

    def feed(self, text: str) -> str:
        """The text that is certain after this piece."""
        self._held += text
        start = self._held.lstrip()
        if not self._has_begun and (not start or any(_may_begin(start, s) for s in _STARTS)):
            return ""
        if self._is_held:
            return ""
        at = self._held.find(_OPEN)
        self._is_held = at >= 0
        if at < 0:
            at = len(self._held) - _overlap(self._held, _OPEN)
        out, self._held = self._held[:at], self._held[at:]
        self._has_begun |= bool(out.strip())
        return out

    def finish(self) -> tuple[str, list[ToolCall]]:
        """The text that was held and is no call, and the calls."""
        return read_tool_calls(self._held, self._names)


def _may_begin(text: str, start: str) -> bool:
    """Whether text begins with `start`, or may when more comes."""
    return text.startswith(start) or start.startswith(text)


def _overlap(text: str, mark: str) -> int:
    """How many characters at the end of text are the beginning of `mark`."""
    return next((n for n in range(min(len(text), len(mark) - 1), 0, -1) if mark.startswith(text[-n:])), 0)
