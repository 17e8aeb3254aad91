"""Second names of arguments: torch's and numpy's words for what has another name here (`dim` for `axis`).

Asked only after a call has failed, so that the first names cost nothing. `second_names.pyi` in the folder
above, which scripts/second_names.py writes, says the same to type checkers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from polygrad.errors import ArgumentError

# By second name, the names it may stand for: the first that a method has.
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
# What a second name's value is here.
_CONVERTED: dict[str, Callable[[Any], Any]] = {"unbiased": int}


def first_name(parameters: Mapping[str, Any], name: str) -> str | None:
    """What the second name stands for in a method with these parameters; None: nothing."""
    if name in parameters:
        return None
    return next((p for p in SECOND_NAMES.get(name, ()) if p in parameters), None)


def with_first_names(function: Callable[..., Any], kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
    """The keyword arguments of a call of `function` by their first names; None where there are no second
    names among them, or others that it does not know. Raises ArgumentError for both names of one.
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
