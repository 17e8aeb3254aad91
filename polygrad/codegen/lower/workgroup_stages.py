"""Memory that the invocations of a workgroup fill together: element e by invocation e % count.

    STAGE(x, index, *ranges)  ->  for i: memory[index(e)] = x[e]      e = invocation + i*count

Elements are in the order of the memory that is read. Where a copy goes on while invocations compute, or a
tensor core reads the memory, an invocation copies neighbours at once, up to 16 bytes of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from polygrad.codegen.lower.workgroup_dimensions import Workgroup, coordinates
from polygrad.codegen.lower.workgroup_memory import Item, WorkgroupMemory, store
from polygrad.codegen.opts.split import gated, substituted
from polygrad.codegen.opts.tile import is_tile
from polygrad.dtype import dtypes
from polygrad.helpers import ceildiv, prod
from polygrad.uop.args import Axis, AxisKind
from polygrad.uop.linear import linear_terms
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.symbolic import simplify

_VECTOR_BYTES = 16  # that an invocation copies at once


def fill_together(node: UOp, group: Workgroup, memory: WorkgroupMemory, is_vector: bool) -> Item:
    """The memory of a STAGE, which all invocations fill. `is_vector`: whether an invocation copies neighbours
    at once."""
    ranges = [r for r in node.src[2:] if not is_tile(r)]
    steps = _steps(node.src[0])
    ranges.sort(key=lambda r: steps.get(r, 0) or 1 << 62)  # fastest first
    vector: dict[UOp, UOp] = {}
    if is_vector:
        ranges, vector = _vector(node, ranges, steps)
    size, count = int(prod(r.src[0].arg for r in ranges)), group.count
    element, loops = group.position, []
    if size > count:
        axis = Axis((*ranges[0].arg.id, 0), AxisKind.LOOP)
        loops = [UOp.range(ceildiv(size, count), axis)]
        element = element + loops[0] * count
    gate = None if size % count == 0 else element < size
    if gate is not None:
        element = (element < size - 1).where(element, size - 1)
    places = coordinates(element, [r.src[0] for r in ranges]) if ranges else []
    where = {memory.new.get(r, r): simplify(p) for r, p in zip(ranges, places, strict=True)}
    where |= {r: simplify(place.substitute(where)) for r, place in vector.items()}
    bound_value, bound_index = memory.new[node.src[0]], memory.new[node.src[1]]

    def fill(pointer: UOp, at: dict[UOp, UOp] | None = None, buffer: UOp | None = None) -> UOp:
        place = bound_index.substitute(where)
        if buffer is not None:
            place = place + buffer * node.arg.size
        effect = store(pointer, simplify(place), substituted(bound_value, where | (at or {})))
        if gate is not None:
            effect = gated(effect, gate)
        return UOp(Ops.END, dtypes.void, (effect, *loops)) if loops else effect

    shared = memory.allocate(node, node.arg.size, node.arg.depth, node.arg.swizzled)
    return Item(shared, [fill], lambda pointer: pointer, fill)


def _steps(value: UOp) -> dict[UOp, int]:
    """How far apart in memory neighbours along each axis are, in the first load of a value."""
    load = next((n for n in value.toposort() if n.op is Ops.LOAD), None)
    terms = {} if load is None else linear_terms(load.src[0].src[1])[0]
    out = {r: abs(f) for a, f in terms.items() for r in a.ranges}  # of one that stops at an edge, too
    return out | {a: abs(f) for a, f in terms.items() if a.op is Ops.RANGE}


def _vector(node: UOp, ranges: Sequence[UOp], steps: dict[UOp, int]) -> tuple[list[UOp], dict[UOp, UOp]]:
    """The axes of a STAGE, fastest first, without what an invocation copies at once, as neighbours in memory:
    up to 16 bytes; and the positions along the others. What is copied while invocations compute goes to
    neighbours in memory, too."""
    left, places, size = list(ranges), dict[UOp, UOp](), 1
    to = linear_terms(node.src[1])[0]
    for r in ranges:
        n, room = r.src[0].arg, _VECTOR_BYTES // node.dtype.itemsize // size
        if steps.get(r) != size or n & (n - 1) or room < 2:
            break
        if node.arg.depth > 1 and to.get(r) != size:
            break
        if n > room:  # of a long axis a part
            if node.arg.depth > 1 or node.arg.swizzled:
                blocks = UOp.range(n // room, r.arg.child(0))
                places[r] = blocks * room + UOp.range(room, r.arg.child(1, AxisKind.UPCAST))
                left[left.index(r)] = blocks
            break
        if r is ranges[-1]:
            break
        places[r] = r.replace(arg=r.arg._replace(kind=AxisKind.UPCAST))
        left.remove(r)
        size *= n
    return left, places
