"""A kernel divided into several: a value that it computes again and again is stored once by a kernel before.

    out[i, j] = sum(f(x[k]) * y[k, j] for k)  ->  t[k] = f(x[k]);  out[i, j] = sum(t[k] * y[k, j] for k)

This is the reverse of fusion, which loop compilers call fission. The parts use the argument numbers of the
divided kernel; greater numbers are memory between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from polygrad.codegen.kernels.kernel_opt import Calls
from polygrad.codegen.lower.reductions import canonicalize
from polygrad.codegen.opts.split import substituted
from polygrad.dtype import DType, dtypes
from polygrad.errors import OptError
from polygrad.helpers import prod
from polygrad.schedule.index_maps import flat_index
from polygrad.schedule.kernel_info import KernelInfo, Sum, kernel_info
from polygrad.uop.args import Axis, AxisKind, Param
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.printer import axis_name
from polygrad.uop.rewrite import graph_rewrite
from polygrad.uop.symbolic import symbolic


def make_temporary(size: int, dtype: DType) -> UOp:
    """A new BUFFER of `size` elements that only the kernels of one graph use."""
    return UOp.buffer_of(Param(-1, size), dtype)


def divide(calls: Calls, k: int, asts: Sequence[UOp]) -> Calls:
    """The calls, with kernels `asts` in the place of kernel `k`. A value that one of them stores for another
    is not computed again if an earlier kernel has stored it, and nothing that it reads was written since."""
    call = calls[k]
    params = [{n.arg.slot: n for n in ast.toposort() if n.op is Ops.PARAM} for ast in asts]
    outputs = [ast.src[0].src[0] if ast.src[0].op is Ops.END else ast.src[0] for ast in asts]
    written = [store.src[0].src[0].arg.slot for store in outputs]
    memory: dict[int, UOp] = dict(enumerate(call.args))
    temporaries = {slot: n for nodes in params for slot, n in nodes.items() if slot not in memory}
    out = calls[:k]
    for ast, nodes, output in zip(asts, params, written, strict=True):
        slots = [output, *sorted(nodes.keys() - {output})]
        places = {nodes[s]: nodes[s].replace(arg=nodes[s].arg._replace(slot=i)) for i, s in enumerate(slots)}
        ast = ast.substitute(places)
        reads = tuple([memory[s] for s in slots[1:]])
        if output in temporaries and output not in memory:
            stored = _find_stored(out, ast, reads) if written.count(output) == 1 else None
            if stored is not None:
                memory[output] = stored
                continue
            memory[output] = make_temporary(temporaries[output].arg.size, temporaries[output].dtype)
        out.append(replace(call, ast=ast, args=(memory[output], *reads)))
    return [*out, *calls[k + 1 :]]


def _find_stored(calls: Calls, ast: UOp, reads: tuple[UOp, ...]) -> UOp | None:
    """The temporary memory in which the last equal kernel among `calls` has stored its value, if that is
    still valid."""
    written = set()
    for call in reversed(calls):
        memory = call.args[0]
        if call.ast is ast and call.args[1:] == reads and memory not in written and is_temporary(memory):
            return memory
        if memory in reads:
            return None
        written.add(memory)
    return None


def is_temporary(memory: UOp) -> bool:
    """Whether memory was made by `make_temporary`."""
    return memory.op is Ops.BUFFER and isinstance(memory.arg, Param) and memory.arg.slot < 0


# --- the parts of a kernel


def canonical_sum(ast: UOp) -> tuple[KernelInfo, Sum]:
    """A kernel in canonical form, and its only sum. Raises OptError."""
    info = canonical_info(ast)
    if (only := info.nests[0].only_sum) is None:
        raise OptError(f"expected a kernel with one sum, got one with {len(info.nests[0].sums)}")
    return info, only


def canonical_info(ast: UOp) -> KernelInfo:
    """A kernel in canonical form. Raises OptError for a kernel that must not be divided."""
    info = kernel_info(ast)
    if info.only_nest is None or not info.is_static:
        raise OptError("expected a kernel with one output nest, constant sizes, and no Opts given by hand")
    return kernel_info(canonicalize(ast))


def axes_of(info: KernelInfo, axes: Sequence[tuple[int, ...]]) -> list[UOp]:
    """The ranges of a kernel. Raises OptError."""
    by_id = {r.arg.id: r for r in info.ranges}
    if missing := [a for a in axes if a not in by_id]:
        expected, got = (", ".join(map(axis_name, names)) for names in (sorted(by_id), missing))
        raise OptError(f"expected axes of the kernel ({expected}), got {got}")
    return [by_id[a] for a in axes]


def divide_loop(kernel: UOp, loop: UOp, bounds: Sequence[int]) -> list[UOp]:
    """A kernel for each part of an output loop, which `bounds` divide. Halves are divided again, because each
    has half of the conditions.

    for r < n: out[r] = f(r), bounds (c,)

    ->  for r < c: out[r] = f(r)  and  for r < n - c: out[r + c] = f(r + c)
    """
    if not bounds:
        return [kernel]
    half = len(bounds) // 2
    middle = bounds[half]
    first, first_loop = _part(kernel, loop, 0, middle)
    last, last_loop = _part(kernel, loop, middle, loop.src[0].arg)
    return [
        *divide_loop(first, first_loop, bounds[:half]),
        *divide_loop(last, last_loop, [b - middle for b in bounds[half + 1 :]]),
    ]


def _part(kernel: UOp, loop: UOp, start: int, stop: int) -> tuple[UOp, UOp]:
    """A kernel for the rounds from `start` to `stop` of an output loop, and its loop."""
    nest = kernel.src[0]
    part = UOp.range(stop - start, loop.arg)
    store = substituted(nest.src[0], {loop: part + start if start else part})
    ranges = tuple(part if r is loop else r for r in nest.src[1:])
    return graph_rewrite(UOp.sink(UOp(Ops.END, nest.dtype, (store, *ranges))), symbolic), part


def store_value(value: UOp, loops: Sequence[UOp], slot: int) -> UOp:
    """for loops: memory[loops] = value

    `loops`: outermost first. The memory is argument `slot`.
    """
    sizes = tuple(loop.vmax + 1 for loop in loops)
    memory = UOp(Ops.PARAM, value.dtype, (), Param(slot, int(prod(sizes))))
    place = UOp(Ops.INDEX, value.dtype, (memory, flat_index(sizes, tuple(loops))))
    return make_nest(place, value, [r for r in loops if r.op is Ops.RANGE])


def make_nest(place: UOp, value: UOp, loops: Sequence[UOp]) -> UOp:
    """for loops: place = value"""
    store = UOp(Ops.STORE, dtypes.void, (place, value))
    return UOp.sink(UOp(Ops.END, dtypes.void, (store, *loops)) if loops else store)


def load_value(dtype: DType, loops: Sequence[UOp], slot: int) -> UOp:
    """A load of an element that `store_value` stored: memory[loops]."""
    sizes = tuple(r.src[0].arg for r in loops)
    memory = UOp(Ops.PARAM, dtype, (), Param(slot, int(prod(sizes))))
    return UOp(Ops.LOAD, dtype, (UOp(Ops.INDEX, dtype, (memory, flat_index(sizes, tuple(loops)))),))


def store_sum_before(ast: UOp, total: UOp, slot: int) -> tuple[UOp, UOp]:
    """A kernel that stores the sum `total` of the kernel `ast` in argument `slot`, and `ast` without the sum.

    out[i, j] = f(total(i), j)  ->  t[i] = total(i);  out[i, j] = f(t[i], j)
    """
    loops = sorted(total.ranges, key=lambda r: r.arg)
    producer_loops = [r.replace(arg=Axis((i,), AxisKind.LOOP)) for i, r in enumerate(loops)]
    producer = store_value(
        total.substitute(dict(zip(loops, producer_loops, strict=True))), producer_loops, slot
    )
    return producer, ast.substitute({total: load_value(total.dtype, loops, slot)})
