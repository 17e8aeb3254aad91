"""A model prepared to run: each node with the function that computes it, functions inlined, names checked.

`compile_model` finds all faults of a file before anything is computed; `Body.run` computes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from polygrad.errors import (
    CaptureError,
    CompileError,
    DeviceError,
    OnnxError,
    OutOfMemoryError,
    PolygradError,
)
from polygrad.onnx.channels_last import names_of_images, store_image
from polygrad.onnx.folding import fold
from polygrad.onnx.lookups import call_by_codes
from polygrad.onnx.op_table import Entry, find, is_read
from polygrad.onnx.proto import Function, Graph, Model, Node, Reference, SparseData, TensorData
from polygrad.onnx.reasons import REASONS
from polygrad.onnx.values import Codewise, Value, describe, plain
from polygrad.tensor.tensor import Tensor

_MOST_NODES = 1_000_000  # with functions inlined
_DEEPEST = 64  # functions that call functions
# Errors that are not the fault of a node; other errors of an op become an OnnxError that names the node.
_NOT_OF_THE_NODE = (CaptureError, CompileError, DeviceError, OutOfMemoryError)

Load = Callable[[TensorData | SparseData], Value]
_Key = tuple[str, str, str]  # of a function: domain, name, overload


@dataclass(slots=True)
class Step:
    """A node: an op (`entry`), or the body of a function."""

    node: Node
    inputs: list[str]
    outputs: list[str]
    entry: Entry | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    bodies: dict[str, Body] = field(default_factory=dict)
    function: Body | None = None


@dataclass(slots=True)
class Scope:
    """Values by name, and those of the graph around."""

    values: dict[str, Value]
    outer: Scope | None
    device: str | None

    def find(self, name: str) -> Value:
        if not name:
            return None
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.outer
        raise OnnxError(f"no value is called {name!r}")


@dataclass(slots=True)
class Body:
    """Steps with the names of their inputs and outputs. `constants`: initializers, loaded once. `images`: the
    names of values that are stored as images are (channels_last.py). `differentiated`: those that Gradient
    nodes name in xs; nodes read their numbers, never the codes that they are made of."""

    inputs: list[str]
    outputs: list[str]
    constants: dict[str, Value]
    steps: list[Step]
    images: frozenset[str] = frozenset()
    differentiated: frozenset[str] = frozenset()

    def run(
        self,
        arguments: Iterable[Value],
        outer: Scope | None,
        device: str | None,
        observe: Callable[[Step, list[Value]], None] | None = None,
    ) -> list[Value]:
        """The outputs for `arguments`, the values of `inputs` in order. Raises OnnxError.

        `observe` is called after each step, with the step's outputs.
        """
        scope = Scope({**self.constants, **dict(zip(self.inputs, arguments))}, outer, device)
        for step in self.steps:
            try:
                self._step(step, scope)
            except _NOT_OF_THE_NODE:
                raise
            except Exception as e:
                if isinstance(e, OnnxError) and str(e).startswith("node "):
                    raise
                raise OnnxError(f"{step.node}: {_text_of(e, step, scope)}") from e
            if observe is not None:
                observe(step, [plain(scope.find(name)) for name in step.outputs])
        return [plain(scope.find(name)) for name in self.outputs]

    def _step(self, step: Step, scope: Scope) -> None:
        inputs = [scope.find(name) for name in step.inputs]
        if step.function is not None:
            outputs = step.function.run(inputs, None, scope.device)
        else:
            assert step.entry is not None
            folded = fold(step.node, inputs, step.attributes) if step.entry.takes(inputs) else None
            bodies = {name: partial(_run_inside, body, scope) for name, body in step.bodies.items()}
            context: dict[str, Any] = {"outputs": len(step.outputs), "device": scope.device}
            if "find" in step.entry.context:  # not in others: a value may keep its node's call
                context["find"] = lambda name: plain(scope.find(name))
            attributes = {**step.attributes, **bodies}
            call = partial(step.entry.call, attributes=attributes, context=context)
            if folded is not None:
                outputs = [folded]
            elif step.node.domain:
                outputs = call(inputs)
            else:
                outputs = call_by_codes(step.node.op, inputs, call)
        for name, value in zip(step.outputs, outputs):
            if name:
                if name in self.images:
                    value = _as_image(value)
                scope.values[name] = plain(value) if name in self.differentiated else value


def _names_differentiated(nodes: Iterable[Node]) -> frozenset[str]:
    """The names in xs of Gradient nodes."""
    names: set[str] = set()
    for node in nodes:
        xs = node.attributes.get("xs") if node.op == "Gradient" else None
        names.update(xs if isinstance(xs, list) else ())
    return frozenset(names)


def _as_image(value: Value) -> Value:
    """A value that is stored as an image, if it is a Tensor."""
    if isinstance(value, Codewise):
        return replace(value, tensor=store_image(value.tensor))
    return store_image(value) if isinstance(value, Tensor) else value


def _text_of(error: Exception, step: Step, scope: Scope) -> str:
    """The message of an op's error; for errors that Python raised, with the op's arguments."""
    if isinstance(error, PolygradError):
        return str(error)
    given = ", ".join(describe(plain(scope.find(name))) for name in step.inputs)
    return f"it cannot be computed from {given or 'no inputs'}: {error or type(error).__name__}"


def _run_inside(body: Body, scope: Scope, *arguments: Value) -> list[Value]:
    return body.run(arguments, scope, scope.device)


def compile_model(model: Model, attribute: Load, initializer: Load) -> Body:
    """The main graph, ready to run. The two functions make a value of a tensor that is either.

    Raises OnnxError, for all ops at once that are missing.
    """
    compiler = _Compiler(model, attribute, initializer)
    body = compiler.graph(model.graph, _Place(model.opsets, {}, frozenset()))
    if compiler.missing:
        raise OnnxError("ops that do not exist here: " + "; ".join(_missing_lines(compiler.missing)))
    return body


def missing_ops(model: Model) -> list[str]:
    """A line for each op that does not exist here: its version, the node and, if there is one, the reason.

    Reads no tensors. Raises OnnxError for what else is wrong with the graph.
    """
    compiler = _Compiler(model, _not_read, _not_read)
    compiler.graph(model.graph, _Place(model.opsets, {}, frozenset()))
    return _missing_lines(compiler.missing)


def _not_read(tensor: TensorData | SparseData) -> Value:
    return None


def _missing_lines(missing: dict[tuple[str, str, int], list[Node]]) -> list[str]:
    return [
        f"{domain or 'ai.onnx'}.{name} of version {version}: {nodes[0]}"
        + (f" and {len(nodes) - 1} more" if len(nodes) > 1 else "")
        + (f" ({REASONS[domain, name]})" if (domain, name) in REASONS else "")
        for (domain, name, version), nodes in sorted(missing.items(), key=lambda item: item[0])
    ]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where nodes stand: versions of domains, the attributes of the function's call, and names around."""

    opsets: dict[str, int]
    attributes: dict[str, Any]
    names: frozenset[str]


class _Compiler:
    def __init__(self, model: Model, attribute: Load, initializer: Load) -> None:
        self.functions, self.attribute, self.initializer = model.functions, attribute, initializer
        self.missing: dict[tuple[str, str, int], list[Node]] = {}
        self.nodes = 0
        self._sizes: dict[_Key, int] = {}

    def graph(self, graph: Graph, place: _Place) -> Body:
        constants: dict[str, Value] = {}
        for tensor in graph.initializers:
            if tensor.name in constants:
                raise OnnxError(f"graph {graph.name!r}: two initializers are called {tensor.name!r}")
            constants[tensor.name] = self.initializer(tensor)
        inputs = [info.name for info in graph.inputs]
        if len(set(inputs)) != len(inputs):
            raise OnnxError(f"graph {graph.name!r}: two inputs have the same name")
        visible = {*place.names, *constants, *inputs}
        steps = self._steps(graph.nodes, {*constants, *inputs}, visible, place)
        outputs = [info.name for info in graph.outputs]
        for name in outputs:
            if name not in visible:
                raise OnnxError(f"graph {graph.name!r}: nothing computes its output {name!r}")
        images, differentiated = names_of_images(graph.nodes, outputs), _names_differentiated(graph.nodes)
        return Body(inputs, outputs, constants, steps, images, differentiated)

    def _steps(self, nodes: list[Node], own: set[str], visible: set[str], place: _Place) -> list[Step]:
        """`own`: names of this graph; `visible`: also of those around. Both grow."""
        steps = []
        for node in nodes:
            self.nodes += 1
            if self.nodes > _MOST_NODES:
                raise OnnxError(f"{node}: more than {_MOST_NODES} nodes, with functions inlined")
            for name in node.inputs:
                if name and name not in visible:
                    raise OnnxError(
                        f"{node}: input {name!r} is computed by no node before it (nodes out of order, or a "
                        "cycle)"
                    )
            steps.append(self._step(node, place, frozenset(visible) if _has_bodies(node) else place.names))
            for name in filter(None, node.outputs):
                if name in own:
                    raise OnnxError(f"{node}: output {name!r} is there already")
                own.add(name)
                visible.add(name)
        return steps

    def _step(self, node: Node, place: _Place, names: frozenset[str]) -> Step:
        step = Step(node, node.inputs, node.outputs)
        attributes: dict[str, Any] = {}
        for name, value in node.attributes.items():
            if isinstance(value, Reference):
                if value.name not in place.attributes:
                    continue  # the call does not say it, and neither does the function
                value = place.attributes[value.name]
            attributes[name] = value
        function = self.functions.get((node.domain, node.op, node.overload))
        if function is not None:
            step.function = self._function(node, function, attributes, place)
            return step
        if node.domain not in place.opsets:
            raise OnnxError(f"{node}: the model does not import the domain {node.domain or 'ai.onnx'}")
        version = place.opsets[node.domain]
        step.entry = find(node.domain, node.op, version)
        if step.entry is None:
            self.missing.setdefault((node.domain, node.op, version), []).append(node)
        body_place = _Place(place.opsets, place.attributes, names)
        for name, value in attributes.items():
            if isinstance(value, Graph):
                step.bodies[name] = self.graph(value, body_place)
            else:
                is_tensor = isinstance(value, (TensorData, SparseData))
                step.attributes[name] = self.attribute(value) if is_tensor else value
        if step.entry is not None:
            try:
                step.entry.check_attributes(list(attributes))
            except OnnxError as e:
                raise OnnxError(f"{node}: {e}") from e
        return step

    def _function(self, node: Node, function: Function, attributes: dict[str, Any], place: _Place) -> Body:
        if self.nodes + self._size(function, node, ()) > _MOST_NODES:
            raise OnnxError(f"{node}: more than {_MOST_NODES} nodes, with functions inlined")
        given = {**function.defaults, **attributes}
        names = set(function.inputs)
        body_place = _Place(function.opsets or place.opsets, given, frozenset())
        steps = self._steps(function.nodes, set(names), names, body_place)
        for name in function.outputs:
            if name not in names:
                raise OnnxError(f"{node}: nothing computes the output {name!r} of the function")
        differentiated = _names_differentiated(function.nodes)
        return Body(function.inputs, function.outputs, {}, steps, differentiated=differentiated)

    def _size(self, function: Function, node: Node, callers: tuple[_Key, ...]) -> int:
        """How many nodes a function has, with those that it calls."""
        key = (function.domain, function.name, function.overload)
        if key in callers or len(callers) >= _DEEPEST:
            raise OnnxError(f"{node}: a function calls itself, or functions are too deep in each other")
        if key not in self._sizes:
            nodes = all_nodes(function.nodes)
            called = [self.functions.get((n.domain, n.op, n.overload)) for n in nodes]
            self._sizes[key] = len(nodes) + sum(
                self._size(f, node, (*callers, key)) for f in called if f is not None
            )
        return self._sizes[key]


def all_nodes(nodes: Iterable[Node]) -> list[Node]:
    """Nodes, and those of the graphs in their attributes."""
    out = list(nodes)
    for node in out:  # grows within the loop
        for value in node.attributes.values():
            for graph in value if isinstance(value, list) else [value]:
                if isinstance(graph, Graph):
                    out += graph.nodes
    return out


def names_read(model: Model) -> frozenset[str]:
    """The names of inputs whose numbers ops read on the host; the same name elsewhere is one of them, too."""
    nodes = all_nodes([*model.graph.nodes, *(n for f in model.functions.values() for n in f.nodes)])
    names: set[str] = set()
    for node in nodes:
        entry = find(node.domain, node.op, model.opsets.get(node.domain, 0))
        if entry is not None:
            names.update(name for i, name in enumerate(node.inputs) if is_read(entry, i))
    return frozenset(names)


def op_counts(model: Model) -> dict[str, int]:
    """How often each op stands in the file, in bodies and functions too, most often first: 'domain.Op'."""
    nodes = all_nodes([*model.graph.nodes, *(n for f in model.functions.values() for n in f.nodes)])
    counts = Counter(f"{n.domain}.{n.op}" if n.domain else n.op for n in nodes)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _has_bodies(node: Node) -> bool:
    return any(isinstance(value, Graph) for value in node.attributes.values())
