"""Tools that clients offer reach the model, and its calls of them the client: asked by openai's package."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
import tiny_text_models
from served import Server, serving

pytest.importorskip("llguidance")
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
HELLO: list[Any] = [{"role": "user", "content": "Is it wet?"}]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(tiny_text_models.talker(tiny_text_models.TOOL_TEMPLATE), "--max-batch", "2") as found:
        yield found


def calling(name: str, city: str) -> dict[str, Any]:
    """A format that leaves no choice: a model with random weights calls no tool of its own accord."""

    def exactly(**values: Any) -> dict[str, Any]:
        known = {k: v if isinstance(v, dict) else {"const": v} for k, v in values.items()}
        return {"type": "object", "properties": known, "required": list(known), "additionalProperties": False}

    schema = exactly(name=name, arguments=exactly(city=city))
    schema["x-guidance"] = {"whitespace_flexible": False}  # else it writes spaces without end
    return {"type": "json_schema", "json_schema": {"name": "call", "schema": schema}}


def ask(server: Server, **options: Any) -> Any:
    given = {"messages": HELLO, "tools": [TOOL], "max_tokens": 200, "temperature": 0, **options}
    return server.client().chat.completions.create(model="tiny", **given)


def test_a_call_is_told(server: Server) -> None:
    choice = ask(server, response_format=calling("weather", "Oslo")).choices[0]
    assert choice.finish_reason == "tool_calls" and choice.message.content is None
    (call,) = choice.message.tool_calls
    assert call.type == "function" and call.id.startswith("call_") and call.function.name == "weather"
    assert json.loads(call.function.arguments) == {"city": "Oslo"}


def test_a_streamed_call_comes_whole(server: Server) -> None:
    chunks = list(ask(server, response_format=calling("weather", "Oslo"), stream=True))
    deltas = [c.choices[0].delta for c in chunks]
    assert not any(d.content for d in deltas)
    ((call,),) = [d.tool_calls for d in deltas if d.tool_calls]
    assert call.index == 0 and call.function.name == "weather"
    assert json.loads(call.function.arguments) == {"city": "Oslo"}
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


@pytest.mark.parametrize("options", [{"tool_choice": "none"}, {"tools": []}])
def test_without_tools_the_same_is_text(server: Server, options: dict[str, Any]) -> None:
    choice = ask(server, response_format=calling("weather", "Oslo"), **options).choices[0]
    assert choice.finish_reason == "stop" and choice.message.tool_calls is None
    assert json.loads(choice.message.content)["arguments"] == {"city": "Oslo"}


def test_a_tool_that_is_not_offered_is_text(server: Server) -> None:
    choice = ask(server, response_format=calling("water", "Oslo")).choices[0]
    assert choice.finish_reason == "stop" and json.loads(choice.message.content)["name"] == "water"


OTHER = {"type": "function", "function": {"name": "clock"}}
WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"enum": ["Oslo", "Rome"]}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "weather"}}])
def test_a_required_call_is_made_with_arguments_of_its_schema(
    server: Server, choice: Any, stream: bool
) -> None:
    tools = [WEATHER] if choice == "required" else [OTHER, WEATHER]
    answer = ask(server, tools=tools, tool_choice=choice, temperature=1, seed=3, stream=stream)
    if stream:
        ((call,),) = [d.tool_calls for d in (c.choices[0].delta for c in answer) if d.tool_calls]
    else:
        assert answer.choices[0].finish_reason == "tool_calls"
        (call,) = answer.choices[0].message.tool_calls
    assert call.function.name == "weather"
    assert json.loads(call.function.arguments) in ({"city": "Oslo"}, {"city": "Rome"})


def test_a_required_call_and_a_response_format_contradict_each_other(server: Server) -> None:
    with pytest.raises(openai.BadRequestError, match="response_format"):
        ask(server, tool_choice="required", response_format={"type": "json_object"})


def test_tools_and_calls_are_a_part_of_the_prompt(server: Server) -> None:
    made = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "weather", "arguments": '{"city": "Oslo"}'},
    }
    answered = [
        *HELLO,
        {"role": "assistant", "content": None, "tool_calls": [made]},
        {"role": "tool", "content": "wet", "tool_call_id": "call_1"},
    ]

    def tokens(**options: Any) -> int:
        return ask(server, max_tokens=1, **options).usage.prompt_tokens

    assert tokens() > tokens(tools=[]) == tokens(tool_choice="none")
    written = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
    spelled = [answered[0], {"role": "assistant", "content": written}, answered[2]]
    assert tokens(messages=answered) == tokens(messages=spelled) > tokens()  # tokens are bytes


def test_text_streams_as_without_tools(server: Server) -> None:
    options = {"max_tokens": 12, "temperature": 1.0, "seed": 4, "stream": True}
    found = "".join(c.choices[0].delta.content or "" for c in ask(server, **options))
    whole = ask(server, **{**options, "stream": False}).choices[0].message
    assert found == whole.content and whole.tool_calls is None
