"""Fission: a value that a kernel computes and reads again and again, stored by a kernel of its own before.

    out[i, j] = sum(f(x[k]) * y[k, j] for k)  ->  t[k] = f(x[k]);  out[i, j] = sum(t[k] * y[k, j] for k)

It is fusion undone, where memory is cheaper. relayout.py stores copies of the operands of products so;
split_k.py partial sums; both that and interchange.py sums that others are computed of.
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
    """A kernel that stores a value in memory of `size` elements of `dtype`; `slots`: which arguments it
    reads, of those of the kernel that it was a part of."""

    ast: UOp
    dtype: DType
    size: int
    slots: tuple[int, ...]


class Fission(NamedTuple):
    """A kernel divided in producers and the consumer `ast`; `slots`: which arguments that takes, of those
    before and then the producers' memory."""

    ast: UOp
    producers: tuple[Producer, ...]
    slots: tuple[int, ...]


def temporary(size: int, dtype: DType) -> UOp:
    """Memory of `size` elements that only the kernels of one graph use: a BUFFER of its own."""
    return UOp.buffer_of(Param(-1, size), dtype)


def divided(calls: list[KernelCall], split: Callable[[KernelCall], Fission | None]) -> list[KernelCall]:
    """The calls, with those that `split` divides after their producers. Of equal producers one is called, as
    long as what it read is not written."""
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
                    memory = stored[p.ast, read] = temporary(p.size, p.dtype)
                    out.append(replace(call, ast=p.ast, args=(memory, *read)))
                args.append(memory)
            call = replace(call, ast=parts.ast, args=tuple(args[slot] for slot in parts.slots))
        out.append(call)
        stored = {key: memory for key, memory in stored.items() if call.args[0] not in key[1]}
    return out


def divided_to_fixed_point(
    calls: list[KernelCall], split: Callable[[KernelCall], Fission | None]
) -> list[KernelCall]:
    """The calls, divided again as long as `split` divides any: producers and consumers, too."""
    before = None
    while calls != before:
        before, calls = calls, divided(calls, split)
    return calls


def fission(consumer: UOp, producers: list[Producer]) -> Fission:
    """`consumer` reads the memory of the producers as PARAMs after its own."""
    slots = _slots(consumer)
    return Fission(_renumbered(consumer, slots), tuple(producers), tuple(slots))


def producer(value: UOp, loops: tuple[UOp, ...], dtype: DType, size: int) -> Producer:
    """A kernel that stores `value` for all of the loops, outermost first, in memory that is read as `size`
    elements of `dtype`."""
    sizes = tuple(loop.vmax + 1 for loop in loops)
    memory = UOp(Ops.PARAM, value.dtype, (), Param(-1, int(prod(sizes))))
    index = UOp(Ops.INDEX, value.dtype, (memory, flat_index(sizes, loops)))
    store = UOp(Ops.STORE, dtypes.void, (index, value))
    ranges = [r for r in loops if r.op is Ops.RANGE]
    sink = UOp.sink(UOp(Ops.END, dtypes.void, (store, *ranges)) if ranges else store)
    slots = _slots(sink)
    return Producer(_renumbered(sink, slots), dtype, size, tuple(slots[1:]))


def sum_apart(call: KernelCall, ast: UOp, total: UOp, loops: list[UOp]) -> Fission:
    """The kernel `ast` of a call with its sum `total` stored before, for all of the loops that the sum is
    inside of, outermost first."""
    own = [r.replace(arg=Axis((i,), AxisKind.LOOP)) for i, r in enumerate(loops)]
    value = total.substitute(dict(zip(loops, own, strict=True)))
    read = element_of(total, len(call.args), loops)
    made = producer(value, tuple(own), total.dtype, rounds(own))
    return fission(ast.substitute({total: read}), [made])


def element_of(value: UOp, slot: int, loops: list[UOp]) -> UOp:
    """What a kernel reads in the place of a value: memory with an element for all of `loops`, argument
    `slot`."""
    sizes = tuple(r.src[0].arg for r in loops)
    memory = UOp(Ops.PARAM, value.dtype, (), Param(slot, int(prod(sizes))))
    index = UOp(Ops.INDEX, value.dtype, (memory, flat_index(sizes, tuple(loops))))
    return UOp(Ops.LOAD, value.dtype, (index,))


def _slots(ast: UOp) -> list[int]:
    return sorted(n.arg.slot for n in ast.toposort() if n.op is Ops.PARAM)


def _renumbered(ast: UOp, slots: list[int]) -> UOp:
    """PARAMs by their place in `slots`."""
    return ast.substitute(
        {
            n: n.replace(arg=n.arg._replace(slot=slots.index(n.arg.slot)))
            for n in ast.toposort()
            if n.op is Ops.PARAM
        }
    )
