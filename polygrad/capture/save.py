"""Captured steps as files: the Program with named buffers, and the values of parameters and state.

`runtime/program.py` documents the format. `polygrad.export.load` runs a file in Python, `load` of
`polygrad/runtime` in the npm package runs it without Python.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from polygrad.capture.replay import CapturedStep
from polygrad.dtype import to_dtype
from polygrad.engine.devices import kind_of
from polygrad.errors import ArgumentError
from polygrad.helpers import prod
from polygrad.monitor import computing
from polygrad.nn.safetensors import TensorEntry, write_entries
from polygrad.runtime.buffer import Borrowed, Buffer
from polygrad.runtime.program import Program, Variable
from polygrad.tensor.core.aliasing import is_whole, memory_under
from polygrad.tensor.core.sizes import unbound_size
from polygrad.uop.ops import Ops

Sizes = tuple[int | str, ...]


@computing
def save_step(
    step: CapturedStep,
    path: str | os.PathLike[str],
    inputs: Sequence[str],
    outputs: Sequence[tuple[str, Any]],
    values: Mapping[str, Any],
) -> None:
    """Write `step` to the file `path`.

    inputs: the name of each Tensor argument. One that the function writes to is state of that name.
    outputs: the Tensors that the function returned, by name.
    values: the Tensors that the step uses, by name. Others are called `param0`, `state0` and so on; the state
    of random numbers is `random.key` and `random.position`.

    Raises ArgumentError when two would have the same name, a result is a view, or is state or another
    result; when it works on several devices; when the size of an argument or a result is neither an int nor a
    Variable; and when what was captured depends on the values of Variables, which other hosts would not
    check.
    """
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
    if len(step.captured.programs) != 1:
        devices = ", ".join(sorted({p.device for p in step.captured.programs}))
        raise ArgumentError(
            f"save: expected a step that is one Program, got one with work on {devices}: run it on one device"
        )
    step.catch_up()
    named = _Named(step)
    for name, (spec, argument) in zip(inputs, step.arguments, strict=True):
        if argument.view is not None and any(op is not Ops.RESHAPE for op, _ in argument.view):
            raise ArgumentError(
                f"save: {name}: expected an argument that the function writes to and that is no view, got a "
                "view: pass a clone()"
            )
        if argument.slot not in named.names:  # one Tensor may be passed as several arguments
            named.add(argument.slot, name, named.sizes(name, spec.shape))
    for name, t in outputs:
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
    named.add_rest()
    program = named.program()
    entries = {}
    for value, buffer in zip(program.buffers, step.captured.buffers, strict=True):
        if value.role in ("param", "state"):
            assert buffer is not None
            shape: Any = value.shape  # ints, as parameters and state have no symbolic sizes
            entries[value.name] = TensorEntry(to_dtype(value.dtype), shape, _contents(buffer))
    data = program.to_bytes(write_entries(entries))
    with open(path, "wb") as f:
        f.write(data)


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
        kind = "value" if role in ("param", "state") else role
        if (kind, name) in self._taken:
            raise ArgumentError(
                f"save: two {'parameters or states' if kind == 'value' else kind + 's'} have the name "
                f"{name}, {self._taken[kind, name]} and buffer {position}: rename one"
            )
        self._taken[kind, name] = f"buffer {position}"
        self.names[position], self._shapes[position] = name, shape

    def add_rest(self) -> None:
        """Name the random state, and all buffers that have no names yet."""
        for name, buffer in self._step.draws.buffers().items():
            position = self._positions.get(buffer.allocation)
            if position is not None:
                self.add(position, name, (buffer.size,))
        counts = {"param": 0, "state": 0}
        for position, role in enumerate(self.roles):
            if role in counts and position not in self.names:
                self.add(position, f"{role}{counts[role]}", (self._program.buffers[position].size,))
                counts[role] += 1

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
        return replace(
            self._program,
            device=kind_of(self._program.device),
            buffers=tuple(buffers),
            variables=tuple(self._variables.values()),
        )


def _contents(buffer: Buffer) -> memoryview:
    """The contents of a buffer; zeros if it was never allocated, as a run writes such memory before it reads
    it."""
    if buffer.allocation.is_allocated or isinstance(buffer.allocation, Borrowed):
        return buffer.read()
    return memoryview(bytearray(buffer.nbytes))
