"""`apply` carries out a KernelOpt on the kernels of a graph. Heuristics, searches and users decide."""

from __future__ import annotations

from collections.abc import Callable

from polygrad.codegen.kernels.compute_at import compute_at
from polygrad.codegen.kernels.division import divide
from polygrad.codegen.kernels.fuse import fuse
from polygrad.codegen.kernels.index_put import index_put
from polygrad.codegen.kernels.interchange import interchange
from polygrad.codegen.kernels.kernel_opt import Calls, KernelContext, KernelOpt, Kind
from polygrad.codegen.kernels.keyed_scan import keyed_scan
from polygrad.codegen.kernels.multi_output import multi_output
from polygrad.codegen.kernels.narrow_storage import narrow_storage
from polygrad.codegen.kernels.partition import partition
from polygrad.codegen.kernels.polyphase import polyphase
from polygrad.codegen.kernels.relayout import dot_product, relayout
from polygrad.codegen.kernels.scatter import scatter
from polygrad.codegen.kernels.separate_windows import separate
from polygrad.codegen.kernels.split_ranges import split_range
from polygrad.codegen.kernels.split_reduce import compute_root, split_reduce
from polygrad.codegen.opts.opt import fits
from polygrad.errors import OptError
from polygrad.uop.node import UOp

# (kernel, number of its arguments, opt, context) -> the kernels that replace it
_Divide = Callable[[UOp, int, KernelOpt, KernelContext], tuple[UOp, ...]]

_DIVIDE: dict[Kind, _Divide] = {
    Kind.KEYED_SCAN: lambda ast, n, opt, c: keyed_scan(ast),
    Kind.INDEX_PUT: lambda ast, n, opt, c: index_put(ast),
    Kind.SCATTER: lambda ast, n, opt, c: scatter(ast, n),
    Kind.PARTITION: lambda ast, n, opt, c: partition(ast, opt.axes, opt.numbers),
    Kind.COMPUTE_ROOT: lambda ast, n, opt, c: compute_root(ast, n, *opt.numbers),
    Kind.SPLIT_REDUCE: lambda ast, n, opt, c: split_reduce(ast, n, opt.axes, opt.numbers),
    Kind.INTERCHANGE: lambda ast, n, opt, c: interchange(ast, n, opt.axes, *opt.numbers),
    Kind.POLYPHASE: lambda ast, n, opt, c: polyphase(ast, *opt.numbers),
    Kind.RELAYOUT: lambda ast, n, opt, c: relayout(ast, n, *opt.numbers),
    Kind.DOT_PRODUCT: lambda ast, n, opt, c: dot_product(ast, n, opt.axes, c.target),
    Kind.SEPARATE: lambda ast, n, opt, c: separate(ast, n, opt.axes),
    Kind.SPLIT_RANGE: lambda ast, n, opt, c: (split_range(ast, opt.axes, opt.numbers),),
}
_REWRITE: dict[Kind, Callable[[Calls, KernelOpt, KernelContext], Calls]] = {  # opts about several kernels
    Kind.FUSE: fuse,
    Kind.MULTI_OUTPUT: multi_output,
    Kind.COMPUTE_AT: compute_at,
    Kind.NARROW_STORAGE: narrow_storage,
}
_ARITY = {  # the counts of kernels, axes and numbers
    Kind.FUSE: ("2", "0 to 1", "0 to 1"),
    Kind.MULTI_OUTPUT: ("2", "0 to 1", "0 to 1"),
    Kind.COMPUTE_AT: ("2", "0 to 1", "0 to 1"),
    Kind.KEYED_SCAN: ("1", "0", "0"),
    Kind.INDEX_PUT: ("1", "0", "0"),
    Kind.SCATTER: ("1", "0", "0"),
    Kind.PARTITION: ("1", "1", "1+"),
    Kind.COMPUTE_ROOT: ("1", "0", "1"),
    Kind.SPLIT_REDUCE: ("1", "1+", "1+"),
    Kind.INTERCHANGE: ("1", "1+", "1"),
    Kind.POLYPHASE: ("1", "0", "0 to 1"),
    Kind.RELAYOUT: ("1", "0", "1+"),
    Kind.DOT_PRODUCT: ("1", "1", "0"),
    Kind.SEPARATE: ("1", "1+", "0"),
    Kind.SPLIT_RANGE: ("1", "1", "1+"),
    Kind.NARROW_STORAGE: ("1", "0", "0"),
}


def apply(calls: Calls, opt: KernelOpt, context: KernelContext) -> Calls:
    """The kernels with one decision carried out. Raises OptError with the reason if it cannot be."""
    try:
        return _apply(calls, opt, context)
    except OptError as error:
        raise OptError(f"kernel opt {str(opt)!r}: {error}") from None


def _apply(calls: Calls, opt: KernelOpt, context: KernelContext) -> Calls:
    counts = len(opt.kernels), len(opt.axes), len(opt.numbers)
    if not all(map(fits, counts, _ARITY[opt.kind])):
        kernels, axes, numbers = _ARITY[opt.kind]
        expected = f"{kernels} kernels, {axes} axes and {numbers} numbers"
        raise OptError(f"expected {expected}, got {', '.join(map(str, counts))}")
    for k in opt.kernels:
        if k >= len(calls):
            raise OptError(f"expected kernels from 0 to {len(calls) - 1}, got {k}")
    if opt.kind in _REWRITE:
        return _REWRITE[opt.kind](calls, opt, context)
    (k,) = opt.kernels
    call = calls[k]
    if call.results > 1:
        raise OptError(f"expected a kernel with one result, got one with {call.results}")
    key = call.ast, len(call.args), opt._replace(kernels=())
    if key not in context.made:
        context.made[key] = _DIVIDE[opt.kind](call.ast, len(call.args), opt, context)
    return divide(calls, k, context.made[key])
