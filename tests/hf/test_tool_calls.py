"""Calls of tools are read back from what chat templates write, whole and as they come."""

from __future__ import annotations

import random
from typing import Any

import pytest
import tiny_text_models
from hf_templates import TEMPLATES

from polygrad import hf
from polygrad.errors import ArgumentError, ModelError
from polygrad.hf import ToolCall, ToolCallStream, read_tool_calls
from polygrad.hf.chat import render_chat

NAMES = ("weather", "add")
CALLS = [ToolCall("weather", {"city": "São Paulo", "days": [1, 2]}), ToolCall("add", {"a": {"b": "</x> {"}})]
TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}


def _written(calls: list[ToolCall], template: str) -> str:
    """What a chat template writes for an answer with calls, as the model would."""
    asked = {"role": "user", "content": "?"}
    made = [{"type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in calls]
    start = render_chat(template, [asked], add_generation_prompt=True)
    answer = {"role": "assistant", "content": "", "tool_calls": made}
    text = render_chat(template, [asked, answer], add_generation_prompt=False)
    assert text.startswith(start)
    return text[len(start) :].split("<|im_end|>")[0].split("<|eot_id|>")[0]


@pytest.mark.parametrize("template", [TEMPLATES["chatml"], tiny_text_models.TOOL_TEMPLATE])
def test_calls_in_the_form_of_qwen_are_read(template: str) -> None:
    text = _written(CALLS, template)
    assert text.count("<tool_call>") == 2
    assert read_tool_calls(text.replace("<think>\n\n</think>\n\n", ""), NAMES) == ("", CALLS)
    content, calls = read_tool_calls("Let me see.\n" + text, NAMES)
    assert content.startswith("Let me see.") and calls == CALLS


@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        ('{"name": "add", "parameters": {"a": 1}}', "", [ToolCall("add", {"a": 1})]),
        (' <|python_tag|>{"name": "add", "arguments": {}} ', "", [ToolCall("add", {})]),
        (
            '[TOOL_CALLS] [{"name": "add", "arguments": {"a": 1}}, {"name": "add"}]',
            "",
            [ToolCall("add", {"a": 1}), ToolCall("add", {})],
        ),
        (
            'a <tool_call>{"name": "add"}</tool_call> b <tool_call>{"name": "no"}</tool_call>',
            'a  b <tool_call>{"name": "no"}</tool_call>',
            [ToolCall("add", {})],
        ),
    ],
)
def test_other_forms(text: str, content: str, calls: list[ToolCall]) -> None:
    assert read_tool_calls(text, NAMES) == (content, calls)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " spaces stay ",
        "{}",
        "[]",
        "[1]",
        '{"name": "other", "arguments": {}}',
        '{"name": "add", "arguments": [1]}',
        '{"name": "add", "arguments": {}',
        '{"name": "add"} and more',
        '[{"name": "add"}, 3]',
        "<tool_call>{damaged}</tool_call>",
        '<tool_call>{"name": "add"}',
        "[" * 100_000,
    ],
)
def test_what_is_no_call_stays_text(text: str) -> None:
    assert read_tool_calls(text, NAMES) == (text, [])
    stream = ToolCallStream(NAMES)
    assert stream.feed(text) + stream.finish()[0] == text


def test_pieces_give_what_the_whole_gives() -> None:
    rng = random.Random(0)
    parts = [
        "Text ",
        "<",
        "<tool_",
        "{",
        "\n",
        "<tool_call>",
        "</tool_call>",
        '{"name": "add"}',
        "</tool_call>",
    ]
    called = 0
    for _ in range(2000):
        text = "".join(rng.choices(parts, k=rng.randint(1, 6)))
        stream, given = ToolCallStream(NAMES), ""
        at = 0
        while at < len(text):
            size = rng.randint(1, 9)
            given += stream.feed(text[at : at + size])
            at += size
        rest, calls = stream.finish()
        content, expected = read_tool_calls(text, NAMES)
        assert calls == expected, text
        assert (given + rest).split() == content.split(), text
        called += bool(calls)
    assert called > 20


def test_text_comes_at_once() -> None:
    stream = ToolCallStream(NAMES)
    assert stream.feed("Well, ") == "Well, "
    assert stream.feed("1 < 2") == "1 < 2"
    assert stream.feed(" <tool") == " "
    assert stream.feed("box>") == "<toolbox>"
    assert stream.finish() == ("", [])


def test_tools_reach_the_template() -> None:
    model: Any = hf.load_hf(tiny_text_models.talker(tiny_text_models.TOOL_TEMPLATE))
    messages = [{"role": "user", "content": "1 + 1?"}]
    request = model.request(messages, tools=[TOOL])
    text = model.tokenizer.decode(request.tokens, skip_special_tokens=False)
    assert '"name": "add"' in text and text.endswith("<|im_start|>assistant\n")
    assert model.request(messages, tools=[]) == model.request(messages)
    with pytest.raises(ArgumentError, match="tools: expected a list of messages"):
        model.generate("1 + 1?", tools=[TOOL])


def test_a_template_without_tools() -> None:
    model: Any = hf.load_hf(tiny_text_models.talker())
    with pytest.raises(ModelError, match="tools: the model's chat template has no place for them"):
        model.generate([{"role": "user", "content": "?"}], tools=[TOOL])
