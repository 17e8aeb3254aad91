"""Tools in requests: what clients offer, and the calls in the conversation so far."""

from __future__ import annotations

import json
from typing import Any

from polygrad.serve.body import RequestBody
from polygrad.serve.refusal import Refusal

_MOST = 128  # as many as OpenAI takes


def read_tools(body: RequestBody) -> list[dict[str, Any]]:
    """The tools that the model may call, none if `tool_choice` says so. Raises Refusal."""
    if body.value("functions"):
        raise Refusal(400, "functions: give them as tools", "functions", "unsupported_parameter")
    choice = body.value("tool_choice")
    if choice is not None and choice not in ("none", "auto"):
        raise Refusal(
            400,
            "tool_choice: expected none or auto: that a tool is called cannot be forced",
            "tool_choice",
            "unsupported_parameter",
        )
    found = body.value("tools")
    if found is None:
        return []
    if not isinstance(found, list) or len(found) > _MOST:
        raise body.wrong("tools", f"a list of up to {_MOST} tools", found)
    for i, tool in enumerate(found):
        _check_tool(tool, f"tools[{i}]")
    return [] if choice == "none" else found


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
            arguments = _parsed(arguments)
        if not isinstance(arguments, dict):
            raise Refusal(
                400, f"{place}.function.arguments: expected the JSON of an object", where, "invalid_value"
            )
        out.append({**call, "function": {**function, "arguments": arguments}})
    return out


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
