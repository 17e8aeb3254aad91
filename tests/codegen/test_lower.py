"""Lowering as a whole: every pass leaves a legal kernel, for random graphs and three kinds of Target."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from graphs import graphs
from hypothesis import HealthCheck, given, note, settings

from polygrad import Tensor
from polygrad.codegen.lower import passes as module
from polygrad.codegen.lower.passes import (
    PASSES,
    LoweringContext,
    Pass,
    kernel_name,
    lower,
    run_passes,
    signature,
)
from polygrad.codegen.opts.opt import OptKind
from polygrad.codegen.opts.tile import is_tile
from polygrad.codegen.target import Target, Workgroups
from polygrad.dtype import dtypes
from polygrad.engine.normalize import normalize
from polygrad.errors import InternalError
from polygrad.uop.args import AxisKind, Param
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.printer import render
from polygrad.uop.spec import verify
from tests.schedules import schedule

TARGETS = (
    Target("PLAIN"),
    Target("NARROW", simd_bytes=16, registers=16, fma=True, index_bits=32),
    Target("WIDE", simd_bytes=64, registers=32, fma=True),
)


def check_order(linear):
    """Sources come before users, loops close innermost first, nothing made in a loop is used after it."""
    position = {n: i for i, n in enumerate(linear)}
    assert len(position) == len(linear)
    open_loops: list[UOp] = []
    made_in: dict[UOp, tuple[UOp, ...]] = {}
    for i, node in enumerate(linear):
        for s in node.src:
            assert position[s] < i, f"{node} before its source {s}"
            if s.op is not Ops.END and not (s.op is Ops.RANGE and is_tile(s)):
                inside = made_in[s]
                assert tuple(open_loops[: len(inside)]) == inside, f"{node} uses {s} outside of its loop"
        if node.op is Ops.END:
            assert open_loops and open_loops.pop() is node.src[1], "loops cross"
        if node.op is Ops.RANGE and not is_tile(node):
            open_loops.append(node)
        made_in[node] = tuple(open_loops)
    assert not open_loops


@settings(suppress_health_check=list(HealthCheck), report_multiple_bugs=False)
@given(graph=graphs())
def test_random_kernels_are_legal_after_every_pass(graph):
    sink = normalize(UOp.sink(*(n.uop for n in graph.outputs))).sink
    note(render(sink))
    for optimized in (False, True):
        for call in schedule(sink, optimized).calls:
            for target in TARGETS:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setenv("SPEC", "1")
                    linear = lower(call.ast, target, optimized)
                note(render(linear))
                verify(linear, "linear")
                check_order(linear)


def sum_kernel(op=Ops.ADD, rows=4, columns=3):
    """out[i] = op of in[i, :]"""
    i, j = UOp.range(rows, 0), UOp.range(columns, 1, AxisKind.REDUCE)
    out = UOp(Ops.PARAM, dtypes.float32, (), Param(0, rows))
    data = UOp(Ops.PARAM, dtypes.float32, (), Param(1, rows * columns))
    value = UOp(Ops.LOAD, dtypes.float32, (UOp(Ops.INDEX, dtypes.float32, (data, i * columns + j)),))
    total = UOp(Ops.REDUCE, dtypes.float32, (value, j), op)
    store = UOp(Ops.STORE, dtypes.void, (UOp(Ops.INDEX, dtypes.float32, (out, i)), total))
    return UOp.sink(UOp(Ops.END, dtypes.void, (store, i)))


def test_unoptimised_kernels_are_scalar_loops():
    linear = lower(sum_kernel(), TARGETS[1], optimized=False)
    ranges = [n for n in linear if n.op is Ops.RANGE]
    assert [r.arg.kind for r in ranges] == [AxisKind.LOOP, AxisKind.REDUCE]
    assert not any(n.op is Ops.MULACC for n in linear)


def test_equal_kernels_have_one_signature_and_name():
    first, second = (lower(sum_kernel(), TARGETS[0]) for _ in range(2))
    assert signature(first) == signature(second)
    assert kernel_name(first, signature(first)) == kernel_name(second, signature(second))


def test_different_kernels_have_different_signatures():
    texts = {signature(lower(k, TARGETS[0])) for k in (sum_kernel(), sum_kernel(Ops.MAX), sum_kernel(rows=5))}
    assert len(texts) == 3


def test_loop_invariant_work_stays_outside():
    x = Tensor.zeros(6, 50).contiguous().realize()
    (call,) = schedule(normalize(UOp.sink((x * x[:, :1].exp()).sum(1).uop.base)).sink).calls
    linear = lower(call.ast, TARGETS[0], optimized=False)
    inner = next(i for i, n in enumerate(linear) if n.op is Ops.RANGE and n.arg.kind is AxisKind.REDUCE)
    loads = [i for i, n in enumerate(linear) if n.op is Ops.LOAD and n.src[0].src[0].op is Ops.PARAM]
    assert sum(i < inner for i in loads) == 1


def test_siblings_run_one_after_the_other():
    out = UOp(Ops.PARAM, dtypes.float32, (), Param(0, 8))
    stores = []
    for k in range(2):
        r = UOp.range(4, k)
        at = UOp(Ops.INDEX, dtypes.float32, (out, r + 4 * k))
        stores.append(
            UOp(Ops.END, dtypes.void, (UOp(Ops.STORE, dtypes.void, (at, UOp.const(dtypes.float32, k))), r))
        )
    linear = run_passes(UOp.sink(*stores), LoweringContext(TARGETS[0]), after="decompose")
    check_order(linear)
    opened = [n.op for n in linear if n.op in (Ops.RANGE, Ops.END)]
    assert opened == [Ops.RANGE, Ops.END, Ops.RANGE, Ops.END]


def names_shown(capsys):
    """The passes after which a kernel was printed; it is after each Opt, too."""
    lines = capsys.readouterr().err.splitlines()
    names = [line.removeprefix("# after ") for line in lines if line.startswith("# after ")]
    return [name for name in names if name.split()[0] not in OptKind.__members__]


def test_every_pass_is_shown_in_order(monkeypatch, capsys):
    monkeypatch.setenv("DEBUG", "4")
    lower(sum_kernel(), TARGETS[1])
    assert names_shown(capsys) == [p.name for p in PASSES]
    lower(sum_kernel(), TARGETS[1], optimized=False)
    plain = names_shown(capsys)
    assert plain == [p.name for p in PASSES if p.name in plain]
    assert "simplify" in plain and "linearize" in plain
    assert not {"flatten-reductions", "optimize", "split-indices"} & set(plain)


@pytest.mark.parametrize("name", [p.name for p in PASSES])
def test_lowering_starts_after_any_pass(name):
    kernel, context = sum_kernel(rows=40, columns=30), LoweringContext(TARGETS[2])
    half = run_passes(kernel, context, through=name)
    linear = half if name == "linearize" else run_passes(half, context, after=name)
    assert linear == lower(kernel, TARGETS[2])


def test_a_name_that_no_pass_has_is_refused():
    for names in ({"after": "fold"}, {"through": "fold"}):
        with pytest.raises(InternalError, match=r"expected a pass, one of simplify, .*, got 'fold'"):
            run_passes(sum_kernel(), LoweringContext(TARGETS[0]), **names)


@pytest.mark.parametrize("position", range(len(PASSES)))
def test_spec_1_checks_what_each_pass_leaves(position, monkeypatch):
    """A STORE to a number, and a list that lacks a node which another has for a source, are legal nowhere."""

    def broken(kernel, context):
        code = PASSES[position].run(kernel, context)
        store = UOp(Ops.STORE, dtypes.void, (UOp.index(0), UOp.index(0)))
        return [*code[:-2], code[-1]] if isinstance(code, list) else UOp.sink(*code.src, store)

    passes = [*PASSES]
    passes[position] = Pass(PASSES[position].name, broken)
    monkeypatch.setattr(module, "PASSES", tuple(passes[: position + 1]))
    lower_so_far = lambda: run_passes(sum_kernel(), LoweringContext(TARGETS[1]))
    lower_so_far()
    monkeypatch.setenv("SPEC", "1")
    with pytest.raises(InternalError, match="IR: "):
        lower_so_far()


def test_the_architecture_shows_the_passes_as_they_are():
    text = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:3] for line in text.splitlines() if re.match(r"\| `[a-z-]+` \|", line)]
    listed = [(name.strip(" `"), kind.strip()) for name, kind in rows]
    plain = LoweringContext(TARGETS[0], optimized=False)
    gpu = LoweringContext(Target("GPU", workgroups=Workgroups()))

    def kind(step: Pass) -> str:
        if step.applies(plain):
            return ""
        return "optimised" if step.applies(gpu) else "processors"

    has = [(p.name, kind(p)) for p in PASSES]
    assert [row for row in listed if row[0] in {p.name for p in PASSES}] == has
