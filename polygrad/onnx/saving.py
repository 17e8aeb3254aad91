"""`save` writes the computation of a function as an ONNX file.

The function is called once with new inputs, and the graph of its results is written. Values that do not
depend on the inputs are computed now and become initializers.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from polygrad.capture.arguments import result_names
from polygrad.engine.recording import Recording, record
from polygrad.errors import ArgumentError, OnnxError
from polygrad.helpers import prod, write_file
from polygrad.monitor import computing
from polygrad.nn.state import get_state_dict
from polygrad.onnx.channels_last import channels_first
from polygrad.onnx.export_ops import Exporter, strip
from polygrad.onnx.graph_writer import GraphWriter, plain_shape
from polygrad.tensor.core.aliasing import realize_tensors, storage_of
from polygrad.tensor.core.registry import live_tensors
from polygrad.tensor.tensor import Tensor
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops

_LARGEST_FILE = (1 << 31) - (1 << 20)  # bytes that protobuf allows, less some for the graph
_LARGEST_CONSTANT = 1024  # elements of what has no name and is no initializer
_WRITTEN_AS_THEY_ARE = GroupOp.Movement | {Ops.CONST, Ops.ARANGE}


@computing
def save(
    function: Any,
    example_inputs: Mapping[str, Any] | Sequence[Any],
    path: str | os.PathLike[str],
    model: Any = None,
    external_data: bool = False,
) -> None:
    """Write what `function` computes to the ONNX file `path`, of opset 21.

    `function`: a function, a layer, or an `Instance`. `example_inputs`: Tensors or arrays, by the names of
    its parameters or in their order. An axis whose size is a bound Variable is dynamic, with the Variable's
    name: `storage[: n.bind(2)]`. Outputs are called as the keys of a dict that the function returns, or
    `output0` and so on; initializers as the Tensors of `model`, by default the function's own
    (`nn.state.get_state_dict`). `external_data`: larger initializers go to a file beside it, `path` with
    `.data` behind; a file may not be larger than 2 GB without.

    Raises OnnxError for operations without a counterpart, random numbers and writes to memory; CaptureError
    for a function that reads values; ArgumentError for results that are no Tensors.

    >>> import tempfile, polygrad.onnx
    >>> from polygrad import Tensor
    >>> with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
    ...     save(lambda x: x.relu() + 1, [Tensor([1.0, -1.0])], file.name)
    ...     polygrad.onnx.load(file.name).forward(x=[-3.0, 3.0])["output0"].tolist()
    [1.0, 4.0]
    """
    call = function.forward if hasattr(function, "forward") and not callable(function) else function
    if not callable(call):
        raise ArgumentError(
            f"save: expected a function, a layer or an Instance, got {type(function).__name__}"
        )
    weights = _weights(function if model is None else model)
    named = _named_inputs(function, example_inputs)
    inputs = {name: _placeholder(name, value) for name, value in named.items()}
    results = _trace(call, inputs, isinstance(example_inputs, Mapping))
    writer = GraphWriter(os.fspath(path) if external_data else None)
    names: dict[UOp, str] = {}
    for name, x in inputs.items():
        names[x.uop] = writer.own_name(name)
        writer.input(name, x.dtype, plain_shape(x.shape))
    outputs = [(writer.own_name(name), t) for name, t in results]
    _name_constants([t.uop for _, t in results], names, weights, writer)
    exporter = Exporter(writer, names)
    for name, t in outputs:
        writer.output(name, exporter.write(t.uop), t.dtype, t.shape)
    data = writer.model()
    if len(data) > _LARGEST_FILE:
        raise OnnxError(
            f"save: {len(data)} bytes are more than an ONNX file may have: say external_data=True"
        )
    write_file(path, [data])


# --- the function


def _named_inputs(function: Any, given: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    """The inputs by name. Raises ArgumentError."""
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence):
        raise ArgumentError(f"save: expected example inputs by name or in a list, got {type(given).__name__}")
    call = function if inspect.isroutine(function) else function.__call__
    try:
        parameters = list(inspect.signature(call).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names += [f"input{i}" for i in range(len(names), len(given))]
    return dict(zip(names, given))


def _placeholder(name: str, value: Any) -> Tensor:
    """An input in memory of its own, with the shape, the dtype and the device of what was given."""
    x = value if isinstance(value, Tensor) else Tensor(value)
    if all(isinstance(n, int) for n in x.shape):
        return Tensor.zeros(x.shape, dtype=x.dtype, device=x.device).clone().realize()
    whole = Tensor.zeros(prod(x.max_shape), dtype=x.dtype, device=x.device).clone().realize()
    return whole[: prod(x.shape)].reshape(x.shape)


def _trace(call: Callable[..., Any], inputs: dict[str, Tensor], by_name: bool) -> list[tuple[str, Tensor]]:
    """What the function returns for these inputs, by name; nothing of it is computed."""
    before = {storage: storage.node for storage in map(storage_of, live_tensors())}
    recording = Recording()
    with record(recording, lambda recording: None), channels_first():
        result = call(**inputs) if by_name else call(*inputs.values())
        named = result_names(result)
        if not named:
            raise ArgumentError(
                f"save: expected a function that returns Tensors, got {type(result).__name__}"
            )
        if recording.runs:
            raise OnnxError("save: the function computes values while it is called (realize): leave that out")
        written = [storage for storage, node in before.items() if storage.node is not node]
        if written:
            for storage in written:
                storage.update(before[storage])
            raise OnnxError("save: the function writes to memory (in training mode, layers of norms do)")
        if recording.guards:
            decided = ", ".join(map(str, recording.guards))
            raise OnnxError(f"save: what the function does depends on the value of {decided}")
    return named


# --- values that do not depend on the inputs


def _weights(model: Any) -> dict[str, Tensor]:
    """The Tensors of a model, in memory."""
    weights = (
        dict(model.parameters)
        if isinstance(getattr(model, "parameters", None), dict)
        else get_state_dict(model)
    )
    realize_tensors(weights.values())
    return weights


def _name_constants(
    roots: Sequence[UOp], names: dict[UOp, str], weights: Mapping[str, Tensor], writer: GraphWriter
) -> None:
    """Names for values that depend on no input: initializers for weights and large ones, else constants."""
    below = UOp.sink(*roots).toposort(lambda u: u not in names)
    varying = set(names)
    for u in below:
        if u in names or any(s in varying for s in u.src) or _is_symbolic(u):
            varying.add(u)
    written = [u for u in below if u in varying and u not in names]
    constant_sources = dict.fromkeys(s for u in written for s in u.src if s not in varying)
    constant_sources |= dict.fromkeys(u for u in roots if u not in varying)
    weight_names = {strip(t.uop): name for name, t in weights.items()}
    constants: dict[UOp, str] = {}
    stack = list(constant_sources)
    while stack:
        u = strip(stack.pop())
        if u in constants or u.op is Ops.CONST:
            continue
        if u in weight_names:
            constants[u] = weight_names[u]
        elif u.op in _WRITTEN_AS_THEY_ARE:
            stack += u.src
        else:
            constants[u] = ""
    if any(n.op is Ops.THREEFRY for u in constants if not constants[u] for n in u.toposort()):
        raise OnnxError(
            "save: random numbers are not exported: realize() the weights, and leave training mode"
        )
    tensors = [Tensor._of(u) for u in constants]
    realize_tensors(tensors)
    for i, ((u, name), t) in enumerate(zip(constants.items(), tensors)):
        raw = t.contiguous().data().cast("B") if 0 not in t.shape else b""
        if name or t.numel() > _LARGEST_CONSTANT:
            names[u] = writer.initializer(name or f"constant_{i}", t.dtype, t.shape, raw)
        else:
            names[u] = writer.constant_of(t.dtype, t.shape, raw)


def _is_symbolic(u: UOp) -> bool:
    if u.op in (Ops.BIND, Ops.DEFINE_VAR):
        return True
    return u.op not in (Ops.SINK, Ops.CONST, Ops.BUFFER) and any(not isinstance(n, int) for n in u.shape)
