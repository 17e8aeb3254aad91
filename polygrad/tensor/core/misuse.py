"""What a method of Tensor was given that it cannot have been meant to get.

Asked only after a method failed with an error of Python's own, so calls that are right cost nothing: where
a keyword is a second name (`argument_names`) the call is made as it was meant; where an argument is annotated
as a Tensor and is none, the caller is told so. Knows annotations, not what the methods do.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from polygrad.errors import ArgumentError, DTypeError, PolygradError
from polygrad.tensor.core.argument_names import first_name, with_first_names
from polygrad.tensor.core.base import TensorBase

MISUSE = (AttributeError, IndexError, TypeError)
# The annotations of arguments that have to be Tensors.
_TENSORS = {"Self": False, "Tensor": False, "Self | None": True, "Tensor | None": True}


def recovered(
    function: Callable[..., Any], args: Iterable[Any], kwargs: Mapping[str, Any], error: Exception
) -> Any:
    """After `error`, one of `MISUSE` that `function` raised: what it gives when its arguments have their
    first names. Else raises an error that says what is wrong with them, or `error` if nothing is."""
    if kwargs and isinstance(error, TypeError):
        meant = with_first_names(function, kwargs)
        if meant is not None:
            return function(*args, **meant)
    found = _explained(function, args, kwargs, error)
    if found is None:
        raise error
    raise found from error


def _explained(
    function: Callable[..., Any], args: Iterable[Any], kwargs: Mapping[str, Any], error: Exception
) -> PolygradError | None:
    signature = inspect.signature(function)
    parameters = signature.parameters
    name = function.__name__
    unknown = [k for k in kwargs if k not in parameters and first_name(parameters, k) is None]
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    if unknown and not takes_any and isinstance(error, TypeError):
        known = [k for k in parameters if k != "self"]
        return ArgumentError(f"{name}: expected arguments {', '.join(known)}, got {unknown[0]}=")
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
