"""Rare terms: the search for the position of a maximum updates its register behind a branch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from polygrad import Tensor
from polygrad.codegen.lower.passes import LoweringContext, run_passes
from polygrad.codegen.lower.rare_terms import branch_rare_terms
from polygrad.codegen.target import Target
from polygrad.engine.normalize import normalize
from polygrad.uop.args import AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.spec import verify
from tests.schedules import schedule

TARGET = Target("test", simd_bytes=64, registers=32, fma=True, scalar_fma=True)
SHAPES = (((64, 2048), 1), ((2048, 100), 0), ((37, 1001), 1), ((5, 7), 1), ((3, 700, 33), 1))
KINDS = ("plain", "ties", "NaN", "infinities", "all -inf")


def before(out: Tensor) -> UOp:
    """The kernel of a Tensor as it comes to the pass."""
    (call,) = schedule(normalize(UOp.sink(out.uop.base)).sink, optimized=True).calls
    kernel = run_passes(call.ast, LoweringContext(TARGET), through="branch-slow-paths")
    assert isinstance(kernel, UOp)
    return kernel


def zeros(*shape: int) -> Tensor:
    return Tensor.zeros(*shape).contiguous().realize()


@pytest.mark.parametrize("out", [lambda: zeros(64, 2048).argmax(1), lambda: zeros(1024, 64).argmin(0)])
def test_the_search_of_an_argmax_has_a_branch(out: Callable[[], Tensor]) -> None:
    kernel = branch_rare_terms(before(out()))
    verify(kernel.toposort(), "kernel")
    (branch,) = [n for n in kernel.toposort() if n.op is Ops.RANGE and not n.src[0].is_const]
    assert branch.src[0].vmax == 1 and branch.arg.kind is AxisKind.LOOP
    assert [n.src[-1] for n in kernel.toposort() if n.op is Ops.END and branch in n.src] == [branch]


@pytest.mark.parametrize(
    "out",
    [
        lambda: zeros(64, 2048).max(1),
        lambda: zeros(64, 2048).int().argmax(1),  # few different values: often equal
        lambda: zeros(64, 10).argmax(1),
        lambda: zeros(40, 64).argmax(0),
    ],
)
def test_other_maxima_and_short_searches_have_none(out: Callable[[], Tensor]) -> None:
    kernel = before(out())
    assert branch_rare_terms(kernel) is kernel


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_positions_are_numpys_exactly(device: str, shape: tuple[int, ...], axis: int, kind: str) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=shape).astype(np.float32)
    if kind == "ties":
        x = np.round(x)
    elif kind == "all -inf":
        x[...] = -np.inf
    elif kind != "plain":
        x[rng.random(shape) < 0.002] = np.nan
        if kind == "infinities":
            x[rng.random(shape) < 0.01] = np.inf
    t = Tensor(x, device=device)
    np.testing.assert_array_equal(t.argmax(axis).numpy(), x.argmax(axis))
    np.testing.assert_array_equal(t.argmin(axis).numpy(), x.argmin(axis))
