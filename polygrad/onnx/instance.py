"""`load`: an ONNX file as an `Instance`, which runs, and whose initializers can be trained."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from polygrad.errors import ArgumentError
from polygrad.helpers import prod
from polygrad.nn.files import file_bytes, tensor_of_bytes
from polygrad.onnx import ops
from polygrad.onnx.captured import CapturedForward
from polygrad.onnx.elements import STRING
from polygrad.onnx.graph_program import compile_model, names_read, op_counts
from polygrad.onnx.node_times import NodeTimes, node_times
from polygrad.onnx.ports import from_host, port_of, to_host
from polygrad.onnx.proto import Model, SparseData, TensorData, read_model
from polygrad.onnx.tensors import Files, elements_of, strings_of
from polygrad.onnx.values import Strings, Value, constant_of, held, numbers_of
from polygrad.tensor.tensor import Tensor

assert ops.__all__  # their import fills the table of ops
_LARGEST_CONSTANT = 1024  # elements of integers that are taken for shapes and the like

# The smallest model, for the examples below: y = Relu(x), x a float vector.
EXAMPLE = bytes.fromhex(
    "08083a350a0c0a0178120179220452656c751201675a100a0178120b0a09080112050a0312016e"
    "62100a0179120b0a09080112050a0312016e42040a00100e"
)


class Instance:
    """An ONNX model in memory, made by `load`. A call makes a graph like any other: lazy, differentiable.

    `inputs`, `outputs`: its ports. `ops`: how often each op is in the file, by 'domain.Op'. `parameters`: the
    initializers by name, as Tensors; integers of up to 1,024 elements, which say shapes and axes, and floats
    that ops read (scales of a Resize) are constants and not among them. `model`: what the file says.
    """

    def __init__(self, model: Model, files: Files, device: str | None, requires_grad: bool) -> None:
        self.model, self.device = model, device
        self.parameters: dict[str, Tensor] = {}
        self._files, self._requires_grad = files, requires_grad
        self._names_read = names_read(model)
        self._body = compile_model(model, self._attribute, self._initializer)
        self._ports = tuple(port_of(x) for x in model.graph.inputs)
        self.inputs = tuple(port for port in self._ports if port.name not in self._body.constants)
        self.outputs = tuple(port_of(x) for x in model.graph.outputs)
        self.ops = op_counts(model)

    def forward(self, inputs: Mapping[str, Any] | None = None, /, **more: Any) -> dict[str, Any]:
        """The outputs by name, for inputs by name: Tensors, arrays or lists.

        Sequences are lists, optionals may be None, text is lists of str. Integers of 2 and 4 bits are int8 or
        uint8, small floats that are no dtype float32, by their values. Integer vectors that are no Tensors
        are known on the host: nothing is computed to read a shape from them. Raises ArgumentError,
        ShapeError, DTypeError for inputs that do not fit, OnnxError for a node that cannot be computed.

        >>> [y.tolist() for y in load(EXAMPLE).forward(x=[1.0, -2.0]).values()]
        [[1.0, 0.0]]
        """
        arguments = self._arguments({**(inputs or {}), **more})
        results = self._body.run(arguments, None, self.device)
        return {port.name: to_host(value, self.device) for port, value in zip(self.outputs, results)}

    __call__ = forward

    def profile(
        self, inputs: Mapping[str, Any] | None = None, /, seconds: float = 0.1, **more: Any
    ) -> NodeTimes:
        """How long each node takes on these inputs when nodes are computed one by one, and all together.

        Each is timed for some `seconds`. Raises what `forward` raises, and ArgumentError for a model that
        launches other kernels in each call.

        >>> times = load(EXAMPLE).profile(x=[1.0, -2.0])
        >>> [(node.op, node.launches, node.outputs) for node in times.nodes]
        [('Relu', 1, ('float of shape (2,)',))]
        """
        arguments = self._arguments({**(inputs or {}), **more})
        return node_times(
            lambda values, observe: self._body.run(values, None, self.device, observe), arguments, seconds
        )

    def _arguments(self, given: Mapping[str, Any]) -> list[Value]:
        """The values of all inputs, in order. Raises ArgumentError, ShapeError, DTypeError."""
        names = {port.name for port in self._ports}
        missing = [p.name for p in self.inputs if p.name not in given and p.kind != "optional"]
        if missing or not names.issuperset(given):
            raise ArgumentError(
                f"forward: expected the inputs {[p.name for p in self.inputs]}, got {list(given)}"
            )
        sizes: dict[str, Any] = {}
        return [
            from_host(port, given[port.name], sizes, self.device)
            if port.name in given
            else self._body.constants.get(port.name)
            for port in self._ports
        ]

    def capture(self, **bounds: int | tuple[int, int]) -> CapturedForward:
        """`forward`, captured once for all sizes: the second call captures, later ones replay one Program.
        What depends on the initializers alone is computed before the first replay, and again when one of them
        was written to.

        `bounds`: for each symbolic size of the inputs, the least and the largest one, or the only one; a size
        without a name is called `x.0`, for axis 0 of the input `x`. Raises ArgumentError for others, and for
        inputs that are no tensors of a known rank.

        >>> step = load(EXAMPLE).capture(n=(1, 8))
        >>> [step(x=[-1.0, 2.0] * n)["y"].tolist() for n in (1, 2, 1)]
        [[0.0, 2.0], [0.0, 2.0, 0.0, 2.0], [0.0, 2.0]]
        """
        return CapturedForward(self.forward, self.inputs, self.parameters, self.device, bounds)

    def export(self, path: str | os.PathLike[str], /, **bounds: int | tuple[int, int]) -> None:
        """Write a `.pgrd` file, which `polygrad.export.load` and JavaScript's `polygrad/runtime` run alone.

        `bounds` are those of `capture`. Raises what it raises; CaptureError for a model in which computed
        numbers decide what is computed next; ArgumentError for an output with a size computed from others.
        """
        # The file has the initializers themselves, not values computed from them.
        step = CapturedForward(self.forward, self.inputs, self.parameters, self.device, bounds, prune=False)
        step.warm()
        step.save(path)

    def __repr__(self) -> str:
        return f"<Instance {self.model.graph.name!r}: {sum(self.ops.values())} nodes>"

    # --- from the file

    def _attribute(self, tensor: TensorData | SparseData) -> Value:
        """The value of a tensor that is an attribute: a Constant, if it is small."""
        return self._load(tensor, is_attribute=True)

    def _initializer(self, tensor: TensorData | SparseData) -> Value:
        value = self._load(tensor, is_attribute=False)
        if isinstance(value, Tensor):
            if self._requires_grad and value.dtype.is_float:
                value.requires_grad_()
            name, same = tensor.name, 1
            while name in self.parameters:  # another graph's
                same += 1
                name = f"{tensor.name}#{same}"
            self.parameters[name] = value
        return value

    def _load(self, tensor: TensorData | SparseData, is_attribute: bool) -> Value:
        if isinstance(tensor, SparseData):
            return self._dense(tensor)
        if tensor.element == STRING:
            return Strings(tensor.shape, strings_of(tensor))
        element, raw = elements_of(tensor, self._files)
        if isinstance(raw, Tensor):
            return held(raw.reshape(tensor.shape), element)
        is_index = element.dtype.is_int and element.dtype.itemsize > 1
        if (
            element.is_native
            and prod(tensor.shape) <= _LARGEST_CONSTANT
            and (is_attribute or is_index or element.dtype.is_bool or tensor.name in self._names_read)
        ):
            return constant_of(element, tensor.shape, raw)
        if element.dtype.is_float:
            return held(tensor_of_bytes(raw, element.dtype, tensor.shape, self.device), element)
        if not len(raw):
            return held(Tensor.zeros(tensor.shape, dtype=element.dtype, device=self.device), element)
        return held(Tensor(bytes(raw), self.device, element.dtype).reshape(tensor.shape), element)

    def _dense(self, sparse: SparseData) -> Tensor:
        """A sparse tensor with its zeros. Raises OnnxError."""
        element, raw = elements_of(sparse.values, self._files)
        values = raw if isinstance(raw, Tensor) else Tensor(bytes(raw), self.device, element.dtype)
        places = numbers_of(constant_of(*_indices(sparse, self._files)))
        rank = len(sparse.shape)
        if len(sparse.indices.shape) == 2:
            rows = [places[i : i + rank] for i in range(0, len(places), rank)]
            places = [sum(at * prod(sparse.shape[k + 1 :]) for k, at in enumerate(row)) for row in rows]
        whole = Tensor.zeros(prod(sparse.shape), dtype=element.dtype, device=self.device)
        if places:
            whole = whole.scatter(0, Tensor(places, self.device, "int64"), values)
        return whole.reshape(sparse.shape)


def _indices(sparse: SparseData, files: Files) -> tuple[Any, Any, Any]:
    element, raw = elements_of(sparse.indices, files)
    return element, sparse.indices.shape, raw


def load(
    data: Any,
    device: str | None = None,
    requires_grad: bool = False,
    folder: str | os.PathLike[str] | None = None,
    files: Mapping[str, Any] | None = None,
) -> Instance:
    """The model in an ONNX file: a path, bytes, a buffer, or a Tensor of bytes.

    `requires_grad`: the floats among its initializers become leaves that are trained. `folder`: where files
    of external data are; by default the folder of the path. `files`: such files by their names, as bytes or
    buffers, for a model that comes from no folder. Raises OnnxError for a damaged file, and for ops that do
    not exist here, all of them at once.

    >>> model = load(EXAMPLE)
    >>> model.inputs[0].name, model.inputs[0].shape, model.ops
    ('x', ('n',), {'Relu': 1})
    """
    if folder is None and isinstance(data, (str, os.PathLike)):
        folder = os.path.dirname(os.path.abspath(data))
    model = read_model(file_bytes(data, "onnx.load", mapped=True))
    contents = {name: file_bytes(data, f"onnx.load: files: {name!r}") for name, data in (files or {}).items()}
    return Instance(model, Files(folder, contents), device, requires_grad)
