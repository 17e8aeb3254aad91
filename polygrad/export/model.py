"""`load`: an exported step as a `Model`, which runs on the device it was exported for.

The file says everything: the Program, its buffers' names and shapes, and what parameters and state hold.
`wasm_runtime/src/model.ts` is the same for JavaScript.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polygrad.dtype import DType, to_dtype
from polygrad.engine.devices import Device
from polygrad.engine.running import run_program
from polygrad.errors import ArgumentError, DTypeError, ProgramError, ShapeError
from polygrad.helpers import prod
from polygrad.monitor import computing
from polygrad.nn.safetensors import TensorEntry, read_entries, write_entries
from polygrad.runtime.buffer import Allocation, Buffer
from polygrad.runtime.program import Program, read_program
from polygrad.tensor.core.convert import array_like, from_memoryview
from polygrad.tensor.tensor import Tensor

_KEPT = ("param", "state")  # what a model holds between runs


@dataclass(frozen=True)
class TensorSpec:
    """An input, output, parameter or state. A size is an int, or the name of a Variable."""

    name: str
    dtype: DType
    shape: tuple[int | str, ...]


class Model:
    """An exported step in memory. `load` makes it.

    `inputs`, `outputs` and `parameters` (state with them) say what there is. What a run writes to state stays
    in the model, so that an exported training step trains it.
    """

    @computing
    def __init__(self, program: Program, values: Mapping[str, TensorEntry]) -> None:
        self.program = program
        self._runtime = Device[program.device]
        self._executable = self._runtime.load(program)
        self._buffers = [
            None if b.role == "scratch" else Buffer(self._runtime, b.size, to_dtype(b.dtype))
            for b in program.buffers
        ]
        self._arena = Allocation(self._runtime, program.arena) if program.arena else None
        self.inputs, self.outputs = self._specs("input"), self._specs("output")
        self.parameters = self._specs(*_KEPT)
        self._set(values)

    @computing
    def run(self, inputs: Mapping[str, Any] | None = None, /, **more: Any) -> dict[str, Tensor]:
        """Run once on the inputs by name (Tensors, arrays or lists); the outputs by name, new each time.

        A Variable is an int given by its name, unless the shape of an input tells it. Raises ArgumentError,
        ShapeError and DTypeError for inputs that are not as `inputs` says.
        """
        given = {**(inputs or {}), **more}
        names = [spec.name for spec in self.inputs]
        variables = {v.name: v for v in self.program.variables}
        unknown = [name for name in given if name not in names and name not in variables]
        missing = [name for name in names if name not in given]
        if unknown or missing:
            raise ArgumentError(f"run: expected the inputs {[*names, *variables]}, got {list(given)}")
        values = {name: given[name] for name in variables if name in given}
        elements = [_elements(spec, given[spec.name], values) for spec in self.inputs]
        for v in self.program.variables:
            value = values.get(v.name)
            if not isinstance(value, int) or not v.lo <= value <= v.hi:
                raise ArgumentError(f"run: expected Variable {v.name} from {v.lo} to {v.hi}, got {value}")
        for spec, raw in zip(self.inputs, elements, strict=True):
            if raw.nbytes:  # with Variables, perhaps less than the buffer
                self._runtime.write(self._buffer(spec.name, "input").handle, 0, raw)
        handles = [None if b is None else b.handle for b in self._buffers]
        run_program(self._executable, self.program, handles, self._arena and self._arena.handle, values)
        return {spec.name: self._read(spec, "output", values) for spec in self.outputs}

    @computing
    def parameter(self, name: str) -> Tensor:
        """A copy of a parameter or of state. Raises ArgumentError for one that does not exist."""
        return self._read(self._spec(name), "value", {})

    @computing
    def set_parameter(self, name: str, value: Any) -> None:
        """Let a parameter or state be `value`, a Tensor, array or list of its shape and dtype.

        Raises ArgumentError, ShapeError, DTypeError.
        """
        self._buffer(name, "value").write(_elements(self._spec(name), value, {}))

    @computing
    def save(self, path: str | os.PathLike[str] | None = None) -> bytes:
        """Parameters and state as a safetensors file `path` (if given); its bytes."""
        entries = {}
        for spec in self.parameters:
            shape: Any = spec.shape
            entries[spec.name] = TensorEntry(spec.dtype, shape, self._buffer(spec.name, "value").read())
        whole = write_entries(entries)
        if path is not None:
            with open(path, "wb") as f:
                f.write(whole)
        return whole

    @computing
    def load(self, data: Any) -> None:
        """Take parameters and state from what `save` wrote: a path, bytes, or a buffer.

        Raises ArgumentError for a damaged file, ProgramError, and changes nothing, when it is not of this
        model.
        """
        self._set(read_entries(data))

    def _set(self, values: Mapping[str, TensorEntry]) -> None:
        wanted = {x.name: (x.dtype, x.shape) for x in self.parameters}
        got = {name: (x.dtype, x.shape) for name, x in values.items()}
        for name in [*wanted, *got]:
            if wanted.get(name) != got.get(name):
                raise ProgramError(
                    f"values: expected {_described(wanted, name)}, got {_described(got, name)}: use those "
                    "that were saved with this model"
                )
        for name, entry in values.items():
            self._buffer(name, "value").write(memoryview(entry.data))

    def _specs(self, *roles: str) -> tuple[TensorSpec, ...]:
        found = []
        for i, b in enumerate(self.program.buffers):
            if b.role not in roles:
                continue
            if not b.name or b.shape is None:
                raise ProgramError(
                    f"load: expected every {b.role} to have a name and a shape, got none for buffer {i}: "
                    "export the step with save()"
                )
            found.append(TensorSpec(b.name, to_dtype(b.dtype), b.shape))
        return tuple(found)

    def _spec(self, name: str) -> TensorSpec:
        found = next((spec for spec in self.parameters if spec.name == name), None)
        if found is None:
            names = ", ".join(spec.name for spec in self.parameters)
            raise ArgumentError(f"parameter: expected one of {names}, got {name!r}")
        return found

    def _buffer(self, name: str, kind: str) -> Buffer:
        roles = _KEPT if kind == "value" else (kind,)
        i = next(i for i, b in enumerate(self.program.buffers) if b.name == name and b.role in roles)
        found = self._buffers[i]
        assert found is not None
        return found

    def _read(self, spec: TensorSpec, kind: str, variables: Mapping[str, int]) -> Tensor:
        shape = tuple(variables[n] if isinstance(n, str) else n for n in spec.shape)
        raw = self._buffer(spec.name, kind).read()[: prod(shape) * spec.dtype.itemsize]
        return Tensor(bytes(raw), self.program.device, spec.dtype).reshape(shape)


def load(source: Any) -> Model:
    """The exported step in the file `source`: a path, bytes, or a buffer.

    Raises ProgramError when it is damaged, of another version, or not for a device of this host;
    ArgumentError when the values in it are damaged.
    """
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as f:
            source = f.read()
    program, values = read_program(source)
    return Model(program, read_entries(values) if values else {})


def _described(specs: Mapping[str, tuple[DType, Any]], name: str) -> str:
    if name not in specs:
        return f"no {name}"
    dtype, shape = specs[name]
    return f"{name}: {dtype} {tuple(shape)}"


def _elements(spec: TensorSpec, value: Any, variables: dict[str, int]) -> memoryview:
    """The bytes of `value`, which has to be like `spec`; the Variables in its shape join `variables`."""
    view = None if isinstance(value, Tensor) else array_like(value)
    if view is None or isinstance(view, (list, tuple)):
        t = value if isinstance(value, Tensor) else Tensor(value, dtype=spec.dtype)
        raw, dtype, shape = t.contiguous().data().cast("B"), t.dtype, t.shape
    else:
        raw, dtype, shape = from_memoryview(view)
    if dtype is not spec.dtype:
        raise DTypeError(f"{spec.name}: expected dtype {spec.dtype}, got {dtype}: use .cast()")
    fits = len(shape) == len(spec.shape)
    for wanted, size in zip(spec.shape, shape):
        known = variables.setdefault(wanted, size) if isinstance(wanted, str) else wanted
        fits = fits and known == size
    if not fits:
        raise ShapeError(
            f"{spec.name}: expected shape {spec.shape} with {variables}, got {shape}: reshape it"
        )
    return raw
