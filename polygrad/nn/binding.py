"""Files of Tensors for bindings in other languages: `polygrad/bridge.py` calls these functions as
`$nn.NAME`.

What a file holds goes over in two parts: its Tensors, and its structure as plain data, of
{"tensor": i} the i-th of the Tensors, {"value": x} text, a boolean, a number or None, {"number": text} a
number that JSON has no word for, {"integer": text} one that floats do not hold, and {"parts": [[key, part],
...], "array": whether it is a sequence}.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from polygrad.errors import ArgumentError
from polygrad.nn.files import gguf_load, torch_load
from polygrad.nn.state import model_to
from polygrad.tensor.tensor import Tensor

_EXACT = 1 << 53  # integers below are floats of 64 bits

Described = tuple[Any, list[Tensor]]


def load_torch(data: bytes, device: str | None) -> Described:
    """`torch_load`: the structure of what it returns, and its Tensors."""
    return describe(torch_load(data, device), "torch_load")


def load_gguf(data: bytes, device: str | None) -> Described:
    """`gguf_load`: the structure of {metadata, tensors}, and the Tensors."""
    metadata, tensors = gguf_load(data, device)
    return describe({"metadata": metadata, "tensors": tensors}, "gguf_load")


def move(model: Mapping[str, Tensor], device: str | None, dtype: str | None) -> None:
    """`model_to` of Tensors by name."""
    model_to(dict(model), device, dtype)


def describe(value: Any, what: str) -> Described:
    """The structure of a value, and the Tensors in it, each once. Raises ArgumentError for containers that
    contain themselves, and for values that other languages do not have."""
    tensors: list[Tensor] = []
    places: dict[int, int] = {}
    around: set[int] = set()

    def part(x: Any) -> dict[str, Any]:
        if isinstance(x, Tensor):
            if id(x) not in places:
                places[id(x)] = len(tensors)
                tensors.append(x)
            return {"tensor": places[id(x)]}
        if isinstance(x, (dict, list, tuple)):
            if id(x) in around:
                raise ArgumentError(
                    f"{what}: expected containers of other values, got one that contains itself"
                )
            around.add(id(x))
            items = x.items() if isinstance(x, dict) else enumerate(x)
            parts = [[str(key), part(value)] for key, value in items]
            around.discard(id(x))
            return {"parts": parts, "array": not isinstance(x, dict)}
        return _plain(x, what)

    return part(value), tensors


def _plain(x: Any, what: str) -> dict[str, Any]:
    if isinstance(x, float) and not math.isfinite(x):
        return {"number": "NaN" if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"}
    if isinstance(x, int) and not isinstance(x, bool) and abs(x) > _EXACT:
        return {"integer": str(x)}
    if x is None or isinstance(x, (bool, int, float, str)):
        return {"value": x}
    raise ArgumentError(
        f"{what}: expected Tensors, text, numbers and containers of them, got {type(x).__name__}"
    )
