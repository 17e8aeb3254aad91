"""State: the Tensors of an object by name, and files of Tensors: safetensors, and those of other programs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from polygrad.dtype import to_dtype
from polygrad.errors import ArgumentError, ShapeError
from polygrad.helpers import dedup, write_file
from polygrad.nn.archives import check_name
from polygrad.nn.files import (
    TensorIO,
    file_bytes,
    fs_load,
    fs_store,
    gguf_load,
    tar_extract,
    torch_load,
    zip_extract,
)
from polygrad.nn.panels import convert_layout
from polygrad.nn.parameter import is_buffer, is_persistent, keeps_dtype
from polygrad.nn.safetensors import (
    TensorEntry,
    read_entries,
    read_header,
    read_index,
    write_entries,
    write_index,
)
from polygrad.tensor.core.base import DTypeLike
from polygrad.tensor.tensor import Tensor

__all__ = [
    "TensorIO",
    "fs_load",
    "fs_store",
    "get_parameters",
    "get_state_dict",
    "gguf_load",
    "load_state_dict",
    "model_to",
    "safe_load",
    "safe_load_metadata",
    "safe_save",
    "safe_save_sharded",
    "tar_extract",
    "torch_load",
    "zip_extract",
]

# --- an object's Tensors


def get_state_dict(
    obj: Any, prefix: str = "", tensor_type: type = Tensor, buffers: bool | None = None
) -> dict[str, Any]:
    """Every Tensor in `obj` (in attributes, lists, tuples and dicts; each container once), by dotted name, in
    order. `buffers`: include all Tensors that `nn.Buffer` made (True), none (False), or the persistent ones
    (None).
    """
    is_wanted: Any = is_persistent
    if buffers is not None:
        is_wanted = (lambda x: True) if buffers else (lambda x: not is_buffer(x))
    out: dict[str, Any] = {}
    visited: set[int] = set()
    stack: list[tuple[str, Any]] = [(prefix, obj)]
    while stack:
        name, x = stack.pop()
        if isinstance(x, tensor_type):
            if not isinstance(x, Tensor) or is_wanted(x):
                out[name.strip(".")] = x
            continue
        children = _children(x)
        if children is None or id(x) in visited:
            continue
        visited.add(id(x))
        start = name if not name or name.endswith(".") else name + "."
        stack.extend((f"{start}{key}", value) for key, value in reversed(children))
    return out


def named_objects(obj: Any) -> Iterator[tuple[str, Any]]:
    """All objects in `obj`, and `obj` itself, that have attributes and are not Tensors: each once, by dotted
    name, in order."""
    visited: set[int] = set()
    stack: list[tuple[str, Any]] = [("", obj)]
    while stack:
        name, x = stack.pop()
        children = None if isinstance(x, Tensor) else _children(x)
        if children is None or id(x) in visited:
            continue
        visited.add(id(x))
        if hasattr(x, "__dict__"):
            yield name, x
        start = f"{name}." if name else ""
        stack.extend((f"{start}{key}", value) for key, value in reversed(children))


def _children(x: Any) -> list[tuple[Any, Any]] | None:
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return list(zip(x._fields, x, strict=True))
    if isinstance(x, (list, tuple)):
        return list(enumerate(x))
    if isinstance(x, dict):
        return list(x.items())
    return list(vars(x).items()) if hasattr(x, "__dict__") and not isinstance(x, type) else None


def get_parameters(obj: Any) -> list[Tensor]:
    """Every Tensor in `obj` that `get_state_dict` finds, except those of `nn.Buffer`."""
    return list(get_state_dict(obj, buffers=False).values())


def model_to(model: Any, device: str | None = None, dtype: DTypeLike | None = None) -> Any:
    """Move all Tensors of `model`, and convert float Tensors to the float `dtype`; returns `model`. Packed
    weights keep their format.

    They stay the same objects, with the same roles, so an optimizer that has them keeps working; its state
    keeps its dtype. Gradients are moved and converted, too. Raises ArgumentError for a dtype that is not a
    float, DeviceError.
    """
    to = None if dtype is None else to_dtype(dtype)
    if to is not None and not to.is_float:
        raise ArgumentError(f"model_to: expected a float dtype, got {to}")
    tensors = list(get_state_dict(model, buffers=True).values())
    with Tensor.no_grad():
        for t in dict.fromkeys(tensors):
            convert = to is not None and t.dtype.is_float and not keeps_dtype(t)
            grad = None if t.grad is None else t.grad.detach().to(device)
            value = t.detach().to(device)
            t._become(value.cast(to).clone() if convert else value.clone())
            t.grad = grad if grad is None or not convert else grad.cast(to)
    if tensors:
        tensors[0].realize(*tensors[1:])
    return model


def load_state_dict(
    model: Any,
    state_dict: Mapping[str, Tensor],
    strict: bool = True,
    verbose: bool = True,
    consume: bool = False,
    realize: bool = True,
) -> list[Tensor]:
    """Give the Tensors of `model` the values of `state_dict`, by name. Returns the Tensors that got a value.

    Values are converted to the model's dtype and device, and the planes of packed weights to the layout that
    their `activations` need. `strict`: `state_dict` must have every name of the
    model, and no other. `consume` removes the values used. `verbose` is accepted for compatibility. Raises
    ArgumentError, ShapeError.
    """
    model_state = get_state_dict(model)
    if strict:
        missing, unknown_names = (
            [k for k in model_state if k not in state_dict],
            [k for k in state_dict if k not in model_state],
        )
        if missing or unknown_names:
            raise ArgumentError(
                f"load_state_dict: missing {missing or 'none'}, unknown {unknown_names or 'none'}: use "
                "strict=False"
            )
    loaded = []
    for name, tensor in model_state.items():
        if name not in state_dict:
            continue
        value = state_dict[name]
        if keeps_dtype(tensor):
            value = convert_layout(value, tensor.shape)
        if value.shape != tensor.shape:
            raise ShapeError(f"load_state_dict: {name}: expected shape {tensor.shape}, got {value.shape}")
        # a copy, because optimizers write to the model's Tensors in place
        tensor.replace(value.detach().shard_like(tensor).cast(tensor.dtype).clone())
        if consume and isinstance(state_dict, dict):
            del state_dict[name]
        loaded.append(tensor)
    if realize and loaded:
        loaded[0].realize(*loaded[1:])
    return loaded


# --- safetensors


def safe_load_metadata(data: Any) -> tuple[int, dict[str, Any]]:
    """The start of the data, and the JSON header, of a safetensors file (a path, bytes, or a buffer).

    Raises ArgumentError.
    """
    return read_header(file_bytes(data, "safe_load"))


def safe_load(data: Any, device: str | None = None) -> dict[str, Tensor]:
    """The Tensors of a safetensors file by name. `data`: a path, bytes, or a buffer.

    The path of an index, `model.safetensors.index.json`, stands for all the files that it lists, in the same
    folder. Raises ArgumentError when a file is damaged.
    """
    if isinstance(data, (str, os.PathLike)) and os.fspath(data).endswith(".index.json"):
        return _load_shards(os.fspath(data), device)
    return {
        name: Tensor(bytes(x.data), device, x.dtype).reshape(x.shape)
        for name, x in read_entries(file_bytes(data, "safe_load")).items()
    }


def _load_shards(index: str, device: str | None) -> dict[str, Tensor]:
    files = read_index(file_bytes(index, "safe_load"))
    out: dict[str, Tensor] = {}
    for file in dedup(files.values()):
        check_name(file, "safe_load")
        shard = safe_load(os.path.join(os.path.dirname(index), file), device)
        names = [name for name, shard_file in files.items() if shard_file == file]
        missing = [name for name in names if name not in shard]
        if missing:
            raise ArgumentError(f"safe_load: expected {missing[:5]} in {file}, got a file without them")
        out |= {name: shard[name] for name in names}
    return {name: out[name] for name in files}


def safe_save(
    tensors: Mapping[str, Tensor], fn: str | os.PathLike[str] | None = None, metadata: Any = None
) -> bytes:
    """Write Tensors to the safetensors file `fn`, if given, and return its bytes. `metadata`: a dict of
    strings. At any time there is the old file or the new one."""
    contents = _safetensors(tensors, metadata)
    if fn is not None:
        write_file(fn, [contents])
    return contents


def safe_save_sharded(
    tensors: Mapping[str, Tensor],
    folder: str | os.PathLike[str],
    max_shard_size: int = 5_000_000_000,
    name: str = "model",
    metadata: Any = None,
) -> str:
    """Write Tensors to safetensors files of at most `max_shard_size` bytes, and an index; returns its path.

    A Tensor that is larger has a file of its own. The files are called `model-00001-of-00002.safetensors` and
    so on, the index `model.safetensors.index.json`. Raises ArgumentError for a size that is not over 0.
    """
    if max_shard_size < 1:
        raise ArgumentError(f"safe_save_sharded: expected a max_shard_size over 0, got {max_shard_size}")
    shards: list[dict[str, Tensor]] = []
    room = 0
    for key, t in tensors.items():
        if not shards or t.nbytes() > room:
            shards.append({})
            room = max_shard_size
        shards[-1][key] = t
        room -= t.nbytes()
    file_by_name: dict[str, str] = {}
    os.makedirs(folder, exist_ok=True)
    for i, shard in enumerate(shards, 1):
        file = f"{name}-{i:05}-of-{len(shards):05}.safetensors"
        safe_save(shard, os.path.join(folder, file), metadata)
        file_by_name |= dict.fromkeys(shard, file)
    path = os.path.join(folder, f"{name}.safetensors.index.json")
    write_file(path, [write_index(file_by_name, sum(int(t.nbytes()) for t in tensors.values()))])
    return path


def _safetensors(tensors: Mapping[str, Tensor], metadata: Any) -> bytes:
    if tensors:
        first, *others = tensors.values()
        first.realize(*others)
    return write_entries(
        {name: TensorEntry(t.dtype, t.shape, bytes(t.data())) for name, t in tensors.items()}, metadata
    )
