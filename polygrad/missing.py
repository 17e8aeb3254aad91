"""What to say of a name that is not here and that torch or tinygrad has: what there is instead."""

from __future__ import annotations

import importlib

# Where names would be in torch and tinygrad, by where they are asked for here.
_PLACES = {
    "Tensor": ("torch.Tensor", "torch", "torch.nn.functional", "tinygrad.Tensor"),
    "polygrad": ("torch", "tinygrad"),
    "polygrad.nn": ("torch.nn", "torch.nn.functional", "tinygrad.nn"),
    "polygrad.nn.optim": ("torch.optim", "torch.optim.lr_scheduler", "tinygrad.nn.optim"),
    "layer": ("torch.nn.Module",),
}


def missing(place: str, owner: str, name: str) -> str:
    """The text of an AttributeError: `owner` has no attribute `name`. `place`: one of "Tensor", "layer" and
    modules' names."""
    text = f"{owner} has no attribute {name!r}"
    if name.startswith("__"):
        return text
    # the table is large, and read where somebody has made a mistake
    table: dict[str, dict[str, str]] = importlib.import_module("polygrad.missing_names").MISSING
    for instead, names in (entry for p in _PLACES[place] for entry in table.get(p, {}).items()):
        if name in names.split():
            return f"{text}: {'use ' if instead.startswith('`') else ''}{instead}"
    if place == "Tensor" and name.endswith("_"):
        return f"{text}: use `x.assign(x.{name[:-1]}(...))`, or `x += y` and its like"
    return text
