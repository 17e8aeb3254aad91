"""A request's body: a JSON object whose entries are checked when they are read."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from polygrad.serve.refusal import Refusal

_DEEPEST = 64


def parse_body(data: bytes) -> RequestBody:
    """Raises Refusal, with status 400, for what is no JSON object."""
    try:
        values = json.loads(data, parse_constant=_refuse_constant)
    except RecursionError:
        raise Refusal(400, "body: expected fewer lists and objects in one another") from None
    except ValueError as e:
        raise Refusal(400, f"body: no JSON: {e!s:.200}") from None
    if not isinstance(values, dict):
        raise Refusal(400, f"body: expected a JSON object, got {_kind(values)}")
    _check_text(values)
    return RequestBody(values)


class RequestBody:
    """The entries of an object. `where`: the path of the object in the body. null is as good as missing."""

    def __init__(self, values: dict[str, Any], where: str = "") -> None:
        self._values, self._where = values, where
        self._read: set[str] = set()

    def value(self, name: str) -> Any:
        """The value of any type; None if it is missing."""
        self._read.add(name)
        return self._values.get(name)

    def required(self, name: str) -> Any:
        """The value of any type. Raises Refusal if it is missing."""
        value = self.value(name)
        if value is None:
            raise Refusal(
                400, f"{self._where}{name}: missing", self._where + name, "missing_required_parameter"
            )
        return value

    def integer(self, name: str, least: int, largest: int) -> int | None:
        """From `least` to `largest`."""
        value = self.value(name)
        if value is not None and (type(value) is not int or not least <= value <= largest):
            raise self.wrong(name, f"an integer from {least} to {largest}", value)
        return value

    def number(self, name: str, least: float, largest: float) -> float | None:
        """From `least` to `largest`."""
        value = self.value(name)
        if value is None:
            return None
        if type(value) not in (int, float) or not least <= value <= largest:
            raise self.wrong(name, f"a number from {least:g} to {largest:g}", value)
        return float(value)

    def flag(self, name: str) -> bool:
        """A boolean; false if it is missing."""
        value = self.value(name)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(name, "true or false", value)
        return bool(value)

    def text(self, name: str) -> str | None:
        """A string."""
        value = self.value(name)
        if value is not None and not isinstance(value, str):
            raise self.wrong(name, "a string", value)
        return value

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """One of some strings, the first of which is the default."""
        value = self.value(name)
        if value is None:
            return choices[0]
        if not isinstance(value, str) or value not in choices:
            raise self.wrong(name, f"one of {', '.join(choices)}", value)
        return value

    def section(self, name: str) -> RequestBody | None:
        """An object in this one."""
        value = self.value(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.wrong(name, "an object", value)
        return RequestBody(value, f"{self._where}{name}.")

    def ignore(self, *names: str) -> None:
        """Accept entries that have no effect here."""
        self._read |= set(names)

    def refuse_others(self) -> None:
        """Raises Refusal for an entry that was not read, that is, an unknown one."""
        for name, value in self._values.items():
            if name not in self._read and value is not None:
                path = self._where + name
                raise Refusal(400, f"{path}: there is no such parameter", path, "unknown_parameter")

    def wrong(self, name: str, expected: str, actual: Any) -> Refusal:
        """The error for an entry of a wrong type or range."""
        path = self._where + name
        shown = _kind(actual) if isinstance(actual, (dict, list)) else f"{actual!r:.80}"
        return Refusal(400, f"{path}: expected {expected}, got {shown}", path, "invalid_value")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "an object"
    return f"{value!r:.80}"


def _check_text(values: Any) -> None:
    """Raises Refusal for invalid Unicode, infinite numbers, and values that are nested too deep."""
    stack: list[tuple[Any, int]] = [(values, 0)]
    while stack:
        value, depth = stack.pop()
        if depth > _DEEPEST:
            raise Refusal(400, f"body: expected at most {_DEEPEST} lists and objects in one another")
        if isinstance(value, dict):
            stack += [(x, depth + 1) for x in (*value, *value.values())]
        elif isinstance(value, list):
            stack += [(x, depth + 1) for x in value]
        elif isinstance(value, float) and not math.isfinite(value):
            raise Refusal(400, "body: a number is too large")
        elif isinstance(value, str) and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise Refusal(400, "body: a string has a lone surrogate, which is no text") from None
