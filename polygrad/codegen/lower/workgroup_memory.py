"""The memory of workgroups: its buffers, and the barriers between its effects.

    for k:                              for k:
        STAGE(a tile of x, at k)            barrier                 all have read what was there
        use it                              memory[e] = x[...]
                                            barrier
                                            use memory

Of memory in several buffers (`Memory.depth`, here 3) a round fills the one that is read two rounds later:

    for k < 2: memory[k] = x[...]; COMMIT       in each round of the loops around k
    for k:
        barrier         all copies but the last group's are complete, and all have read what was there
        memory[(k + 2) % 3] = x[...]; COMMIT
        use memory[k % 3]

Barriers are never in divergent control flow: they are inside of loops that all invocations go round equally
often, and gates are on single stores. What is filled in the same loops shares its barriers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from polygrad.codegen.opts.split import gated
from polygrad.codegen.opts.tile import loops_of
from polygrad.codegen.target import Workgroups
from polygrad.dtype import dtypes
from polygrad.errors import OptError
from polygrad.uop.args import AddrSpace, AxisKind, Param, Pending
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.printer import axis_name


@dataclass
class Item:
    """How a node uses memory of the workgroup. `phases`: its effects on the memory, each a function of the
    pointer after the phase before it; between phases all invocations wait for each other. `value`: the node
    itself, a function of the pointer after the last phase. `fill`: the effect that fills one of several
    buffers in another round of a loop, a function of the pointer, the rounds by loop, and the buffer."""

    memory: UOp
    phases: list[Callable[[UOp], UOp]]
    value: Callable[[UOp], UOp]
    fill: Callable[[UOp, dict[UOp, UOp], UOp], UOp] | None = None


class WorkgroupMemory:
    """The memory of a kernel's workgroups. `new` has the bound node of each node of the kernel that has one
    yet. `starts`: where the buffer begins that is read, by STAGE in several buffers."""

    def __init__(self, order: Sequence[UOp], limits: Workgroups, new: dict[UOp, UOp]) -> None:
        self.order, self.limits, self.new = order, limits, new
        self.nbytes = self.slots = 0
        self.starts: dict[UOp, UOp] = {}
        # by the loops around, and the number of buffers
        self.pending: dict[tuple[frozenset[UOp], int], list[tuple[UOp, Item]]] = {}

    def allocate(self, node: UOp, size: int, depth: int = 1, swizzled: bool = False) -> UOp:
        """Memory for `depth` times `size` elements of a node's dtype. Raises OptError for more than a
        workgroup has."""
        size *= depth
        self.nbytes += size * node.dtype.itemsize
        if self.nbytes > self.limits.shared_bytes:
            raise OptError(
                f"expected at most {self.limits.shared_bytes} bytes of memory in a workgroup, got "
                f"{self.nbytes}"
            )
        self.slots += 1
        return UOp(Ops.PARAM, node.dtype, (), Param(self.slots - 1, size, AddrSpace.SHARED, depth, swizzled))

    def add(self, node: UOp, item: Item) -> None:
        """Have `complete` fill the memory of a node, together with that of others in the same loops."""
        loops = loops_of(node)
        depth = node.arg.depth if node.op is Ops.STAGE else 1
        if depth > 1:
            loops |= self._loops_outside(loops)
        self.pending.setdefault((loops, depth), []).append((node, item))

    def _loops_outside(self, loops: frozenset[UOp]) -> frozenset[UOp]:
        """The loops around the innermost of `loops`. Each of their rounds goes through all buffers from the
        first on, even if the value in them does not depend on it."""
        if not loops:
            return loops
        inner = max(loops, key=lambda r: r.arg)
        ends = [n for n in self.order if n.op in (Ops.REDUCE, Ops.END) and inner in n.src[1:]]
        return frozenset(
            r for n in ends for r in loops_of(n.src[0]) if r not in n.src[1:] or r.arg <= inner.arg
        )

    def complete(self) -> None:
        """Fill the memory of what was added."""
        for (loops, depth), items in self.pending.items():
            outer = [self.new[r] for r in sorted(loops, key=lambda r: r.arg)]
            require_uniform(outer)
            if depth > 1:
                self._pipeline(outer, depth, items)
            else:
                self._fill(outer, items)
        self.pending = {}

    def _fill(self, loops: list[UOp], items: Sequence[tuple[UOp, Item]]) -> None:
        """Fill memory in one buffer, phase by phase."""
        pointers = {node: item.memory for node, item in items}
        before = _barrier(loops) if loops else None
        for phase in range(max(len(item.phases) for _, item in items)):
            active = [(node, item) for node, item in items if phase < len(item.phases)]
            effects = [item.phases[phase](_after(item.memory, before)) for _, item in active]
            before = _barrier(effects)
            pointers.update((node, _after(item.memory, before)) for node, item in active)
        for node, item in items:
            self.new[node] = item.value(pointers[node])

    def _pipeline(self, loops: list[UOp], depth: int, items: Sequence[tuple[UOp, Item]]) -> None:
        """Fill memory in `depth` buffers, in each round of the innermost loop one for a later round."""
        if not loops or not loops[-1].src[0].is_const or loops[-1].src[0].arg < depth:
            raise OptError(f"expected a loop of {depth} rounds or more around memory in {depth} buffers")
        *outer, loop = loops
        count = loop.src[0].arg

        def fill(before: UOp | None, at: UOp, buffer: UOp, gate: UOp | None) -> UOp:
            stores = [
                item.fill(_after(item.memory, before), {loop: at}, buffer) for _, item in items if item.fill
            ]
            return UOp(Ops.COMMIT, dtypes.void, tuple(_guarded(s, gate) for s in stores))

        ahead = UOp.range(depth - 1, loop.arg.copy(self.slots, AxisKind.LOOP))
        first = fill(_barrier(outer) if outer else None, ahead, ahead, None)
        fill_loops = (r for fill in first.src if fill.op is Ops.END for r in fill.src[1:])
        own = {r: r.replace(arg=r.arg.copy(self.slots)) for r in fill_loops}
        first = UOp(Ops.END, dtypes.void, (first.substitute(own), ahead))
        ready = UOp(Ops.BARRIER, dtypes.void, (first, loop), Pending(depth - 2))
        later, last = loop + (depth - 1), UOp.index(count - 1)
        if count == depth:  # only the first round fills a buffer. NVRTC before 13.4 takes (0 + 1) % 2 for 0
            next_one = fill(ready, last, last, later < count)
        else:
            next_one = fill(ready, (later < count).where(later, last), later % depth, later < count)
        for node, item in items:
            self.new[node] = UOp(Ops.AFTER, item.memory.dtype, (item.memory, ready, next_one))
            self.starts[node] = (loop % depth) * node.arg.size


def require_uniform(loops: Iterable[UOp]) -> None:
    """Raises OptError for a loop that some invocations go round more often than others."""
    for r in loops:
        if any(n.op is Ops.SPECIAL and n.arg.kind is AxisKind.LOCAL for n in r.src[0].toposort()):
            raise OptError(
                f"expected barriers in loops that all invocations go round equally often, got one in "
                f"{axis_name(r.arg.id)}"
            )


def _guarded(fill: UOp, gate: UOp | None) -> UOp:
    """What fills memory, done where a condition holds.

    END(STORE(place, x), loops)  ->  END(STORE(place, x) gated, loops)
    """
    if gate is None:
        return fill
    if fill.op is Ops.END:
        return fill.replace(src=(gated(fill.src[0], gate), *fill.src[1:]))
    return gated(fill, gate)


def _after(pointer: UOp, what: UOp | None) -> UOp:
    return pointer if what is None else UOp(Ops.AFTER, pointer.dtype, (pointer, what))


def _barrier(effects: list[UOp]) -> UOp:
    return UOp(Ops.BARRIER, dtypes.void, tuple(effects))


def store(pointer: UOp, index: UOp, value: UOp) -> UOp:
    return UOp(Ops.STORE, dtypes.void, (UOp(Ops.INDEX, value.dtype, (pointer, index)), value))


def load(pointer: UOp, index: UOp) -> UOp:
    return UOp(Ops.LOAD, pointer.dtype, (UOp(Ops.INDEX, pointer.dtype, (pointer, index)),))
