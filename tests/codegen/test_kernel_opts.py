"""KernelOpts: as text, given by hand, and what is said of those that do not apply."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from polygrad import Context, Tensor
from polygrad.codegen.kernels.apply import _ARITY, apply
from polygrad.codegen.kernels.kernel_opt import (
    Calls,
    KernelContext,
    KernelOpt,
    KernelOpts,
    Kind,
    Proposal,
    parse_kernel_opts,
    render_kernel_opts,
)
from polygrad.codegen.kernels.passes import decide_kernels, schedule_graph, steps
from polygrad.codegen.target import Target
from polygrad.engine.devices import Device
from polygrad.engine.normalize import normalize
from polygrad.engine.stats import stats
from polygrad.errors import ArgumentError, OptError
from polygrad.schedule.schedule import Schedule
from polygrad.uop.node import UOp
from polygrad.uop.spec import verify
from tests.codegen.grid_kernels import data
from tests.codegen.test_kernel_passes import CASES
from tests.codegen.test_tensor_cores import CUDA

CPU = Device.backend("CPU").target
RNG = np.random.default_rng(11)


def plan_of(tensor: Tensor, target: Target = CPU) -> tuple[Schedule, KernelContext]:
    return schedule_graph(normalize(UOp.sink(tensor.uop.base)).sink, target, True)


def values(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def centred(x: Tensor, y: Tensor) -> Tensor:
    """x without the mean of each four rows, times y."""
    rows = x.reshape(x.shape[0] // 4, -1)
    return (rows - rows.mean(1, keepdim=True)).reshape(x.shape) * y


def centred_array(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    rows = x.reshape(x.shape[0] // 4, -1)
    return (rows - rows.mean(1, keepdims=True)).reshape(x.shape) * y


TEXT = "COMPUTE_AT k2 k3 r1 16, SPLIT_REDUCE k4 r2.0 r3 8 4, INTERCHANGE k5 r0 r2 r1 8, POLYPHASE k12"


def test_they_are_read_as_they_are_written() -> None:
    opts = parse_kernel_opts(TEXT)
    assert render_kernel_opts(opts) == TEXT
    assert opts[1] == KernelOpt(Kind.SPLIT_REDUCE, (4,), ((2, 0), (3,)), (8, 4))
    assert parse_kernel_opts("none") == () and render_kernel_opts(()) == "none"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SPLIT k0", "kernel opt 'SPLIT k0': expected one of FUSE, .*, got 'SPLIT'"),
        ("SCATTER k", "kernel opt 'SCATTER k': expected kernels as k2, axes as r1.0, then numbers, got 'k'"),
        ("SCATTER 3 k1", "expected kernels as k2, .* got 'k1'"),
        ("COMPUTE_AT k0 r1 k1", "expected kernels as k2, .* got 'k1'"),
    ],
)
def test_what_is_none_is_an_error(text: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        parse_kernel_opts(text)
    with Context(KERNEL_OPTS=text), pytest.raises(ArgumentError, match="environment variable KERNEL_OPTS"):
        (Tensor([1.0], device="CPU") + 2.5).realize()


@pytest.mark.parametrize("name", [n for n in CASES if n not in ("store-fp8-as-bits", "separate-offsets")])
def test_what_passes_decided_makes_the_same_kernels_when_given(name: str) -> None:
    target, graph, _ = CASES[name]
    plan, context = plan_of(graph(), target)
    done = list(steps(plan.calls, context))
    opts = tuple(opt for step in done for opt in step.opts)
    assert next(step for step in done if step.name == name).opts
    text = render_kernel_opts(opts)
    again = decide_kernels(plan, context, parse_kernel_opts(text))
    assert [call.ast for call in again.calls] == [call.ast for call in done[-1].calls]


def test_every_kind_has_an_arity_and_a_line_in_the_docstring() -> None:
    from polygrad.codegen.kernels import kernel_opt

    examples = re.findall(r"^    ([A-Z_]+ k\d.*?)  ", kernel_opt.__doc__ or "", re.MULTILINE)
    assert [opt.kind for text in examples for opt in parse_kernel_opts(text)] == list(Kind)
    assert set(_ARITY) == set(Kind)


PRODUCT: Callable[[], Tensor] = lambda: data(64, 512) @ data(512, 64)

WINDOWS: Callable[[], Tensor] = lambda: data(4, 20, 20).max_pool2d((3, 3), stride=1)

GROUPS: Callable[[], Tensor] = lambda: centred(data(64, 32), data(64, 32))

CHAIN: Callable[[], Tensor] = lambda: (data(512, 64) @ data(64, 512)).exp().sum(1)


@pytest.mark.parametrize(
    ("graph", "text", "message"),
    [
        (PRODUCT, "SCATTER k1", "expected kernels from 0 to 0, got 1"),
        (PRODUCT, "SCATTER k0", "expected a kernel with one sum, over one-hots of output elements"),
        (
            PRODUCT,
            "KEYED_SCAN k0",
            "expected a kernel with a sum over the earlier elements that have the same",
        ),
        (PRODUCT, "SCATTER k0 3", "expected 1 kernels, 0 axes and 0 numbers, got 1, 0, 1"),
        (lambda: data(64, 512).softmax(), "FUSE k0 k2", "expected a kernel whose output one kernel reads"),
        (CHAIN, "FUSE k0 k1", "expected a kernel with a reduction, of rows that the outermost loops"),
        (GROUPS, "FUSE k0 k1", "expected a kernel with a reduction, of rows that the outermost loops"),
        (GROUPS, "FUSE k0 k1 r0 7", "expected a loop, and sizes that divide each other and its rounds"),
        (PRODUCT, "COMPUTE_AT k0", "expected 2 kernels, 0 to 1 axes and 0 to 1 numbers, got 1, 0, 0"),
        (PRODUCT, "COMPUTE_AT k0 k0 r0", "expected a kernel whose output one kernel reads, behind it"),
        (PRODUCT, "INDEX_PUT k0", "expected a kernel that writes values at positions"),
        (PRODUCT, "COMPUTE_ROOT k0 0", "sum 0: it is all that the kernel computes"),
        (PRODUCT, "SPLIT_REDUCE k0 r7 2", r"expected axes of the kernel \(r0, r1, r2\), got r7"),
        (PRODUCT, "SPLIT_REDUCE k0 r0 2", "expected loops of a sum, and 2 parts of each up to as many"),
        (PRODUCT, "SPLIT_REDUCE k0 r2 1", "expected loops of a sum, and 2 parts of each up to as many"),
        (PRODUCT, "SPLIT_REDUCE k0 r2 512", "expected fewer parts than the 512 terms of the sum"),
        (PRODUCT, "SPLIT_REDUCE k0 r2 2 2", "expected loops of a sum, and 2 parts of each up to as many"),
        (PRODUCT, "INTERCHANGE k0 r2 r1 8", "expected the loop of the sum, and all loops around that"),
        (PRODUCT, "INTERCHANGE k0 r0 r2 r1 1000", "expected 1 to 512 terms at a time, got 1000"),
        (lambda: data(8) + 1, "INTERCHANGE k0 r0 8", "expected a kernel with one sum, got one with 0"),
        (PRODUCT, "POLYPHASE k0", "expected a sum of terms that are 0 unless a position is a multiple"),
        (PRODUCT, "RELAYOUT k0 2 0 1", "expected an operand of a sum .*, got 2"),
        (PRODUCT, "RELAYOUT k0 1 0 0", r"expected an order of the 2 axes of the copy, got \[0, 0\]"),
        (PRODUCT, "DOT_PRODUCT k0 r1", "expected a sum of products of narrow numbers"),
        (PRODUCT, "SEPARATE k0 r2", "expected loops of a reduction along one of several axes of its windows"),
        (WINDOWS, "SEPARATE k0 r3 r4", "expected loops of a reduction along one of several axes"),
        (WINDOWS, "SEPARATE k0 r2", "expected loops of a reduction along one of several axes"),
        (PRODUCT, "SPLIT_RANGE k0 r2 100", "expected a loop, and sizes that divide each other"),
        (PRODUCT, "SPLIT_RANGE k0 r2 24 128", "expected a loop, and sizes that divide each other"),
        (PRODUCT, "NARROW_STORAGE k0", "expected a kernel that stores converted values"),
        (lambda: data(8) + 1, "SPLIT_REDUCE k0 r0 2", "expected loops of a sum, and 2 parts"),
        (CHAIN, "COMPUTE_AT k0 k1 r9", r"expected a loop that both kernels have \(r0\)"),
        (CHAIN, "COMPUTE_AT k0 k1 r0 7", "expected blocks that divide a loop of 512 rounds, got 7"),
    ],
)
def test_what_does_not_apply_says_why(graph: Callable[[], Tensor], text: str, message: str) -> None:
    plan, context = plan_of(graph())
    (opt,) = parse_kernel_opts(text)
    with pytest.raises(OptError, match=re.escape(f"kernel opt {text!r}: ") + message):
        apply(list(plan.calls), opt, context)


def test_not_to_a_kernel_with_opts_by_hand() -> None:
    plan, context = plan_of((data(64, 64) @ data(64, 64)).contiguous(opts="UPCAST r0 4"))
    with pytest.raises(OptError, match=r"expected a kernel with .* no Opts given by hand"):
        apply(list(plan.calls), parse_kernel_opts("SPLIT_REDUCE k0 r2 2")[0], context)


def softmax(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    exponentials: np.ndarray = np.exp(x)
    return exponentials / exponentials.sum(1, keepdims=True)


def test_passes_leave_kernels_with_opts_by_hand_whole() -> None:
    """But a reduction moves into one, and its loops are split."""
    packed = CASES["split-ranges"][1]()
    for graph, expected in (
        (data(64, 512).softmax(), "FUSE k1 k2, FUSE k0 k1"),
        (packed, "SPLIT_RANGE k0 r1 32"),
    ):
        plan, context = plan_of(graph.contiguous(opts="UPCAST r0 4"))
        opts = [opt for step in steps(plan.calls, context) for opt in step.opts]
        assert render_kernel_opts(opts) == expected


def means(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, 1), (3, 3))[::2, ::2]
    return np.asarray(windows.mean((2, 3)))


def pooled(x: Tensor, y: Tensor) -> Tensor:
    return x.reshape(1, *x.shape).avg_pool2d((3, 3), stride=2, padding=1)[0]


BY_HAND: list[tuple[str, Callable[[Tensor, Tensor], Tensor], Callable[..., np.ndarray], int]] = [
    ("none", lambda x, y: x.T @ y, lambda x, y: x.T @ y, 1),
    ("SPLIT_REDUCE k0 r2 4", lambda x, y: x @ y.T, lambda x, y: x @ y.T, 2),
    ("SPLIT_REDUCE k0 r2 7", lambda x, y: x @ y.T, lambda x, y: x @ y.T, 2),
    ("SPLIT_REDUCE k0 r2 33", lambda x, y: x @ y.T, lambda x, y: x @ y.T, 2),  # parts of one term
    ("RELAYOUT k0 1 1 0, RELAYOUT k1 0 1 0", lambda x, y: x @ y.T, lambda x, y: x @ y.T, 3),
    ("INTERCHANGE k0 r1 r0 5", lambda x, y: x.sum(0), lambda x, y: x.sum(0), 2),
    ("SPLIT_REDUCE k0 r1 3, INTERCHANGE k0 r0 r1 r2 4", lambda x, y: x.sum(0), lambda x, y: x.sum(0), 3),
    ("SEPARATE k0 r3", pooled, means, 2),
    ("SEPARATE k0 r2, COMPUTE_AT k0 k1", pooled, means, 1),
    ("SEPARATE k0 r3, COMPUTE_AT k0 k1 r0", pooled, means, 1),
    ("FUSE k0 k1 r0 4", centred, centred_array, 1),
    ("FUSE k1 k2, FUSE k0 k1", lambda x, y: x.softmax(1), softmax, 1),
    ("FUSE k1 k2, FUSE k0 k1, COMPUTE_ROOT k0 0", lambda x, y: x.softmax(1), softmax, 2),
]  # fmt: skip


@pytest.mark.parametrize(("text", "function", "expected", "launches"), BY_HAND, ids=[c[0] for c in BY_HAND])
@pytest.mark.parametrize("device", ["CPU", "WASM"])
def test_kernels_as_given_within_1e_4(
    device: str,
    text: str,
    function: Callable[..., Tensor],
    expected: Callable[..., np.ndarray],
    launches: int,
) -> None:
    x, y = values(60, 64), values(60, 64)
    a, b = (Tensor(v, device=device).realize() for v in (x, y))
    before = stats.launches
    with Context(KERNEL_OPTS=text, SPEC=1):
        got = function(a, b).numpy()
    np.testing.assert_allclose(got, expected(x, y), atol=1e-4, rtol=1e-4)
    assert stats.launches - before == launches


def test_given_ones_that_do_not_apply_are_errors_and_others_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    x = Tensor(values(64, 64), device="CPU").realize()
    monkeypatch.setenv("KERNEL_OPTS", "POLYPHASE k0")
    with pytest.raises(OptError, match="kernel opt 'POLYPHASE k0': expected a sum of terms"):
        (x @ x).realize()
    monkeypatch.delenv("KERNEL_OPTS")
    assert (x @ x).numpy().shape == (64, 64)


def test_a_context_takes_texts_for_texts() -> None:
    with pytest.raises(ArgumentError, match=r"Context: expected an int for one of .* got KERNEL_OPTS=3"):
        Context(KERNEL_OPTS=3)
    with pytest.raises(ArgumentError, match=r"Context: expected an int for one of .* got BEAM='2'"):
        Context(BEAM="2")


def _gradient(loss: Callable[[Tensor], Tensor], *shape: int) -> Tensor:
    x = Tensor(values(*shape), device="INTERP", requires_grad=True)
    loss(x).backward()
    assert x.grad is not None
    return x.grad


def _places(count: int, below: int) -> Tensor:
    return Tensor(RNG.integers(0, below, count).astype(np.int32), device="INTERP").realize()


# Graphs in which what one pass is about stands beside what another is about.
MIXED: dict[str, Callable[[], Tensor]] = {
    "a row of two tables": lambda: data(900, 1024)[_places(1, 900)] + data(700, 1024)[_places(1, 700)],
    "rows of two tables": lambda: data(900, 1024)[_places(3, 900)] + data(700, 1024)[_places(3, 700)],
    "and their norm": lambda: (
        data(900, 1024)[_places(3, 900)] + data(700, 1024)[_places(3, 700)]
    ).layernorm(),
    "gradient of rows": lambda: _gradient(lambda w: (w[_places(40, 900)] * data(40, 1024)).sum(), 900, 1024),
    "gradient of classes": lambda: _gradient(lambda x: x.cross_entropy(_places(64, 512)), 64, 512),
    "gradient of a norm": lambda: _gradient(lambda x: (x.layernorm() * data(64, 512)).sum(), 64, 512),
    "variance of columns": lambda: data(2048, 1024).var(0),
    "columns without their mean": lambda: data(2048, 1024) - data(2048, 1024).mean(0),
    "sum of chosen columns": lambda: data(2048, 1024)[:, _places(9, 1024)].sum(0),
    "the greatest, and their rows": lambda: data(700, 64)[data(700).topk(5)[1]],
    "running sums": lambda: data(64, 4096).cumsum(1).softmax(1),
    "pooled windows": lambda: (
        data(2, 8, 33, 33).conv2d(data(8, 8, 3, 3), stride=2).max_pool2d().sum((0, 2, 3))
    ),
}


@pytest.mark.parametrize("name", [*CASES, *MIXED])
@pytest.mark.parametrize("target", [CPU, CUDA], ids=lambda target: target.name)
def test_all_that_is_proposed_can_be_carried_out(name: str, target: Target) -> None:
    """Also what does not pay: one after the other, and each by itself."""

    def try_alone(calls: Calls, proposal: Proposal) -> None:
        apply(calls, proposal.opt, context)

    def take(calls: Calls, proposal: Proposal) -> KernelOpt:
        return proposal.opt

    for make in CASES[name][1:] if name in CASES else [MIXED[name]]:
        plan, _ = plan_of(make(), target)
        context = KernelContext(target, True, frozenset(plan.roots), plan.apart, searching=True)
        for choose in (take, try_alone):
            *_, last = steps(plan.calls, context, choose)
            for call in last.calls:
                verify(call.ast.toposort(), "kernel")


def test_a_copy_that_is_there_is_not_made_again() -> None:
    x, y, z = data(512, 512), data(512, 512), data(512, 512)
    sink = normalize(UOp.sink((x.T @ y).uop.base, (x.T @ z).uop.base)).sink
    plan, context = schedule_graph(sink, CPU, True)
    opts: KernelOpts = tuple(opt for step in steps(plan.calls, context) for opt in step.opts)
    assert render_kernel_opts(opts) == "RELAYOUT k0 0 1 0, RELAYOUT k2 0 1 0"
    *_, last = steps(plan.calls, context)
    assert len(last.calls) == len(plan.calls) + 1
