"""Opts given by hand: each kind computes the same numbers; those that do not apply, and texts that are none,
say why. `tests/device/test_random_graphs.py` has random sequences of them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from polygrad import Tensor
from polygrad.codegen.lower import passes as lowering
from polygrad.codegen.lower.passes import UNOPTIMIZED, LoweringContext, run_passes
from polygrad.codegen.opts.heuristics import choose
from polygrad.codegen.opts.opt import OptKind, apply, apply_opts, parse_opts, render_opts
from polygrad.codegen.opts.search_space import actions, neighbours
from polygrad.codegen.target import Target, Workgroups
from polygrad.engine.normalize import normalize
from polygrad.errors import ArgumentError, OptError
from polygrad.renderer.emit import emit
from polygrad.renderer.wasm.builder import WasmBuilder, wasm_module
from polygrad.uop.args import AddrSpace, AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.wasm.wat import print_module
from tests.schedules import schedule
from tests.uop.evaluation import value_of

RNG = np.random.default_rng(5)
TARGET = Target("test", simd_bytes=16, registers=15, fma=True, threads=4)
DEVICES = ["CPU", "WASM"]


def empty(*shape):
    return Tensor.zeros(*shape).contiguous().realize()


def numbers(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def kernel(out):
    """The kernel of a Tensor that Opts apply to."""
    calls = schedule(normalize(UOp.sink(out.uop.base)).sink, optimized=True).calls
    return run_passes(calls[-1].ast, LoweringContext(TARGET), through=UNOPTIMIZED)


# --- as data

TEXTS = ["SIMD r1 16 4, UPCAST r0 6", "UNROLL r2 4", "SPLIT r1.0 8, REORDER r1.0.0 r0 r1.0.1", "MERGE r0 r1",
         "PARTITION r1 3 7", "STAGE r2 LOAD 1", "STAGE r0.1 REDUCE 0, PARALLEL r0.0 4", ""]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_read_and_written(text):
    assert render_opts(parse_opts(text)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("FUSE r0 r1", r"opt 'FUSE r0 r1': expected one of SIMD, UPCAST, .*, got 'FUSE'"),
        ("SIMD 4 r1", r"opt 'SIMD 4 r1': expected axes as r1.0, then numbers, got 'r1'"),
        ("UPCAST r0 6, SIMD rx 4 1", r"opt 'SIMD rx 4 1': expected axes as r1.0, then numbers, got 'rx'"),
    ],
)
def test_a_text_that_is_none_says_where(text, message):
    with pytest.raises(ArgumentError, match=message):
        empty(4).exp().contiguous(opts=text)


def test_with_opts_it_is_a_copy():
    x = empty(4)
    y = x.contiguous(opts="UPCAST r0 4")
    x += 1
    assert (x.tolist(), y.tolist()) == ([1.0] * 4, [0.0] * 4)


# --- each kind, and the tilings that the heuristics make

PRODUCT = [
    "",
    "SIMD r1 4 2, UPCAST r0 6",
    "SIMD r1 4 1, UPCAST r0 3, UNROLL r2 4",
    "SIMD r1 8 2, UPCAST r0 2",  # more lanes than WASM's registers have
    "UPCAST r0 4, UPCAST r1 4",
    "UNROLL r2 8",
    "SIMD r2 4 2, UPCAST r0 2, UPCAST r1 3",
    "SIMD r2 4 1",
    "REORDER r1 r0",
    "REORDER r1 r0, SIMD r1 4 2",
    "SPLIT r0 8",
    "SPLIT r1 4, REORDER r1.0 r0 r1.1, SIMD r1.1 4 1",
    "STAGE r2 LOAD 0",
    "STAGE r2 LOAD 1",
    "SIMD r1 4 2, UPCAST r0 6, STAGE r2 LOAD 1, REORDER r1.0 r0.0",
    "SIMD r1 4 2, UPCAST r0 6, STAGE r2 LOAD 0",
    "SIMD r1 4 2, UPCAST r0 6, STAGE r2 LOAD 0, STAGE r2 LOAD 2",
    "SIMD r1 4 2, UPCAST r0 6, STAGE r0.1 REDUCE 0",
    "SIMD r1 4 2, UPCAST r0 6, STAGE r1.1 REDUCE 0",
    "SIMD r1 4 1, SPLIT r1.0 3, STAGE r1.0.1 r2 LOAD 1, REORDER r1.0.0 r0 r1.0.1",
    "PARALLEL r0 4",
    "PARALLEL r1 4",
    "SIMD r1 4 2, UPCAST r0 6, STAGE r2 LOAD 1, REORDER r1.0 r0.0, PARALLEL r1.0 4",
    "PARTITION r0 5 11, SIMD r1.3 4 1",
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("opts", PRODUCT)
@pytest.mark.parametrize("transposed", [False, True])
def test_a_product_computed_in_any_way(device, opts, transposed):
    a, b, c = numbers(40, 20), numbers(24, 20) if transposed else numbers(20, 24), numbers(24)
    y = Tensor(b, device=device)
    out = Tensor(a, device=device) @ (y.T if transposed else y) + Tensor(c, device=device)
    want = a.astype(np.float64) @ (b.T if transposed else b) + c
    np.testing.assert_allclose(out.contiguous(opts=opts).numpy(), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "opts", ["", "MERGE r1 r2", "MERGE r1 r2, SIMD r1 4 2", "MERGE r2 r3, MERGE r1 r2, UNROLL r1 8"]
)
def test_a_sum_over_neighbouring_loops_as_one(device, opts):
    x = numbers(5, 6, 7, 8)
    got = Tensor(x, device=device).sum((1, 2, 3)).contiguous(opts=opts).numpy()
    np.testing.assert_allclose(got, x.astype(np.float64).sum((1, 2, 3)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("tensor", "opts", "message"),
    [
        (lambda x: x.sum((0, 2)), "MERGE r1 r2", "expected indices that step 7 times as far"),
        (lambda x: x.sum((1, 2)), "MERGE r2 r1", "expected two loops one directly inside the other"),
        (lambda x: x.sum((1, 2)), "MERGE r1 r0", "expected two loops one directly inside the other"),
        (lambda x: (x * Tensor.arange(7, device="CPU").float()).sum((1, 2)), "MERGE r1 r2", "only"),
    ],
)
def test_other_loops_of_sums_do_not_merge(tensor, opts, message):
    with pytest.raises(OptError, match=message):
        tensor(Tensor(numbers(5, 6, 7), device="CPU")).contiguous(opts=opts).numpy()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "opts",
    ["", "STAGE r2 EXP2 1", "STAGE r2 EXP2 1, SIMD r1 4 2, SIMD r2 4 1", "STAGE r2 EXP2 1, SIMD r2.4 4 2",
     "UNROLL r2 3, UNROLL r3 2", "SIMD r2 4 1", "STAGE r2 EXP2 1, PARALLEL r0 4"],
)  # fmt: skip
def test_a_softmax_computed_in_any_way(device, opts):
    x = numbers(9, 37)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    got = Tensor(x, device=device).softmax().contiguous(opts=opts).numpy()
    np.testing.assert_allclose(got, e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-30)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("opts", ["", "MERGE r0 r1", "MERGE r0 r1, SIMD r0 4 4", "SPLIT r1 6, SIMD r1.1 4 1"])
def test_an_elementwise_kernel_computed_in_any_way(device, opts):
    x, y = numbers(10, 18), numbers(10, 18)
    got = (Tensor(x, device=device) * Tensor(y, device=device)).contiguous(opts=opts).numpy()
    np.testing.assert_array_equal(got, x * y)


@pytest.mark.parametrize("opts", ["STAGE r1 LOAD 0", "STAGE r1 LOAD 0, SPLIT r0 4, MERGE r0.0 r0.1"])
@pytest.mark.parametrize("device", DEVICES)
def test_columns_that_are_copied_first(device, opts):
    """The loops of the columns are merged though what the copy holds depends on them."""
    x = np.arange(48, dtype=np.float32).reshape(6, 8)
    got = Tensor(x, device=device).realize().sum(0).contiguous(opts=opts).numpy()
    np.testing.assert_array_equal(got, x.sum(0))


@pytest.mark.parametrize(
    "opts", ["UNROLL r1 3", "STAGE r1 LOAD 0, UNROLL r1 5", "STAGE r1 LOAD 0, UNROLL r1 3"]
)
@pytest.mark.parametrize("device", DEVICES)
def test_sums_of_products_of_what_is_copied_first(device, opts):
    """An unrolled sum has rounds left over: what is copied in every round is copied there, too."""
    x = np.arange(180, dtype=np.float32).reshape(20, 9)
    t = Tensor(x, device=device).realize()
    product = ((t.reshape(20, 1, 9) * t.reshape(9, 20).T.reshape(1, 20, 9)).sum(2) + 1.0) * 2.0
    got = product.reshape(10, 40).sum(0).contiguous(opts=opts).numpy()
    np.testing.assert_array_equal(got, ((x @ x.reshape(9, 20) + 1) * 2).reshape(10, 40).sum(0))


@pytest.mark.parametrize("opts", ["", "PARTITION r1 18", "PARTITION r1 4 18, SIMD r1.3 4 1"])
@pytest.mark.parametrize("device", DEVICES)
def test_a_concatenation_computed_in_any_way(device, opts):
    x, y = numbers(10, 18), numbers(10, 5)
    got = Tensor(x, device=device).cat(Tensor(y, device=device), dim=1).contiguous(opts=opts).numpy()
    np.testing.assert_array_equal(got, np.concatenate([x, y], 1))


def test_what_is_given_is_what_the_kernel_has():
    nodes = lowering.lower(kernel(empty(40, 20) @ empty(20, 24)), TARGET, opts=parse_opts(PRODUCT[14]))
    tiles = {(r.arg.kind, r.src[0].arg) for n in nodes if n.op is Ops.INDEX and n.arg for r, _ in n.arg.steps}
    assert {(AxisKind.LANE, 4), (AxisKind.UPCAST, 2), (AxisKind.UPCAST, 6)} <= tiles
    (panel,) = [n for n in nodes if n.op is Ops.PARAM and n.arg.space is AddrSpace.LOCAL]
    assert panel.arg.size == 20 * 8


def test_the_documentation_follows_a_kernel_as_it_is():
    """Its Opts, in order, and the instructions of its innermost loop."""
    section = (Path(__file__).parents[2] / "docs/internals/one_kernel.md").read_text(encoding="utf-8")
    written = re.findall(r"^\d\. `([A-Z]+ r[^`]*)`", section, re.MULTILINE)
    wasm = Target("WASM", simd_bytes=16, registers=15, fma=True, scalar_fma=True, threads=4, index_bits=32)
    out = empty(512, 512).linear(empty(512, 512), empty(512)).gelu()
    (call,) = schedule(normalize(UOp.sink(out.uop.base)).sink, optimized=True).calls
    context = LoweringContext(wasm)
    ast = run_passes(call.ast, context, through=UNOPTIMIZED)
    assert ", ".join(written) == render_opts(choose(ast, wasm))
    module = wasm_module([emit("kernel", lowering.lower(call.ast, wasm), WasmBuilder(relaxed=True))])
    lines = print_module(module).splitlines()
    loops = []  # in whichever function: the kernel is in parts
    for first, line in enumerate(lines):
        if line.lstrip() == "loop":
            last = first + [x.rstrip(")") for x in lines[first:]].index(line.replace("loop", "end"))
            if not any(inside.lstrip() == "loop" for inside in lines[first + 1 : last]):
                loops.append([inside.split() for inside in lines[first:last]])
    inner = max(loops, key=lambda loop: sum(words[0] == "v128.load32_splat" for words in loop))
    splats = [words[1:] for words in inner if words[0] == "v128.load32_splat"]
    assert sum(words[0] == "f32x4.relaxed_madd" for words in inner) == 12
    assert splats == [[], *([f"offset={2048 * i}"] for i in range(1, 6))]
    assert sum(words[0] == "v128.load" for words in inner) == 2


def test_opts_given_by_hand_reach_the_kernel(monkeypatch, capsys):
    monkeypatch.setenv("DEBUG", "3")
    (Tensor(numbers(8, 16), device="CPU") + 1).contiguous(opts="SIMD r1 4 1, UPCAST r0 2").realize()
    assert "# opts: SIMD r1 4 1, UPCAST r0 2" in capsys.readouterr().err


# --- errors

ERRORS = [
    ("SIMD r9 4 1", "expected an axis of the kernel (r0, r1, r2), got r9"),
    ("SIMD r1 4", "expected 1 axes and 2 numbers, got 1 and 1"),
    ("SIMD r1 3 1", "a power of 2 of lanes, got 1 x 3 lanes"),
    ("SIMD r1 4 1, SIMD r0 4 1", "values of one SIMD axis"),
    ("SIMD r1 4 1, SIMD r2 8 1", "lanes of one width, 4, got 8"),
    ("UPCAST r1 25", "expected a tile of 2 to 24 elements"),
    ("UPCAST r2 4", "expected an axis of kind LOOP, got REDUCE"),
    ("UNROLL r1 4", "expected an axis of kind REDUCE, got LOOP"),
    ("SPLIT r1 5", "divides it, 24, got 5"),
    ("SPLIT r2 20", "expected less than the loop's size, 20, and at least 2, got 20"),
    ("REORDER r0 r0", "expected different loops of one nest"),
    ("MERGE r1 r0", "expected two loops one directly inside the other"),
    ("MERGE r0 r1", "expected indices that step 24 times as far"),
    ("PARTITION r0 9 5", "expected increasing values between 0 and 40"),
    ("STAGE r2 LOAD 2", "expected one of the kernel's 2 values of LOAD"),
    ("STAGE r1 LOAD 0", "expected loops and unrolled axes of the value, got r1"),
    ("STAGE r2 1", "expected the op of a value for STAGE"),
    ("SIMD r1 4 1 , UPCAST r0 LOAD 2", "expected the op of a value for STAGE"),
    (
        "UPCAST r0 4, STAGE r0.1 REDUCE 0, STAGE r0.1.4 REDUCE 0",
        "expected axes that no memory is filled over",
    ),
    ("STAGE r2 LOAD 0, UPCAST r0 4", "expected an axis that no memory is filled inside of, got r0"),
    ("PARALLEL r0 1", "at least 2 threads"),
    ("PARALLEL r0 4, PARALLEL r1 4", "expected"),
]


@pytest.mark.parametrize(("text", "message"), ERRORS, ids=[t for t, _ in ERRORS])
def test_an_opt_that_does_not_apply_says_why(text, message):
    with pytest.raises(OptError) as raised:
        apply_opts(kernel(empty(40, 20) @ empty(20, 24)), parse_opts(text))
    assert message in str(raised.value) and str(raised.value).startswith("opt '")


def test_a_quotient_by_the_block_size_of_a_split_sum_is_the_block():
    """A load at the quotient does not depend on the loop in a block, and memory for that loop is refused."""
    repeated = empty(4, 6).unsqueeze(2).expand(4, 6, 8).reshape(4, 48)
    ast = kernel((repeated * empty(4, 48)).sum(1))
    apply_opts(ast, parse_opts("SPLIT r1 8, STAGE r1.1 LOAD 1"))
    with pytest.raises(OptError, match=r"expected loops and unrolled axes of the value, got r1\.1"):
        apply_opts(ast, parse_opts("SPLIT r1 8, STAGE r1.1 LOAD 0"))


def test_a_loop_is_divided_between_no_fewer_threads_than_have_memory():
    ast = kernel(empty(40, 20) @ empty(20, 24))
    with pytest.raises(OptError, match="the target's 4 threads, each of which has memory of its own, got 2"):
        lowering.lower(ast, TARGET, opts=parse_opts("PARALLEL r0 2"))
    given = "SIMD r1 4 2, UPCAST r0 6, STAGE r2 LOAD 1, REORDER r1.0 r0.0, PARALLEL r1.0 {}"
    for threads in (4, 8):
        linear = lowering.lower(ast, TARGET, opts=parse_opts(given.format(threads)))
        (panel,) = [n for n in linear if n.op is Ops.PARAM and n.arg.space is AddrSpace.LOCAL]
        assert panel.arg.size == threads * 20 * 8
        variables = {n.arg.name: n.arg.hi for n in linear if n.op is Ops.DEFINE_VAR}
        assert variables == {"part": 4 * threads - 1, "parts": 4 * threads, "thread": threads - 1}


def test_what_each_part_would_do_again_is_divided_into_one_part_for_each_thread():
    """The panel is filled outside of the rows: four parts of a thread would fill it four times."""
    ast = kernel(empty(40, 20) @ empty(20, 24))
    linear = lowering.lower(
        ast, TARGET, opts=parse_opts("SIMD r1 4 2, STAGE r2 LOAD 1, REORDER r1.0 r0, PARALLEL r0 4")
    )
    assert {n.arg.name for n in linear if n.op is Ops.DEFINE_VAR} == {"thread", "threads"}


@pytest.mark.parametrize("rounds", [1000, (1 << 28) + 5, (1 << 31) - 1])
@pytest.mark.parametrize(
    ("opts", "count"), [("PARALLEL r0 8", 32), ("STAGE r2 LOAD 1, REORDER r1 r0, PARALLEL r0 8", 8)]
)
def test_parts_have_all_rounds_of_a_loop_and_count_them_in_32_bits(opts, count, rounds):
    ast = kernel(empty(40, 20) @ empty(20, 24))
    rows = next(n for n in ast.toposort() if n.op is Ops.RANGE and n.arg.id == (0,))
    ast = ast.substitute({rows: UOp.range(rounds, rows.arg)})
    linear = lowering.lower(ast, TARGET, opts=parse_opts(opts))
    rows = next(n for n in linear if n.op is Ops.RANGE and n.arg.id == (0,))
    place = next(n for n in reversed(linear) if n.op is Ops.STORE).src[0].src[1]
    variables = [n for n in linear if n.op is Ops.DEFINE_VAR]
    first = 0
    for part in range(count):
        values = dict.fromkeys(place.ranges, 0) | {v: part if v.arg.lo == 0 else count for v in variables}
        counted = [value_of(n, values) for n in rows.src[0].toposort()]
        assert max(counted) < 1 << 31 and value_of(place, values) == 24 * first
        first += counted[-1]
    assert first == rounds


def test_a_kernel_whose_opts_do_not_apply_is_not_made_and_the_next_one_is():
    x = empty(8, 8)
    with pytest.raises(OptError, match="r7"):
        (x + 1).contiguous(opts="SIMD r7 4 1").realize()
    assert (x + 1).contiguous(opts="SIMD r1 4 1").sum().item() == 64


# --- what a search tries


def test_actions_apply_or_say_why_not():
    k = kernel((empty(40, 20) @ empty(20, 24)).exp().cat(empty(40, 20), dim=1))
    kinds = set()
    for action in actions(k, TARGET):
        try:
            apply(k, action)
        except OptError:
            continue
        kinds.add(action.kind)
    assert kinds == set(OptKind) - {
        OptKind.MERGE,
        OptKind.GLOBAL,
        OptKind.LOCAL,
        OptKind.GROUP,
        OptKind.MATMUL,
        OptKind.TENSOR_CORE,
    }


def test_actions_for_workgroups_apply_or_say_why_not():
    target = Target("GPU", simd_bytes=16, workgroups=Workgroups())
    k, kinds = kernel(empty(40, 20) @ empty(20, 24)), set()
    for _ in range(3):  # what may come after GLOBAL, after LOCAL
        for action in actions(k, target):
            try:
                made = apply(k, action)
            except OptError:
                continue
            if action.kind not in kinds:
                kinds.add(action.kind)
                after = made
        k = after
    assert kinds >= {OptKind.GLOBAL, OptKind.LOCAL, OptKind.GROUP, OptKind.STAGE, OptKind.SIMD}
    assert OptKind.PARALLEL not in kinds


def test_a_search_begins_with_any_action_that_applies():
    k = kernel(empty(5, 6, 7).sum((1, 2)))
    applicable = []
    for action in actions(k, TARGET):
        try:
            apply(k, action)
        except OptError:
            continue
        applicable.append((action,))
    assert any(action.kind is OptKind.MERGE for (action,) in applicable)
    assert [opts for opts, _ in neighbours(k, (), TARGET)] == applicable


def test_neighbours_are_what_their_opts_make():
    k = kernel(empty(40, 20) @ empty(20, 24))
    opts = choose(k, TARGET)
    found = list(neighbours(k, opts, TARGET))
    assert len(found) > 30
    for sequence, made in found:
        steps = apply_opts(k, sequence)
        assert sequence != opts and (steps[-1][1] if steps else k) is made
