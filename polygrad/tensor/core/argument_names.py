"""Second names of arguments: names that torch and numpy use and polygrad does not (`dim` for `axis`).

They are looked up only after a call has failed, so that the first names cost nothing. `second_names.pyi` in
the folder above, which scripts/second_names.py writes, declares them for type checkers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from polygrad.errors import ArgumentError

# By second name, the first names that it may stand for; the first one that the method has is used.
SECOND_NAMES: dict[str, tuple[str, ...]] = {
    "dim": ("axis", "dims", "order"),
    "axis": ("dim", "dims", "order"),
    "dims": ("axis", "order"),
    "axes": ("axis", "dims", "order"),
    "keepdims": ("keepdim",),
    "min": ("min_",),
    "max": ("max_",),
    "a_min": ("min_",),
    "a_max": ("max_",),
    "unbiased": ("correction",),
    "ddof": ("correction",),
    "sorted": ("sorted_",),
    "negative_slope": ("neg_slope",),
    "target": ("Y",),
    "other": ("x",),
    "size": ("shape", "sizes"),
    "split_size": ("sizes",),
    "split_size_or_sections": ("sizes",),
    "pad": ("padding",),
    "end": ("stop",),
    "equation": ("formula",),
    "k": ("diagonal", "offset"),
}
# Converts the value of a second name to that of the first.
_CONVERTED: dict[str, Callable[[Any], Any]] = {"unbiased": int}


def first_name(parameters: Mapping[str, Any], name: str) -> str | None:
    """The first name that `name` stands for in a method with these parameters, or None."""
    if name in parameters:
        return None
    return next((p for p in SECOND_NAMES.get(name, ()) if p in parameters), None)


def with_first_names(function: Callable[..., Any], kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
    """The keyword arguments of a call of `function`, by their first names. None if there are no second names
    among them, or if there are unknown names. Raises ArgumentError if an argument has both its names.
    """
    parameters = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return None
    out: dict[str, Any] = {}
    for name, value in kwargs.items():
        first = name if name in parameters else first_name(parameters, name)
        if first is None:
            return None
        if first in out or (first != name and first in kwargs):
            raise ArgumentError(f"{function.__name__}: expected one of {first}= and {name}=, got both")
        out[first] = value if first == name else _CONVERTED.get(name, _same)(value)
    return out if out.keys() != kwargs.keys() else None


def _same(value: Any) -> Any:
    return value
