"""The arguments of a captured call, split into Tensors, values of Variables, and values that have to stay
equal.

Tensors may be in lists, tuples and dicts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from polygrad.dtype import DType
from polygrad.errors import ArgumentError, CaptureError
from polygrad.tensor.core.base import TensorBase
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None), slice})


@dataclass(slots=True)
class Arguments:
    """`tensors`, in order; `variables`, by name; `other_values`: a key of all other values, which has to stay
    equal."""

    tensors: list[Any] = field(default_factory=list)
    variables: dict[str, int] = field(default_factory=dict)
    other_values: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Spec:
    """The properties that a Tensor argument must have. `shape` has Variables in place of their values."""

    name: str
    shape: tuple[Any, ...]
    dtype: DType
    device: str


class _Same:
    """Equality by identity; keeps the object alive."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"an object of type {type(self.value).__name__}"


_TENSOR = "a Tensor"


def split_arguments(values: Sequence[Any]) -> Arguments:
    """Split the values of a call's parameters.

    Raises CaptureError for arrays, ArgumentError for an unbound Variable.
    """
    for value in values:
        if not isinstance(value, TensorBase):
            break
    else:  # nearly all calls
        return Arguments([*values], {}, [_TENSOR] * len(values))
    out = Arguments()
    tensors, other_values = out.tensors, out.other_values
    stack = [*reversed(values)]
    while stack:
        value = stack.pop()
        if isinstance(value, TensorBase):
            tensors.append(value)
            other_values.append(_TENSOR)
        elif value.__class__ in _PLAIN:
            exact = value if value else repr(value)  # 0.0 and -0.0 are two values
            other_values.append((value.__class__, exact))
        elif isinstance(value, (list, tuple)):
            other_values.append((value.__class__, len(value)))
            stack.extend(reversed(value))
        elif isinstance(value, dict):
            other_values.append((dict, list(value)))
            stack.extend(reversed(value.values()))
        elif isinstance(value, UOp):
            other_values.append(unbind_size(value, out.variables))
        elif hasattr(value, "__array__"):
            raise CaptureError(
                f"captured function: an argument is a {type(value).__name__}: changes of its values would "
                "not be seen: pass Tensor(array)"
            )
        else:
            other_values.append(_Same(value))
    return out


def unbind_size(value: Any, variables: dict[str, int]) -> Any:
    """A size without the values of its Variables, which go into `variables`. Raises ArgumentError."""
    if not isinstance(value, UOp):
        return value
    bound = {}
    for node in value.toposort(lambda n: n.op is not Ops.BIND):
        if node.op is Ops.BIND:
            variable, number = node.unbind()
            name = variable.arg.name
            if variables.setdefault(name, number) != number:
                raise ArgumentError(
                    f"Variable {name}: it is {variables[name]} and {number} in one call: expected one value"
                )
            bound[node] = variable
    if not bound and any(n.op is Ops.DEFINE_VAR for n in value.toposort()):
        raise ArgumentError(f"Variable {value}: it is not bound: use .bind(value)")
    return value.substitute(bound)


def unbind_shape(shape: tuple[Any, ...], variables: dict[str, int]) -> tuple[Any, ...]:
    """A shape without the values of its Variables."""
    for size in shape:
        if size.__class__ is not int:
            return tuple([unbind_size(s, variables) for s in shape])
    return shape


def tensors_in(value: Any) -> list[Any]:
    """The Tensors in nested lists, tuples and dicts, each once, in order."""
    tensors: dict[int, Any] = {}
    stack = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, TensorBase):
            tensors[id(value)] = value
        elif isinstance(value, (list, tuple)):
            stack.extend(reversed(value))
        elif isinstance(value, dict):
            stack.extend(reversed(value.values()))
    return list(tensors.values())


@dataclass(frozen=True, slots=True)
class Returned:
    """Stands in a result for argument number `place`, which the function returns unchanged."""

    place: int


def replace_arguments(result: Any, places: Mapping[int, int]) -> tuple[Any, bool]:
    """A result with `Returned` for Tensors whose id is in `places`, and whether there is one."""
    returned = [t for t in tensors_in(result) if id(t) in places]
    if not returned:
        return result, False
    return _map(result, lambda x: Returned(places[id(x)]) if id(x) in places else x), True


def restore_arguments(result: Any, tensors: Sequence[Any]) -> Any:
    """The reverse of `replace_arguments`, for the Tensors of a call."""
    return _map(result, lambda x: tensors[x.place] if isinstance(x, Returned) else x)


def clone_tensors(result: Any, tensors: Sequence[Any]) -> Any:
    """A result in which `tensors` are replaced by clones."""
    return _map(result, lambda x: x.clone() if any(x is t for t in tensors) else x)


def _map(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[_map(v, change) for v in value])
    if isinstance(value, (list, tuple)):
        return type(value)([_map(v, change) for v in value])
    if isinstance(value, dict):
        return {k: _map(v, change) for k, v in value.items()}
    return change(value)


class Parameters:
    """The parameters of a function. Calls that give them the same values, by position or by name, are
    equal."""

    def __init__(self, function: Any) -> None:
        try:
            self._signature: inspect.Signature | None = inspect.signature(function)
        except (TypeError, ValueError):  # built in
            self._signature = None
        parameters = () if self._signature is None else self._signature.parameters.values()
        kinds = [p.kind for p in parameters]
        by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        is_counted = self._signature is not None and all(kind in by_position for kind in kinds)
        self._count = len(kinds) if is_counted else -1
        self._is_variadic = kinds == [inspect.Parameter.VAR_POSITIONAL]
        self._defaults = {p.name: _default(p.default) for p in parameters if p.default is not p.empty}

    def values(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """The value of each parameter."""
        if not kwargs:
            if len(args) == self._count:
                return args
            if self._is_variadic:
                return (args,)
        return tuple(self.named(args, kwargs).values())

    def named(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The value of each parameter by its name, which starts with `*` for those of `*args`, `**kwargs`."""
        try:
            bound = None if self._signature is None else self._signature.bind(*args, **kwargs)
        except TypeError:  # a decorator may take other arguments than the function that it wraps
            bound = None
        if bound is None or self._signature is None:
            return {"*args": args, "**kwargs": dict(sorted(kwargs.items()))}
        out = {}
        for p in self._signature.parameters.values():
            if p.kind is p.VAR_POSITIONAL:
                out[f"*{p.name}"] = bound.arguments.get(p.name, ())
            elif p.kind is p.VAR_KEYWORD:
                out[f"**{p.name}"] = dict(sorted(bound.arguments.get(p.name, {}).items()))
            else:
                out[p.name] = bound.arguments.get(p.name, self._defaults.get(p.name))
        return out

    def names(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], skip: int = 0) -> list[str]:
        """A name for each Tensor of a call's arguments after the first `skip`, in the order of
        `split_arguments`: that of the parameter, with the place of a Tensor inside it (`batch.image`,
        `layers.0`), or `input0` and so on where it has none."""
        values = list(self.named(args, kwargs).items())[skip:]
        names = [
            x for name, value in values for x in _name_tensors("" if name.startswith("*") else name, value)
        ]
        return [name or f"input{i}" for i, (name, _) in enumerate(names)]


class _Default:
    """A default with Tensors in it, which are no arguments unless they are passed."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _default(value: Any) -> Any:
    return _Default(value) if tensors_in(value) else value


def result_names(result: Any, first: str = "output0") -> list[tuple[str, Any]]:
    """The Tensors of a result with a name each: dict keys and fields of named tuples, with dots between, and
    `first`, `output1` and so on for those that have none.
    """
    named = _name_tensors("", result)
    return [(name or (f"output{i}" if i else first), t) for i, (name, t) in enumerate(named)]


def _name_tensors(name: str, value: Any) -> list[tuple[str, Any]]:
    """The Tensors in nested lists, tuples and dicts, in order, with their places; "" for those in no dict."""
    if isinstance(value, TensorBase):
        return [(name, value)]
    start = name and f"{name}."
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        value = dict(zip(value._fields, value, strict=True))
    if isinstance(value, dict):
        return [x for key, item in value.items() for x in _name_tensors(f"{start}{key}", item)]
    if isinstance(value, (list, tuple)):
        return [x for i, item in enumerate(value) for x in _name_tensors(start and f"{start}{i}", item)]
    return []
