"""Fission: a kernel computes a value again and again; now a kernel before it stores the value once.

    out[i, j] = sum(f(x[k]) * y[k, j] for k)  ->  t[k] = f(x[k]);  out[i, j] = sum(t[k] * y[k, j] for k)

The reverse of fusion, for values that are cheaper to load than to compute. relayout.py stores copies of
operands so, split_k.py partial sums; split_k.py and interchange.py also sums that other sums need.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from polygrad.dtype import DType, dtypes
from polygrad.helpers import prod
from polygrad.schedule.index_maps import flat_index
from polygrad.schedule.kernel_info import rounds
from polygrad.schedule.kernels import KernelCall
from polygrad.uop.args import Axis, AxisKind, Param
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


class Producer(NamedTuple):
    """A kernel that stores a value in memory of `size` elements of `dtype`. `slots`: the arguments that it
    reads, numbered as those of the kernel that was divided."""

    ast: UOp
    dtype: DType
    size: int
    slots: tuple[int, ...]


class Fission(NamedTuple):
    """A divided kernel: its producers and the consumer `ast`. `slots`: the consumer's arguments, numbered as
    those of the kernel before, then the memory of each producer."""

    ast: UOp
    producers: tuple[Producer, ...]
    slots: tuple[int, ...]


def make_temporary(size: int, dtype: DType) -> UOp:
    """Memory of `size` elements that only the kernels of one graph use: a BUFFER of its own."""
    return UOp.buffer_of(Param(-1, size), dtype)


def divide_kernels(
    calls: list[KernelCall], split: Callable[[KernelCall], Fission | None]
) -> list[KernelCall]:
    """The calls. Each that `split` divides becomes its producers and its consumer. Equal producers are called
    once, as long as what they read is not written in between."""
    out: list[KernelCall] = []
    splits: dict[tuple[UOp, int], Fission | None] = {}
    stored: dict[tuple[UOp, tuple[UOp, ...]], UOp] = {}
    for call in calls:
        key = call.ast, len(call.args)
        if key not in splits:
            splits[key] = split(call)
        parts = splits[key]
        if parts is not None:
            args = list(call.args)
            for p in parts.producers:
                read = tuple(call.args[slot] for slot in p.slots)
                memory = stored.get((p.ast, read))
                if memory is None:
                    memory = stored[p.ast, read] = make_temporary(p.size, p.dtype)
                    out.append(replace(call, ast=p.ast, args=(memory, *read)))
                args.append(memory)
            call = replace(call, ast=parts.ast, args=tuple(args[slot] for slot in parts.slots))
        out.append(call)
        stored = {key: memory for key, memory in stored.items() if call.args[0] not in key[1]}
    return out


def divide_to_fixed_point(
    calls: list[KernelCall], split: Callable[[KernelCall], Fission | None]
) -> list[KernelCall]:
    """The calls, divided until `split` divides none of them, producers and consumers included."""
    before = None
    while calls != before:
        before, calls = calls, divide_kernels(calls, split)
    return calls


def make_fission(consumer: UOp, producers: list[Producer]) -> Fission:
    """The Fission of a `consumer` whose last PARAMs are the memory of the producers, in order."""
    slots = _slots(consumer)
    return Fission(_renumber(consumer, slots), tuple(producers), tuple(slots))


def make_producer(value: UOp, loops: tuple[UOp, ...], dtype: DType, size: int) -> Producer:
    """for loops: memory[loops] = value

    `loops`: outermost first. Consumers read the memory as `size` elements of `dtype`.
    """
    sizes = tuple(loop.vmax + 1 for loop in loops)
    memory = UOp(Ops.PARAM, value.dtype, (), Param(-1, int(prod(sizes))))
    index = UOp(Ops.INDEX, value.dtype, (memory, flat_index(sizes, loops)))
    store = UOp(Ops.STORE, dtypes.void, (index, value))
    ranges = [r for r in loops if r.op is Ops.RANGE]
    sink = UOp.sink(UOp(Ops.END, dtypes.void, (store, *ranges)) if ranges else store)
    slots = _slots(sink)
    return Producer(_renumber(sink, slots), dtype, size, tuple(slots[1:]))


def store_sum_before(call: KernelCall, ast: UOp, total: UOp, loops: list[UOp]) -> Fission:
    """The Fission of the kernel `ast` of a call that stores its sum `total` first.

        out[i, j] = f(total(i), j)  ->  t[i] = total(i);  out[i, j] = f(t[i], j)

    `loops`: those around the sum, outermost first.
    """
    own = [r.replace(arg=Axis((i,), AxisKind.LOOP)) for i, r in enumerate(loops)]
    value = total.substitute(dict(zip(loops, own, strict=True)))
    read = load_element(total, len(call.args), loops)
    made = make_producer(value, tuple(own), total.dtype, rounds(own))
    return make_fission(ast.substitute({total: read}), [made])


def load_element(value: UOp, slot: int, loops: list[UOp]) -> UOp:
    """A load in the place of `value`: from argument `slot`, which has an element for each round of
    `loops`."""
    sizes = tuple(r.src[0].arg for r in loops)
    memory = UOp(Ops.PARAM, value.dtype, (), Param(slot, int(prod(sizes))))
    index = UOp(Ops.INDEX, value.dtype, (memory, flat_index(sizes, tuple(loops))))
    return UOp(Ops.LOAD, value.dtype, (index,))


def _slots(ast: UOp) -> list[int]:
    return sorted(n.arg.slot for n in ast.toposort() if n.op is Ops.PARAM)


def _renumber(ast: UOp, slots: list[int]) -> UOp:
    """PARAMs by their place in `slots`."""
    return ast.substitute(
        {
            n: n.replace(arg=n.arg._replace(slot=slots.index(n.arg.slot)))
            for n in ast.toposort()
            if n.op is Ops.PARAM
        }
    )
