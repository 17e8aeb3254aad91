"""`load`: an exported step as a `Model`, which runs on the device it was exported for.

The file says everything: the Program, its buffers' names and shapes, and what parameters and state hold.
`wasm_runtime/src/model.ts` is the same for JavaScript.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Unpack

from polygrad.errors import ArgumentError, DTypeError, ShapeError
from polygrad.export.files import read_values
from polygrad.export.opening import LoadOptions, open_model
from polygrad.export.programs import Programs, TensorSpec
from polygrad.helpers import prod, write_file
from polygrad.monitor import computing
from polygrad.nn.safetensors import TensorEntry, read_entries, write_entries
from polygrad.runtime.buffer import Buffer
from polygrad.runtime.bundle import STEP
from polygrad.runtime.program import Program
from polygrad.tensor.core.convert import array_like, from_memoryview
from polygrad.tensor.tensor import Tensor


class Model:
    """An exported step in memory. `load` makes it.

    `inputs`, `outputs` and `parameters` (state with them) say what there is. What a run writes to state stays
    in the model, so that an exported training step trains it.
    """

    @computing
    def __init__(self, program: Program, values: Mapping[str, TensorEntry], native: bool = False) -> None:
        self.program = program
        self._programs = Programs({STEP: program}, native)
        self.inputs, self.outputs = (self._programs.specs(STEP, role) for role in ("input", "output"))
        self.parameters = self._programs.kept
        self._programs.set_values(values)

    @computing
    def run(
        self, inputs: Mapping[str, Any] | None = None, /, *, timeout: float | None = None, **more: Any
    ) -> dict[str, Tensor]:
        """Run once on the inputs by name (Tensors, arrays or lists); the outputs by name, new each time.

        A Variable is an int given by its name, unless the shape of an input tells it. `timeout`: the seconds
        after which a run is ended, on WASM, CPU and CC. State that the run writes is as it was before, or has
        all its values; where neither can be had soon, it has to be written anew (`load`, `set_parameter`). An
        input of that name is given in `inputs`.

        Raises ArgumentError, ShapeError and DTypeError for inputs that are not as `inputs` says,
        RunTimeoutError, and InterruptedWriteError for state that a run has left half-written.
        """
        names = [spec.name for spec in self.inputs]
        if inputs is not None and not isinstance(inputs, Mapping):
            raise ArgumentError(
                f"run: expected the inputs by name, of {names}, got {type(inputs).__name__} without one"
            )
        given = {**(inputs or {}), **more}
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
            buffer = self._programs.buffer(STEP, "input", spec.name)
            self._programs.write_start(buffer, raw)  # with Variables, perhaps less than the buffer
        self._programs.run(STEP, values, timeout)
        outputs = [(spec, self._programs.buffer(STEP, "output", spec.name)) for spec in self.outputs]
        return {spec.name: self._read(spec, buffer, values) for spec, buffer in outputs}

    @computing
    def parameter(self, name: str) -> Tensor:
        """A copy of a parameter or of state. Raises ArgumentError for one that does not exist."""
        return self._read(self._spec(name), self._programs.value(name), {})

    @computing
    def set_parameter(self, name: str, value: Any) -> None:
        """Let a parameter or state be `value`, a Tensor, array or list of its shape and dtype.

        Raises ArgumentError, ShapeError, DTypeError.
        """
        elements = _elements(self._spec(name), value, {})
        self._programs.write(name, elements)

    @computing
    def save(self, path: str | os.PathLike[str] | None = None) -> bytes:
        """Parameters and state as a safetensors file `path` (if given); its bytes."""
        entries = {}
        for spec in self.parameters:
            shape: Any = spec.shape
            entries[spec.name] = TensorEntry(spec.dtype, shape, self._programs.value(spec.name).read())
        whole = write_entries(entries)
        if path is not None:
            write_file(path, [whole])
        return whole

    @computing
    def load(self, data: Any) -> None:
        """Take parameters and state from what `save` wrote: a path, bytes, or a buffer.

        Raises ArgumentError for a damaged file, ProgramError, and changes nothing, when it is not of this
        model.
        """
        self._programs.set_values(read_entries(data))

    def _spec(self, name: str) -> TensorSpec:
        matching = next((spec for spec in self.parameters if spec.name == name), None)
        if matching is None:
            names = ", ".join(spec.name for spec in self.parameters)
            raise ArgumentError(f"parameter: expected one of {names}, got {name!r}")
        return matching

    def _read(self, spec: TensorSpec, buffer: Buffer, variables: Mapping[str, int]) -> Tensor:
        shape = tuple(variables[n] if isinstance(n, str) else n for n in spec.shape)
        raw = buffer.read()[: prod(shape) * spec.dtype.itemsize]
        return Tensor(bytes(raw), self.program.device, spec.dtype).reshape(shape)


def load(source: Any, **options: Unpack[LoadOptions]) -> Model:
    """The exported step in the file `source`: a path, bytes, or a buffer.

    native (False): whether to trust the file. Code for other devices than WASM and WEBGPU may do whatever
        this process may, so it needs this. Code for WASM runs without it in memory of its own, with checks by
        which Ctrl-C and a `timeout` end it.
    device: of several that the file has code for (`combine`); without it, the first one that is there.
    public_key: that of whoever has to have signed the file (`sign`), as text or as the path of a file.
    signature: a path or bytes; without it, the file beside the source that ends in .minisig.
    max_bytes: the most memory that the model's buffers may take: weights, inputs, outputs, scratch.

    Raises ProgramError when it is damaged, of another version or kind, not for a device of this host, or
    needs `native`; ArgumentError when the values in it are damaged; SignatureError when the key has not
    signed it; OutOfMemoryError when it takes more memory than `max_bytes`, before any is allocated; OSError.
    """
    bundle, values, native = open_model(source, STEP, **options)
    return Model(bundle.programs[STEP], read_values(values), native)


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
    for dimension, size in zip(spec.shape, shape):
        expected = variables.setdefault(dimension, size) if isinstance(dimension, str) else dimension
        fits = fits and expected == size
    if not fits:
        raise ShapeError(
            f"{spec.name}: expected shape {spec.shape} with {variables}, got {shape}: reshape it"
        )
    return raw
