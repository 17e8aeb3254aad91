"""Captured steps as files: Programs with named buffers, and the values of parameters and state.

`runtime/program.py` documents the format of one step, `runtime/bundle.py` that of several steps which share
memory. `polygrad.export` runs the files in Python, `polygrad/runtime` of the npm package without Python.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from polygrad.capture.c_options import COptions, Example, is_c_file
from polygrad.capture.replay import CapturedStep
from polygrad.engine.devices import Device, kind_of
from polygrad.errors import ArgumentError, DeviceError
from polygrad.helpers import prod, write_file
from polygrad.monitor import computing
from polygrad.nn.safetensors import TensorEntry, entries_header, write_entries
from polygrad.runtime.buffer import Allocation, Borrowed, Buffer
from polygrad.runtime.bundle import Bundle
from polygrad.runtime.program import Program, Variable
from polygrad.tensor.core.aliasing import is_whole, memory_under
from polygrad.tensor.core.sizes import unbound_size
from polygrad.uop.ops import Ops

Sizes = tuple[int | str, ...]
_KEPT = ("param", "state")  # what a file keeps between runs


@computing
def save_step(
    step: CapturedStep,
    path: str | os.PathLike[str],
    inputs: Sequence[str],
    outputs: Sequence[tuple[str, Any]],
    values: Mapping[str, Any],
    c: COptions | None = None,
) -> None:
    """Write `step` to the file `path`; as C, with the options `c`, if its name ends in .c.

    inputs: the name of each Tensor argument. One that the function writes to is state of that name.
    outputs: the Tensors that the function returned, by name.
    values: the Tensors that the step uses, by name. Others are called `param0`, `state0` and so on; the state
    of random numbers is `random.key` and `random.position`.

    Raises ArgumentError when two would have the same name, a result is a view, or is state or another
    result; when it works on several devices; when the size of an argument or a result is neither an int nor a
    Variable; and when what was captured depends on the values of Variables, which other hosts would not
    check.
    """
    check_c_options(path, c)
    named = _named(SavedStep(step, inputs, outputs), values, {})
    program = named.program()
    if is_c_file(path):
        contents = {name: _contents(buffer) for name, (_, buffer) in named.buffers().items()}
        return _write_c(path, {"run": (program, named.example())}, contents, c or COptions())
    program.check()
    data = program.to_bytes(write_entries(_entries(named.buffers())))
    write_file(path, [data])


@dataclass(frozen=True)
class SavedStep:
    """A step of a Bundle, with the names of its inputs and outputs as `save_step` takes them."""

    step: CapturedStep
    inputs: Sequence[str] = ()
    outputs: Sequence[tuple[str, Any]] = ()


@dataclass(frozen=True)
class Steps:
    """Steps by name, which share the Tensors `values`. `zeros`: the names of the values that a file does not
    contain, as they are zero at first."""

    steps: Mapping[str, SavedStep]
    values: Mapping[str, Any]
    zeros: Collection[str] = ()


@computing
def save_steps(
    steps: Steps,
    path: str | os.PathLike[str],
    kind: str,
    settings: Mapping[str, Any],
    files: Mapping[str, bytes] | None = None,
    c: COptions | None = None,
) -> None:
    """Write steps to the file `path` as a Bundle; as C, with the options `c` and without the files, if its
    name ends in .c. Raises ArgumentError as `save_step` does."""
    check_c_options(path, c)
    unnamed: dict[Allocation, str] = {}
    all_named = {name: _named(saved, steps.values, unnamed) for name, saved in steps.steps.items()}
    buffers = {key: value for x in all_named.values() for key, value in x.buffers().items()}
    if is_c_file(path):
        examples = {name: (x.program(), x.example()) for name, x in all_named.items()}
        contents = {name: _contents(buffer) for name, (_, buffer) in buffers.items()}
        return _write_c(path, examples, contents, c or COptions())
    zeros = tuple(name for name in buffers if name in steps.zeros)
    programs = {name: x.program() for name, x in all_named.items()}
    for program in programs.values():
        program.check()
    bundle = Bundle(kind, settings, (programs,), files or {}, zeros)
    entries = _entries({name: value for name, value in buffers.items() if name not in zeros})
    values = [entries_header(entries), *(entry.data for entry in entries.values())]
    head = bundle.head(values)
    write_file(path, [head, *values])


def _write_c(*arguments: Any) -> None:
    """`write_c` of a module that pages have not. Raises DeviceError there."""
    try:
        writer: Any = importlib.import_module("polygrad.capture.c_file.write")
    except ModuleNotFoundError as e:
        raise DeviceError("save: C files are written by Python on a native host, not in JavaScript") from e
    writer.write_c(*arguments)


def check_c_options(path: str | os.PathLike[str], c: COptions | None) -> None:
    """Raises ArgumentError for options of a C file unless `path` names one."""
    if c is not None and not is_c_file(path):
        raise ArgumentError(f"save: c: expected a file whose name ends in .c, got {os.fspath(path)}")


def _named(saved: SavedStep, values: Mapping[str, Any], unnamed: dict[Allocation, str]) -> _Named:
    """The names of a step's buffers. `unnamed`: the names of memory that is not among the `values`, to which
    this adds."""
    step = saved.step
    if step.guards:
        sizes = ", ".join(map(str, step.guards))
        raise ArgumentError(
            "save: expected a step whose slices and indices are in range for all values of its Variables, "
            f"got one that depends on {sizes}: narrow the bounds of its Variables"
        )
    if step.has_checks:
        raise ArgumentError(
            "save: expected a step captured without checks, got one captured with CHECK=1 or ANOMALY=1: "
            "capture it anew without"
        )
    if step.captured.has_exchanges:
        raise ArgumentError(
            "save: expected a step of one process, got one that exchanges memory with others: save a step "
            "that compile_step made, or the weights"
        )
    if len(step.captured.programs) != 1:
        devices = ", ".join(sorted({p.device for p in step.captured.programs}))
        raise ArgumentError(
            f"save: expected a step that is one Program, got one with work on {devices}: run it on one device"
        )
    step.catch_up()
    named = _Named(step)
    for name, (spec, argument) in zip(saved.inputs, step.arguments, strict=True):
        if argument.view is not None and any(op is not Ops.RESHAPE for op, _ in argument.view):
            raise ArgumentError(
                f"save: {name}: expected an argument that the function writes to and that is no view, got a "
                "view: pass a clone()"
            )
        if argument.slot not in named.names:  # one Tensor may be passed as several arguments
            named.add(argument.slot, name, named.sizes(name, spec.shape))
    for name, t in saved.outputs:
        position = named.find(t)
        if (
            position is None
            or position in named.names
            or named.roles[position] != "output"
            or not is_whole(t)
        ):
            raise ArgumentError(
                f"save: {name}: expected a result in memory of its own, got a view of memory, or memory that "
                "is an argument, state or another result too: return a clone() of it"
            )
        named.add(position, name, named.sizes(name, t.shape))
    for name, t in sorted(values.items(), key=lambda item: not is_whole(item[1])):
        position = named.find(t)
        if position is not None and position not in named.names:
            has_whole_memory = is_whole(t) and all(isinstance(n, int) for n in t.shape)
            size = step.captured.program.buffers[position].size
            named.add(position, name, t.shape if has_whole_memory else (size,))
    named.add_rest(unnamed)
    return named


def _entries(buffers: Mapping[str, tuple[Sizes, Buffer]]) -> dict[str, TensorEntry]:
    """The contents of parameters and state, by name."""
    entries = {}
    for name, (sizes, buffer) in buffers.items():
        shape: Any = sizes  # ints, as parameters and state have no symbolic sizes
        entries[name] = TensorEntry(buffer.dtype, shape, _contents(buffer))
    return entries


class _Named:
    """Names and shapes of a captured Program's buffers, by position."""

    def __init__(self, step: CapturedStep) -> None:
        self._step = step
        captured = step.captured
        self._program = captured.program
        self.roles = [spec.role for spec in self._program.buffers]
        self.names: dict[int, str] = {}
        self._shapes: dict[int, Sizes] = {}
        self._variables = {v.name: v for v in self._program.variables}
        self._taken = {("input", name): "a Variable" for name in self._variables}
        self._positions = {b.allocation: i for i, b in enumerate(captured.buffers) if b is not None}

    def find(self, tensor: Any) -> int | None:
        """The position of a Tensor's memory."""
        memory = memory_under(tensor.uop)
        return None if memory is None else self._positions.get(memory.buffer.arg.allocation)

    def add(self, position: int, name: str, shape: Sizes) -> None:
        """Name a buffer. Raises ArgumentError when another buffer of the same kind has that name."""
        role = self.roles[position]
        kind = "value" if role in _KEPT else role
        if (kind, name) in self._taken:
            raise ArgumentError(
                f"save: two {'parameters or states' if kind == 'value' else kind + 's'} have the name "
                f"{name}, {self._taken[kind, name]} and buffer {position}: rename one"
            )
        self._taken[kind, name] = f"buffer {position}"
        self.names[position], self._shapes[position] = name, shape

    def add_rest(self, unnamed: dict[Allocation, str]) -> None:
        """Name the random state, and all buffers that have no names yet. Memory that other steps use has its
        name in `unnamed`."""
        for name, buffer in self._step.draws.buffers().items():
            position = self._positions.get(buffer.allocation)
            if position is not None:
                self.add(position, name, (buffer.size,))
        for position, role in enumerate(self.roles):
            if role in _KEPT and position not in self.names:
                allocation = self._buffer(position).allocation
                if allocation not in unnamed:
                    count = sum(name.startswith(role) for name in unnamed.values())
                    unnamed[allocation] = f"{role}{count}"
                self.add(position, unnamed[allocation], (self._program.buffers[position].size,))

    def buffers(self) -> dict[str, tuple[Sizes, Buffer]]:
        """The shapes and the memory of parameters and state, by name."""
        return {
            name: (self._shapes[i], self._buffer(i))
            for i, name in sorted(self.names.items())
            if self.roles[i] in _KEPT
        }

    def example(self) -> Example:
        """The inputs and Variables of the last run, or of the capture."""
        inputs = {name: i for i, name in self.names.items() if self.roles[i] == "input"}
        contents = {name: _contents(self._buffer(i)) for name, i in inputs.items()}
        bounds = {name: v.hi for name, v in self._variables.items()}
        return Example(contents, bounds | self._step.captured.variables)

    def _buffer(self, position: int) -> Buffer:
        buffer = self._step.captured.buffers[position]
        assert buffer is not None
        return buffer

    def sizes(self, name: str, shape: tuple[Any, ...]) -> Sizes:
        """A shape as stored in the file. Its Variables are added to those of the Program.

        Raises ArgumentError for sizes that are computed from Variables.
        """
        out: list[int | str] = []
        for size in shape:
            size = size if isinstance(size, int) else unbound_size(size)
            if isinstance(size, int):
                out.append(size)
                continue
            if size.op is not Ops.DEFINE_VAR:
                raise ArgumentError(
                    f"save: {name}: expected sizes that are ints or Variables, got {size}: pad it, or use a "
                    "Variable of that size"
                )
            variable = Variable(*size.arg[:3])
            self._variables.setdefault(variable.name, variable)
            self._taken.setdefault(("input", variable.name), "a Variable")
            out.append(variable.name)
        return tuple(out)

    def program(self) -> Program:
        """The Program with these names; buffers of symbolic shape get their greatest size."""
        upper_bounds = {name: v.hi for name, v in self._variables.items()}
        buffers = list(self._program.buffers)
        for i, name in self.names.items():
            shape = self._shapes[i]
            size = prod(upper_bounds[n] if isinstance(n, str) else n for n in shape)
            buffers[i] = replace(buffers[i], name=name, shape=shape, size=size)
        device = self._program.device
        return replace(
            Device.backend(device).exported(self._program),
            device=kind_of(device),
            buffers=tuple(buffers),
            variables=tuple(self._variables.values()),
        )


def _contents(buffer: Buffer) -> memoryview:
    """The contents of a buffer; zeros if it was never allocated, as a run writes such memory before it reads
    it."""
    if buffer.allocation.is_allocated or isinstance(buffer.allocation, Borrowed):
        return buffer.read()
    return memoryview(bytearray(buffer.nbytes))
