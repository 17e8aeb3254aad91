"""A FOR's kernels: those of its body, scheduled once, for each trip.

The trips are unrolled in the list of kernels, where another trip costs next to nothing: all trips share their
kernels, and differ only in the memory that these read and write. So memory is planned and barriers are placed
across trips as anywhere else, and runtimes know no loops.
"""

from __future__ import annotations

from collections.abc import Sequence

from polygrad.schedule.kernels import KernelCall, storage_of
from polygrad.uop.args import Param
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def loop_body(node: UOp) -> UOp:
    """The body of a FOR as a graph to schedule: BUFFERs stand for its operands.

    SINK(PARAM 0 + PARAM 1)  ->  SINK(BUFFER 0 + BUFFER 1)
    """
    body: UOp = node.arg.body
    return body.substitute({n: _operand(n.dtype, n.arg) for n in body.toposort() if n.op is Ops.PARAM})


def _operand(dtype: object, param: Param) -> UOp:
    return UOp(Ops.BUFFER, dtype, (), param)  # type: ignore[arg-type]


def unroll_trips(node: UOp, body: Sequence[KernelCall], roots: Sequence[UOp]) -> list[KernelCall]:
    """The kernels of all iterations of a FOR. `body`: those of its `loop_body`, whose results are in `roots`.

    FOR(x, w, arg=For(body: x' = x * w, 3 trips))

    ->  t1 = x * w;  t2 = t1 * w;  t3 = t2 * w, all with the kernel of the body
    """
    operands = [storage_of(s.base) for s in node.src]
    calls = []
    for trip in range(1, node.arg.trips + 1):
        results = [
            UOp(Ops.FOR, r.dtype, node.src, node.arg._replace(trips=trip, result=i))
            for i, r in enumerate(node.arg.body.src)
        ]
        names = dict(zip(roots, results, strict=True))
        for call in body:
            args = []
            for arg in call.args:
                if arg.op is Ops.BUFFER:
                    args.append(operands[arg.arg.slot])
                    continue
                if arg not in names:  # a value inside the body, in this trip
                    names[arg] = UOp(Ops.NOOP, arg.dtype, (arg, results[0]))
                args.append(names[arg])
            calls.append(KernelCall(call.ast, tuple(args), places=call.places))
        operands[: len(results)] = results
    return calls
