"""Row fusion: a reduction moves into the only kernel that reads it, when that costs no work.

    softmax in three kernels, which go through memory three times:
        max over each row; sum over each row; every element of each row
    in one, whose row stays in the cache:
        for each row: { max; sum; every element }

It costs nothing when the reader's outermost loops are just the loops over the reduction's results: then each
result is still computed once. A reader that reduces along its inner loops (a matrix product) is left alone:
its loops get reordered.

An optimisation: without it, kernels are those that tinygrad makes.
"""

from __future__ import annotations

from polygrad.schedule.kernels import KernelCall
from polygrad.uop.linear import linear_terms
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

_MIN_ROWS = 8  # fewer, and the passes are better off divided between lanes and threads


def fuse_rows(calls: list[KernelCall], kept: set[UOp]) -> list[KernelCall]:
    """The kernels with row reductions moved into their readers. `kept` nodes stay stored."""
    out: list[KernelCall | None] = list(calls)
    readers: dict[UOp, set[int]] = {}
    for i, reads in enumerate(calls):
        for arg in reads.args[1:]:
            readers.setdefault(arg, set()).add(i)
    for i in range(len(calls) - 1, -1, -1):
        call = out[i]
        assert call is not None
        node = call.args[0]
        found = readers.get(node, set())
        if node in kept or node.op is Ops.BUFFER or len(found) != 1:
            continue
        j = next(iter(found))
        reader = out[j]
        assert reader is not None
        written = {c.args[0] for c in out[i + 1 : j + 1] if c is not None}
        if written.intersection(call.args):
            continue
        merged = _merged(call, reader)
        if merged is None:
            continue
        out[i], out[j] = None, merged
        for arg in call.args[1:]:
            readers[arg].discard(i)
            readers[arg].add(j)
    return [c for c in out if c is not None]


def _merged(call: KernelCall, reader: KernelCall) -> KernelCall | None:
    """The reader computing what it read of `call`; None where that would cost work."""
    if len(call.ast.src) != 1 or len(reader.ast.src) != 1 or call.ast.src[0].op is not Ops.END:
        return None
    if call.ast.arg is not None:  # Opts are given for this kernel
        return None
    store = call.ast.src[0].src[0]
    order = reader.ast.toposort()
    if not any(n.op is Ops.REDUCE for n in store.src[1].toposort()):
        return None
    slot = reader.args.index(call.args[0])
    loads = [n for n in order if n.op is Ops.LOAD and n.src[0].src[0].arg.slot == slot]
    if len(loads) != 1 or len(loads[0].src[0].src) != 2:
        return None
    rows = _matched(store.src[0].src[1], loads[0].src[0].src[1])
    if rows is None or not _are_rows(rows, reader.ast.src[0], order):
        return None
    args = [a for a in reader.args if a is not call.args[0]]
    args += [a for a in dict.fromkeys(call.args[1:]) if a not in args]
    value = _moved(store.src[1], rows, call.args, args)
    return KernelCall(_renumbered(reader.ast.substitute({loads[0]: value}), reader, args), tuple(args))


def _matched(written: UOp, read: UOp) -> dict[UOp, UOp] | None:
    """The reader's range for each range of the writer, when both indices walk the same elements in the same
    way."""
    ours, offset = linear_terms(written)
    theirs, other = linear_terms(read)
    if offset or other or len(ours) != len(theirs):
        return None
    by_step = {
        (step, r.src[0].arg): r for r, step in theirs.items() if r.op is Ops.RANGE and r.src[0].is_const
    }
    out = {}
    for r, step in ours.items():
        match = by_step.get((step, r.src[0].arg)) if r.op is Ops.RANGE and r.src[0].is_const else None
        if match is None:
            return None
        out[r] = match
    return out if len(set(out.values())) == len(ours) else None


def _are_rows(rows: dict[UOp, UOp], nest: UOp, order: list[UOp]) -> bool:
    """The matched ranges are the outermost loops of `nest`, and nothing is reduced further in."""
    if nest.op is not Ops.END:
        return False
    loops = nest.src[1:]
    outer = loops[: len(rows)]
    if set(outer) != set(rows.values()):
        return False
    count = 1
    for r in outer:
        count *= r.src[0].arg
    inner = loops[len(rows) :]
    return count >= _MIN_ROWS and not any(
        n.op is Ops.REDUCE and not n.ranges.isdisjoint(inner) for n in order
    )


def _moved(value: UOp, rows: dict[UOp, UOp], args: tuple[UOp, ...], new_args: list[UOp]) -> UOp:
    """The writer's value in the reader: rows matched, other ranges and PARAMs marked by negative numbers
    until
    `_renumbered` puts all in order."""
    changes: dict[UOp, UOp] = dict(rows)
    for node in value.toposort():
        if node.op is Ops.RANGE and node not in rows:
            changes[node] = node.replace(arg=node.arg._replace(id=(-1, *node.arg.id)))
        elif node.op is Ops.PARAM:
            slot = -1 - new_args.index(args[node.arg.slot])
            changes[node] = node.replace(arg=node.arg._replace(slot=slot))
    return value.substitute(changes)


def _renumbered(sink: UOp, reader: KernelCall, args: list[UOp]) -> UOp:
    """PARAMs by their place in `args`: negative slots are marked places, others the reader's old ones. Ranges
    in order, the marked ones last."""
    order = sink.toposort()
    ranges = sorted((n for n in order if n.op is Ops.RANGE), key=lambda r: (r.arg.id[0] < 0, r.arg.id))
    changes = {r: r.replace(arg=r.arg._replace(id=(i,))) for i, r in enumerate(ranges)}
    for node in order:
        if node.op is Ops.PARAM:
            slot = node.arg.slot
            place = -1 - slot if slot < 0 else args.index(reader.args[slot])
            changes[node] = node.replace(arg=node.arg._replace(slot=place))
    return sink.substitute(changes)
