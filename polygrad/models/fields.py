"""Reading a configuration: a JSON object whose entries are checked when they are read.

A configuration comes from a stranger's file, so each entry has a kind and a range, and an error names the
file and the entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from polygrad.errors import ModelError

_LARGEST = 1 << 31  # the limit of sizes in a model
_MOST = 1 << 12  # the limit of numbers of parts that are made one by one
_MISSING: Any = object()
_D = TypeVar("_D")  # of a default


class Fields:
    """The entries of a JSON object `values`, found in `where` (`config.json`)."""

    def __init__(self, values: Any, where: str = "config.json") -> None:
        if not isinstance(values, Mapping):
            raise ModelError(f"{where}: expected a JSON object, got {type(values).__name__}")
        self.values, self.where = values, where

    def __contains__(self, name: str) -> bool:
        return self.values.get(name) is not None

    def integer(self, name: str, default: _D = _MISSING, least: int = 1, largest: int = _LARGEST) -> int | _D:
        """An integer from `least` to `largest`."""
        value = self._value(name, default)
        if value is default:
            return default
        if type(value) is not int or not least <= value <= largest:
            raise self._refusal(name, f"an integer from {least} to {largest}", value)
        return value

    def count(self, name: str, default: _D = _MISSING) -> int | _D:
        """How many layers, or other parts that take time to make, there are."""
        return self.integer(name, default, largest=_MOST)

    def number(self, name: str, default: _D = _MISSING) -> float | _D:
        """A finite number."""
        value = self._value(name, default)
        if value is default:
            return default
        if type(value) not in (int, float) or not abs(value) < float("inf"):
            raise self._refusal(name, "a finite number", value)
        return float(value)

    def flag(self, name: str, default: _D = _MISSING) -> bool | _D:
        """true or false."""
        return self._typed(name, default, bool, "true or false")

    def text(self, name: str, default: _D = _MISSING) -> str | _D:
        """A string."""
        return self._typed(name, default, str, "a string")

    def choice(self, name: str, choices: Any, default: Any = _MISSING) -> str:
        """One of some strings."""
        value = self._value(name, default)
        if value is not default and (not isinstance(value, str) or value not in choices):
            raise self._refusal(name, f"one of {', '.join(sorted(choices))}", value)
        return value

    def items(self, name: str, kind: type | tuple[type, ...], default: Any = _MISSING) -> list[Any]:
        """A list whose elements are of a type."""
        value = self._value(name, default)
        if value is default:
            return default
        if not isinstance(value, list) or not all(isinstance(x, kind) for x in value):
            raise self._refusal(name, f"a list of {getattr(kind, '__name__', 'numbers')}", value)
        return value

    def section(self, name: str, default: Any = _MISSING) -> Fields:
        """The object that is an entry of this one."""
        return Fields(self._value(name, default), f"{self.where}: {name}")

    def refuse(self, name: str, expected: str) -> ModelError:
        """The error of an entry whose value does not fit others."""
        return self._refusal(name, expected, self.values.get(name))

    def _typed(self, name: str, default: Any, kind: type, expected: str) -> Any:
        value = self._value(name, default)
        if value is not default and not isinstance(value, kind):
            raise self._refusal(name, expected, value)
        return value

    def _value(self, name: str, default: Any) -> Any:
        value = self.values.get(name)
        if value is not None:
            return value
        if default is _MISSING:
            raise ModelError(f"{self.where}: {name}: missing")
        return default

    def _refusal(self, name: str, expected: str, value: Any) -> ModelError:
        return ModelError(f"{self.where}: {name}: expected {expected}, got {value!r:.80}")
