"""The grid of a linear kernel as a Launch has it."""

from __future__ import annotations

from collections.abc import Iterable

from polygrad.codegen.lower.workgroup_dimensions import grid_of
from polygrad.errors import InternalError
from polygrad.runtime.grid import GRID_OPS, Grid, GridSize
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def launch_grid(linear: Iterable[UOp]) -> Grid:
    """The number of workgroups of a linear kernel along x, y and z. Raises InternalError for a size that is
    no arithmetic on Variables."""
    x, y, z = map(_size, grid_of(linear))
    return x, y, z


def _size(size: UOp) -> GridSize:
    sizes: dict[UOp, GridSize] = {}
    for node in size.toposort():
        if node.op is Ops.CONST:
            sizes[node] = node.arg
        elif node.op is Ops.DEFINE_VAR:
            sizes[node] = node.arg.name
        elif node.op.name in GRID_OPS:
            sizes[node] = (node.op.name, *(sizes[s] for s in node.src))
        else:
            raise InternalError(f"grid: {node.op}: expected an expression of {', '.join(sorted(GRID_OPS))}")
    return sizes[size]
