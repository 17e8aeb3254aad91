"""Memory of a kernel's own: values that are computed once for some axes, and read from there.

    STAGE(value, index, *ranges, arg=Memory)

is a pointer to memory that holds `value` at `index` for all of the ranges. It is filled inside the loops that
the value depends on otherwise, as far out as they allow. Three uses of it:

- an operand of a product that is scattered over memory, copied in the order that it is read (packing; TVM
  calls this cache_read):

      for column tile:
          for k: panel[k, :] = b[k, columns]
          for row tile: sums over k of a[rows, k] * panel[k, :]

- a row of values that are summed up and used again (Halide's compute_at):

      for each row: { sum of exp(x[k]) over k;                     for every c: out[c] = exp(x[c]) / sum }
      for each row: { every row[k] = exp(x[k]); sum of row[k];     for every c: out[c] = row[c] / sum }

- a register tile of sums before a long epilogue, which becomes a loop over the rows of the tile (TVM's
  cache_write): in registers, sums and temporaries at once would be more than there are.

In memory of a workgroup there may be several buffers (`Memory.depth`), which the rounds of the innermost
loop take in turn. What a tensor core reads by itself lies as the core has it: rows of 64 elements, which are
neighbours in the buffer, too, swizzled.

`lower_stages` gives each its memory and its loops; a reduction's accumulator is the register it has that way.
"""

from __future__ import annotations

from polygrad.codegen.lower.reductions import identity_element
from polygrad.codegen.opts.parallel import memory_thread
from polygrad.codegen.opts.split import renamed_ranges, substituted
from polygrad.codegen.opts.stage_places import stage_in_output
from polygrad.codegen.opts.tile import is_bound, is_tile
from polygrad.dtype import dtypes
from polygrad.errors import OptError
from polygrad.helpers import prod
from polygrad.schedule.index_maps import flat_index
from polygrad.schedule.kernel_info import key_of
from polygrad.schedule.kernels import next_value
from polygrad.uop.args import AddrSpace, AxisKind, Memory, Param, Reg
from polygrad.uop.linear import linear_terms
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.printer import axis_name
from polygrad.uop.shapes import sint_max
from polygrad.uop.symbolic import simplify

MAX_DEPTH = 8


def values_of(kernel: UOp, op: Ops) -> list[UOp]:
    """The values (no indices) that `op` makes in a kernel, in toposort order."""
    return [n for n in kernel.toposort() if n.op is op and n.dtype is not dtypes.index]


def nests_of(kernel: UOp) -> list[UOp]:
    """The kernel's output nests, and what fills a STAGE in the form of one: a store inside of loops."""
    fills = [n for n in kernel.toposort() if n.op is Ops.STAGE and len(n.src) > 2]
    return [*kernel.src, *map(_as_nest, fills)]


def _as_nest(node: UOp) -> UOp:
    memory = UOp(Ops.PARAM, node.dtype, (), Param(-1, node.arg.size, node.arg.space))
    store = UOp(Ops.STORE, dtypes.void, (UOp(Ops.INDEX, node.dtype, (memory, node.src[1])), node.src[0]))
    return UOp(Ops.END, dtypes.void, (store, *(r for r in node.src[2:] if not is_tile(r))))


def nodes_of(nest: UOp) -> list[UOp]:
    """The nodes of a nest in toposort order, without those that fill memory that it reads."""
    return nest.toposort(lambda n: n.op is not Ops.STAGE)


def loops_around(nest: UOp) -> frozenset[UOp]:
    """The loops that a nest is inside of, and those that memory that it reads is inside of."""
    memory = [n.ranges for n in nodes_of(nest) if n.op is Ops.STAGE or key_of(n) is not None]
    return frozenset(r for r in nest.ranges.union(*memory) if not is_tile(r))


def stage(kernel: UOp, axes: list[UOp], op: Ops, number: int, depth: int = 1) -> UOp:
    """Value `number` of those that `op` makes, in memory for all of `axes` and the tile that it depends on.

    value(k)   ->   LOAD(INDEX(STAGE(value(k'), k', k'), k)), for the axis k

    Where the kernel has the same value of another output loop, or of a loop that fills memory, instead of the
    (only) axis, it is read there, too. Axes that are unrolled become loops of what reads the memory. Raises
    OptError.
    """
    if not 1 <= depth <= MAX_DEPTH:
        raise OptError(f"expected 1 to {MAX_DEPTH} buffers, got {depth}")
    values = values_of(kernel, op)
    if number >= len(values):
        raise OptError(f"expected one of the kernel's {len(values)} values of {op.name}")
    value = values[number]
    if any(n.op is Ops.WMMA for n in value.toposort()):
        raise OptError("expected a value that each invocation computes for itself, got one of a tensor core")
    for r in axes:
        if is_bound(r):
            raise OptError(f"expected axes that are bound to no grid, got {axis_name(r.arg.id)}")
        if (r not in value.ranges and not is_tile(r)) or r.arg.kind is AxisKind.LANE:
            raise OptError(f"expected loops and unrolled axes of the value, got {axis_name(r.arg.id)}")
        stages = [n for n in kernel.toposort() if n.op is Ops.STAGE and r in n.src[2:]]
        if any(is_tile(r) or value not in n.src[0].toposort() for n in stages):
            raise OptError(f"expected axes that no memory is filled over, got {axis_name(r.arg.id)}")
    nests = [n for n in kernel.src if n.op is Ops.END and value in n.toposort()]
    if len(nests) != 1:
        raise OptError("expected a value of one output nest")
    if not axes and not any(_feeds(n, value) for n in kernel.toposort()):
        raise OptError("expected axes, or an operand of a tensor core that reads memory")
    return UOp.sink(
        *(_replace_by_stage(kernel, n, value, axes, depth) if n is nests[0] else n for n in kernel.src)
    )


def _feeds(node: UOp, value: UOp) -> bool:
    """Whether a node is a tensor core that reads a value from memory."""
    return node.op is Ops.WMMA and node.arg.in_memory and value in node.src[:2]


def _rows_of(value: UOp, user: UOp) -> list[UOp]:
    """The axes of 64 elements of a tensor core's operand: last the one along which neighbours are neighbours
    in the buffer, else its terms."""
    core, ranges = user.arg, user.src[3 + len(user.arg.c.elements) :]
    count = len(core.a.elements)
    terms, side = ranges[:2] if value is user.src[0] else ranges[count : count + 2]
    load = next((n for n in value.toposort() if n.op is Ops.LOAD and {terms, side} & n.ranges), None)
    along = {} if load is None else linear_terms(load.src[0].src[1])[0]
    is_side = any(abs(f) == 1 and side in a.ranges for a, f in along.items())
    return [terms, side] if is_side else [side, terms]


def _pad(value: UOp, tile: list[UOp]) -> int:
    """The elements between rows of memory whose columns are filled together: 16 bytes, so that they lie in
    different banks."""
    load = next((n for n in value.toposort() if n.op is Ops.LOAD), None)
    along = {} if load is None else linear_terms(load.src[0].src[1])[0]
    is_across = not any(abs(f) == 1 and r in a.ranges for r in tile for a, f in along.items())
    return 16 // value.dtype.itemsize if is_across else 0


def _replace_by_stage(kernel: UOp, nest: UOp, value: UOp, axes: list[UOp], depth: int) -> UOp:
    order = kernel.toposort()
    number = sum(n.op is Ops.STAGE for n in order)
    kinds = (AxisKind.LOCAL, AxisKind.SUBGROUP)
    local = frozenset(n for n in order if n.op is Ops.RANGE and n.arg.kind in kinds)
    tile = sorted(
        (r for r in value.ranges if (is_tile(r) or r in local) and r not in axes),
        key=lambda r: (r.arg.kind is AxisKind.LANE, r.arg.id),  # neighbouring lanes are neighbours in memory
    )
    is_pipelined = depth > 1 and not any(n.op is Ops.WMMA for n in order)
    if is_pipelined and any(
        r.arg.kind is AxisKind.LANE for r in tile
    ):  # and vectors of neighbouring invocations
        tile.sort(key=lambda r: (r.arg.kind is AxisKind.LANE, r.arg.kind is AxisKind.LOCAL, r.arg.id))
    user = next((n for n in order if _feeds(n, value)), None)
    if user is not None:
        rows = _rows_of(value, user)
        tile = [*(r for r in tile if r not in rows), *rows]
    extent = [*(r for r in axes if r in value.ranges), *tile]
    for r in value.ranges:
        if r not in extent and not r.src[0].ranges.isdisjoint(extent):
            raise OptError(f"expected loops that all of the memory goes round, got {axis_name(r.arg.id)}")
    sizes = tuple(sint_max(r.src[0]) for r in extent)

    count = len(extent) - len(tile)
    row = int(prod(sizes[count:])) + (_pad(value, tile) if is_pipelined and count and tile else 0)
    size = int(prod(sizes[:count])) * row

    def index(ranges: dict[UOp, UOp]) -> UOp:
        at = tuple(ranges.get(r, r) for r in extent)
        if size == prod(sizes):
            return flat_index(sizes, at)
        return flat_index(sizes[:count], at[:count]) * row + flat_index(sizes[count:], at[count:])

    def kind(r: UOp) -> AxisKind:
        """Of the axis that fills memory: what a workgroup shares its invocations fill together."""
        is_kept = r.arg.kind is AxisKind.LANE if local else is_tile(r)
        return r.arg.kind if is_kept else AxisKind.LOOP

    fill = {r: UOp.range(n, r.arg.copy(number, kind(r))) for r, n in zip(extent, sizes, strict=True)}
    # of a loop whose rounds vary, the most: the last element again and again
    place = {r: f if r.src[0].is_const else -(-f).maximum(1 - r.src[0]) for r, f in fill.items()}
    nested = (n for n in value.toposort() if n.op is Ops.REDUCE and n is not value and n.ranges & fill.keys())
    own = renamed_ranges(
        (q for n in nested for q in n.src[1:]), lambda axis: axis.copy(number)
    )  # run here alone
    source = (substituted(value, place | own), index(fill), *fill.values())
    space = AddrSpace.SHARED if local else AddrSpace.LOCAL
    if space is AddrSpace.LOCAL and (depth > 1 or user is not None):
        raise OptError("expected memory of a workgroup: STAGE comes after LOCAL")
    memory = UOp(Ops.STAGE, value.dtype, source, Memory(size, space, depth, user is not None))

    def read(ranges: dict[UOp, UOp]) -> UOp:
        return UOp(Ops.LOAD, value.dtype, (UOp(Ops.INDEX, value.dtype, (memory, index(ranges))),))

    rolled = {r: r.replace(arg=r.arg._replace(kind=AxisKind.LOOP)) for r in axes if is_tile(r)}
    changes = {**rolled, value: read(rolled)}
    if len(axes) == 1 and not rolled and not local:
        everything = set(order)
        stage_loops = [r for n in order if n.op is Ops.STAGE for r in n.src[2:]]
        for r in (*nest.src[1:], *stage_loops):
            if r is not axes[0] and r.src == axes[0].src:
                same = value.substitute({axes[0]: r})
                if same in everything:
                    changes[same] = read({axes[0]: r})
    loops = (*nest.src[1:], *rolled.values())
    return UOp(Ops.END, dtypes.void, (nest.src[0].substitute(changes), *loops))


# --- lowering


def lower_stages(kernel: UOp, on_processor: bool = True) -> UOp:
    """Each STAGE becomes memory that loops fill, each REDUCE a register that its loops accumulate in.

    Threads have a part of the memory each. On a processor, a row may lie in the output instead. Tile ranges
    open no loop: a register holds one value for each, and a REDUCE over them remains to combine those.
    """
    in_output = stage_in_output(kernel) if on_processor else None
    thread = memory_thread(kernel)
    count = 1 if thread is None else thread.arg.hi + 1
    new: dict[UOp, UOp] = {}
    registers = memories = 0
    around = {n.src[-1]: n.src[1:-1] for n in kernel.src if n.op is Ops.END}  # the loops around an innermost
    for node in kernel.toposort():
        src = tuple([new[s] for s in node.src])
        if node.op is Ops.REDUCE and (loops := tuple(r for r in src[1:] if not is_tile(r))):
            total = _lower_sum(node, src[0], loops, registers)
            left = tuple(r for r in src[1:] if is_tile(r))
            new[node] = UOp(Ops.REDUCE, node.dtype, (total, *left), node.arg) if left else total
            registers += 1
        elif key_of(node) is not None:
            new[node] = _lower_keyed_scan(node, src, around[node.src[0]], memories, thread, count)
            memories += 1
        elif node.op is Ops.SCAN:
            new[node] = _lower_scan(node, src, around[node.src[0]], registers)
            registers += 1
        elif in_output is not None and node is in_output.stage:
            new[node] = _fill_memory(node, src, in_output.memory, simplify(src[1] + in_output.first))
        elif in_output is not None and node.op is Ops.INDEX and node.src[0] is in_output.stage:
            position = simplify(src[1] + in_output.first)
            new[node] = UOp(Ops.INDEX, node.dtype, (src[0], position), node.arg)
        elif node.op is Ops.STAGE:
            new[node] = _fill(node, src, memories, thread, count)
            memories += 1
        elif node.op is Ops.INDEX and node.src[0].op is Ops.STAGE and thread is not None:
            part = simplify(src[1] + thread * node.src[0].arg.size)
            new[node] = UOp(Ops.INDEX, node.dtype, (src[0], part, *src[2:]), node.arg)
        else:
            new[node] = node.over(src)
    return new[kernel]


def _fill(node: UOp, src: tuple[UOp, ...], slot: int, thread: UOp | None, count: int) -> UOp:
    """The memory of a STAGE of its own after it was filled."""
    size = node.arg.size
    pointer = UOp(Ops.PARAM, node.dtype, (), Param(slot, size * count, node.arg.space))
    index = src[1] if thread is None else simplify(src[1] + thread * size)
    return _fill_memory(node, src, pointer, index)


def _fill_memory(node: UOp, src: tuple[UOp, ...], pointer: UOp, index: UOp) -> UOp:
    """The memory `pointer` after it was filled.

    STAGE(value, position, *ranges)  ->  AFTER(pointer, END(STORE(INDEX(pointer, index), value), *ranges))
    """
    store = UOp(Ops.STORE, dtypes.void, (UOp(Ops.INDEX, node.dtype, (pointer, index)), src[0]))
    loops = tuple(r for r in src[2:] if not is_tile(r))
    end = UOp(Ops.END, dtypes.void, (store, *loops)) if loops else store
    return UOp(Ops.AFTER, node.dtype, (pointer, end))


def _lower_scan(node: UOp, src: tuple[UOp, ...], around: tuple[UOp, ...], number: int) -> UOp:
    """The running value in a round of the innermost loop, from a register that is set outside of it.

    SCAN(r, value, initial, arg=ADD)

    ->  reg = initial, before r;  in each round of r: reg = reg + value;  LOAD(reg)
    """
    r, value, initial, *factor = src
    zero = UOp.index(0)
    reg = UOp(Ops.DEFINE_REG, node.dtype, (), Reg(number))

    def at(*after: UOp) -> UOp:
        return UOp(Ops.INDEX, node.dtype, (UOp(Ops.AFTER, node.dtype, (reg, *after)) if after else reg, zero))

    start = UOp(Ops.STORE, dtypes.void, (at(*around), initial))
    previous = UOp(Ops.LOAD, node.dtype, (at(start, r),))
    step = UOp(Ops.STORE, dtypes.void, (at(), next_value(node.arg, previous, value, *factor)))
    return UOp(Ops.LOAD, node.dtype, (at(step),))


def _lower_keyed_scan(
    node: UOp, src: tuple[UOp, ...], around: tuple[UOp, ...], slot: int, thread: UOp | None, count: int
) -> UOp:
    """The running value of a key in a round of the innermost loop, from memory that is filled outside of it.

    SCAN(r, value, initial, key, arg=ADD)

    ->  memory[v] = initial for all keys v, before r;
        in each round of r: memory[key] = memory[key] + value;  LOAD(memory[key])
    """
    r, value, initial, key = src
    size = key.vmax + 1
    memory = UOp(Ops.PARAM, node.dtype, (), Param(slot, size * count, AddrSpace.LOCAL))
    first = UOp.index(0) if thread is None else thread * size
    place = key.cast(dtypes.index) + first

    def at(index: UOp, *after: UOp) -> UOp:
        pointer = UOp(Ops.AFTER, node.dtype, (memory, *after)) if after else memory
        return UOp(Ops.INDEX, node.dtype, (pointer, simplify(index)))

    v = UOp.range(size, r.arg.copy(slot, AxisKind.LOOP))
    fill = UOp(Ops.STORE, dtypes.void, (at(v + first, *around), initial)).end(v)
    previous = UOp(Ops.LOAD, node.dtype, (at(place, fill, r),))
    step = UOp(Ops.STORE, dtypes.void, (at(place), next_value(node.arg, previous, value)))
    return UOp(Ops.LOAD, node.dtype, (at(place, step),))


def _lower_sum(node: UOp, value: UOp, loops: tuple[UOp, ...], number: int) -> UOp:
    """A reduction as loops around an accumulator, register `number`.

    REDUCE(value, *loops, arg=ADD)

    ->  reg = 0;  END(reg = reg + value, *loops);  LOAD(reg after END)
    """
    outer = sorted((r for r in value.ranges if r not in loops and not is_tile(r)), key=lambda r: r.arg)
    zero = UOp.index(0)
    reg = UOp(Ops.DEFINE_REG, node.dtype, (), Reg(number))

    def at(*after: UOp) -> UOp:
        return UOp(Ops.INDEX, node.dtype, (UOp(Ops.AFTER, node.dtype, (reg, *after)) if after else reg, zero))

    start = UOp(Ops.STORE, dtypes.void, (at(*outer), identity_element(node.arg, node.dtype)))
    previous = UOp(Ops.LOAD, node.dtype, (at(start, *loops),))
    step = UOp(Ops.STORE, dtypes.void, (at(), UOp(node.arg, node.dtype, (previous, value))))
    end = UOp(Ops.END, dtypes.void, (step, *loops))
    return UOp(Ops.LOAD, node.dtype, (at(end),))
