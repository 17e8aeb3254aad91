"""GLOBAL and LOCAL axes become numbers of workgroups and invocations; what a workgroup shares gets its memory
and barriers.

    RANGE GLOBAL, LOCAL     SPECIAL, the number along one of 3 dimensions (workgroup_dimensions.py)
    STAGE, SHARED           memory that the invocations fill together (workgroup_stages.py), in one buffer or
                            several, between barriers (workgroup_memory.py)
    REDUCE over LOCAL axes  a tree of the invocations' parts (workgroup_reductions.py)
    STORE                   gated where several invocations would do it
"""

from __future__ import annotations

from polygrad.codegen.lower.workgroup_dimensions import Grid, Workgroup
from polygrad.codegen.lower.workgroup_memory import Item, WorkgroupMemory
from polygrad.codegen.lower.workgroup_reductions import Reductions
from polygrad.codegen.lower.workgroup_stages import fill_together
from polygrad.codegen.opts.split import gated
from polygrad.codegen.opts.tile import is_bound, is_tile
from polygrad.codegen.target import Workgroups
from polygrad.dtype import dtypes
from polygrad.errors import OptError
from polygrad.uop.args import AddrSpace
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def bind_workgroups(kernel: UOp, limits: Workgroups) -> UOp:
    """The kernel with its GLOBAL and LOCAL axes bound. Raises OptError for more than a workgroup has.

    END(STORE(out[r0*32 + r1], x), r0 GLOBAL, r1 < 32 LOCAL)

    ->  STORE(out[SPECIAL(workgroup 0)*32 + SPECIAL(invocation 0)], x)
    """
    order = kernel.toposort()
    if not any(is_bound(n) or _is_shared(n) for n in order):
        return kernel
    return _Binder(kernel, limits).run()


def _is_shared(node: UOp) -> bool:
    return node.op is Ops.STAGE and node.arg.space is AddrSpace.SHARED


class _Binder:
    def __init__(self, kernel: UOp, limits: Workgroups) -> None:
        self.kernel, self.order = kernel, kernel.toposort()
        self.grid, self.group = Grid(self.order, limits), Workgroup(self.order, limits)
        self.new: dict[UOp, UOp] = {}
        for part in (self.grid, self.group):
            for members, number in zip(part.axes, part.numbers, strict=True):
                self.new.update(dict.fromkeys(members, number))
        self.memory = WorkgroupMemory(self.order, limits, self.new)
        self.reductions = Reductions(self.group, self.memory)
        self.has_cores = any(n.op is Ops.WMMA for n in self.order)

    def run(self) -> UOp:
        level = 0
        for depth, _, node in sorted(self._levels(), key=lambda entry: entry[:2]):
            if depth > level:
                self.memory.complete()
                level = depth
            if node in self.new:
                continue
            if self.reductions.is_in_registers(node):
                self.new[node] = self.reductions.exchange(node)
            elif self.reductions.needs_memory(node):
                self.memory.add(node, self.reductions.tree(node))
            elif node.op is Ops.STAGE:
                self.memory.add(node, self._stage(node))
            else:
                self.new[node] = self._bound(node)
        return self.new[self.kernel]

    def _levels(self) -> list[tuple[int, int, UOp]]:
        """Each node with the number of memories that one after the other must be filled before it."""
        depth: dict[UOp, int] = {}
        for n in self.order:
            depth[n] = max((depth[s] + self._needs_memory(s) for s in n.src), default=0)
        return [(depth[n], i, n) for i, n in enumerate(self.order)]

    def _needs_memory(self, node: UOp) -> bool:
        return node.op is Ops.STAGE or self.reductions.needs_memory(node)

    def _stage(self, node: UOp) -> Item:
        if not _is_shared(node):
            raise OptError("expected memory of a workgroup: STAGE comes after LOCAL")
        ranges = [r for r in node.src[2:] if not is_tile(r)]
        nested = [n for n in node.src[0].toposort() if self._needs_memory(n)]
        if any(not n.ranges.isdisjoint(ranges) for n in nested):
            raise OptError(
                "expected memory whose elements invocations compute each for itself, got some that takes a "
                "workgroup for each"
            )
        return fill_together(node, self.group, self.memory, self.has_cores or node.arg.depth > 1)

    def _bound(self, node: UOp) -> UOp:
        """A node of sources that are bound."""
        src = tuple([self.new[s] for s in node.src])
        if node.op is Ops.INDEX and (start := self.memory.starts.get(node.src[0])) is not None:
            src = (src[0], src[1] + start, *src[2:])
        if node.op is Ops.END or (node.op is Ops.STORE and node in self.kernel.src):
            return self._nest(node, src)
        return node.over(src)

    def _nest(self, node: UOp, src: tuple[UOp, ...]) -> UOp:
        """An output nest without the loops that are bound.

        END(STORE(place, x), r GLOBAL, k)  ->  END(STORE(place, x) where r's invocation is not idle, k)
        """
        is_loop = node.op is Ops.END
        axes = node.src[1:] if is_loop else ()
        conditions = [self.group.gate(axes), self.grid.gate]
        for members, number in zip(self.grid.axes, self.grid.numbers, strict=True):
            if not any(r in members for r in axes):
                conditions.append(number < 1)
        store = src[0] if is_loop else UOp(Ops.STORE, dtypes.void, src)
        for condition in conditions:
            if condition is not None:
                store = gated(store, condition)
        loops = [new for r, new in zip(axes, src[1:], strict=is_loop) if not is_bound(r)]
        return UOp(Ops.END, dtypes.void, (store, *loops)) if loops else store
