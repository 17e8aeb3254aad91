"""The launches of a Program for a run: grids worked out, pointers bound. For runtimes that launch kernels on
grids; knows no device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from polygrad.errors import ProgramError
from polygrad.runtime.grid import GridSize, grid_size
from polygrad.runtime.program import Launch, Program

Size3 = tuple[int, int, int]


class GridCall(NamedTuple):
    """Kernel number `kernel` of the Program on a grid of workgroups. `places`: an allocation and a byte
    offset for each pointer; `values`: of the kernel's Variables."""

    kernel: int
    grid: Size3
    workgroup: Size3
    places: tuple[tuple[int, int], ...]
    values: tuple[int, ...]


class _Unbound(NamedTuple):
    """A launch before a run: `places` have entries of the run's table."""

    kernel: int
    grid: tuple[GridSize, GridSize, GridSize]
    workgroup: Size3
    places: tuple[tuple[int, int], ...]
    variables: tuple[str, ...]


class GridCalls:
    """`made`: the calls of the last run, in order. Allocations are numbers other than 0.

    Entry i of a run's table is the Program's buffer i, then comes the arena.
    """

    def __init__(self, program: Program) -> None:
        self.made: list[GridCall] = []
        self._program = program
        self._unbound = [_unbound(program, launch) for launch in program.launches]
        self._bound: tuple[tuple[int, ...], tuple[int, ...]] | None = None  # the table and values of `made`

    def bind(
        self, buffers: Sequence[int | None], arena: int | None, variables: Mapping[str, int]
    ) -> Sequence[int]:
        """Make the calls of a run; the positions of those that are not the last run's (all, for the first).

        Raises ProgramError for memory that is missing, or a Variable that is out of bounds.
        """
        self._program.check_memory(buffers, arena)
        table = (*[handle or 0 for handle in buffers], arena or 0)
        key = (table, tuple(self._program.check_variables(variables)))
        if self._bound == key:
            return ()
        made = [_bound(call, table, variables) for call in self._unbound]
        old, self.made, self._bound = self.made, made, key
        return [i for i, call in enumerate(made) if i >= len(old) or call != old[i]]

    def forget(self) -> None:
        """The next run's calls are all new."""
        self.made, self._bound = [], None


def _unbound(program: Program, launch: Launch) -> _Unbound:
    kernel = program.kernels[launch.kernel]
    if launch.grid is None or kernel.workgroup is None:
        raise ProgramError(f"kernel {kernel.name}: expected a grid of workgroups, got none")
    places = tuple(program.place(binding) for binding in launch.bindings)
    return _Unbound(launch.kernel, launch.grid, kernel.workgroup, places, kernel.variables)


def _bound(call: _Unbound, table: Sequence[int], variables: Mapping[str, int]) -> GridCall:
    x, y, z = (grid_size(n, variables) for n in call.grid)
    places = tuple([(table[entry], offset) for entry, offset in call.places])
    values = tuple([variables[name] for name in call.variables])
    return GridCall(call.kernel, (x, y, z), call.workgroup, places, values)
