"""Grids of workgroups in a Program: sizes, possibly with Variables, as plain data.

A size is a number, the name of a Variable, or `(op, operand)` and `(op, a, b)` of sizes. Knows no UOps.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from polygrad.errors import ProgramError
from polygrad.runtime.limits import MAX_DEPTH, MAX_GRID, MAX_INTEGER

GridSize = Any  # int | str | tuple[str, GridSize] | tuple[str, GridSize, GridSize]
Grid = tuple[GridSize, GridSize, GridSize]  # the numbers of workgroups along x, y and z

_UNARY: dict[str, Callable[[int], int]] = {"NEG": operator.neg}
_BINARY: dict[str, Callable[[int, int], int]] = {
    "ADD": operator.add,
    "SUB": operator.sub,
    "MUL": operator.mul,
    "IDIV": operator.floordiv,
    "MOD": operator.mod,
    "MAX": max,
    "SHL": operator.lshift,
    "SHR": operator.rshift,
    "AND": operator.and_,
}
GRID_OPS = frozenset({*_UNARY, *_BINARY})


_SHIFTS = frozenset({"SHL", "SHR"})
_DIVISIONS = frozenset({"IDIV", "MOD"})
_MAX_SHIFT = 52
# A header has a size in two lists and two objects.
_MAX_NESTED = MAX_DEPTH - 4


def grid_size(size: GridSize, variables: Mapping[str, int]) -> int:
    """Evaluate a size with these values of the Variables. Raises ProgramError for one that is out of range,
    or divides by zero."""
    if isinstance(size, int):
        return size
    value = _evaluate(size, variables)
    if not 0 <= value <= MAX_GRID:
        raise ProgramError(f"run: expected a grid of 0 to {MAX_GRID} workgroups, got {value}")
    return value


def _evaluate(size: GridSize, variables: Mapping[str, int]) -> int:
    if isinstance(size, int):
        return size
    if isinstance(size, str):
        return variables[size]
    op, *operands = size
    values = [_evaluate(x, variables) for x in operands]
    if len(values) == 1:
        return _UNARY[op](*values)
    is_shift = op in _SHIFTS
    if (is_shift and not 0 <= values[1] <= _MAX_SHIFT) or (op in _DIVISIONS and values[1] == 0):
        raise ProgramError(f"run: the size of a grid is {op} of {values[0]} and {values[1]}")
    value = _BINARY[op](*values)
    if abs(value) > MAX_INTEGER:
        raise ProgramError(f"run: the size of a grid is {op} of {values[0]} and {values[1]}, out of range")
    return value


def is_grid(grid: Any, variables: frozenset[str]) -> bool:
    """Whether these are three sizes that use only these Variables. One that is a plain number is positive."""
    if not isinstance(grid, tuple) or len(grid) != 3:
        return False
    return all(0 < n <= MAX_GRID if type(n) is int else is_grid_size(n, variables) for n in grid)


def is_grid_size(size: Any, variables: frozenset[str], depth: int = _MAX_NESTED) -> bool:
    """Whether this is a size that uses only these Variables, with up to `depth` operations in each other."""
    if isinstance(size, str):
        return size in variables
    if not isinstance(size, tuple):
        return type(size) is int and abs(size) <= MAX_INTEGER
    if depth == 0 or not size or not isinstance(size[0], str):
        return False
    op, *operands = size
    operations = _UNARY if len(operands) == 1 else _BINARY if len(operands) == 2 else {}
    return op in operations and all(is_grid_size(x, variables, depth - 1) for x in operands)


def as_tuples(size: Any) -> GridSize:
    """A size from JSON, with tuples in the place of lists."""
    return tuple(map(as_tuples, size)) if isinstance(size, list) else size
