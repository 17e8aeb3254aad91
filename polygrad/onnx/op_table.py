"""The table of ops: (domain, op, version) -> function, and how a node's inputs and attributes become
arguments.

An op is a function of a few lines:

    @op("Gemm", 7, 9, 11, 13)
    def gemm(a: Tensor, b: Tensor, c: Tensor | None = None, *, alpha: float = 1.0, ...) -> Tensor:
 Its versions are those whose semantics it has. Positional parameters are inputs, in order, and their
annotations say what the op needs: `Tensor`, `Quantizable` (a Tensor, or the integers that one is made of),
`Ints`, `Floats`, `Int` or `Float` (numbers on the host; a Tensor is computed for them), `Value` (as it is) or
`Known` (as it is; a small initializer comes as a Constant, so that the op sees its numbers).
Keywords are attributes with their defaults; one that is a graph comes as a Body, a function of values. Three
keywords are not the node's: `outputs` (how many outputs it names), `device`, and `find` (the value of a name
in the graph).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from polygrad.errors import OnnxError
from polygrad.onnx.values import (
    Dequantized,
    Narrow,
    Scaled,
    Value,
    integers_of,
    numbers_of,
    plain,
    scalar_of,
    tensor_of,
)
from polygrad.tensor.tensor import Tensor

# The kind of value that an annotation of an op's parameter requests.
Quantizable: TypeAlias = Tensor | Dequantized | Scaled
Known: TypeAlias = Value
Ints: TypeAlias = list[int]
Floats: TypeAlias = list[float]
Int: TypeAlias = int
Float: TypeAlias = float
Body: TypeAlias = Callable[..., list[Any]]

_READERS: dict[str, Callable[[Value], Any]] = {
    "Ints": integers_of,
    "Floats": numbers_of,
    "Int": lambda value: int(scalar_of(value)),
    "Float": lambda value: float(scalar_of(value)),
}
# Ops that move elements, of all inputs the first.
_MOVES = frozenset({"Flatten", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
_TENSORS = ("Tensor", "Quantizable")
_AS_THEY_ARE = ("Value", "Known")
# Keywords that are not attributes.
CONTEXT = frozenset(("outputs", "device", "find"))


@dataclass(frozen=True, slots=True)
class Entry:
    """An op of one or several versions. `kinds`: of each input, what its annotation asks for; `optional`:
    whether it may be left out. `required`: how many inputs a node has at least.

    `rest`: of inputs behind those. `keeps_type`: elements that are no dtype pass as they are held, and the
    result is of their type.
    """

    name: str
    function: Callable[..., Any]
    kinds: tuple[str, ...]
    optional: tuple[bool, ...]
    required: int
    rest: str | None
    attributes: frozenset[str]
    context: frozenset[str]
    needed: tuple[str, ...]
    keeps_type: bool

    def call(self, inputs: list[Value], attributes: dict[str, Any], context: dict[str, Any]) -> list[Value]:
        """The outputs for these inputs. `context`: values of the keywords CONTEXT. Raises OnnxError."""
        self._check_count(inputs)
        if inputs and isinstance(x := inputs[0], Dequantized) and x.is_uniform and self.name in _MOVES:
            parts = [self.call([t, *inputs[1:]], attributes, context)[0] for t in (x.tensor, x.codes)]
            device = context["device"]
            tensor, codes = (tensor_of(part, device) for part in parts)
            return [replace(x, tensor=tensor, codes=codes, function=None)]
        narrow = inputs[0] if self.keeps_type and inputs and isinstance(inputs[0], Narrow) else None
        if narrow is not None:
            inputs = [x.tensor if isinstance(x, Narrow) else x for x in inputs]
        arguments = []
        for i, value in enumerate(inputs):
            kind = self.kinds[i] if i < len(self.kinds) else self.rest
            assert kind is not None
            optional = i < len(self.kinds) and self.optional[i]
            arguments.append(_argument(value, kind, optional, context["device"]))
        result = self.function(*arguments, **attributes, **{k: context[k] for k in self.context})
        results = list(result) if isinstance(result, tuple) else [result]
        if len(results) < context["outputs"]:
            raise OnnxError(f"it has {len(results)} outputs, the node names {context['outputs']}")
        if narrow is not None:
            results = [Narrow(x, narrow.element) for x in results]
        return results

    def _has_count(self, count: int) -> bool:
        return count >= self.required and (self.rest is not None or count <= len(self.kinds))

    def takes(self, inputs: list[Value]) -> bool:
        """Whether there are as many inputs as the op has, and only optional ones are left out."""
        return self._has_count(len(inputs)) and all(
            value is not None or (i < len(self.kinds) and self.optional[i]) for i, value in enumerate(inputs)
        )

    def _check_count(self, inputs: list[Value]) -> None:
        most = len(self.kinds)
        if not self._has_count(len(inputs)):
            expected = str(self.required) if most == self.required else f"{self.required} to {most}"
            raise OnnxError(f"expected {expected} inputs, got {len(inputs)}")

    def check_attributes(self, names: list[str]) -> None:
        """Raises OnnxError for an attribute that this version does not have, or that is missing."""
        unknown = [n for n in names if n not in self.attributes]
        missing = [n for n in self.needed if n not in names]
        if unknown or missing:
            what = f"unknown attribute {unknown[0]!r}" if unknown else f"attribute {missing[0]!r} is missing"
            raise OnnxError(what)


def _argument(value: Value, kind: str, optional: bool, device: str | None) -> Any:
    if kind == "Quantizable" and isinstance(value, (Dequantized, Scaled)):
        return value
    value = plain(value)
    if kind in _AS_THEY_ARE or (value is None and optional):
        return value
    if value is None:
        raise OnnxError("a required input is left out")
    return tensor_of(value, device) if kind in _TENSORS else _READERS[kind](value)


F = TypeVar("F", bound=Callable[..., Any])
TABLE: dict[tuple[str, str], dict[int, Entry]] = {}


def op(name: str, *versions: int, domain: str = "", keeps_type: bool = False) -> Callable[[F], F]:
    """Register a function as `versions` of the op `name`."""

    def register(function: F) -> F:
        entry = _entry(name, function, keeps_type)
        versions_of_op = TABLE.setdefault((domain, name), {})
        for version in versions:
            assert version not in versions_of_op, f"{name}-{version} is registered twice"
            versions_of_op[version] = entry
        return function

    return register


def _entry(name: str, function: Callable[..., Any], keeps_type: bool) -> Entry:
    kinds: list[str] = []
    optional: list[bool] = []
    required, rest, needed = 0, None, []
    attributes, context = set(), set()
    for p in inspect.signature(function).parameters.values():
        kind = str(p.annotation).removesuffix(" | None")
        if p.name in CONTEXT:
            context.add(p.name)
            continue
        if p.kind is p.KEYWORD_ONLY:
            attributes.add(p.name)
            if p.default is p.empty:
                needed.append(p.name)
            continue
        assert kind in (*_TENSORS, *_AS_THEY_ARE, *_READERS), (
            f"{name}: parameter {p.name} of type {p.annotation}"
        )
        if p.kind is p.VAR_POSITIONAL:
            rest = kind
            continue
        kinds.append(kind)
        optional.append(str(p.annotation).endswith(" | None"))
        required += p.default is p.empty
    return Entry(
        name,
        function,
        tuple(kinds),
        tuple(optional),
        required,
        rest,
        frozenset(attributes),
        frozenset(context),
        tuple(needed),
        keeps_type,
    )


def is_read(entry: Entry, position: int) -> bool:
    """Whether an op looks at the numbers of this input: scales of a Resize, axes, a zero point."""
    kind = entry.kinds[position] if position < len(entry.kinds) else entry.rest
    return kind == "Known" or kind in _READERS


def find(domain: str, name: str, opset: int) -> Entry | None:
    """The op as version `opset` of its domain has it, or None where it is not in the table."""
    versions = TABLE.get((domain, name), {})
    fitting = [v for v in versions if v <= opset]
    return versions[max(fitting)] if fitting else None
