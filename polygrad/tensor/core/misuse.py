"""What a method of Tensor was given that it cannot have been meant to get.

Asked only after a method failed with an error of Python's own, so calls that are right cost nothing: where
an argument is annotated as a Tensor and is none, or a keyword is torch's or numpy's word for another, the
caller is told so. Knows annotations, not what the methods do.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from polygrad.errors import ArgumentError, DTypeError, PolygradError
from polygrad.tensor.core.base import TensorBase

MISUSE = (AttributeError, IndexError, TypeError)
# The annotations of arguments that have to be Tensors.
_TENSORS = {"Self": False, "Tensor": False, "Self | None": True, "Tensor | None": True}
# torch's and numpy's words for arguments that have others here, or the other way round.
_OTHER_WORDS = {
    "dim": "axis", "axis": "dim", "dims": "axis", "axes": "axis", "keepdims": "keepdim",
    "unbiased": "correction",
    "ddof": "correction", "negative_slope": "neg_slope", "min": "min_", "max": "max_", "target": "Y",
    "sorted": "sorted_",
}  # fmt: skip


def explained(
    function: Callable[..., Any], args: Iterable[Any], kwargs: Mapping[str, Any], error: Exception
) -> PolygradError | None:
    """The error to raise in the place of `error`, one of `MISUSE` that `function` raised; None if the
    arguments do not explain it."""
    signature = inspect.signature(function)
    parameters = signature.parameters
    name = function.__name__
    unknown = [k for k in kwargs if k not in parameters]
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    if unknown and not takes_any and isinstance(error, TypeError):
        known = [k for k in parameters if k != "self"]
        meant = _OTHER_WORDS.get(unknown[0])
        hint = f": use {meant}=" if meant in known else ""
        return ArgumentError(f"{name}: expected arguments {', '.join(known)}, got {unknown[0]}={hint}")
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return None
    for key, value in given.items():
        parameter = parameters[key]
        if key in ("self", "cls") or parameter.annotation not in _TENSORS:
            continue
        values = value if parameter.kind is parameter.VAR_POSITIONAL else [value]
        for x in values:
            if isinstance(x, TensorBase) or (x is None and _TENSORS[parameter.annotation]):
                continue
            kind = "None" if x is None else type(x).__name__
            hint = "" if x is None else ": use Tensor(...)"
            return DTypeError(f"{name}: {key}: expected a Tensor, got {kind}{hint}")
    return None
