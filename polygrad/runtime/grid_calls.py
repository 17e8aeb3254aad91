"""The launches of a Program bound for a run: grids are evaluated and pointers are addresses. For runtimes
that launch kernels on grids. Knows no device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from polygrad.errors import ProgramError
from polygrad.runtime.grid import Grid, grid_size
from polygrad.runtime.program import Launch, Program

Size3 = tuple[int, int, int]


class GridCall(NamedTuple):
    """A launch of kernel number `kernel` on a grid of workgroups. `places`: an allocation and a byte offset
    for each pointer. `values`: of the kernel's Variables."""

    kernel: int
    grid: Size3
    workgroup: Size3
    places: tuple[tuple[int, int], ...]
    values: tuple[int, ...]


class _Unbound(NamedTuple):
    """A launch before it is bound. `places`: an entry of the run's table and a byte offset for each
    pointer."""

    kernel: int
    grid: Grid
    workgroup: Size3
    places: tuple[tuple[int, int], ...]
    variables: tuple[str, ...]


class GridCalls:
    """`calls`: the calls of the last run, in order. Allocations are numbers other than 0.

    Entry i of a run's table is the Program's buffer i, then comes the arena.
    """

    def __init__(self, program: Program) -> None:
        self.calls: list[GridCall] = []
        self._program = program
        self._make_unbound = [_make_unbound(program, launch) for launch in program.launches]
        self._bound: tuple[tuple[int, ...], tuple[int, ...]] | None = None  # the table and values of `calls`

    def bind(
        self, buffers: Sequence[int | None], arena: int | None, variables: Mapping[str, int]
    ) -> Sequence[int]:
        """Make the calls of a run. Returns the positions of the calls that differ from the last run, at first
        all positions.

        Raises ProgramError for missing memory, or a Variable that is out of bounds.
        """
        self._program.check_memory(buffers, arena)
        table = (*[handle or 0 for handle in buffers], arena or 0)
        key = (table, tuple(self._program.check_variables(variables)))
        if self._bound == key:
            return ()
        calls = [_bind(call, table, variables) for call in self._make_unbound]
        old, self.calls, self._bound = self.calls, calls, key
        return [i for i, call in enumerate(calls) if i >= len(old) or call != old[i]]

    def forget(self) -> None:
        """Forget the last run, so that all calls of the next run count as changed."""
        self.calls, self._bound = [], None


def _make_unbound(program: Program, launch: Launch) -> _Unbound:
    kernel = program.kernels[launch.kernel]
    if launch.grid is None or kernel.workgroup is None:
        raise ProgramError(f"kernel {kernel.name}: a launch has no grid of workgroups")
    places = tuple(program.place(binding) for binding in launch.bindings)
    return _Unbound(launch.kernel, launch.grid, kernel.workgroup, places, kernel.variables)


def _bind(call: _Unbound, table: Sequence[int], variables: Mapping[str, int]) -> GridCall:
    x, y, z = (grid_size(n, variables) for n in call.grid)
    places = tuple([(table[entry], offset) for entry, offset in call.places])
    values = tuple([variables[name] for name in call.variables])
    return GridCall(call.kernel, (x, y, z), call.workgroup, places, values)
