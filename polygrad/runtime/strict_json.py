"""JSON of files that somebody else wrote: the text has one meaning, for every reader in every language.

Names are unique in an object, text is UTF-8, and numbers are integers unless `floats` allows others.
`wasm_runtime/src/strict_json.ts` refuses the same texts.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from polygrad.runtime.limits import MAX_DEPTH, MAX_INTEGER


def parse_json(raw: Any, floats: bool = False) -> Any:
    """The value of a text. Raises ValueError, and RecursionError for one that nests too deeply to be read.

    `floats`: whether numbers may have fractions. Then the depth is checked too; the fields of a header leave
    no room for depth.
    """
    text = str(raw, "utf-8")
    if not floats:
        return _INTEGERS.decode(text)
    value = _NUMBERS.decode(text)
    _check_depth(value, MAX_DEPTH)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name occurs twice in an object")
    return members


def _refuse_fraction(text: str) -> NoReturn:
    raise ValueError(f"expected an integer, got {text:.40}")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"expected a finite number, got {text:.40}")
    return value


def _exact(text: str) -> int:
    value = int(text)
    if abs(value) > MAX_INTEGER:
        raise ValueError(f"expected an integer of at most {MAX_INTEGER}, got {text:.40}")
    return value


def _check_depth(value: Any, depth: int) -> None:
    if isinstance(value, (dict, list)):
        if depth == 0:
            raise ValueError(f"more than {MAX_DEPTH} lists and objects in each other")
        for part in value.values() if isinstance(value, dict) else value:
            _check_depth(part, depth - 1)


_INTEGERS = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=_refuse_fraction, parse_constant=_refuse_fraction
)
_NUMBERS = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=_finite, parse_int=_exact, parse_constant=_finite
)
