"""`Programs`: Programs in memory, which share parameters and state by their names, and one arena."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from polygrad.dtype import DType, to_dtype
from polygrad.engine.devices import Device
from polygrad.engine.running import Outcome, outcome, run_program
from polygrad.errors import ProgramError
from polygrad.nn.safetensors import TensorEntry
from polygrad.runtime.buffer import Allocation, Buffer, half_written
from polygrad.runtime.interface import Executable, Runtime
from polygrad.runtime.program import Program
from polygrad.wasm.sharing import with_own_memory
from polygrad.wasm.stops import stoppable

KEPT = ("param", "state")  # what is kept between runs


@dataclass(frozen=True)
class TensorSpec:
    """An input, output, parameter or state. A size is an int, or the name of a Variable."""

    name: str
    dtype: DType
    shape: tuple[int | str, ...]


class Programs:
    """`programs`: by name, all for one device, whose buffers have names and shapes. Each is loaded when it is
    first run. `trusted`: whether they run like Programs of this process; otherwise they have memory of their
    own, and can be killed."""

    def __init__(self, programs: Mapping[str, Program], trusted: bool = False) -> None:
        self.programs = programs
        self.device = next(iter(programs.values())).device
        self._runtime = Device[self.device] if trusted else Device[self.device].confined()
        self._executables: dict[str, Executable] = {}
        self._kept: dict[str, Buffer] = {}
        self._buffers = {name: self._allocate(program) for name, program in programs.items()}
        arena = max(program.arena for program in programs.values())
        self._arena = Allocation(self._runtime, arena) if arena else None
        self.kept = tuple({s.name: s for p in programs for s in self.specs(p, *KEPT)}.values())

    def _allocate(self, program: Program) -> list[Buffer | None]:
        out: list[Buffer | None] = []
        for spec in program.buffers:
            if spec.role == "scratch":
                out.append(None)
                continue
            buffer = self._kept.get(spec.name) if spec.role in KEPT else None
            if buffer is None:
                buffer = Buffer(self._runtime, spec.size, to_dtype(spec.dtype))
            if spec.role in KEPT:
                self._kept[spec.name] = buffer
            out.append(buffer)
        return out

    def specs(self, name: str, *roles: str) -> tuple[TensorSpec, ...]:
        """The buffers of a Program that have these roles."""
        return tuple(
            TensorSpec(b.name, to_dtype(b.dtype), b.shape or ())
            for b in self.programs[name].buffers
            if b.role in roles
        )

    def run(self, name: str, variables: Mapping[str, int], timeout: float | None = None) -> None:
        """Run a Program on what its buffers hold. Raises RunTimeoutError after `timeout` seconds, and
        ArgumentError where nothing can end a run."""
        program = self.programs[name]
        if name not in self._executables:
            self._executables[name] = self._runtime.load(_for_host(program, self._runtime))
        handles = [None if b is None else b.handle for b in self._buffers[name]]
        arena = self._arena.handle if self._arena is not None and program.arena else None
        try:
            run_program(
                self._executables[name],
                program,
                handles,
                arena,
                variables,
                runtime=self._runtime,
                timeout=timeout,
            )
        except BaseException as error:
            if outcome() is Outcome.HALF:
                self._damage(name, error)
            raise

    def _damage(self, name: str, error: BaseException) -> None:
        """Mark what a Program keeps as half-written, where it writes to it."""
        program = self.programs[name]
        for launch in program.launches:
            for position in program.kernels[launch.kernel].writes:
                number = launch.bindings[position].buffer
                buffer = self._buffers[name][number]
                if buffer is not None and program.buffers[number].role in KEPT:
                    buffer.allocation.damage(f"{half_written(error)}: write it anew")

    def value(self, name: str) -> Buffer:
        """A parameter or a state."""
        return self._kept[name]

    def write(self, name: str, data: memoryview) -> None:
        """Fill a parameter or a state."""
        self._kept[name].allocation.repair()
        self._kept[name].write(data)

    def buffer(self, program: str, role: str, name: str) -> Buffer:
        """An input or an output of a Program."""
        specs = self.programs[program].buffers
        i = next(i for i, b in enumerate(specs) if b.name == name and b.role == role)
        buffer = self._buffers[program][i]
        assert buffer is not None
        return buffer

    def write_start(self, buffer: Buffer, data: memoryview) -> None:
        """Write the first bytes of a buffer."""
        if data.nbytes:
            self._runtime.write(buffer.handle, 0, data)

    def set_values(self, values: Mapping[str, TensorEntry], zeros: Collection[str] = ()) -> None:
        """Let parameters and state be these, and the `zeros` zero. Raises ProgramError, and changes nothing,
        for values that are not of these Programs."""
        zero_names = frozenset(zeros)
        expected = {x.name: (x.dtype, x.shape) for x in self.kept if x.name not in zero_names}
        got = {name: (x.dtype, x.shape) for name, x in values.items()}
        for name in [*expected, *got]:
            if expected.get(name) != got.get(name):
                raise ProgramError(
                    f"values: expected {_described(expected, name)}, got {_described(got, name)}: use those "
                    "that were saved with this model"
                )
        for name, entry in values.items():
            self.write(name, memoryview(entry.data))
        for name in zeros:
            self.write(name, memoryview(bytearray(self._kept[name].nbytes)))


def _for_host(program: Program, runtime: Runtime) -> Program:
    """A Program whose WebAssembly has the memory that the host has and, where it confines code, checks by
    which it can be killed. Raises CompileError for modules that do more than ours."""
    if program.shared_memory and "threads" not in runtime.features:
        program = replace(program.with_code(with_own_memory), shared_memory=False)
    return program.with_code(stoppable) if runtime.killable else program


def _described(specs: Mapping[str, tuple[DType, Any]], name: str) -> str:
    if name not in specs:
        return f"no {name}"
    dtype, shape = specs[name]
    return f"{name}: {dtype} {tuple(shape)}"
