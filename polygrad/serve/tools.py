"""Tools in requests: what clients offer, and the calls in the conversation so far."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from polygrad.serve.body import RequestBody
from polygrad.serve.refusal import Refusal

_MOST = 128  # OpenAI's limit


class OfferedTools(NamedTuple):
    """The tools that a model may call, and the names of those of which it has to call one (none: it may
    answer with text)."""

    tools: tuple[dict[str, Any], ...] = ()
    required: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tools."""
        return tuple(tool["function"]["name"] for tool in self.tools)

    def call_schema(self) -> dict[str, Any]:
        """The JSON schema of a call of one of the required tools."""
        functions = [t["function"] for t in self.tools if t["function"]["name"] in self.required]
        return {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {
                        "name": {"const": function["name"]},
                        "arguments": function.get("parameters") or {"type": "object"},
                    },
                    "required": ["name", "arguments"],
                    "additionalProperties": False,
                }
                for function in functions
            ],
            "x-guidance": {"whitespace_flexible": False},  # a model could write spaces without end
        }


NO_TOOLS = OfferedTools()


def read_tools(body: RequestBody) -> OfferedTools:
    """The tools that the client offers, and whether `tool_choice` requires a call. Raises Refusal."""
    if body.value("functions"):
        raise Refusal(400, "functions: give them as tools", "functions", "unsupported_parameter")
    tools = body.value("tools")
    tools = [] if tools is None else tools
    if not isinstance(tools, list) or len(tools) > _MOST:
        raise body.wrong("tools", f"a list of up to {_MOST} tools", tools)
    for i, tool in enumerate(tools):
        _check_tool(tool, f"tools[{i}]")
    offered = OfferedTools(tuple(tools))
    choice = body.value("tool_choice")
    if choice is None or choice == "auto":
        return offered
    if choice == "none":
        return NO_TOOLS
    if choice == "required":
        if not tools:
            raise Refusal(400, "tool_choice: required, and tools has none to call", "tool_choice")
        return offered._replace(required=offered.names)
    function = choice.get("function") if isinstance(choice, dict) else None
    if not isinstance(function, dict) or choice.get("type") != "function":
        raise body.wrong("tool_choice", "auto, none, required, or an object of type function", choice)
    if function.get("name") not in offered.names:
        raise body.wrong("tool_choice", "the name of one of tools", function.get("name"))
    return offered._replace(required=(function["name"],))


def _check_tool(tool: Any, where: str) -> None:
    if not isinstance(tool, dict) or tool.get("type") != "function":
        raise Refusal(400, f"{where}: expected an object of type function", "tools", "invalid_value")
    function = RequestBody(tool, f"{where}.").section("function")
    name = None if function is None else function.text("name")
    if function is None or not name:
        raise Refusal(400, f"{where}.function.name: missing", "tools", "missing_required_parameter")
    function.text("description")
    function.section("parameters")


def read_calls(value: Any, where: str) -> list[dict[str, Any]]:
    """The `tool_calls` of a message, with arguments as objects, which is what templates write. Raises
    Refusal."""
    if not isinstance(value, list):
        raise Refusal(400, f"{where}: expected a list of calls", where, "invalid_value")
    out = []
    for i, call in enumerate(value):
        place = f"{where}[{i}]"
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise Refusal(400, f"{place}.function.name: missing", where, "missing_required_parameter")
        arguments = function.get("arguments") or {}
        if isinstance(arguments, str):
            arguments = _parse(arguments)
        if not isinstance(arguments, dict):
            raise Refusal(
                400, f"{place}.function.arguments: expected the JSON of an object", where, "invalid_value"
            )
        out.append({**call, "function": {**function, "arguments": arguments}})
    return out


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
