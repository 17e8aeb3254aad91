"""Kernels of tensor expressions for machines with workgroups: what the tests of those share."""

from __future__ import annotations

from collections.abc import Collection

from polygrad import Tensor
from polygrad.codegen.kernels.kernel_opt import KernelContext
from polygrad.codegen.kernels.passes import KERNEL_PASSES, carry_out, kernels_of
from polygrad.codegen.lower.passes import UNOPTIMIZED, LoweringContext, run_passes
from polygrad.codegen.opts.opt import parse_opts
from polygrad.codegen.target import Target
from polygrad.engine.normalize import normalize
from polygrad.schedule.kernels import KernelCall
from polygrad.uop.node import UOp
from polygrad.uop.spec import verify
from tests.schedules import schedule


def data(*shape: int, dtype: str = "float32") -> Tensor:
    """Memory."""
    return Tensor.zeros(*shape, dtype=dtype, device="INTERP").contiguous().realize()


def asts_of(tensor: Tensor) -> list[UOp]:
    """The kernels of an expression as they are scheduled."""
    plan = schedule(normalize(UOp.sink(tensor.uop.base)).sink, True)
    return [call.ast.replace(arg=None) for call in plan.calls]


def kernel_of(tensor: Tensor, target: Target) -> UOp:
    """The only kernel of an expression, as Opts are applied to it."""
    (ast,) = asts_of(tensor)
    kernel = run_passes(ast, LoweringContext(target), through=UNOPTIMIZED)
    assert isinstance(kernel, UOp)
    return kernel


def linear_of(tensor: Tensor, target: Target, opts: str | None = None) -> list[UOp]:
    """Its linear form, with these Opts or what the heuristics choose."""
    given = None if opts is None else parse_opts(opts)
    linear = run_passes(kernel_of(tensor, target), LoweringContext(target, True, given), after=UNOPTIMIZED)
    assert isinstance(linear, list)
    verify(linear, "linear")
    return linear


def decided(
    name: str, calls: list[KernelCall], target: Target, results: Collection[UOp] = ()
) -> list[KernelCall]:
    """The kernels after what the pass of this name decides."""
    for decide in next(p for p in KERNEL_PASSES if p.name == name).decide:
        calls, _ = carry_out(decide, calls, KernelContext(target, True, frozenset(results)))
    return calls


def arranged(*tensors: Tensor, target: Target) -> list[KernelCall]:
    """The kernels of a graph, as a machine with workgroups gets them."""
    sink = normalize(UOp.sink(*[t.uop.base for t in tensors])).sink
    return list(kernels_of(sink, target, True).calls)
