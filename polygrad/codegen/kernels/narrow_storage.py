"""A float32 buffer that holds converted 16-bit values becomes a buffer of 16 bits.

    y = x.half() + 1;  y.float() @ w.float()      (a product of float16 adds up in float32)

    t: float32[n] = float(half(x + 1));  reads t        ->  t: float16[n] = half(x + 1);  reads float(t)

A conversion to float32 is exact, so memory may hold the value before it: that takes half the bytes, and a
product that reads it has operands for a tensor core. The pass is for targets with tensor cores; elsewhere a
conversion for each read may cost more than the bytes.
"""

from __future__ import annotations

from polygrad.codegen.kernels.division import is_temporary, make_temporary
from polygrad.codegen.kernels.kernel_opt import Calls, Decisions, KernelContext, KernelOpt, Kind, Proposal
from polygrad.dtype import DType, dtypes, rounded
from polygrad.errors import OptError
from polygrad.schedule.kernel_info import kernel_info
from polygrad.schedule.kernels import KernelCall
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def narrow_value(value: UOp, dtype: DType) -> UOp | None:
    """`value` before its conversion from `dtype`, also below a condition (the padding of a convolution); None
    if it is not such a conversion."""
    if value.dtype is dtype:
        return value
    if value.op is Ops.CAST and value.src[0].dtype is dtype:
        return value.src[0]
    if value.is_const and value.dtype.is_float and rounded(dtype, value.arg) == value.arg:
        return UOp.const(dtype, value.arg)
    if value.op is Ops.WHERE:
        condition, *values = value.src
        yes, no = (narrow_value(v, dtype) for v in values)
        return None if yes is None or no is None else condition.where(yes, no)
    return None


def narrow_buffers(calls: Calls, context: KernelContext) -> Decisions:
    """Buffers between kernels that hold converted values, in the format that tensor cores take."""
    formats = {core.operands for core in context.target.tensor_cores if core.operands is not dtypes.float32}
    for k in range(len(calls) if formats else 0):
        if (dtype := _narrower_dtype(calls, k, context)) is not None and dtype in formats:
            calls = yield Proposal(KernelOpt(Kind.NARROW_STORAGE, (k,)))
    return calls


def _narrower_dtype(calls: Calls, k: int, context: KernelContext) -> DType | None:
    """The narrower dtype that the output of a kernel can be kept in, if there is one."""
    memory = calls[k].args[0]
    is_given = memory.op in (Ops.BUFFER, Ops.ASSIGN, Ops.AFTER) and not is_temporary(memory)
    if memory in context.results or is_given:
        return None
    if (converted := _unconverted_value(calls[k].ast)) is None:
        return None
    readers = [c for i, c in enumerate(calls) if i != k and memory in c.args]
    return converted.dtype if all(_is_only_loaded(c, memory, converted.dtype) for c in readers) else None


def narrow_storage(calls: Calls, opt: KernelOpt, context: KernelContext) -> Calls:
    """The kernels, one of which stores its value before the conversion."""
    (k,) = opt.kernels
    if (dtype := _narrower_dtype(calls, k, context)) is None:
        raise OptError("expected a kernel that stores converted values, which others only load")
    memory = make_temporary(kernel_info(calls[k].ast).nests[0].write.memory.arg.size, dtype)
    return [_narrow_call(call, {calls[k].args[0]: memory}) for call in calls]


def _unconverted_value(ast: UOp) -> UOp | None:
    """The value before the conversion to float32 that a kernel with one nest stores; None for other
    kernels."""
    nest = kernel_info(ast).only_nest
    if nest is None or nest.is_in_place or nest.write.slot is None:
        return None
    value = nest.value
    return value.src[0] if value.op is Ops.CAST and value.dtype is dtypes.float32 else None


def _is_only_loaded(call: KernelCall, memory: UOp, dtype: DType) -> bool:
    """Whether a kernel only loads from a buffer, with alternatives that `dtype` can hold. False for a kernel
    with Opts given by hand, which may name its loads."""
    if call.ast.arg is not None or call.args[0] is memory:
        return False
    order = call.ast.toposort()
    slots = [i for i, arg in enumerate(call.args) if arg is memory]
    params = {n for n in order if n.op is Ops.PARAM and n.arg.slot in slots}
    indices = {n for n in order if not params.isdisjoint(n.src)}
    loads = [n for n in order if n.op is Ops.LOAD and n.src[0] in indices]
    others = [other for n in loads for other in n.src[1:]]
    return (
        all(n.op is Ops.INDEX for n in indices)
        and all(n.op is Ops.LOAD for n in order if not indices.isdisjoint(n.src))
        and all(narrow_value(other, dtype) is not None for other in others)
    )


def _narrow_call(call: KernelCall, narrower: dict[UOp, UOp]) -> KernelCall:
    """A call whose arguments are replaced by buffers of 16 bits, `narrower`.

    STORE(t: float32[i], CAST(v))  ->  STORE(t: float16[i], v)
    LOAD(t: float32[i])            ->  CAST(LOAD(t: float16[i]), float32)
    """
    args = tuple([narrower.get(arg, arg) for arg in call.args])
    into = {i: arg.dtype for i, arg in enumerate(args) if arg is not call.args[i]}
    if not into:
        return call
    new: dict[UOp, UOp] = {}
    for n in call.ast.toposort():
        src = tuple([new[s] for s in n.src])
        if n.op is Ops.PARAM and n.arg.slot in into:
            new[n] = UOp(n.op, into[n.arg.slot], (), n.arg)
        elif n.op is Ops.INDEX and src[0].dtype is not n.dtype:
            new[n] = UOp(n.op, src[0].dtype, src, n.arg)
        elif n.op is Ops.STORE and src[0].dtype is not n.src[0].dtype:
            new[n] = UOp(n.op, n.dtype, (src[0], src[1].src[0]), n.arg)
        elif n.op is Ops.LOAD and src[0].dtype is not n.dtype:
            others = [other for s in src[1:] if (other := narrow_value(s, src[0].dtype)) is not None]
            new[n] = UOp(n.op, src[0].dtype, (src[0], *others), n.arg).cast(n.dtype)
        else:
            new[n] = n if src == n.src else UOp(n.op, n.dtype, src, n.arg)
    return KernelCall(new[call.ast], args, places=call.places)
