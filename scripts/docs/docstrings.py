"""Docstrings as Markdown, for mkdocstrings: examples in fences, descriptions of arguments as lists.

A docstring here is plain text: `>>>` lines are a Python session, indented text is code, and lines
`name: what it is` (with indented continuations) are arguments.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_ARGUMENT = re.compile(r"(`?[*]{0,2}[A-Za-z_]\w*(?:, \w+)*`?): (.*)", re.DOTALL)


class MarkdownDocstrings(griffe.Extension):
    """Rewrites each docstring when griffe has read it."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        if obj.is_alias or obj.docstring is None:
            return
        obj.docstring.value = to_markdown(obj.docstring.value)


def to_markdown(text: str) -> str:
    """A docstring as Markdown."""
    blocks = re.split(r"\n\s*\n", text.strip("\n"))
    return "\n\n".join([_block(blocks[0], False), *map(_block, blocks[1:])])


def _block(block: str, may_be_arguments: bool = True) -> str:
    lines = block.split("\n")
    at = next((i for i, line in enumerate(lines) if line.startswith(">>> ")), None)
    if at is not None:
        before = "\n".join(lines[:at])
        session = "\n".join(["```pycon", *lines[at:], "```"])
        return f"{_block(before, may_be_arguments)}\n\n{session}" if before else session
    items = _items(lines) if may_be_arguments else None
    return "\n".join(items) if items else block


def _items(lines: list[str]) -> list[str] | None:
    """The lines as a list of arguments, if that is what all of them are."""
    items: list[str] = []
    for line in lines:
        if line.startswith("    ") and items:
            items[-1] += f" {line.strip()}"
        elif _ARGUMENT.fullmatch(line):
            items.append(line)
        elif items and not line.startswith(" "):
            items[-1] += f" {line}"
        else:
            return None
    matches = [_ARGUMENT.fullmatch(item) for item in items]
    named = [(m[1].strip("`"), m[2]) for m in matches if m]
    return [f"- `{name}`: {what}" for name, what in named]
