"""State: the Tensors of an object by name, and as safetensors files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from polygrad.errors import ArgumentError, ShapeError
from polygrad.nn.safetensors import Entry, read_entries, read_header, write_entries
from polygrad.tensor.tensor import Tensor

# --- an object's Tensors


def get_state_dict(obj: Any, prefix: str = "", tensor_type: type = Tensor) -> dict[str, Any]:
    """Every Tensor inside `obj` (attributes, lists, tuples, dicts; each container once), by dotted name, in
    order.
    """
    out: dict[str, Any] = {}
    seen: set[int] = set()
    stack: list[tuple[str, Any]] = [(prefix, obj)]
    while stack:
        name, x = stack.pop()
        if isinstance(x, tensor_type):
            out[name.strip(".")] = x
            continue
        children = _children(x)
        if children is None or id(x) in seen:
            continue
        seen.add(id(x))
        start = name if not name or name.endswith(".") else name + "."
        stack.extend((f"{start}{key}", value) for key, value in reversed(children))
    return out


def _children(x: Any) -> list[tuple[Any, Any]] | None:
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return list(zip(x._fields, x, strict=True))
    if isinstance(x, (list, tuple)):
        return list(enumerate(x))
    if isinstance(x, dict):
        return list(x.items())
    return list(vars(x).items()) if hasattr(x, "__dict__") and not isinstance(x, type) else None


def get_parameters(obj: Any) -> list[Tensor]:
    """Every Tensor inside `obj`, as `get_state_dict` finds them."""
    return list(get_state_dict(obj).values())


def load_state_dict(
    model: Any,
    state_dict: Mapping[str, Tensor],
    strict: bool = True,
    verbose: bool = True,
    consume: bool = False,
    realize: bool = True,
) -> list[Tensor]:
    """Give the Tensors of `model` the values of `state_dict`, by name. Returns those that were given one.

    Values are converted to the model's dtype and device. `strict`: `state_dict` must have every name of the
    model, and no other. `consume` removes the values used. `verbose` is accepted for compatibility. Raises
    ArgumentError, ShapeError.
    """
    own = get_state_dict(model)
    if strict:
        missing, unknown = [k for k in own if k not in state_dict], [k for k in state_dict if k not in own]
        if missing or unknown:
            raise ArgumentError(
                f"load_state_dict: missing {missing or 'none'}, unknown {unknown or 'none'}: use strict=False"
            )
    loaded = []
    for name, tensor in own.items():
        if name not in state_dict:
            continue
        value = state_dict[name]
        if value.shape != tensor.shape:
            raise ShapeError(f"load_state_dict: {name}: expected shape {tensor.shape}, got {value.shape}")
        # a copy: the model's Tensors are written in place by optimizers, the given ones are not
        tensor.replace(value.detach().to(tensor.device).cast(tensor.dtype).clone())
        if consume and isinstance(state_dict, dict):
            del state_dict[name]
        loaded.append(tensor)
    if realize and loaded:
        loaded[0].realize(*loaded[1:])
    return loaded


# --- safetensors


def safe_load_metadata(data: Any) -> tuple[int, dict[str, Any]]:
    """Where the data starts, and the JSON header, of a safetensors file (a path, bytes, or a buffer).

    Raises ArgumentError.
    """
    return read_header(_bytes(data))


def safe_load(data: Any, device: str | None = None) -> dict[str, Tensor]:
    """The Tensors of a safetensors file by name. `data`: a path, bytes, or a buffer.

    Raises ArgumentError when damaged.
    """
    return {
        name: Tensor(bytes(x.data), device, x.dtype).reshape(x.shape)
        for name, x in read_entries(_bytes(data)).items()
    }


def safe_save(
    tensors: Mapping[str, Tensor], fn: str | os.PathLike[str] | None = None, metadata: Any = None
) -> bytes:
    """Write Tensors as a safetensors file `fn` (if given); its bytes. `metadata`: a dict of strings."""
    if tensors:
        first, *rest = tensors.values()
        first.realize(*rest)
    whole = write_entries(
        {name: Entry(t.dtype, t.shape, bytes(t.data())) for name, t in tensors.items()}, metadata
    )
    if fn is not None:
        with open(fn, "wb") as f:
            f.write(whole)
    return whole


def _bytes(data: Any) -> Any:
    """`data`, which may be a Tensor of bytes, as what `read_entries` takes."""
    return data.data() if isinstance(data, Tensor) else data
