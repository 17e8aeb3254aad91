"""Conversations as text: the variables of a chat template, its selection, and its limits.

A library of the host renders it (`polygrad/hf/backend.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from polygrad.errors import ArgumentError, ModelError
from polygrad.hf.backend import open_templates

LONGEST = 200_000  # characters of a template
_DEEPEST = 64
_REASONING = ("reasoning_content", "thinking", "reasoning")


def render_chat(
    template: str,
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] | None = None,
    add_generation_prompt: bool = True,
    special: Mapping[str, str] | None = None,
    where: str = "chat_template",
    **variables: Any,
) -> str:
    """The text that the Jinja `template` makes of a conversation.

    `messages`: each with a `role` and a `content`, and whatever else the template reads, as plain JSON.
    `tools`: JSON schemas of functions. `special`: special tokens by their names (`eos_token`). `variables`
    are further names for the template. Raises ArgumentError for what is no conversation, and ModelError that
    begins with `where` for a template that is damaged, refuses the conversation, or takes too much time or
    memory.

    >>> template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}{% endfor %}"
    >>> render_chat(template, [{"role": "user", "content": "Hi"}], special={"eos_token": "</s>"})
    '<user>Hi</s>'
    """
    if len(template) > LONGEST:
        raise ModelError(f"{where}: a template of {len(template)} characters, expected at most {LONGEST}")
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Sequence) or not messages:
        raise ArgumentError(f"messages: expected a list of at least one message, got {messages!r:.80}")
    template_variables: dict[str, Any] = dict(special or {})
    template_variables |= {name: _plain(value, name, 0) for name, value in variables.items()}
    template_variables["messages"] = plain_messages(messages)
    if tools is not None and not all(isinstance(tool, Mapping) for tool in tools):
        raise ArgumentError("tools: expected JSON schemas, each a dict")
    template_variables["tools"] = (
        None if tools is None else [_plain(tool, f"tools[{i}]", 0) for i, tool in enumerate(tools)]
    )
    template_variables["documents"] = template_variables.get("documents")
    template_variables["add_generation_prompt"] = bool(add_generation_prompt)
    return open_templates().render(template, template_variables, where)


def plain_messages(messages: Sequence[Any]) -> list[dict[str, Any]]:
    """Messages as templates are given them: plain JSON, without what is None. Raises ArgumentError."""
    return [_message(message, i) for i, message in enumerate(messages)]


def _message(message: Any, index: int) -> dict[str, Any]:
    where = f"messages[{index}]"
    if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
        raise ArgumentError(f"{where}: expected a dict with a role and a content, got {message!r:.80}")
    # Templates handle missing keys, but few handle None.
    out = {name: _plain(value, f"{where}.{name}", 0) for name, value in message.items() if value is not None}
    reasoning = next((out[name] for name in _REASONING if name in out), None)
    return out if reasoning is None else {"thinking": reasoning, **out, "reasoning_content": reasoning}


def _plain(value: Any, where: str, depth: int) -> Any:
    """`value` as plain JSON types: a template could call methods of other objects."""
    if depth > _DEEPEST:
        raise ArgumentError(f"{where}: expected at most {_DEEPEST} lists and dicts in one another")
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(x, f"{where}.{name}", depth + 1) for name, x in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(x, f"{where}[{i}]", depth + 1) for i, x in enumerate(value)]
    raise ArgumentError(f"{where}: expected text, numbers, lists and dicts, got {type(value).__name__}")
