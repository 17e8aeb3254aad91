"""What to say of a name that is not here and that torch, tinygrad or numpy has: what there is instead."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

# Where names would be in torch and tinygrad, by where they are asked for here.
_PLACES = {
    "Tensor": ("torch.Tensor", "torch", "torch.nn.functional", "tinygrad.Tensor"),
    "polygrad": ("torch", "tinygrad"),
    "polygrad.nn": ("torch.nn", "torch.nn.functional", "tinygrad.nn"),
    "polygrad.nn.optim": ("torch.optim", "torch.optim.lr_scheduler", "tinygrad.nn.optim"),
    "layer": ("torch.nn.Module",),
}

# Of numpy's arrays, and modules, which the compatibility page does not list.
_ARRAYS = {
    "astype": "`x.cast(dtype)`",
    "copy": "`x.clone()`",
    "fill": "`x.assign(x.full_like(value))`",
    "flat": "`x.flatten()`",
    "compress": "`x[mask]`",
    "put": "`x[index] = value`",
    "partition": "`x.topk(k)`",
    "argpartition": "`x.topk(k)`",
    "itemsize": "`x.element_size()`",
    "tobytes": "`bytes(x.data())`",
    "tofile": "`x.numpy().tofile(path)`",
    "toarray": "`x.numpy()`",
    "parameters": "`nn.state.get_parameters(model)`, of a model",
}
_MODULES = {
    "functional": "the methods of `Tensor`",
    "linalg": "the methods of `Tensor`",
    "fft": "the methods of `Tensor`",
    "special": "the methods of `Tensor`",
    "random": "`Tensor.rand` and its like, `Tensor.manual_seed`",
    "autograd": "`Tensor.backward`, `Tensor.gradient`, `custom_gradient`, `jvp`, `hessian`",
    "func": "`vmap`, `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian`",
    "utils": "`nn.optim.clip_grad_norm_`, `nn.data.batches`, `checkpoint`",
    "optim": "`nn.optim`",
    "lr_scheduler": "the schedulers in `nn.optim`",
    "cuda": "`Device`, `x.to('CUDA')`",
    "mps": "`Device`, `x.to('METAL')`",
    "device": "`Device`, or its name: `device='CPU'`",
    "jit": "`TinyJit`",
}
_MODES = ("no_grad", "enable_grad", "set_grad_enabled", "inference_mode")  # classes in torch
_OTHERS = {
    "Tensor": _ARRAYS,
    "polygrad": {**_MODULES, **{name: f"`Tensor.{name}`" for name in _MODES}},
    "polygrad.nn": _MODULES,
    "polygrad.nn.optim": _MODULES,
}


def missing(place: str, owner: str, name: str) -> str:
    """The text of an AttributeError: `owner` has no attribute `name`. `place`: one of "Tensor", "layer" and
    modules' names."""
    text = f"{owner} has no attribute {name!r}"
    instead = None if name.startswith("__") else next(_instead(place, name), None)
    return text if instead is None else f"{text}: {'use ' if instead.startswith('`') else ''}{instead}"


def _instead(place: str, name: str) -> Iterator[str]:
    """What there is instead of a name, the best first."""
    if name in (others := _OTHERS.get(place, {})):
        yield others[name]
    # the tables are large, and read where somebody has made a mistake
    names: Any = importlib.import_module("polygrad.missing_names")
    for instead, missed in (entry for p in _PLACES[place] for entry in names.MISSING.get(p, {}).items()):
        if name in missed.split():
            yield instead
    if place != "layer":
        for prefix, here in names.HERE.items():
            if name in here.split():
                yield f"`{prefix}{name}`"
    if place == "Tensor" and name[-1:] == "_" and name[:-1] in names.HERE["Tensor."].split():
        yield f"`x.assign(x.{name[:-1]}(...))`, or `x += y` and its like"
