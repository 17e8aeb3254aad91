"""How many bytes a kernel moves between buffers and registers, counted on its linear list."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from polygrad.uop.args import AddrSpace
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


class Traffic(NamedTuple):
    read: int
    written: int


def traffic_of(linear: Sequence[UOp]) -> Traffic:
    """Bytes that a linear kernel reads from buffers and writes to them, all invocations of all workgroups: of
    one whose stores have no gates and whose loops have constant sizes."""
    runs = prod(n.src[0].arg for n in linear if n.op is Ops.SPECIAL)
    read = written = 0
    loops: list[int] = []
    closed = {n.src[1] for n in linear if n.op is Ops.END}
    for n in linear:
        if n in closed:
            loops.append(n.src[0].arg)
        elif n.op is Ops.END:
            loops.pop()
        elif n.op in (Ops.LOAD, Ops.STORE):
            pointer = n.src[0].src[0]
            if pointer.op is not Ops.PARAM or pointer.arg.space is not AddrSpace.GLOBAL:
                continue  # a register, or memory of the workgroup
            steps = n.src[0].arg.steps if n.src[0].arg is not None else ()
            values = prod(r.src[0].arg for r, _ in steps)
            nbytes = runs * prod(loops) * values * pointer.dtype.itemsize
            if n.op is Ops.LOAD:
                read += nbytes
            else:
                written += nbytes
    return Traffic(read, written)
