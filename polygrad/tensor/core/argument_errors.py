"""Errors for wrong arguments of Tensor's methods.

This runs only after a method has failed with one of Python's own errors, so correct calls cost nothing. If a
keyword is a second name of an argument (`argument_names`), the call is repeated with the first name. If an
argument is annotated as a Tensor and is not one, the error says so.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from polygrad.errors import ArgumentError, DTypeError, PolygradError
from polygrad.tensor.core.argument_names import first_name, with_first_names
from polygrad.tensor.core.base import TensorBase

PYTHON_ERRORS = (AttributeError, IndexError, TypeError)
# The annotations of arguments that have to be Tensors.
_TENSORS = {"Self": False, "Tensor": False, "Self | None": True, "Tensor | None": True}


def retry_or_explain(
    function: Callable[..., Any], args: Iterable[Any], kwargs: Mapping[str, Any], error: Exception
) -> Any:
    """Handle `error`, one of `PYTHON_ERRORS`, that `function` has raised. If arguments were given by second
    names, call it again with the first names. Else raise an error that explains the wrong argument, or
    `error` itself if no argument is wrong."""
    if kwargs and isinstance(error, TypeError):
        renamed = with_first_names(function, kwargs)
        if renamed is not None:
            return function(*args, **renamed)
    explanation = _explain(function, args, kwargs, error)
    if explanation is None:
        raise error
    raise explanation from error


def _explain(
    function: Callable[..., Any], args: Iterable[Any], kwargs: Mapping[str, Any], error: Exception
) -> PolygradError | None:
    signature = inspect.signature(function)
    parameters = signature.parameters
    name = function.__name__
    unknown_names = [k for k in kwargs if k not in parameters and first_name(parameters, k) is None]
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    if unknown_names and not takes_any and isinstance(error, TypeError):
        names = [k for k in parameters if k != "self"]
        return ArgumentError(f"{name}: expected arguments {', '.join(names)}, got {unknown_names[0]}=")
    try:
        arguments = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return None
    for key, value in arguments.items():
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
